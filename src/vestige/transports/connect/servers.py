"""The two kinds of servers in an entry, and plain JSON values."""

from dataclasses import dataclass
from typing import TypeAlias

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"
Entry: TypeAlias = dict[str, Json]
Keys: TypeAlias = tuple[str, ...]
"""The position of a value in a file: the keys on the way to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stdio:
    """A program that the client starts."""

    command: str
    args: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class InlineKey:
    """A key that is stored in the file."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A key in an environment variable of the client: the file contains no secret."""

    variable: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Http:
    """A running server; without a key if it needs none."""

    url: str
    key: InlineKey | Named | None = None


Server: TypeAlias = Stdio | Http
