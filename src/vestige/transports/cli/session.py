"""One run of the command line: its global options, and output."""

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
import orjson

from vestige.core.errors import VestigeError
from vestige.core.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from vestige.settings.settings import Settings
    from vestige.transports.cli.openers import (
        LocalApplication,
        MaintainedDatabase,
        OpenApp,
        OpenDatabase,
        OpenEnds,
        OpenServer,
    )

Form = Literal["json", "table"]
UNKNOWN_WIDTH = 80
NARROWEST = 40
"""Columns that tables need; on a narrower terminal lines run over."""


@dataclass(slots=True, kw_only=True)
class CliSession:
    """Global options of a run, and its output. `surroundings` are options that come from environment
    variables instead of `flags`."""

    open_app: "OpenApp"
    open_server: "OpenServer"
    open_database: "OpenDatabase"
    open_ends: "OpenEnds"
    flags: dict[str, Any] = field(default_factory=dict)
    surroundings: dict[str, str] = field(default_factory=dict)
    form: Form | None = None
    colour: bool = False
    data_dir: Path | None = None
    """The data directory of the store that was opened."""

    def open(self, **flags: Any) -> "LocalApplication":
        return self.open_app({**self.flags, **flags})

    def settings(self) -> "Settings":
        """The effective settings, for commands without a store."""
        from vestige.core.timezone import show_times_in
        from vestige.settings.settings import load_settings

        settings = load_settings(self.flags)
        show_times_in(settings.zone)
        return settings

    def database(self) -> "MaintainedDatabase":
        return self.open_database(self.settings())

    @property
    def wants_json(self) -> bool:
        return self.form == "json" if self.form else not sys.stdout.isatty()

    def answer(self, value: Any, text: Callable[[], str]) -> None:
        """Show a result: as JSON for a program, as text for a person."""
        if self.wants_json:
            write(orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
            return
        from vestige.operations.shared.text import page_of

        with page_of(self.width) as page:
            self.show(text())
        if page.listed and self.data_dir is not None:
            from vestige.transports.cli.short_ids import keep_list

            keep_list(self.data_dir, page.listed)

    def show(self, marked: str, *, wrap: bool = True) -> bool:
        """Show text for a person, in colour where the terminal has it; returns whether the reader is still
        there. Lines to copy, such as commands, must not be wrapped."""
        from vestige.operations.shared.text import unmarked, wrapped

        text = visible(marked.rstrip("\n"))
        text = wrapped(text, self.width) if wrap else text
        if self.colour and sys.stdout.isatty():
            from vestige.transports.cli.terminal import coloured

            return write_text(coloured(text, self.width))
        return write_text(unmarked(text))

    def show_aside(self, text: Callable[[], str]) -> None:
        """Show text for a person on standard error, such as a plan before a question."""
        from vestige.operations.shared.text import page_of, unmarked, wrapped

        with page_of(self.width):
            click.echo(unmarked(wrapped(visible(text()), self.width)), err=True)

    @property
    def width(self) -> int:
        """Columns of the terminal; of no terminal, those of a narrow one."""
        return max(NARROWEST, shutil.get_terminal_size((UNKNOWN_WIDTH, 24)).columns)

    def line(self, value: Any, text: Callable[[], str]) -> bool:
        """Show one of several results on its own line; returns whether the reader is still there."""
        if self.wants_json:
            return write(f"{_json(value)}\n".encode())
        return self.show(text(), wrap=False)

    def refuse(self, error: VestigeError) -> int:
        """Show an error; returns its exit code."""
        if self.wants_json:
            click.echo(_json({"error": error.value()}), err=True)
        else:
            # With None, click colours a terminal only.
            shown = None if self.colour else False
            said = (("Error: ", "red", error.message), ("Hint: ", "yellow", error.hint))
            for label, colour, text in said:
                if text:
                    lines = within_width(label + visible(text))[len(label) :]
                    click.echo(click.style(label, fg=colour) + lines, err=True, color=shown)
        return error.exit_code


def within_width(text: str) -> str:
    """A text for standard error in lines that fit a terminal; unchanged where no person reads it, or where it
    is short."""
    unknown = UNKNOWN_WIDTH if sys.stderr.isatty() else 0
    columns = shutil.get_terminal_size((unknown, 24)).columns
    if not columns or len(text) <= columns // 2:
        return text
    from vestige.operations.shared.text import wrapped

    return wrapped(text, max(NARROWEST, columns))


def visible(text: str) -> str:
    """The text with control characters escaped: a memory must not control the terminal or reorder text."""
    return _CONTROL.sub(lambda found: _escaped(ord(found.group())), text)


def _escaped(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f"
    r"\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]"  # text direction, and line ends
)


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
        abandon_output()
        return False
    return True


def abandon_output() -> None:
    """Lose what is still buffered, which would fail again when the interpreter closes the stream."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    with suppress(OSError, ValueError):
        os.dup2(nothing, sys.stdout.fileno())
    os.close(nothing)


def _json(value: Any) -> str:
    try:
        return orjson.dumps(value).decode("utf-8")
    except TypeError:  # an error about invalid UTF-8 quotes the bytes, which need escapes
        import json  # rarely needed

        return json.dumps(value)
