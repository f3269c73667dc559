"""How this program is called: for lines that people copy, and for entries of other programs."""

import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

NAME = "vestige"


def script_beside(name: str) -> str | None:
    """The command of this name that belongs to this installation, by its absolute path."""
    script = Path(sys.executable).with_name(f"{name}.exe" if sys.platform == "win32" else name)
    return str(script) if script.exists() else None


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
    return shlex.join(words)
