"""How long from now, in English: `in 2 hours and 30 minutes`, `in 1.5h`, `two weeks from now`."""

import re
from datetime import datetime, timedelta

from vestige.cognition.date_periods import COUNTS, moved
from vestige.cognition.prospective_triggers import Time

MOST_MINUTES = 10 * 366 * 24 * 60
"""What is longer is a date and no duration."""

_MINUTES = {"s": 1 / 60, "m": 1.0, "h": 60.0, "d": 24 * 60.0, "w": 7 * 24 * 60.0}
_NUMBER = rf"(?:(?P<number>[0-9]{{1,5}}(?:\.[0-9]{{1,3}})?)\s*|(?P<word>{'|'.join(COUNTS)}|half\s+an?)\s+)"
_PART = re.compile(
    rf"{_NUMBER}(?P<unit>(?:s|secs?|seconds?)|(?:m|mins?|minutes?)|(?:h|hrs?|hours?)|days?|weeks?|months?|years?)\b"
    r"(?P<more>\s+and\s+a\s+half\b)?",
    re.IGNORECASE,
)
_BETWEEN = re.compile(r"\s*,\s*(?:and\s+)?|\s+and\s+|\s+", re.IGNORECASE)
_WHILE = re.compile(
    r"(?:in|after)\s+(?P<then>.+?)(?:\s+from\s+now)?|(?P<told>.+?)\s+from\s+now", re.IGNORECASE
)


def later(phrase: str, now: datetime) -> Time | None:
    """The moment that is so long from now as a whole phrase says."""
    found = _WHILE.fullmatch(phrase)
    parts = _parts(found["then"] or found["told"]) if found else []
    if not parts:
        return None
    (many, unit), *others = parts
    if unit[0] in "my" and unit[:2] in ("mo", "ye"):
        return _by_calendar(many, unit, now) if not others else None
    if any(name[:2] in ("mo", "ye") for _, name in others):
        return None
    minutes = sum(number * _MINUTES[name[0]] for number, name in parts)
    at = now + timedelta(minutes=minutes)
    if minutes > MOST_MINUTES:
        return Time(at=at)
    return Time(at=at, minutes=int(minutes) if minutes == int(minutes) else minutes)


def _by_calendar(many: float, unit: str, now: datetime) -> Time | None:
    if many != int(many):
        return None
    return Time(at=datetime.combine(moved(now.date(), unit.removesuffix("s"), int(many)), now.timetz()))


def _parts(told: str) -> list[tuple[float, str]]:
    """Numbers with their units; none when there is anything else among them."""
    parts: list[tuple[float, str]] = []
    place = 0
    while found := _PART.match(told, place):
        many = _number(found) + (0.5 if found["more"] else 0)
        parts.append((many, found["unit"].casefold()))
        if found.end() == len(told):
            return parts
        between = _BETWEEN.match(told, found.end())
        if between is None:
            return []
        place = between.end()
    return []


def _number(found: re.Match[str]) -> float:
    if found["number"]:
        return float(found["number"])
    word = " ".join(found["word"].casefold().split())
    return 0.5 if word.startswith("half") else COUNTS[word][0]
