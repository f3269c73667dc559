"""The processes that use a store, and the errors for one that must wait for another."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import PurePath
from typing import Any

from vestige.core.errors import StoreBusy
from vestige.core.lazy_dataclass import dataclass
from vestige.core.patterns import lazy_pattern

BRIEF = frozenset({"purge"})
"""Exclusive work that takes only a moment. Such work waits for its turn as writes do, and for no other
exclusive work."""

_WITH_VALUE = frozenset({"--data-dir", "--config"})
_WORD = lazy_pattern(r"[a-z][a-z-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Who:
    """A process: its command, its start, and its machine if there are several. No other server starts while
    an `exclusive` one runs. The workers of one server have the same `parent`, and count as one."""

    pid: int
    command: str
    since: datetime
    server: bool = False
    exclusive: bool = False
    host: str = ""
    parent: int = 0

    def __str__(self) -> str:
        where = f" on {self.host}" if self.host else ""
        since = f"since {self.since:%Y-%m-%d %H:%M:%S %Z}"
        return f"{self.command or 'a process'} (pid {self.pid}{where}, {since})"

    def details(self) -> dict[str, Any]:
        fields = {"pid": self.pid, "command": self.command, "since": self.since.isoformat()}
        return {**fields, "host": self.host} if self.host else fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """The process that has exclusive use of a store, and its purpose."""

    who: Who
    purpose: str

    def details(self) -> dict[str, Any]:
        return {**self.who.details(), "purpose": self.purpose}


def kept(holder: Holder | None, *, details: Mapping[str, Any] | None = None) -> StoreBusy:
    """The error for exclusive work while another process or thread has the store for itself."""
    message, stop = "Another process has exclusive use of the store.", "that process"
    if holder is not None:
        message = f"{holder.who} has exclusive use of the store: {holder.purpose}."
        stop = f"process {holder.who.pid}"
    return StoreBusy(
        message,
        hint=f"Reading and ordinary writing go on. Wait until it is done and try again, or stop {stop}.",
        details={**(details or {}), **(holder.details() if holder else {})},
    )


def refuse_beside(who: Who, others: Iterable[Who], *, elsewhere: str) -> None:
    """StoreBusy for a server beside an exclusive one, and for an exclusive server beside any other.
    `elsewhere` says what to give this one to have a store of its own."""
    for other in others:
        if who.parent and (who.parent, who.host) == (other.parent, other.host):
            continue
        if other.server and (who.exclusive or other.exclusive):
            wanted = "This server" if who.exclusive else "That server"
            raise StoreBusy(
                f"Another server uses this store: {other}.",
                hint=f"{wanted} needs exclusive use (storage.exclusive). Stop process {other.pid} first, "
                f"or give this server {elsewhere}. Commands work in the meantime.",
                details={**other.details(), "exclusive": other.exclusive},
            )


def command_of(arguments: Sequence[str]) -> str:
    """The program and command of a command line, never its values, which may hold memories."""
    if not arguments:
        return ""
    path = PurePath(arguments[0])
    program = path.parent.name if path.stem == "__main__" else path.stem
    words = iter(arguments[1:])
    for word in words:
        if word in _WITH_VALUE:
            next(words, None)
        elif not word.startswith("-"):
            return f"{program} {word}" if _WORD.fullmatch(word) else program
    return program
