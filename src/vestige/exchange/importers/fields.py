"""The fields of a foreign record, of any type and with any content.

A field that is read is removed from the record. A value that cannot be used is noted and stays in the rest,
which is kept beside the memory: nothing is lost because it was not understood.
"""

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime

import orjson

from vestige.core.errors import VestigeError
from vestige.core.models import MAX_LABEL_BYTES, MAX_LABEL_CHARS, MAX_TAGS, check_short, utc
from vestige.core.timezone import current_zone

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_DATE_CHARS = len("2026-03-01")
MILLISECONDS_FROM = 1e11
"""A number of seconds this large would be in the year 5138: it counts milliseconds."""


def snake(name: str) -> str:
    """The name of a field in snake case."""
    return _HUMP.sub("_", name).replace("-", "_").lower()


class ForeignRecord:
    """A record while it is being read."""

    def __init__(self, values: Mapping[str, object], now: datetime) -> None:
        self._left = {snake(name): value for name, value in values.items() if value is not None}
        self._now = now
        self.notes: list[str] = []

    def rest(self) -> dict[str, object]:
        """The fields that were not read."""
        return dict(self._left)

    def note(self, text: str) -> None:
        """Note a difference from the record."""
        self.notes.append(text)

    def keep(self, name: str, value: object) -> None:
        """Put a value that was read back into the rest."""
        self._left[name] = value

    def ignore(self, *names: str) -> None:
        """Remove these fields."""
        for name in names:
            self._left.pop(name, None)

    def text(self, *names: str) -> str | None:
        """The first of these fields that is a non-empty text."""
        for name in names:
            value = self._left.get(name)
            if isinstance(value, str) and value.strip():
                del self._left[name]
                return value
        return None

    def label(self, name: str) -> str | None:
        value = self._left.get(name)
        if value is None or value == "":
            self._left.pop(name, None)
            return None
        label = str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
        if not isinstance(label, str) or not usable(label):
            most = f"{MAX_LABEL_CHARS:,} characters and {MAX_LABEL_BYTES:,} bytes"
            self.note(f"`{name}` is not a text of at most {most}")
            return None
        del self._left[name]
        return label

    def moment(self, name: str, *, past: bool = False) -> datetime | None:
        """A time; a past event in the future is set to now."""
        value = self._left.get(name)
        if value is None or value == "":
            self._left.pop(name, None)
            return None
        moment = as_moment(value)
        if moment is None:
            self.note(f"`{name}` is not a time")
            return None
        if past and moment > self._now:
            self.note(f"`{name}` is in the future and was set to now")
            return self._now
        del self._left[name]
        return moment

    def number(self, name: str, low: float, high: float) -> float | None:
        """A number, limited to its range."""
        value = self._left.get(name)
        if value is None:
            return None
        number = as_number(value)
        if number is None:
            self.note(f"`{name}` is not a number")
            return None
        within = min(max(number, low), high)
        if within != number:
            self.note(f"`{name}` was limited to its range")
        else:
            del self._left[name]
        return within

    def count(self, name: str) -> int:
        """A whole number, 0 without one."""
        number = self.number(name, 0, 2**31 - 1)
        return 0 if number is None else int(number)

    def flag(self, name: str) -> bool:
        """A boolean, as JSON or SQLite has it."""
        value = self._left.pop(name, False)
        return value is True or value == 1

    def names(self, name: str, most: int = MAX_TAGS) -> tuple[str, ...]:
        """A list of short texts: an array, an array written as text, or words between commas."""
        value = self._left.pop(name, None)
        listed = _listed(value)
        if listed is None:
            if value is not None:
                self._left[name] = value
                self.note(f"`{name}` is not a list of texts")
            return ()
        texts = [str(one).strip() for one in listed if isinstance(one, str | int | float)]
        kept = tuple(dict.fromkeys(one for one in texts if usable(one)))[:most]
        if len(kept) < len(set(texts)) or len(texts) < len(listed):
            self._left[name] = value
            self.note(f"some of `{name}` are blank, too long, too many or not text")
        return kept


def usable(label: str) -> bool:
    """Whether this is a short text that a store accepts."""
    try:
        check_short("label", label)
    except VestigeError:
        return False
    return True


def as_moment(value: object) -> datetime | None:
    """A time from RFC 3339, a date, or seconds or milliseconds since 1970. A date is a day of the person who
    imports it; a time without a zone is UTC, as programs write it."""
    try:
        if isinstance(value, str):
            written = value.strip()
            moment = datetime.fromisoformat(written)
            return utc(moment.replace(tzinfo=current_zone()) if len(written) <= _DATE_CHARS else moment)
        number = as_number(value)
        if number is None:
            return None
        return datetime.fromtimestamp(number / 1000 if abs(number) >= MILLISECONDS_FROM else number, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def local_time(value: object) -> object:
    """A date or a time without a zone, as people write it, with the zone of the person; else the value."""
    if not isinstance(value, str):
        return value
    try:
        moment = datetime.fromisoformat(value.strip())
    except ValueError:
        return value
    return moment.replace(tzinfo=current_zone()).isoformat() if moment.tzinfo is None else value


def as_number(value: object) -> float | None:
    """A finite number, or None for anything else, booleans included."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def as_json(value: object) -> object:
    """The JSON value of a text, or None."""
    if not isinstance(value, str | bytes):
        return None
    try:
        return orjson.loads(value)
    except ValueError:  # also for lone surrogates, which cannot be encoded
        return None


def _listed(value: object) -> list[object] | None:
    if isinstance(value, list | tuple):
        return list(value)
    if not isinstance(value, str):
        return None
    if not value.strip():
        return []
    if value.lstrip().startswith(("[", "{", '"')):  # meant as JSON: what is broken is no list of words
        inner = as_json(value)
        return inner if isinstance(inner, list) else None
    return list(value.split(","))
