"""Ignore files by the rules of git (gitignore(5)): patterns, negation, and files that nest.

A pattern becomes one regular expression of atomic groups, so that matching takes time proportional to the
product of both lengths, whatever the pattern is.
"""

import re
from collections.abc import Iterable, Sequence

from vestige.core.lazy_dataclass import dataclass

MAX_PATTERN_CHARS = 1_000
MAX_PATTERNS = 10_000
"""Limits of one ignore file; what is beyond them is not read."""

_CLASSES = {
    "alnum": "a-zA-Z0-9", "alpha": "a-zA-Z", "blank": " \\t", "cntrl": "\\x00-\\x1f\\x7f", "digit": "0-9",
    "graph": "\\x21-\\x7e", "lower": "a-z", "print": "\\x20-\\x7e",
    "punct": "\\x21-\\x2f\\x3a-\\x40\\x5b-\\x60\\x7b-\\x7e", "space": " \\t-\\r", "upper": "A-Z",
    "xdigit": "A-Fa-f0-9",
}  # fmt: skip
_NEVER = "(?!)"


@dataclass(frozen=True, slots=True, kw_only=True)
class IgnoreRule:
    """One line of an ignore file. `base` is the folder of the file, "" or with a slash at its end."""

    base: str
    matches: re.Pattern[str]
    negated: bool
    only_folders: bool
    whole_path: bool

    def covers(self, path: str, name: str, *, is_folder: bool) -> bool:
        """Whether it is about this path, below `base`."""
        if self.only_folders and not is_folder:
            return False
        return self.matches.match(path[len(self.base) :] if self.whole_path else name) is not None


def ignore_rules(text: str, base: str = "") -> tuple[IgnoreRule, ...]:
    """The rules of an ignore file in the folder `base`, in order."""
    lines = _as_bytes(text.removeprefix("\ufeff")).split("\n", MAX_PATTERNS)[:MAX_PATTERNS]
    base = _as_bytes(base)
    made = (_rule(line.removesuffix("\r"), base) for line in lines if len(line) <= MAX_PATTERN_CHARS)
    return tuple(rule for rule in made if rule is not None)


def verdict(rules: Sequence[Iterable[IgnoreRule]], path: str, *, is_folder: bool) -> bool | None:
    """Whether the last rule about a path ignores it; None without one. `rules` has one entry for each
    file, the most important last; the rules of each are in reverse order."""
    path = _as_bytes(path)
    name = path[path.rfind("/") + 1 :]
    for several in reversed(rules):
        for rule in several:
            if rule.covers(path, name, is_folder=is_folder):
                return not rule.negated
    return None


def _as_bytes(text: str) -> str:
    """The text with one character for each of its bytes: for git, `?` stands for one byte."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("latin-1")


def _rule(line: str, base: str) -> IgnoreRule | None:
    line = _without_trailing_blanks(line)
    if not line or line.startswith("#"):
        return None
    negated = line.startswith("!")
    pattern = line[1:] if negated else line
    only_folders = pattern.endswith("/") and not pattern.endswith("\\/")
    pattern = pattern.removesuffix("/") if only_folders else pattern
    if not pattern:
        return None
    whole_path = "/" in pattern
    source = _path_pattern(pattern.removeprefix("/")) if whole_path else _segment(pattern)
    return IgnoreRule(
        base=base,
        matches=re.compile(f"{source}\\Z" if source is not None else _NEVER, re.DOTALL),
        negated=negated,
        only_folders=only_folders,
        whole_path=whole_path,
    )


def _without_trailing_blanks(line: str) -> str:
    kept = line.rstrip(" ")
    slashes = len(kept) - len(kept.rstrip("\\"))
    return kept + " " if slashes % 2 and len(kept) < len(line) else kept


def _path_pattern(pattern: str) -> str | None:
    """The expression of a pattern with slashes: `**` between them stands for any number of folders."""
    segments = _segments(pattern)
    made, fixed = "", ""
    open_folders = False  # a `**/` before what is in `fixed`, which is atomic with it
    for number, segment in enumerate(segments):
        last = number == len(segments) - 1
        if segment == "**":
            made += _after_folders(fixed) if open_folders else fixed
            fixed, open_folders = ("[^/].*" if number else ".+", False) if last else ("", True)
            continue
        source = _segment(segment)
        if source is None:
            return None
        fixed += source if last else f"{source}/"
    # The last part reaches the end of the path, so that its first place need not be the right one.
    return made + (f"(?:[^/]*/)*?{fixed}" if open_folders else fixed)


def _segments(pattern: str) -> list[str]:
    """The parts of a pattern between its slashes; one in a class such as `[/a]` is a character like any."""
    found, start, at = list[str](), 0, 0
    while at < len(pattern):
        if pattern[at] == "/":
            found.append(pattern[start:at])
            start = at + 1
        step = _one(pattern, at)
        at = step[1] if step is not None else at + 1
    return [*found, pattern[start:]]


def _after_folders(fixed: str) -> str:
    return f"(?>(?:[^/]*/)*?{fixed})" if fixed else ""  # `**/**/` is one


def _segment(pattern: str) -> str | None:
    """The expression of a pattern within one folder or file name. None if nothing can match it."""
    parts, current = list[str](), ""
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if char == "*":
            while at < len(pattern) and pattern[at] == "*":
                at += 1
            parts.append(current)
            current = ""
            continue
        step = _one(pattern, at)
        if step is None:
            return None
        source, at = step
        current += source
    if not parts:
        return current
    first, *between = parts
    # Every star but the last takes the first place where what follows it matches: the classic rule.
    inner = "".join(f"(?>[^/]*?{part})" for part in between if part)
    return f"(?>{first}{inner}[^/]*{current}(?![^/]))"


def _one(pattern: str, at: int) -> tuple[str, int] | None:
    """The expression of one character of a pattern, and where the next one begins."""
    char = pattern[at]
    if char == "?":
        return "[^/]", at + 1
    if char == "[":
        return _character_class(pattern, at)
    if char == "\\":
        return (re.escape(pattern[at + 1]), at + 2) if at + 1 < len(pattern) else None
    return re.escape(char), at + 1


def _character_class(pattern: str, at: int) -> tuple[str, int] | None:
    """A class such as `[!a-z[:digit:]]`; one that is not closed matches nothing."""
    place = at + 1
    negated = pattern[place : place + 1] in ("!", "^")
    place += negated
    inside, first = "", True
    while place < len(pattern) and (pattern[place] != "]" or first):
        first = False
        if pattern.startswith("[:", place):
            end = pattern.find(":]", place + 2)
            named = _CLASSES.get(pattern[place + 2 : end]) if end >= 0 else None
            if named is None:
                return None
            inside, place = inside + named, end + 2
            continue
        low = _class_member(pattern, place)
        if low is None:
            return None
        place = low[1]
        if pattern[place : place + 1] == "-" and pattern[place + 1 : place + 2] not in ("", "]"):
            high = _class_member(pattern, place + 1)
            if high is None:
                return None
            place = high[1]
            if low[0] <= high[0]:
                inside += f"{re.escape(low[0])}-{re.escape(high[0])}"
            continue
        inside += re.escape(low[0])
    if place >= len(pattern):
        return None
    if not inside:
        return ("[^/]" if negated else _NEVER), place + 1
    return (f"(?!/)[{'^' if negated else ''}{inside}]"), place + 1


def _class_member(pattern: str, at: int) -> tuple[str, int] | None:
    if pattern[at] != "\\":
        return pattern[at], at + 1
    return (pattern[at + 1], at + 2) if at + 1 < len(pattern) else None
