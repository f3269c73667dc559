"""Word lists: text files in the `data` folder of a package.

Every line is an entry. A line that starts with `#` is a comment; `[name]` on a line of its own starts the
section of that name. The module that needs a list reads it once, when it is imported.
"""

import re
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

from vestige.core.patterns import lazy_pattern

_SECTION = lazy_pattern(r"\[(\w+)\]")


def sections(package: str, name: str) -> dict[str, list[str]]:
    """The entries of `data/NAME.txt` in a package, by section; entries before the first are under ""."""
    # importlib.resources would import zipfile and tempfile at every start.
    folder = Path(str(import_module(package).__file__)).with_name("data")
    text = (folder / f"{name}.txt").read_text(encoding="utf-8")
    found: dict[str, list[str]] = {"": []}
    current = found[""]
    for line in text.splitlines():
        if heading := _SECTION.fullmatch(line):
            current = found.setdefault(heading[1], [])
        elif line and not line.startswith("#"):
            current.append(line)
    return found


def words(lines: Iterable[str]) -> frozenset[str]:
    """The words of some entries."""
    return frozenset(word for line in lines for word in line.split())


def pattern(lines: Iterable[str], flags: re.RegexFlag = re.IGNORECASE) -> re.Pattern[str]:
    """The regular expression that some entries make, one after the other."""
    return lazy_pattern("".join(lines), flags)
