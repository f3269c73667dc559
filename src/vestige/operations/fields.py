"""Argument types that several operations share, described once."""

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, Strict

from vestige.checks import MAX_LABEL_CHARS
from vestige.errors import InvalidInput, TooLarge, VestigeError
from vestige.models import normal_scope

_LAST_DAY = datetime(9999, 12, 31, tzinfo=UTC)
_DATE_ONLY = re.compile(r"^\d{4}-\d{2}-\d{2}$")


def _moment(value: Any) -> Any:
    """A UTC datetime from `YYYY-MM-DD` or RFC 3339; anything else is left to pydantic to refuse."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError as exc:
            raise ValueError("expected a date (2026-03-01) or a time (2026-03-01T14:05:00Z)") from exc
    if isinstance(value, datetime):
        try:
            return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
        except OverflowError as exc:
            raise ValueError("the time is out of range") from exc
    return value


def _end_moment(value: Any) -> Any:
    """As `_moment`, but a bare date means the end of that day."""
    moment = _moment(value)
    if isinstance(value, str) and _DATE_ONLY.match(value.strip()) and isinstance(moment, datetime):
        return moment + timedelta(days=1) if moment < _LAST_DAY else moment
    return moment


def _scope(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return normal_scope(value)
    except TooLarge:
        return value  # as long as it is, the type refuses it
    except VestigeError as exc:
        told = exc.message.replace("`scope` ", "it ", 1)  # which argument it is will be said
        raise ValueError(told) from exc  # its hint is found by way of it


def check_some_time(valid_from: datetime | None, valid_until: datetime | None) -> None:
    """Refuse a validity that a caller gives and that covers no moment.

    Memories may have one, such as a merge that was undone, but nobody can mean it when telling a fact.
    """
    if valid_from is not None and valid_from == valid_until:
        raise InvalidInput(
            "`valid_from` and `valid_until` are the same: it would be true at no time.",
            hint="Give a `valid_until` that is later than `valid_from`; a date includes that day.",
        )


def _one_or_many(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _distinct(names: list[str]) -> list[str]:
    """The names without surrounding space, each once: as they are kept, so they are looked for."""
    return list(dict.fromkeys(name.strip() for name in names))


Switch = Annotated[bool, Strict()]
"""A switch that makes something happen, or keeps it from happening: "no" or 0 is not taken for it."""
Moment = Annotated[datetime, BeforeValidator(_moment)]
EndMoment = Annotated[datetime, BeforeValidator(_end_moment)]
Scope = Annotated[
    str, Field(min_length=1, max_length=MAX_LABEL_CHARS, pattern=r"\S"), BeforeValidator(_scope)
]
# The length is seen first: of a list that is too long, nothing else is said.
Tags = Annotated[list[str], Field(max_length=100), BeforeValidator(_one_or_many), AfterValidator(_distinct)]
Names = Annotated[list[str], Field(max_length=50), BeforeValidator(_one_or_many), AfterValidator(_distinct)]
MemoryId = Annotated[str, Field(min_length=1, max_length=64, description="Id of the memory.")]
Reason = Annotated[
    str | None,
    Field(max_length=1000, description="Why. Not kept: the log holds no text; remember it to keep it."),
]
DetailLevel = Literal["brief", "summary", "full"]
