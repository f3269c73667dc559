"""The names of the compiled libraries. The build reads this file as well, where nothing else is installed."""

import platform
import sys

_SYSTEMS = {"linux": ("linux", "so"), "darwin": ("macos", "dylib"), "win32": ("windows", "dll")}
_MACHINES = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}


def file_name(system: str = sys.platform, machine: str | None = None) -> str | None:
    """The name of a platform's library, by default of this one's; None for other platforms. With its
    dot in the middle, Python does not take it for a module that can be imported."""
    known = _SYSTEMS.get(system)
    processor = _MACHINES.get((platform.machine() if machine is None else machine).lower())
    return None if known is None or processor is None else f"kernel.{known[0]}-{processor}.{known[1]}"
