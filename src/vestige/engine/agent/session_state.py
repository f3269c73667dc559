"""What is kept of a running session: its pack, what it was shown, and its work. One small file per session in
the data directory, so that a restart of the server or of the client changes nothing."""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import field, replace
from datetime import datetime, timedelta
from hashlib import blake2b
from pathlib import Path
from typing import Any

from vestige.core.lazy_dataclass import dataclass
from vestige.engine.agent.files import locked, replace_text

FOLDER = "sessions"
KEPT_DAYS = 45
MOST_SHOWN = 2_000
MOST_WORK = 12
MOST_SESSIONS = 2_000
DAMAGED = (ArithmeticError, AttributeError, LookupError, OSError, RecursionError, TypeError, ValueError)
"""What reading a file raises that is missing, or whose values have other types than a session's."""
QUIET_HOURS, LEFT_DAYS, MOST_LEFT = 6, 7, 50
"""After how many hours without a hook a session counts as ended, for how long it is looked for then, and
among how many sessions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionWork:
    """What a session did: files and commands of its tools, decisions that rules found, the tasks left open in
    its last list of tasks (None: it has none), and how it began and ended."""

    files: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    open_threads: tuple[str, ...] | None = None
    first_prompt: str = ""
    last_prompt: str = ""
    last_message: str = ""

    @property
    def is_meaningful(self) -> bool:
        """Whether something happened that is worth a line in the log."""
        return bool(self.files or self.commands) and bool(self.last_message)

    def then(self, later: "SessionWork") -> "SessionWork":
        """This work followed by later work."""
        return SessionWork(
            files=_latest((*self.files, *later.files)),
            commands=_latest((*self.commands, *later.commands)),
            decisions=_latest((*self.decisions, *later.decisions)),
            open_threads=self.open_threads if later.open_threads is None else later.open_threads[:MOST_WORK],
            first_prompt=self.first_prompt or later.first_prompt,
            last_prompt=later.last_prompt or self.last_prompt,
            last_message=later.last_message or self.last_message,
        )


NO_WORK = SessionWork()


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenReceipt:
    """An injection whose use is not known yet: its memories with the words and files that would show it.
    `used` are those that the last answer used, which a correction by the user would be about."""

    id: str
    signs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    used: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSession:
    """The state of a session. `pack` is the context it was given, None until then; `pending` are injections
    that the transcript has not been compared with."""

    id: str
    client: str = ""
    pack: str | None = None
    pack_id: str = ""
    shown: tuple[str, ...] = ()
    prompts: int = 0
    logged: bool = False
    work: SessionWork = NO_WORK
    pending: tuple[OpenReceipt, ...] = ()
    read_to: int = 0
    """How far the transcript was read, in bytes."""
    changed: datetime | None = None
    """When a hook of the session last changed it."""

    def with_shown(self, ids: tuple[str, ...]) -> "AgentSession":
        return replace(self, shown=tuple(dict.fromkeys((*self.shown, *ids)))[-MOST_SHOWN:])


def load_session(state: Path, session_id: str) -> AgentSession:
    """The state of a session; a new one without a file, or with a damaged one."""
    try:
        found = json.loads(_file(state, session_id).read_bytes())
        return _session(session_id, found) if isinstance(found, dict) else AgentSession(id=session_id)
    except DAMAGED:
        return AgentSession(id=session_id)


@contextmanager
def changing(state: Path, session_id: str, now: datetime) -> Iterator[Callable[[AgentSession], None]]:
    """Holds the lock of a session. Yields what saves its new state, which `load_session` returns then."""
    path = _file(state, session_id)
    with locked(path):
        yield lambda session: replace_text(path, json.dumps(_body(session, now), ensure_ascii=False))


def forget_old_sessions(state: Path, now: datetime) -> int:
    """Remove the states of sessions that ended long ago; returns how many."""
    oldest, removed = (now - timedelta(days=KEPT_DAYS)).timestamp(), 0
    with suppress(OSError):
        found = sorted(_entries(state / FOLDER), key=lambda one: one[0])
        for at, (changed, path) in enumerate(found):
            if changed < oldest or at < len(found) - MOST_SESSIONS:
                with suppress(OSError):
                    Path(path).unlink()
                    removed += 1
    return removed


def quiet_sessions(state: Path, now: datetime) -> list[str]:
    """The names of sessions without a hook for hours, whose work is not in the log yet; the oldest first."""
    newest = (now - timedelta(hours=QUIET_HOURS)).timestamp()
    oldest = (now - timedelta(days=LEFT_DAYS)).timestamp()
    found: list[tuple[float, str]] = []
    with suppress(OSError):
        found = sorted(one for one in _entries(state / FOLDER) if oldest < one[0] < newest)[-MOST_LEFT:]
    held = [_read(Path(path)) for _, path in found]
    return [
        one.id for one in held if one is not None and one.id and one.work.is_meaningful and not one.logged
    ]


def last_runs(state: Path) -> dict[str, datetime]:
    """When a hook of each client last ran, by the sessions that are kept."""
    runs: dict[str, datetime] = {}
    with suppress(OSError):
        for _, path in _entries(state / FOLDER):
            held = _read(Path(path)) if path.endswith(".json") else None
            if held is not None and held.client and held.changed is not None:
                runs[held.client] = max(held.changed, runs.get(held.client, held.changed))
    return runs


def _read(path: Path) -> AgentSession | None:
    try:
        found = json.loads(path.read_bytes())
        return _session(str(found["id"]), found)
    except DAMAGED:
        return None


def _entries(folder: Path) -> Iterator[tuple[float, str]]:
    with os.scandir(folder) as found:
        for one in found:
            yield one.stat(follow_symlinks=False).st_mtime, one.path


def _file(state: Path, session_id: str) -> Path:
    """The id may hold anything, so that the name is a hash of it."""
    name = blake2b(session_id.encode("utf-8", "replace"), digest_size=12).hexdigest()
    return state / FOLDER / f"{name}.json"


def _body(session: AgentSession, now: datetime) -> dict[str, Any]:
    work = session.work
    return {
        "id": session.id,
        "client": session.client,
        "pack": session.pack,
        "packId": session.pack_id,
        "shown": list(session.shown),
        "prompts": session.prompts,
        "logged": session.logged,
        "readTo": session.read_to,
        "at": now.isoformat(timespec="seconds"),
        "work": {
            "files": list(work.files),
            "commands": list(work.commands),
            "decisions": list(work.decisions),
            "openThreads": None if work.open_threads is None else list(work.open_threads),
            "firstPrompt": work.first_prompt,
            "lastPrompt": work.last_prompt,
            "lastMessage": work.last_message,
        },
        "pending": [
            {
                "id": one.id,
                "signs": {name: list(words) for name, words in one.signs.items()},
                "used": list(one.used),
            }
            for one in session.pending
        ],
    }


def _session(session_id: str, found: Mapping[str, Any]) -> AgentSession:
    work, pack = found.get("work") or {}, found.get("pack")
    opened = work.get("openThreads")
    return AgentSession(
        id=session_id,
        client=str(found.get("client", "")),
        pack=pack if isinstance(pack, str) else None,
        pack_id=str(found.get("packId", "")),
        shown=tuple(map(str, found.get("shown", ()))),
        prompts=int(found.get("prompts", 0)),
        logged=bool(found.get("logged")),
        read_to=int(found.get("readTo", 0)),
        changed=datetime.fromisoformat(found["at"]) if found.get("at") else None,
        work=SessionWork(
            files=tuple(map(str, work.get("files", ()))),
            commands=tuple(map(str, work.get("commands", ()))),
            decisions=tuple(map(str, work.get("decisions", ()))),
            open_threads=None if opened is None else tuple(map(str, opened)),
            first_prompt=str(work.get("firstPrompt", "")),
            last_prompt=str(work.get("lastPrompt", "")),
            last_message=str(work.get("lastMessage", "")),
        ),
        pending=tuple(
            OpenReceipt(
                id=str(one["id"]),
                signs={name: tuple(words) for name, words in one.get("signs", {}).items()},
                used=tuple(map(str, one.get("used", ()))),
            )
            for one in found.get("pending", ())
        ),
    )


def _latest(names: tuple[str, ...]) -> tuple[str, ...]:
    """The last of these, each once, in the order of their last mention."""
    return tuple(reversed(list(dict.fromkeys(reversed(names)))[:MOST_WORK]))
