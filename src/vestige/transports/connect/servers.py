"""The two ways to reach a memory, as an entry can describe them, and plain values as files hold them."""

from dataclasses import dataclass
from typing import TypeAlias

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"
Entry: TypeAlias = dict[str, Json]
Keys: TypeAlias = tuple[str, ...]
"""Where in a file something is: the names on the way to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stdio:
    """A program that the client starts."""

    command: str
    args: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class InlineKey:
    """A key that is written into the file."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A key that the client takes from an environment variable: no secret lies in the file."""

    variable: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Http:
    """A server that runs already; without a key when it needs none."""

    url: str
    key: InlineKey | Named | None = None


Server: TypeAlias = Stdio | Http
