"""`vestige sessions browse`: a full-screen search of sessions, with the standard library's curses."""

import base64
import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vestige.core.errors import InvalidInput
from vestige.engine.context import Call
from vestige.engine.recall.sessions.recall import FoundSession, find_sessions
from vestige.engine.recall.sessions.refresh import refresh
from vestige.exchange.transcripts.sources import resume_command
from vestige.store.contract.sessions import SessionFilter, StoredEntry
from vestige.transports.cli.commands.clients.session_list import Ending, Key, SessionBrowser, command_line
from vestige.transports.cli.session import CliSession

if TYPE_CHECKING:
    import curses

LIMIT, PASSAGES, READ_ENTRIES = 50, 2, 500
MOST_LISTED = 10_000
"""Sessions that are listed for no query: they are cheap, and the one that is looked for may be an old one."""
REFRESH_SECONDS = 2.0
"""More than this is not indexed before the list appears."""
ESCAPE_MILLISECONDS = 25
"""Time to tell the key Escape from the beginning of another key's characters."""
CONTROL: dict[int, Key] = {
    3: "quit", 5: "expand", 6: "scope", 8: "backspace", 9: "copy", 10: "resume", 13: "resume", 21: "clear",
    27: "quit", 127: "backspace",
}  # fmt: skip


def options() -> list[click.Parameter]:
    return [
        click.Argument(["query"], nargs=-1),
        click.Option(["--here"], is_flag=True, help="Only sessions of this folder, at first."),
    ]


def browse(session: CliSession, query: tuple[str, ...], here: bool) -> None:
    """Search sessions of coding agents in full screen: type to search, Enter resumes.

    Ctrl-E shows the whole session, Tab copies its id, Ctrl-F changes between this folder and everywhere.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InvalidInput(
            "`vestige sessions browse` needs a terminal.", hint="Use `vestige sessions search`."
        )
    try:
        import curses
    except ImportError as exc:
        raise InvalidInput(
            "This Python has no curses, which the full-screen list needs.",
            hint="Use `vestige sessions search`.",
        ) from exc
    with session.open() as app:
        call = Call(engine=app.engine, local=True, zone=app.engine.settings.zone)
        index = app.engine.sessions()
        if not index.exists():
            raise InvalidInput("Nothing is indexed yet.", hint="Run `vestige sessions index` once.")
        refresh(call, index, most_seconds=REFRESH_SECONDS)
        folder = str(Path.cwd())

        def search(text: str, only_here: bool) -> list[FoundSession]:
            where = SessionFilter(cwd=folder if only_here else None)
            limit = LIMIT if text.strip() else MOST_LISTED
            return find_sessions(
                index, text, where, call.local_now(), limit=limit, passages=PASSAGES
            ).sessions

        def read(one: FoundSession, first: int) -> list[StoredEntry]:
            return index.entries(one.session.key, first=first, limit=READ_ENTRIES)

        browser = SessionBrowser(search=search, read=read, here=here, query=" ".join(query))
        ending = curses.wrapper(_run, browser)
        chosen = browser.session
    if ending == "resume" and chosen is not None:
        _resume(chosen)


def _run(screen: "curses.window", browser: SessionBrowser) -> Ending:
    import curses

    curses.set_escdelay(ESCAPE_MILLISECONDS)
    curses.use_default_colors()
    curses.curs_set(1)
    browser.refresh()
    while True:
        _draw(screen, browser)
        before = (browser.query, browser.here)
        ending = _handle(screen, browser, screen.get_wch())
        screen.nodelay(True)  # whatever else was typed meanwhile, before the next search
        while ending is None:
            try:
                ending = _handle(screen, browser, screen.get_wch())
            except curses.error:
                break
        screen.nodelay(False)
        if ending is not None:
            return ending
        if (browser.query, browser.here) != before:
            browser.refresh()


def _handle(screen: "curses.window", browser: SessionBrowser, typed: int | str) -> Ending | None:
    import curses

    special: dict[Any, Key] = {
        curses.KEY_UP: "up", curses.KEY_DOWN: "down",
        curses.KEY_PPAGE: "page up", curses.KEY_NPAGE: "page down",
        curses.KEY_HOME: "first", curses.KEY_END: "last",
        curses.KEY_BACKSPACE: "backspace", curses.KEY_ENTER: "resume",
    }  # fmt: skip
    key = special.get(typed) if isinstance(typed, int) else CONTROL.get(ord(typed))
    if key is None:
        if isinstance(typed, str) and typed.isprintable():
            browser.type(typed)
        return None
    ending = browser.press(key, page=max(1, screen.getmaxyx()[0] // 2))
    if browser.copied is not None:
        _copy(browser.copied)
    return ending


def _draw(screen: "curses.window", browser: SessionBrowser) -> None:
    import curses

    height, width = screen.getmaxyx()
    screen.erase()
    for number, (line, marked) in enumerate(browser.lines(height, width)):
        try:
            screen.addstr(number, 0, line, curses.A_REVERSE if marked else curses.A_NORMAL)
        except curses.error:  # the last cell of the screen, or a terminal that just shrank
            continue
    with suppress(curses.error):
        screen.move(0, min(len(browser.query) + 2, width - 1))
    screen.refresh()


def _copy(text: str) -> None:
    """Put a text into the clipboard, by the sequence that terminals know for it (OSC 52)."""
    encoded = base64.b64encode(text.encode()).decode()
    sys.stdout.write(f"\033]52;c;{encoded}\a")
    sys.stdout.flush()


def _resume(chosen: FoundSession) -> None:
    """Become the client with the session; print the command where the client is not installed."""
    held = chosen.session
    command = None if held.subagent else resume_command(held.client, held.resume or held.id)
    if command is None:
        raise InvalidInput("This session cannot be resumed by a command.", details={"session": held.id})
    program = shutil.which(command[0])
    if program is None:
        click.echo(command_line(command, held.cwd))
        return
    if held.cwd and Path(held.cwd).is_dir():
        os.chdir(held.cwd)
    sys.stdout.flush()
    os.execv(program, list(command))
