"""How this program is called: for lines that people copy, and for entries of other programs."""

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
    """The command of this name that belongs to this installation, by its absolute path."""
    script = Path(sys.executable).with_name(f"{name}.exe" if sys.platform == "win32" else name)
    return str(script) if script.exists() else None


def places_of(session: CliSession) -> dict[str, str]:
    """The data directory and the settings file, as far as they are not where any program would look."""
    named, data_dir = {}, session.settings().data_dir
    if "data_dir" in session.flags or data_dir != Path(default_data_directory({}, sys.platform)):
        named["data_dir"] = str(data_dir)
    if config := session.flags.get("config") or session.surroundings.get("config"):
        named["config"] = str(Path(config).expanduser().absolute())
    return named


def own_command(places: Mapping[str, str]) -> str:
    """What to type for `vestige` of this installation and the memory at these places, in any directory."""
    script, found = script_beside(NAME), shutil.which(NAME)
    if script is None:
        words = [sys.executable, "-m", NAME]
    else:
        words = [NAME if found and Path(found).absolute() == Path(script) else script]
    for flag in ("data_dir", "config"):
        if flag in places:
            words += [f"--{flag.replace('_', '-')}", str(Path(places[flag]).expanduser().absolute())]
    return typed(words)


def typed(words: Sequence[str], platform: str = sys.platform) -> str:
    """Words as they are typed into a shell of a platform."""
    return subprocess.list2cmdline(words) if platform == "win32" else shlex.join(words)
