"""How to call this program: for text that users copy, and for entries of other programs."""

import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from vestige.settings.directories import default_data_directory
from vestige.transports.cli.session import CliSession

NAME = "vestige"


def script_beside(name: str) -> str | None:
    """The absolute path of the script of this name in this installation, or None."""
    script = Path(sys.executable).with_name(f"{name}.exe" if sys.platform == "win32" else name)
    return str(script) if script.exists() else None


def locations_of(session: CliSession) -> dict[str, str]:
    """The data directory and settings file, if they are not the default ones."""
    named, data_dir = {}, session.settings().data_dir
    if "data_dir" in session.flags or data_dir != Path(default_data_directory({}, sys.platform)):
        named["data_dir"] = str(data_dir)
    if config := session.flags.get("config") or session.surroundings.get("config"):
        named["config"] = str(Path(config).expanduser().absolute())
    return named


def own_command(locations: Mapping[str, str]) -> str:
    """The command to type for `vestige` of this installation with these locations, in any directory."""
    script, found = script_beside(NAME), shutil.which(NAME)
    if script is None:
        words = [sys.executable, "-m", NAME]
    else:
        words = [NAME if found and Path(found).absolute() == Path(script) else script]
    for flag in ("data_dir", "config"):
        if flag in locations:
            words += [f"--{flag.replace('_', '-')}", str(Path(locations[flag]).expanduser().absolute())]
    return typed(words)


def typed(words: Sequence[str], platform: str = sys.platform) -> str:
    """Words quoted for the shell of a platform."""
    return subprocess.list2cmdline(words) if platform == "win32" else shlex.join(words)
