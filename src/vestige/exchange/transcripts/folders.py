"""The folders in which clients keep transcripts, and which files in them may be read.

Only a regular file that lies in a folder of its client is read. A link may lead anywhere, and a pipe never
ends: both are left out and named.
"""

import errno
import os
import stat
from collections.abc import Sequence
from dataclasses import field
from pathlib import Path
from typing import IO

from vestige.core.lazy_dataclass import dataclass

TRANSCRIPT_SUFFIX = ".jsonl"
OUTSIDE = "a link out of the client's folder"
LINKED = "a link to another file of the client"
NO_FILE = "not a regular file"
NOWHERE = "a link that leads nowhere"
_FLAGS = (
    os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientFolders:
    """The folders that the clients' own are in."""

    home: Path
    claude: Path
    codex: Path
    share: Path
    """What XDG_DATA_HOME is."""
    configuration: Path
    """What XDG_CONFIG_HOME is; on a Mac `~/Library/Application Support`."""

    def of_hook(self, client: str) -> tuple[Path, ...]:
        """The folders with the transcripts of a client that runs hooks, by its name in `vestige connect`. A
        client that keeps its sessions in a database has none."""
        match client:
            case "claude-code":
                return self.claude_projects
            case "codex":
                return self.codex_sessions
            case "gemini-cli":
                return (self.gemini_chats,)
            case "copilot-cli":
                return (self.copilot_sessions,)
            case "cursor":
                return (self.cursor_projects,)
            case "openclaw":
                return (self.openclaw_agents,)
        return ()

    @property
    def claude_projects(self) -> tuple[Path, ...]:
        older = self.home / ".config" / "claude" / "projects"
        return tuple(dict.fromkeys((self.claude / "projects", older)))

    @property
    def codex_sessions(self) -> tuple[Path, ...]:
        return (self.codex / "sessions", self.codex / "archived_sessions")

    @property
    def gemini_chats(self) -> Path:
        return self.home / ".gemini" / "tmp"

    @property
    def copilot_sessions(self) -> Path:
        return self.home / ".copilot" / "session-state"

    @property
    def cursor_projects(self) -> Path:
        return self.home / ".cursor" / "projects"

    @property
    def cursor_chats(self) -> Path:
        return self.home / ".cursor" / "chats"

    @property
    def openclaw_agents(self) -> Path:
        return self.home / ".openclaw" / "agents"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileListing:
    """Lists files in the folders of clients. `skipped` are those that may not be read, with the reason."""

    skipped: dict[str, str] = field(default_factory=dict)

    def files(self, root: Path, pattern: str) -> list[Path]:
        """The regular files below a folder, in the order of their names; a folder that cannot be read has
        none. The folder itself may be a link: its user put it there."""
        try:
            found = sorted(root.glob(pattern))
            home = root.resolve()
        except (OSError, RuntimeError):
            return []
        inside: dict[Path, bool] = {}
        kept = []
        for path in found:
            if path.parent not in inside:
                inside[path.parent] = is_inside(path.parent, home)
            reason = _objection(path, home) if inside[path.parent] else OUTSIDE
            if reason is None:
                kept.append(path)
            elif reason:
                self.skipped[str(path)] = reason
        return kept


def is_inside(path: Path, resolved_root: Path) -> bool:
    """Whether a path, with its links followed, is in a folder or is the folder."""
    try:
        return path.resolve(strict=True).is_relative_to(resolved_root)
    except (OSError, RuntimeError):  # gone, or a loop of links
        return False


def _objection(path: Path, home: Path) -> str | None:
    """Why a file in a good folder is not read; None if it is, empty for one that is gone."""
    try:
        mode = path.lstat().st_mode
    except OSError:
        return ""
    if stat.S_ISREG(mode):
        return None
    if not stat.S_ISLNK(mode):
        return NO_FILE
    try:
        target = path.resolve(strict=True)
    except (OSError, RuntimeError):
        return NOWHERE
    return LINKED if target.is_relative_to(home) else OUTSIDE


def own_transcript(path: Path, roots: Sequence[Path]) -> Path | None:
    """The transcript at a path that a client named, with its links followed; None unless it is a regular file
    of lines in one of these folders."""
    if path.suffix != TRANSCRIPT_SUFFIX or not path.is_absolute() or "\0" in str(path):
        return None
    try:
        folder = path.parent.resolve(strict=True)
        if not any(folder.is_relative_to(root.resolve()) for root in roots):
            return None
        found = folder / path.name
        return found if stat.S_ISREG(found.lstat().st_mode) else None
    except (OSError, RuntimeError):
        return None


def open_regular(path: Path) -> IO[bytes]:
    """Open a regular file for reading; OSError for anything else, and for a link. No pipe is waited for."""
    handle = os.open(path, _FLAGS)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, NO_FILE, str(path))
    return os.fdopen(handle, "rb")


def read_small(path: Path, most: int) -> bytes:
    """What a small file of a client has; empty if it is missing, larger than `most` bytes or no regular file.
    Files of settings may be links: people keep them in a repository of their own."""
    try:
        with open_regular(path.resolve(strict=True)) as file:
            data = file.read(most + 1)
    except (OSError, RuntimeError):
        return b""
    return data if len(data) <= most else b""
