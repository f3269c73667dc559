"""The full-screen list of sessions: what it shows and how it answers keys, without a terminal."""

import shlex
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Literal

from vestige.core.lazy_dataclass import dataclass
from vestige.core.timezone import time_text
from vestige.engine.recall.sessions.recall import FoundSession
from vestige.operations.sessions.view import moment
from vestige.operations.shared.text import count
from vestige.store.contract.sessions import StoredEntry

Key = Literal[
    "up",
    "down",
    "page up",
    "page down",
    "first",
    "last",
    "backspace",
    "clear",
    "expand",
    "copy",
    "resume",
    "scope",
    "quit",
]
Ending = Literal["quit", "resume"]
HELP = "↑↓ choose  Enter resume  Ctrl-E expand  Tab copy id  Ctrl-F this folder/everywhere  Esc leave"
ROWS_PER_SESSION = 2
FAR = 1_000_000_000
"""More lines than a session has."""


@dataclass(slots=True, kw_only=True)
class SessionBrowser:
    """The state of the list. `search` finds sessions for a query, in the folder only or everywhere; `read`
    gives some entries of one, from a number on, and none after the last."""

    search: Callable[[str, bool], list[FoundSession]]
    read: Callable[[FoundSession, int], list[StoredEntry]]
    here: bool = False
    query: str = ""
    chosen: int = 0
    scroll: int = 0
    expanded: bool = False
    notice: str = ""
    copied: str | None = None
    found: list[FoundSession] = field(default_factory=list)
    _text: "_SessionText | None" = None

    def refresh(self) -> None:
        """Search again, for a query that changed."""
        self.found = self.search(self.query, self.here)
        self.chosen = self.scroll = 0
        self.expanded = False

    @property
    def session(self) -> FoundSession | None:
        return self.found[self.chosen] if self.chosen < len(self.found) else None

    def type(self, text: str) -> None:
        self.query += text

    def press(self, key: Key, page: int = 10) -> Ending | None:
        """Answer a key; how the list ends, if it does."""
        self.notice, self.copied = "", None
        match key:
            case "up" | "down" | "page up" | "page down":
                self._move((1 if "down" in key else -1) * (page if "page" in key else 1))
            case "first" | "last":
                self._move(FAR if key == "last" else -FAR)
            case "backspace":
                self.query = self.query[:-1]
            case "clear":
                self.query = ""
            case "scope":
                self.here = not self.here
            case "expand":
                self.expanded, self.scroll, self._text = not self.expanded, 0, None
            case "copy" if self.session is not None:
                self.copied = self.session.session.id
                self.notice = f"Copied {self.copied}"
            case "resume" if self.session is not None:
                return "resume"
            case "quit":
                return "quit"
        return None

    def _move(self, steps: int) -> None:
        if self.expanded:
            self.scroll = max(0, self.scroll + steps)
        elif self.found:
            self.chosen = min(max(0, self.chosen + steps), len(self.found) - 1)

    # -- What is shown

    def lines(self, height: int, width: int) -> list[tuple[str, bool]]:
        """The lines of the screen, each with whether it stands out."""
        where = "this folder" if self.here else "everywhere"
        top = [(f"> {self.query}", False), (f"{count(len(self.found), 'session')}, {where}", False)]
        room = max(1, height - 3)
        body = self._expanded(room, width) if self.expanded else self._listed(room, width)
        blank = [("", False)] * (room - len(body))
        shown = [*top, *body, *blank, (self.notice or HELP, False)]
        return [(cut(line, width), marked) for line, marked in shown[:height]]

    def _listed(self, room: int, width: int) -> list[tuple[str, bool]]:
        """The list above, and the preview of the chosen session below."""
        rows = max(1, room * 3 // 5 // ROWS_PER_SESSION)
        first = max(0, min(self.chosen - rows // 2, len(self.found) - rows))
        made: list[tuple[str, bool]] = []
        for number, one in enumerate(self.found[first : first + rows], first):
            made += [(line, number == self.chosen) for line in session_rows(one)]
        if self.session is not None:
            made.append(("─" * width, False))
            for passage in self.session.passages:
                text = plain(f"{passage.entry.role}: {passage.excerpt}")
                made += [(line, False) for line in folded(text, width)]
                made += [
                    (plain(f"$ {command}{_status(status)}"), False)
                    for command, status in passage.commands[:3]
                ]
        return made[:room]

    def _expanded(self, room: int, width: int) -> list[tuple[str, bool]]:
        if self.session is None:
            return []
        if self._text is None or self._text.session is not self.session or self._text.width != width:
            self._text = _SessionText(session=self.session, width=width, read=self.read)
        lines = self._text.lines(self.scroll + room)
        self.scroll = min(self.scroll, max(0, len(lines) - room))
        return lines[self.scroll : self.scroll + room]


@dataclass(slots=True, kw_only=True)
class _SessionText:
    """The lines of one session, whose entries are read as far as they are shown."""

    session: FoundSession
    width: int
    read: Callable[[FoundSession, int], list[StoredEntry]]
    made: list[tuple[str, bool]] = field(default_factory=list)
    entries: int = 0
    ended: bool = False

    def lines(self, wanted: int) -> list[tuple[str, bool]]:
        """The lines from the first one on, at least this many if the session has them."""
        if not self.made:
            self.made = [(line, True) for line in session_rows(self.session)]
        while len(self.made) < wanted and not self.ended:
            some = self.read(self.session, self.entries)
            self.entries += len(some)
            self.ended = not some
            for entry in some:
                self.made += [(line, False) for line in entry_lines(entry, self.width)]
        return self.made


def session_rows(one: FoundSession) -> list[str]:
    held = one.session
    when = time_text(moment(held.ended)) if held.ended is not None else "no time"
    kind = f"{held.client}, subagent" if held.subagent else held.client
    return [plain(held.title or "(no title)"), plain(f"    {when}  {kind}  {held.cwd or ''}  {held.id}")]


def entry_lines(entry: StoredEntry, width: int) -> list[str]:
    made = []
    if entry.text:
        side = " (taken back)" if entry.side else ""
        made += ["", f"{entry.role}{side}:"]
        for line in entry.text.splitlines():
            made += folded(plain(line), width)
    made += [
        plain(f"$ {action.command}{_status(action.status)}")
        if action.command
        else plain(f"· {action.name} {' '.join(action.files)}")
        for action in entry.actions
    ]
    return made


def _status(status: int | None) -> str:
    return "" if status is None else f" → {status}"


def plain(text: str) -> str:
    """A text on one line that cannot steer the terminal."""
    return "".join(" " if unicodedata.category(one).startswith("C") else one for one in text)


def folded(text: str, width: int) -> list[str]:
    """The text in lines of this width."""
    width = max(1, width)
    return [text[at : at + width] for at in range(0, len(text), width)] or [""]


def cut(text: str, width: int) -> str:
    return text[: max(0, width - 1)]


def command_line(command: Sequence[str], cwd: str | None) -> str:
    line = shlex.join(command)
    return f"cd {shlex.quote(cwd)} && {line}" if cwd else line
