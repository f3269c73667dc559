"""Base classes and shared types of operation arguments and answers."""

import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

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

from vestige.core.errors import InvalidInput, TooLarge, VestigeError
from vestige.core.models import MAX_LABEL_CHARS, normal_scope


class Wire(BaseModel):
    """A value that crosses a transport: camelCase names, null fields left out."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True)

    @property
    def exit_code(self) -> int:
        """Exit code of the command line after this answer."""
        return 0

    @classmethod
    def of(cls, source: object, **others: Any) -> Self:
        """The view of a source: its attributes with the names of the fields, except those given as others."""
        return cls(
            **others, **{name: getattr(source, name) for name in cls.model_fields if name not in others}
        )

    def wire(self) -> dict[str, Any]:
        """This value as JSON-able data."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


class Arguments(Wire):
    """Base class of operation arguments: rejects unknown names, accepts snake_case and camelCase.

    Names in `tolerated`, which older clients send, are dropped unless the operation has such a field.
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
        """Reject a bool where a number is expected: Python would read `true` as 1."""
        if isinstance(given, bool) and info.field_name:
            kinds = _kinds(cls.model_fields[info.field_name].annotation)
            if bool not in kinds and not kinds.isdisjoint((int, float)):
                raise ValueError("expected a number, not true or false")
        return given

    @classmethod
    def ignores(cls, name: str) -> bool:
        """Whether the argument is accepted and dropped."""
        plain = to_snake(name)
        return plain in cls.tolerated and plain not in cls.model_fields


def _kinds(annotation: Any) -> set[Any]:
    """The plain types in an annotation such as `int | None`."""
    inner = get_args(annotation)
    return {annotation} if not inner else {kind for one in inner for kind in _kinds(one)}


# -- Argument types that several operations share

_LAST_DAY = datetime(9999, 12, 31, tzinfo=UTC)
_DATE_ONLY = re.compile(r"^\d{4}-\d{2}-\d{2}$")


def _moment(value: Any) -> Any:
    """A UTC datetime from `YYYY-MM-DD` or RFC 3339; pydantic rejects anything else."""
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
    """Like `_moment`, but a bare date means the end of that day."""
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
        return value  # too long: the length limit of the type rejects it
    except VestigeError as exc:
        message = exc.message.replace("`scope` ", "it ", 1)  # the caller adds the argument's name
        raise ValueError(message) from exc  # `_hint_of` reads the hint from the cause


def check_some_time(valid_from: datetime | None, valid_until: datetime | None) -> None:
    """Reject an empty validity window given by a caller.

    A stored memory may have one (an undone merge leaves it), but no caller can mean it.
    """
    if valid_from is not None and valid_from == valid_until:
        raise InvalidInput(
            "`valid_from` and `valid_until` are equal, so the fact would never be valid.",
            hint="Give a `valid_until` later than `valid_from`; a bare date includes that day.",
        )


def _file_path(value: str) -> str:
    """Reject what no file system takes: it would fail as if the store or its disk were damaged."""
    try:
        longest = max(map(len, re.split(rb"[/\\]", os.fsencode(value))))
    except UnicodeEncodeError:
        message = "a file name must be valid text"
    else:
        if "\0" not in value and longest <= MAX_NAME_BYTES:
            return value
        message = f"a file name has no NUL character and at most {MAX_NAME_BYTES} bytes"
    raise ValueError(message) from InvalidInput(message, hint="Give another name, such as before.db.")


def _one_or_many(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _distinct(names: list[str]) -> list[str]:
    """The names stripped and without repeats, as the store keeps them."""
    return list(dict.fromkeys(name.strip() for name in names))


MAX_NAME_BYTES = 255
FilePath = Annotated[str, AfterValidator(_file_path)]
Switch = Annotated[bool, Strict()]
"""A strict boolean for arguments with side effects: "no" and 0 are rejected."""
Moment = Annotated[datetime, BeforeValidator(_moment)]
EndMoment = Annotated[datetime, BeforeValidator(_end_moment)]
Scope = Annotated[
    str, Field(min_length=1, max_length=MAX_LABEL_CHARS, pattern=r"\S"), BeforeValidator(_scope)
]
InheritedScope = Annotated[
    Scope | None,
    Field(
        description="Only this scope and scopes below it. Default: the current scope and what it inherits."
    ),
]
ScopeBelow = Annotated[
    Scope | None, Field(description="Only this scope and scopes below it. Default: the current scope.")
]
SearchedScope = Annotated[
    Scope | None,
    Field(description="Only this scope and scopes below it. Default: everything you have access to."),
]
ScopeTree = Annotated[
    Scope | None,
    Field(description="Only this scope and scopes below it; / is everything. Default: the current scope."),
]
StoredBefore = Annotated[
    EndMoment | None,
    Field(description="Only memories stored before this time; a bare date includes that day."),
]
# The length is checked first: a list that is too long gets no other error.
Tags = Annotated[list[str], Field(max_length=100), BeforeValidator(_one_or_many), AfterValidator(_distinct)]
Names = Annotated[list[str], Field(max_length=50), BeforeValidator(_one_or_many), AfterValidator(_distinct)]
MemoryId = Annotated[str, Field(min_length=1, max_length=64, description="Id of the memory.")]
Reason = Annotated[
    str | None,
    Field(
        max_length=1000,
        description="Why. Not stored: the log holds no text. Store a memory of its own to keep it.",
    ),
]
DetailLevel = Literal["brief", "summary", "full"]


# -- Size limits, checked before validation: validating a million values blocks the process for seconds

MAX_ENTRIES = 1_000
"""Limit of entries in one list or object; no argument needs more."""
MAX_VALUES = 60_000
"""Limit of values in one request: a full batch with all its tags."""


def is_too_much(arguments: object) -> bool:
    """Whether arguments, or a message that contains them, exceed the size limits."""
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
    """The error for arguments over the size limits.

    Raise it where the values are released: its traceback would keep them alive.
    """
    return TooLarge(
        f"The arguments hold more than {MAX_ENTRIES:,} values in one list or object, or {MAX_VALUES:,} in "
        "total.",
        hint="Split the request into smaller ones.",
        details={"limit": MAX_ENTRIES},
    )
