"""Base classes and shared types of operation arguments and answers."""

import os
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
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
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import MAX_LABEL_CHARS, normal_scope
from vestige.core.patterns import lazy_pattern
from vestige.core.timezone import MAX_ZONE_CHARS, zone_name, zone_of

IdKind = Literal["memory", "intention", "archive", "bulk", "insight", "review"]
"""What the id in an argument names; an archive can be named by one of its memories too."""


class Wire(BaseModel):
    """A value that crosses a transport: camelCase names, null fields left out."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True, defer_build=True)

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


@dataclass(frozen=True, slots=True)
class IdOf:
    """Marks an argument as the id of something, which the command line lets people shorten."""

    kind: IdKind


@dataclass(frozen=True, slots=True)
class Whole:
    """Marks a list of sentences or labels: commas belong to the text, so a command line divides none."""


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

    @classmethod
    def id_of(cls, name: str) -> IdKind | None:
        """What an argument is the id of, if it is an id or a list of them."""
        return next((mark.kind for mark in cls._marks_of(name) if isinstance(mark, IdOf)), None)

    @classmethod
    def is_whole(cls, name: str) -> bool:
        """Whether an argument is a list whose texts may have commas."""
        return any(isinstance(mark, Whole) for mark in cls._marks_of(name))

    @classmethod
    def _marks_of(cls, name: str) -> list[Any]:
        field = cls.model_fields[name]
        return [*field.metadata, *_marks(field.annotation)]


def _marks(annotation: Any) -> list[Any]:
    """The marks inside an annotation such as `list[MemoryId] | None`."""
    own = list(getattr(annotation, "__metadata__", ()))
    return own + [mark for inner in get_args(annotation) for mark in _marks(inner)]


def _kinds(annotation: Any) -> set[Any]:
    """The plain types in an annotation such as `int | None`."""
    inner = get_args(annotation)
    return {annotation} if not inner else {kind for one in inner for kind in _kinds(one)}


# -- Argument types that several operations share

_LAST_DAY = date(9999, 12, 31)
_DATE_ONLY = lazy_pattern(r"^\d{4}-\d{2}-\d{2}$")


_ANY_TIME = datetime(2026, 3, 2, 12, tzinfo=UTC)
"""Stands for now where arguments are only checked: whether words name a time does not depend on it."""
NOW = "now"
"""The entry of the validation context with the caller's time, in the caller's zone."""


def time_context(now: datetime) -> dict[str, Any]:
    """The validation context in which times are read; `now` has the caller's zone."""
    return {NOW: now}


def _now(info: ValidationInfo) -> datetime:
    now = info.context.get(NOW, _ANY_TIME) if info.context else _ANY_TIME
    return now if isinstance(now, datetime) else _ANY_TIME


def moment_of(text: str, now: datetime, *, end: bool = False, coming: bool = False) -> datetime:
    """The UTC time of a text: RFC 3339, `YYYY-MM-DD`, or words such as `yesterday` and `tomorrow at 10`.
    Without an offset it is in the zone of `now`. Of a day it is the start, or the `end`. ValueError for other
    texts."""
    plain = text.strip()
    try:
        given = datetime.fromisoformat(plain)
    except ValueError:
        return _moment_in_words(plain, now, end=end, coming=coming)
    is_day = bool(_DATE_ONLY.match(plain))
    if end and is_day and given.date() < _LAST_DAY:
        given += timedelta(days=1)
    return _in_utc(given, now)


def _moment_in_words(plain: str, now: datetime, *, end: bool, coming: bool) -> datetime:
    # Imported late: the patterns of all words of time take long to compile.
    from vestige.cognition.intentions.parse_time import moment_in, stated_period

    time = moment_in(plain, now) if coming and not end else None
    period = None if time else stated_period(plain, now, coming=coming)
    if time is None and period is None:
        raise ValueError(
            "expected a date (2026-03-01), a time (2026-03-01T14:05:00Z), or words such as yesterday or "
            "tomorrow at 10"
        )
    return time.at if time else period.end if end else period.start  # type: ignore[union-attr]  # one of them is given


def _in_utc(value: datetime, now: datetime) -> datetime:
    try:
        return (value.replace(tzinfo=now.tzinfo) if value.tzinfo is None else value).astimezone(UTC)
    except OverflowError as exc:
        raise ValueError("the time is out of range") from exc


def _moment_type(*, end: bool = False, coming: bool = False) -> BeforeValidator:
    """Reads a time; pydantic rejects what is neither a text nor a time."""

    def read(value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, str):
            return moment_of(value, _now(info), end=end, coming=coming)
        return _in_utc(value, _now(info)) if isinstance(value, datetime) else value

    return BeforeValidator(read)


def _zone_name(value: Any) -> Any:
    """The canonical name of a zone; its hint is read from the cause."""
    if not isinstance(value, str):
        return value
    try:
        return zone_name(zone_of(value))
    except InvalidInput as exc:
        raise ValueError(exc.message) from exc


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
Moment = Annotated[datetime, _moment_type()]
EndMoment = Annotated[datetime, _moment_type(end=True)]
ComingMoment = Annotated[datetime, _moment_type(coming=True)]
"""Like `Moment`, but `friday` is the next one, and a day in words is its morning."""
ComingEnd = Annotated[datetime, _moment_type(end=True, coming=True)]
TimeZone = Annotated[
    Annotated[str, Field(max_length=MAX_ZONE_CHARS)] | None,  # the limit is that of a text, not of null
    BeforeValidator(_zone_name),
    Field(
        description="Your time zone, such as Europe/Berlin, for times without an offset and for texts. "
        "Default: that of the machine; UTC for a client on another machine."
    ),
]
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
DomainNames = Annotated[Names, Whole()]  # a label is made of terms, with commas
MemoryId = Annotated[str, Field(min_length=1, max_length=64, description="Id of the memory."), IdOf("memory")]
Reason = Annotated[
    str | None,
    Field(
        max_length=1000,
        description="Why. Not stored: the log holds no text. Store a memory of its own to keep it.",
    ),
]
DetailLevel = Literal["brief", "summary", "full"]


class ZonedArguments(Arguments):
    """Arguments of an operation that reads or prints times for a person."""

    timezone: TimeZone = None


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
