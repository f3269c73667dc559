"""Values of a portable file, and their strict reading."""

import base64
import binascii
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TypeVar

from vestige.core.errors import InvalidInput
from vestige.core.models import NO_METADATA

T = TypeVar("T")


class UnfitValue(ValueError):
    """A value of the wrong type; the text says what it should be."""


def moment_text(moment: datetime) -> str:
    """A time in RFC 3339, in UTC and always with microseconds: one moment has one text."""
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def base64_text(raw: bytes) -> str:
    return base64.b64encode(raw).decode("ascii")


def text(value: object) -> str:
    if not isinstance(value, str):
        raise UnfitValue("a text")
    return value


def flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise UnfitValue("true or false")
    return value


def whole(value: object) -> int:
    """A whole number of 64 bits."""
    if not isinstance(value, int) or isinstance(value, bool) or not -(2**63) <= value < 2**63:
        raise UnfitValue("a whole number")
    return value


def count(value: object) -> int:
    """A whole number that is not negative."""
    number = whole(value)
    if number < 0:
        raise UnfitValue("a number from 0 on")
    return number


def moment(value: object) -> datetime:
    """A time, written as `moment_text` writes it."""
    said = text(value)
    try:
        read = datetime.fromisoformat(said)
        if read.tzinfo is not None and moment_text(read) == said:
            return read
    except (ValueError, OverflowError):
        pass
    raise UnfitValue("a time such as 2026-03-01T09:00:00.000000Z")


def raw_bytes(value: object) -> bytes:
    try:
        return base64.b64decode(text(value), validate=True)
    except (binascii.Error, ValueError) as exc:
        raise UnfitValue("base64") from exc


def items(value: object) -> list[object]:
    if not isinstance(value, list):
        raise UnfitValue("a list")
    return value


def texts(value: object) -> tuple[str, ...]:
    return tuple(text(one) for one in items(value))


def mapping(value: object) -> Mapping[str, object]:
    """An object, read-only."""
    if not isinstance(value, dict):
        raise UnfitValue("an object")
    return MappingProxyType(value) if value else NO_METADATA


def scores(value: object) -> Mapping[str, float]:
    """An object whose values are all numbers."""
    read = mapping(value)
    if any(isinstance(one, bool) or not isinstance(one, int | float) for one in read.values()):
        raise UnfitValue("an object of numbers")
    return MappingProxyType({name: one for name, one in read.items() if isinstance(one, int | float)})


def optional(read: Callable[[object], T]) -> Callable[[object], T | None]:
    """The same, or null."""
    return lambda value: None if value is None else read(value)


def named(name: str, read: Callable[[object], T], value: object) -> T:
    """The value of a field; InvalidInput that names the field when it is invalid."""
    try:
        return read(value)
    except UnfitValue as exc:
        raise InvalidInput(f"`{name}` is not {exc}.") from exc


class ObjectFields:
    """The fields of an object, each read once; an unread one is refused."""

    def __init__(self, name: str, value: object) -> None:
        self._left = dict(named(name, mapping, value))

    def take(self, name: str, read: Callable[[object], T]) -> T:
        """A required field."""
        if name not in self._left:
            raise InvalidInput(f"`{name}` is missing.")
        return named(name, read, self._left.pop(name))

    def maybe(self, name: str, read: Callable[[object], T], default: T) -> T:
        """A field that is left out when it has its default."""
        return self.take(name, read) if name in self._left else default

    def end(self) -> None:
        """Refuse fields that were not read."""
        if self._left:
            raise InvalidInput(f"`{min(self._left)}` is not a field of this version of the format.")
