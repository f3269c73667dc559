"""One run of the command line: its global options, and output."""

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, Self

import click
import orjson

from vestige.core.caller import Progress
from vestige.core.errors import VestigeError
from vestige.engine.context import Engine
from vestige.operations.registry.arguments import Wire
from vestige.operations.registry.registry import Operation
from vestige.settings.settings import Settings, load_settings
from vestige.store.contract.trouble import DatabaseStatus, Trouble, Upgrade
from vestige.store.transfer.ends import End
from vestige.transports.mcp.service import ServerApplication, Service

Form = Literal["json", "table"]


class LocalApplication(Service, AbstractContextManager["LocalApplication"], Protocol):
    """A running Vestige, as `vestige.app.open_app` opens it."""

    @property
    def engine(self) -> Engine:
        """The engine behind it."""

    def run(self, operation: Operation, arguments: Mapping[str, Any], progress: Progress) -> Wire:
        """Run an operation for the local user."""

    def exchange_events(self) -> None:
        """Receive events of other processes from now on."""


OpenApp = Callable[[Mapping[str, Any]], LocalApplication]
"""Opens the application with flags such as `data_dir`: slow, and may raise VestigeError."""


class ServingApplication(ServerApplication, Service, Protocol):
    """A running Vestige that serves clients, as `vestige.app.open_server` opens it."""


OpenServer = Callable[[Mapping[str, Any]], ServingApplication]
"""Opens an application for a server, with the same flags."""


class RestoreContents(Protocol):
    """The contents of a backup: how many memories and events, and the time of the last change."""

    @property
    def memories(self) -> int: ...
    @property
    def events(self) -> int: ...
    @property
    def newest(self) -> str | None: ...


class RestoreResult(Protocol):
    """The result of a restore: what is in the store now, and where the replaced one is kept."""

    @property
    def contents(self) -> RestoreContents: ...
    @property
    def kept(self) -> Path | None: ...


class Restorer(Protocol):
    """Replaces the file of a store by a backup. Depends on the backend, so it is passed in."""

    def recognises(self, backup: Path) -> bool:
        """Whether a file is a database of this backend."""

    def inspect(self, backup: Path) -> RestoreContents:
        """Check a backup and return its contents."""

    def staging(self, database: Path) -> AbstractContextManager[Path]:
        """The exclusive right to replace a store, with a temporary folder beside it."""

    def stage(self, backup: Path, folder: Path, name: str) -> Path:
        """Check a backup and copy it into a folder."""

    def swap(self, staged: Path, database: Path, *, prove: Callable[[], None]) -> RestoreResult:
        """Replace the store; `prove` opens it and raises if it is not valid."""


class MaintainedDatabase(Protocol):
    """The database of the settings, without opening the store. Depends on the backend, so it is passed in."""

    def status(self) -> DatabaseStatus:
        """Its status. Nothing is created or changed."""

    def upgrade(self) -> Upgrade:
        """What opening the store would do to its schema."""

    def remains(self) -> Sequence[Trouble]:
        """Problems of a store that cannot be opened."""

    def restorer(self) -> Restorer:
        """The restorer of this backend, or InvalidInput with what to do instead."""


OpenDatabase = Callable[[Settings], MaintainedDatabase]
"""The database of these settings; it is accessed when a method is called."""

OpenEnds = Callable[[Settings, str, str], tuple[End, End]]
"""Both ends of a transfer, from their names; they are opened when they are used."""


@dataclass(slots=True, kw_only=True)
class CliSession:
    """Global options of a run, and its output. `surroundings` are options that come from environment
    variables instead of `flags`."""

    open_app: OpenApp
    open_server: OpenServer
    open_database: OpenDatabase
    open_ends: OpenEnds
    flags: dict[str, Any] = field(default_factory=dict)
    surroundings: dict[str, str] = field(default_factory=dict)
    form: Form | None = None
    colour: bool = False

    def open(self, **flags: Any) -> LocalApplication:
        return self.open_app({**self.flags, **flags})

    def settings(self) -> Settings:
        """The effective settings, for commands without a store."""
        return load_settings(self.flags)

    def database(self) -> MaintainedDatabase:
        return self.open_database(self.settings())

    @property
    def wants_json(self) -> bool:
        return self.form == "json" if self.form else not sys.stdout.isatty()

    def answer(self, value: Any, text: Callable[[], str]) -> None:
        """Show a result: as JSON for a program, as text for a person."""
        if self.wants_json:
            write(orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
        else:
            write_text(visible(text()))

    def line(self, value: Any, text: Callable[[], str]) -> bool:
        """Show one of several results on its own line; returns whether the reader is still there."""
        if self.wants_json:
            return write(f"{_json(value)}\n".encode())
        return write_text(visible(text()))

    def refuse(self, error: VestigeError) -> int:
        """Show an error; returns its exit code."""
        if self.wants_json:
            click.echo(_json({"error": error.value()}), err=True)
        else:
            # With None, click colours a terminal only.
            shown = None if self.colour else False
            click.echo(click.style("Error: ", fg="red") + visible(error.message), err=True, color=shown)
            if error.hint:
                click.echo(click.style("Hint: ", fg="yellow") + visible(error.hint), err=True, color=shown)
        return error.exit_code


def visible(text: str) -> str:
    """The text with control characters escaped: a memory must not control the terminal or reorder text."""
    return _CONTROL.sub(lambda found: _escaped(ord(found.group())), text)


def _escaped(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f"
    r"\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]"  # text direction, and line ends
)


class ProgressLine:
    """A progress line on standard error; silent unless it is a terminal."""

    def __init__(self) -> None:
        self._watched = sys.stderr.isatty()
        self._shown = False

    def __call__(self, done: float, total: float | None, what: str | None) -> None:
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
        # Return to the start of the line, and clear the previous text.
        click.echo(f"\r{text}\x1b[K", nl=False, err=True, color=True)


@contextmanager
def resumable() -> Iterator[None]:
    """Tell the user who interrupts a long command that the work so far is not lost."""
    try:
        yield
    except KeyboardInterrupt:
        click.echo("Interrupted. Run the same command again to continue.", err=True)
        raise click.Abort from None


def write_text(text: str) -> bool:
    """Write lines to standard output; returns whether the reader is still there."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    # A character that the terminal lacks is shown as a question mark.
    return write((text.rstrip("\n") + "\n").encode(encoding, "replace"))


def write(data: bytes) -> bool:
    """Write to standard output; False if the reader closed the pipe (`| head`), which is not an error."""
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        # Buffered data would fail again when the interpreter closes the stream.
        nothing = os.open(os.devnull, os.O_WRONLY)
        with suppress(OSError, ValueError):
            os.dup2(nothing, sys.stdout.fileno())
        os.close(nothing)
        return False
    return True


def _json(value: Any) -> str:
    try:
        return orjson.dumps(value).decode("utf-8")
    except TypeError:  # an error about invalid UTF-8 quotes the bytes, which need escapes
        return json.dumps(value)
