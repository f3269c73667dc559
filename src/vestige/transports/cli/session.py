"""One run of the command line: what was asked for before and after the command, and how to answer."""

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self

import click
import orjson

from vestige.core.errors import VestigeError
from vestige.core.invocation import Progress
from vestige.engine.context import Engine
from vestige.operations.registry.arguments import Wire
from vestige.operations.registry.registry import Operation
from vestige.settings.settings import Settings, load_settings
from vestige.store.contract.trouble import DatabaseStatus, Trouble, Upgrade
from vestige.store.transfer.ends import End
from vestige.transports.mcp.service import Service

Form = Literal["json", "table"]


class LocalApplication(Service, Protocol):
    """A running Vestige, as `vestige.app.open_app` opens it."""

    @property
    def engine(self) -> Engine:
        """Its parts."""

    def run(self, operation: Operation, arguments: Mapping[str, Any], progress: Progress) -> Wire:
        """Run an operation for the local user."""

    def exchange_news(self) -> None:
        """Hear from now on what happens in other processes."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


OpenApp = Callable[[Mapping[str, Any]], LocalApplication]
"""Opens the application with flags such as `data_dir`: slow, and may raise VestigeError."""


if TYPE_CHECKING:
    # The server's modules need the extra `server`, which the command line does without.
    from vestige.transports.http.context import ServerApplication

    class ServingApplication(ServerApplication, Service, Protocol):
        """A running Vestige that serves others, as `vestige.app.open_server` opens it."""

else:
    ServingApplication = Service

OpenServer = Callable[[Mapping[str, Any]], ServingApplication]
"""Opens an application that stays, with the same flags."""


class RestoreContents(Protocol):
    """What a backup holds."""

    @property
    def memories(self) -> int:
        """How many memories."""

    @property
    def events(self) -> int:
        """How many events."""

    @property
    def newest(self) -> str | None:
        """When something last changed in it."""


class RestoreResult(Protocol):
    """What a restore did."""

    @property
    def contents(self) -> RestoreContents:
        """What is in the store now."""

    @property
    def kept(self) -> Path | None:
        """Where the store that was there is kept."""


class Restorer(Protocol):
    """Puts a backup in the place of a store's file: a matter of the backend, so it is handed in."""

    def recognises(self, backup: Path) -> bool:
        """Whether a file is a database of this backend's sort."""

    def inspect(self, backup: Path) -> RestoreContents:
        """Check a backup and say what it holds."""

    def staging(self, database: Path) -> AbstractContextManager[Path]:
        """The right to replace a store, and a folder beside it that goes at the end."""

    def stage(self, backup: Path, folder: Path, name: str) -> Path:
        """Check a backup and copy it into a folder."""

    def swap(self, staged: Path, database: Path, *, prove: Callable[[], None]) -> RestoreResult:
        """Put it in place; `prove` opens the store and raises if it is not right."""


class MaintainedDatabase(Protocol):
    """The database that the settings name, seen from outside the store in it: a matter of the backend, so it
    is handed in."""

    def status(self) -> DatabaseStatus:
        """How it is. Nothing is made or changed."""

    def upgrade(self) -> Upgrade:
        """What opening the store would do to its schema."""

    def remains(self) -> Sequence[Trouble]:
        """What can be seen of a store that cannot be opened."""

    def restorer(self) -> Restorer:
        """What replaces the store by a backup, or InvalidInput with what to do instead."""


OpenDatabase = Callable[[Settings], MaintainedDatabase]
"""The database of these settings; it is reached for when it is asked something."""

OpenEnds = Callable[[Settings, str, str], tuple[End, End]]
"""Both ends of a transfer, from the words they were named by; they are reached for when they are used."""


@dataclass(slots=True, kw_only=True)
class CliSession:
    """What the options that work everywhere said, and where answers go.

    `surroundings` are those of the `flags` that nobody gave, as environment variables give them.
    """

    open_app: OpenApp
    open_server: OpenServer
    open_database: OpenDatabase
    open_ends: OpenEnds
    flags: dict[str, Any] = field(default_factory=dict)
    surroundings: dict[str, str] = field(default_factory=dict)
    form: Form | None = None
    colour: bool = False

    def open(self, **flags: Any) -> LocalApplication:
        """The application, with the flags given and those of the caller."""
        return self.open_app({**self.flags, **flags})

    def settings(self) -> Settings:
        """The settings in force, for what needs no store."""
        return load_settings(self.flags)

    def database(self) -> MaintainedDatabase:
        """The database that the settings name."""
        return self.open_database(self.settings())

    @property
    def wants_json(self) -> bool:
        """Whether answers and errors are for a program."""
        return self.form == "json" if self.form else not sys.stdout.isatty()

    def answer(self, value: Any, text: Callable[[], str]) -> None:
        """Show a result: as JSON for a program, as text for a person."""
        if self.wants_json:
            write(orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
        else:
            write_text(visible(text()))

    def line(self, value: Any, text: Callable[[], str]) -> bool:
        """Show one of many results on a line of its own; whether anybody still reads."""
        if self.wants_json:
            return write(f"{_json(value)}\n".encode())
        return write_text(visible(text()))

    def refuse(self, error: VestigeError) -> int:
        """Show an error; its exit code."""
        if self.wants_json:
            click.echo(_json({"error": error.value()}), err=True)
        else:
            # `color` None lets click colour a terminal and nothing else.
            shown = None if self.colour else False
            click.echo(click.style("Error: ", fg="red") + visible(error.message), err=True, color=shown)
            if error.hint:
                click.echo(click.style("Hint: ", fg="yellow") + visible(error.hint), err=True, color=shown)
        return error.exit_code


def visible(text: str) -> str:
    """The text with control characters shown instead of obeyed: a memory must not drive the terminal, nor
    turn around what stands beside it."""
    return _CONTROL.sub(lambda found: _escaped(ord(found.group())), text)


def _escaped(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f"
    r"\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]"  # the order of writing, and ends of lines
)


class ProgressLine:
    """One line on standard error that says how far a long command is; silent when nobody looks."""

    def __init__(self) -> None:
        self._watched = sys.stderr.isatty()
        self._shown = False

    def __call__(self, done: float, total: float | None, what: str | None) -> None:
        """Show (done, total, what)."""
        if not self._watched:
            return
        share = f" {done / total:.0%}" if total else ""
        self._draw(f"{what or 'Working'}{share}")
        self._shown = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            self._draw("")

    def _draw(self, text: str) -> None:
        # Back to the beginning of the line, and clear what is left of the previous text.
        click.echo(f"\r{text}\x1b[K", nl=False, err=True, color=True)


@contextmanager
def resumable() -> Iterator[None]:
    """Tell whoever interrupts a long command that the work so far is not lost."""
    try:
        yield
    except KeyboardInterrupt:
        click.echo("Interrupted. The same command goes on where it was.", err=True)
        raise click.Abort from None


def write_text(text: str) -> bool:
    """Write lines to standard output; whether anybody reads them."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    # A terminal that lacks a character shows a question mark rather than nothing at all.
    return write((text.rstrip("\n") + "\n").encode(encoding, "replace"))


def write(data: bytes) -> bool:
    """Write to standard output; False for a reader that has seen enough (`| head`), which is no error."""
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        # What is still buffered would fail again when the interpreter closes the stream.
        nothing = os.open(os.devnull, os.O_WRONLY)
        with suppress(OSError, ValueError):
            os.dup2(nothing, sys.stdout.fileno())
        os.close(nothing)
        return False
    return True


def _json(value: Any) -> str:
    try:
        return orjson.dumps(value).decode("utf-8")
    except TypeError:  # an error about bytes that are not UTF-8 quotes them; only escapes can carry those
        return json.dumps(value)
