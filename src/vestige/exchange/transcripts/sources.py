"""Where each client keeps its transcripts, which file is of which session, and when the client deletes it."""

import json
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path
from typing import Literal

from vestige.core.lazy_dataclass import dataclass
from vestige.exchange.transcripts import (
    amp,
    claude,
    codex,
    copilot,
    cursor_store,
    databases,
    factory,
    gemini,
    openclaw,
)
from vestige.exchange.transcripts.folders import ClientFolders, FileListing, read_small
from vestige.exchange.transcripts.shape import State, mapping, parsed

Form = Literal["lines", "whole", "database"]
CLIENTS = (
    claude.CLIENT, codex.CLIENT, gemini.CLIENT, databases.OPENCODE, databases.CURSOR, factory.CURSOR_CLIENT,
    copilot.CLIENT, factory.CLIENT, databases.GOOSE, amp.CLIENT, openclaw.CLIENT,
)  # fmt: skip
READERS = {
    claude.CLIENT: claude.steps,
    codex.CLIENT: codex.steps,
    gemini.CLIENT: gemini.steps,
    copilot.CLIENT: copilot.steps,
    factory.CLIENT: factory.steps,
    factory.CURSOR_CLIENT: factory.steps,
    openclaw.CLIENT: openclaw.steps,
}
WHOLE_READERS = {gemini.CLIENT: gemini.whole, amp.CLIENT: amp.whole}
RESUME = {
    claude.CLIENT: ("claude", "--resume"),
    codex.CLIENT: ("codex", "resume"),
    gemini.CLIENT: ("gemini", "--resume"),
    copilot.CLIENT: ("copilot", "--resume"),
    databases.OPENCODE: ("opencode", "--session"),
    databases.GOOSE: ("goose", "session", "--resume", "--session-id"),
    factory.CURSOR_CLIENT: ("cursor-agent", "--resume"),
    factory.CLIENT: ("droid", "--resume"),
    amp.CLIENT: ("amp", "threads", "continue"),
    openclaw.CLIENT: ("openclaw", "chat", "--session"),
}
"""The command that takes a session up again, to which its id is added. The editor Cursor has none."""
DEFAULT_DAYS = 30
MOST_DAYS = 36_500
"""A client that is set to keep files for longer never deletes them."""
COMPRESSED = ".jsonl.zst"
NOTES_FOLDER = "memory"
"""The notes that Claude Code keeps of a project: no sessions."""
_OPENCLAW_COPIES = (".checkpoint.", ".deleted", ".reset", ".bak")
_MAX_CONFIG_BYTES, _MAX_LINE_BYTES = 4_000_000, 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A file with sessions, and the state that its reader begins with."""

    client: str
    path: Path
    form: Form
    state: State = field(default_factory=dict)
    expires_days: float | None = None
    """Days after its last change when the client deletes it."""


def sources(
    folders: ClientFolders, clients: tuple[str, ...] = CLIENTS, listing: FileListing | None = None
) -> Iterator[Source]:
    """Every file of these clients that may hold sessions. A folder that is not there holds none. What is no
    regular file in the folder is left out, and named in `listing.skipped`."""
    listing = FileListing() if listing is None else listing
    found = {
        claude.CLIENT: _claude,
        codex.CLIENT: _codex,
        gemini.CLIENT: _gemini,
        databases.OPENCODE: _opencode,
        databases.CURSOR: _cursor,
        factory.CURSOR_CLIENT: _cursor_cli,
        copilot.CLIENT: _copilot,
        factory.CLIENT: _factory,
        databases.GOOSE: _goose,
        amp.CLIENT: _amp,
        openclaw.CLIENT: _openclaw,
    }
    for client in clients:
        yield from found[client](folders, listing)


def _claude(folders: ClientFolders, look: FileListing) -> Iterator[Source]:
    days = _claude_days(folders.claude / "settings.json")
    for root in folders.claude_projects:
        for path in look.files(root, "**/*.jsonl"):
            inner = path.relative_to(root).parts
            if path.name == "journal.jsonl" or NOTES_FOLDER in inner[:-1]:
                continue
            state: State = {"session": path.stem}
            if path.stem.startswith("agent-"):
                state["subagent"] = True
                if "subagents" in inner:
                    state["parent"] = inner[inner.index("subagents") - 1]
                    state["session"] = f"{state['parent']}/{path.stem}"
            yield Source(client=claude.CLIENT, path=path, form="lines", state=state, expires_days=days)


def _codex(folders: ClientFolders, look: FileListing) -> Iterator[Source]:
    for root in folders.codex_sessions:
        for path in look.files(root, "**/rollout-*.jsonl*"):
            plain = path.with_name(path.name.removesuffix(".zst"))
            if not path.name.endswith((".jsonl", COMPRESSED)) or (path != plain and plain.exists()):
                continue
            session = path.name.split(".")[0][-36:]
            yield Source(client=codex.CLIENT, path=path, form="lines", state={"session": session})


def _gemini(folders: ClientFolders, look: FileListing) -> Iterator[Source]:
    root = folders.home / ".gemini"
    days = _gemini_days(root / "settings.json")
    projects = mapping(_config(root / "projects.json").get("projects"))
    paths = {str(short): path for path, short in projects.items()}
    for path in look.files(folders.gemini_chats, "*/chats/**/*.json*"):
        if path.suffix not in (".json", ".jsonl"):
            continue
        project, chats = path.relative_to(root / "tmp").parts[0], path.parts.index("chats")
        state: State = {
            "session": path.stem,
            "cwd": paths.get(project) or _line(root / "tmp" / project / ".project_root"),
        }
        if path.parts[chats + 1] != path.name:
            state["parent"] = path.parts[chats + 1]
        form: Form = "whole" if path.suffix == ".json" else "lines"
        yield Source(client=gemini.CLIENT, path=path, form=form, state=state, expires_days=days)


def _opencode(folders: ClientFolders, look: FileListing) -> Iterator[Source]:
    for path in look.files(folders.share / "opencode", "opencode*.db"):
        yield Source(client=databases.OPENCODE, path=path, form="database")


def _cursor(folders: ClientFolders, look: FileListing) -> Iterator[Source]:
    for path in look.files(folders.configuration / "Cursor" / "User" / "globalStorage", "state.vscdb"):
        yield Source(client=databases.CURSOR, path=path, form="database")


def _cursor_cli(folders: ClientFolders, look: FileListing) -> Iterator[Source]:
    """The stores of sessions, and the transcripts of those that have none: a store has more."""
    stored = set()
    for path in look.files(folders.cursor_chats, f"*/*/{cursor_store.NAME}"):
        stored.add(path.parent.name)
        yield Source(client=factory.CURSOR_CLIENT, path=path, form="database")
    for path in look.files(folders.cursor_projects, "*/agent-transcripts/**/*.jsonl"):
        if path.stem not in stored:
            yield Source(client=factory.CURSOR_CLIENT, path=path, form="lines", state={"session": path.stem})


def _copilot(folders: ClientFolders, look: FileListing) -> Iterator[Source]:
    for path in look.files(folders.copilot_sessions, "**/*.jsonl"):
        session = path.parent.name if path.name == "events.jsonl" else path.stem
        yield Source(client=copilot.CLIENT, path=path, form="lines", state={"session": session})


def _factory(folders: ClientFolders, look: FileListing) -> Iterator[Source]:
    for path in look.files(folders.home / ".factory" / "sessions", "**/*.jsonl"):
        yield Source(client=factory.CLIENT, path=path, form="lines", state={"session": path.stem})


def _goose(folders: ClientFolders, look: FileListing) -> Iterator[Source]:
    for path in look.files(folders.share / "goose" / "sessions", "sessions.db"):
        yield Source(client=databases.GOOSE, path=path, form="database")


def _amp(folders: ClientFolders, look: FileListing) -> Iterator[Source]:
    for path in look.files(folders.share / "amp" / "threads", "T-*.json"):
        yield Source(client=amp.CLIENT, path=path, form="whole", state={"session": path.stem})


def _openclaw(folders: ClientFolders, look: FileListing) -> Iterator[Source]:
    keys: dict[Path, dict[str, str]] = {}
    for path in look.files(folders.openclaw_agents, "*/sessions/*.jsonl"):
        if any(mark in path.name for mark in _OPENCLAW_COPIES):
            continue
        if path.parent not in keys:
            named = _config(path.parent / "sessions.json").items()
            keys[path.parent] = {str(mapping(value).get("sessionId")): key for key, value in named}
        state: State = {"session": path.stem, "resume": keys[path.parent].get(path.stem)}
        yield Source(client=openclaw.CLIENT, path=path, form="lines", state=state)


def _config(path: Path) -> dict[str, object]:
    """A small JSON file of a client; empty if it is not there or not JSON."""
    return parsed(read_small(path, _MAX_CONFIG_BYTES)) or {}


def _line(path: Path) -> str | None:
    return read_small(path, _MAX_LINE_BYTES).decode("utf-8", "replace").strip() or None


def _claude_days(path: Path) -> float | None:
    given = _config(path).get("cleanupPeriodDays")
    if isinstance(given, bool) or not isinstance(given, int) or given <= 0:
        return DEFAULT_DAYS
    return float(given) if given <= MOST_DAYS else None


def _gemini_days(path: Path) -> float | None:
    """The age at which Gemini CLI deletes chats: `general.sessionRetention`, such as {"maxAge": "30d"}."""
    config = _config(path)
    given = mapping(mapping(config.get("general")).get("sessionRetention"))
    if given.get("enabled") is False:
        return None
    age = str(given.get("maxAge") or "")
    units = {"h": 1 / 24, "d": 1.0, "w": 7.0, "m": 30.0}
    if not age[:-1].isdecimal() or age[-1:] not in units:
        return DEFAULT_DAYS
    days = int(age[:-1]) * units[age[-1]] if len(age) < 10 else MOST_DAYS + 1
    return days if days <= MOST_DAYS else None


def resume_command(client: str, session: str) -> tuple[str, ...] | None:
    """The command that takes a session up again."""
    command = RESUME.get(client)
    return (*command, session) if command else None


def state_text(state: State) -> str:
    return json.dumps(state, ensure_ascii=False, sort_keys=True)
