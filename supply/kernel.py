"""Builds the library of `vestige.cognition.native` with the package, where a C compiler is (ADR 0040).

Hatchling runs the hook for a wheel and for an editable installation. Without a compiler, or when it fails,
the package has no library and computes the same in numpy. Where the package `ziglang` is installed, it builds
the libraries of all platforms of a release. By hand:

    python -m supply.kernel
"""

import importlib.util
import os
import runpy
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = Path("src", "vestige", "cognition", "native")
FLAGS = ("-std=gnu11", "-O3", "-ffp-contract=off", "-fvisibility=hidden", "-fPIC", "-shared", "-Wno-psabi")
PLATFORMS = {
    ("linux", "x86_64"): "x86_64-linux-gnu.2.17",
    ("linux", "aarch64"): "aarch64-linux-gnu.2.17",
    ("darwin", "x86_64"): "x86_64-macos",
    ("darwin", "aarch64"): "aarch64-macos",
    ("win32", "x86_64"): "x86_64-windows-gnu",
}
"""The platforms of a release, and Zig's names of them."""
SECONDS = 300.0


class KernelBuild(BuildHookInterface[Any]):
    """Puts the libraries beside their source before the wheel is packed."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        for line in build(Path(self.root)):
            self.app.display_info(line)


def build(project: Path) -> list[str]:
    """Build the libraries that this machine can build; what was done, line by line."""
    name_of = runpy.run_path(str(project / FOLDER / "platforms.py"))["file_name"]
    if importlib.util.find_spec("ziglang") is not None:
        zig = [sys.executable, "-m", "ziglang", "cc"]
        commands: dict[str | None, list[str] | None] = {
            name_of(*one): [*zig, "-target", target, "-s"] for one, target in PLATFORMS.items()
        }
    else:
        commands = {name_of(): compiler()}
    return [_compiled(project / FOLDER, name, command) for name, command in commands.items()]


def compiler() -> list[str] | None:
    """The command of a C compiler that is here: `CC`, Python's own, or the usual names."""
    for given in (os.environ.get("CC"), sysconfig.get_config_var("CC"), "cc", "gcc", "clang"):
        words = shlex.split(given or "")
        if words and shutil.which(words[0]):
            return words
    return None


def _compiled(folder: Path, name: str | None, command: list[str] | None) -> str:
    if name is None or command is None:
        return "No C compiler for this platform: searches run in numpy."
    with tempfile.TemporaryDirectory() as place:
        made = Path(place) / name
        try:
            run = [*command, *FLAGS, str(folder / "kernel.c"), "-o", str(made)]
            subprocess.run(run, check=True, capture_output=True, timeout=SECONDS)
            content = made.read_bytes()
            library = folder / name
            # The same bytes are left alone: other processes may be using or packing the file.
            if not library.is_file() or library.read_bytes() != content:
                partial = folder / f".{name}.{os.getpid()}"
                partial.write_bytes(content)
                partial.replace(library)
        except (OSError, subprocess.SubprocessError) as exc:
            return f"{name} was not built, searches run in numpy: {exc}"
    return f"{name} was built."


if __name__ == "__main__":
    print("\n".join(build(Path(__file__).resolve().parents[1])))
