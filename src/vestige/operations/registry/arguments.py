"""Values as they travel: what operations take and what they answer."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    Strict,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic.alias_generators import to_camel, to_snake

from vestige.core.checks import MAX_LABEL_CHARS
from vestige.core.errors import InvalidInput, TooLarge, VestigeError
from vestige.core.models import normal_scope


class Wire(BaseModel):
    """A value as it travels: camelCase names, absent where nothing is known."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True)

    @property
    def exit_code(self) -> int:
        """What the command line ends with after this answer."""
        return 0

    def wire(self) -> dict[str, Any]:
        """This value as JSON-able data."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


class Arguments(Wire):
    """The arguments of an operation: unknown ones are refused, both spellings are taken.

    What older clients send along and what means nothing here is dropped; a field of that name wins.
    """

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=False, strict=False)

    tolerated: ClassVar[tuple[str, ...]] = ("agent_id", "context", "mode")

    @model_validator(mode="before")
    @classmethod
    def _understood(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        return {name: value for name, value in given.items() if not cls.ignores(str(name))}

    @field_validator("*", mode="before")
    @classmethod
    def _no_switch_for_a_number(cls, given: Any, info: ValidationInfo) -> Any:
        """`true` counts as 1 in Python, but nobody means it."""
        if isinstance(given, bool) and info.field_name:
            kinds = _kinds(cls.model_fields[info.field_name].annotation)
            if bool not in kinds and not kinds.isdisjoint((int, float)):
                raise ValueError("expected a number, not true or false")
        return given

    @classmethod
    def ignores(cls, name: str) -> bool:
        """Whether an argument is taken and dropped."""
        plain = to_snake(name)
        return plain in cls.tolerated and plain not in cls.model_fields


def _kinds(annotation: Any) -> set[Any]:
    """The plain types in an annotation such as `int | None`."""
    inner = get_args(annotation)
    return {annotation} if not inner else {kind for one in inner for kind in _kinds(one)}


# -- Argument types that several operations share, described once.

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


# -- How much a request may hold, seen before any of it is checked: checking says what is wrong with each
# value, and of a million values that takes seconds in which nothing else in the process runs.

MAX_ENTRIES = 1_000
"""Values in one list, or names in one object: more than any argument takes."""
MAX_VALUES = 60_000
"""Values in all: as a full batch with all its tags has."""


def is_too_much(arguments: object) -> bool:
    """Whether arguments, or a message with them, hold more values than any request needs."""
    containers: list[Any] = [arguments] if isinstance(arguments, Mapping | list) else []
    values = 0
    while containers:
        container = containers.pop()
        values += len(container)
        if len(container) > MAX_ENTRIES or values > MAX_VALUES:
            return True
        inner = container.values() if isinstance(container, Mapping) else container
        containers.extend(value for value in inner if isinstance(value, dict | list | tuple))
    return False


def too_much() -> TooLarge:
    """The error for that. Raise it where the values are let go of: who keeps it would keep them."""
    return TooLarge(
        f"The arguments hold more than {MAX_ENTRIES:,} values in one place or {MAX_VALUES:,} in all.",
        hint="Send several requests with less each.",
        details={"limit": MAX_ENTRIES},
    )
