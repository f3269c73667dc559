"""Regular expressions that are compiled when they are first used.

There are hundreds, a process uses a few, and compiling all of them took a third of the time of a start.
"""

import re
from typing import Any, AnyStr, cast


class _LazyPattern:
    """Stands for a compiled pattern; on first use it takes over the methods of the pattern."""

    def __init__(self, source: str | bytes, flags: int) -> None:
        self.__dict__["_source"] = source
        self.__dict__["_flags"] = flags

    def __getattr__(self, name: str) -> Any:  # only for attributes that are not there yet
        if name.startswith("__"):
            raise AttributeError(name)
        made = re.compile(self.__dict__["_source"], self.__dict__["_flags"])
        self.__dict__.update({each: getattr(made, each) for each in dir(made) if not each.startswith("_")})
        return getattr(made, name)

    def __repr__(self) -> str:
        return f"lazy_pattern({self.__dict__['_source']!r})"


def lazy_pattern(source: AnyStr, flags: int | re.RegexFlag = 0) -> "re.Pattern[AnyStr]":
    """Like `re.compile`, but an error in the pattern shows when it is used. A test compiles all of them."""
    return cast("re.Pattern[AnyStr]", _LazyPattern(source, int(flags)))
