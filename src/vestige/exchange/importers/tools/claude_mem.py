"""claude-mem: the observations, summaries and prompts of its database."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from vestige.core.lazy_dataclass import dataclass
from vestige.exchange.importers.memories import memory_of
from vestige.exchange.importers.records import Brought, Reading, Target, derived_id
from vestige.exchange.importers.tools.tables import parsed, unread_tables
from vestige.store.sqlite.file.foreign import ForeignDatabase, Row, opened

TOOL = "claude-mem"
TABLES = {"observations": ("project", "type"), "sdk_sessions": ("project",)}
READ = ("sdk_sessions", "user_prompts", "observations", "session_summaries")
WAITING = "tool calls that were waiting to be summarised there"
LEFT = {
    "schema_versions": "",
    "pending_messages": WAITING,
    "tool_uses": WAITING,
    "telegram_wrapups": "messages that were sent to a phone",
    "sync_state": "",
    "sync_outbox": "",
    "sync_entity_heads": "",
    "sync_content_outbox": "",
    "sync_dead_letter": "",
    "sync_launch_exclusions": "",
}
SUMMARY = ("request", "investigated", "learned", "completed", "next_steps", "notes")
KEPT = (
    "files_read", "files_modified", "files_edited", "generated_by_model", "merged_into_project", "agent_type",
    "relevance_count", "prompt_number", "metadata",
)  # fmt: skip
"""Columns without a field of ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Session:
    """A session: the name its memories share, and its title."""

    name: str
    project: object = None
    title: object = None
    platform: object = None


@contextmanager
def reading(path: Path, target: Target) -> Iterator[Reading]:
    with opened(path) as file:
        total = sum(file.counts.get(name, 0) for name in READ[1:])
        yield Reading(records=_records(file, target), total=total)


def _records(file: ForeignDatabase, target: Target) -> Iterator[Brought]:
    sessions = dict(_sessions(file))
    for row in file.rows("user_prompts"):
        yield _prompt(row, sessions, target)
    for row in file.rows("observations"):
        yield _observation(row, sessions, target)
    for row in file.rows("session_summaries"):
        yield _summary(row, sessions, target)
    yield from unread_tables(file, READ, LEFT)


def _sessions(file: ForeignDatabase) -> Iterator[tuple[object, _Session]]:
    """The sessions by both of their ids; the columns had other names in old versions."""
    for row in file.rows("sdk_sessions"):
        memory = row.get("memory_session_id", row.get("sdk_session_id"))
        content = row.get("content_session_id", row.get("claude_session_id"))
        session = _Session(
            name=str(memory or content),
            project=row.get("project"),
            title=row.get("custom_title"),
            platform=row.get("platform_source"),
        )
        yield from ((key, session) for key in (memory, content) if key is not None)


def _of(row: Row, sessions: Mapping[object, _Session], *columns: str) -> _Session:
    key = next((row[name] for name in columns if row.get(name) is not None), None)
    return sessions.get(key, _Session(name=str(key)))


def _fields(row: Row, session: _Session, target: Target, **own: object) -> dict[str, object]:
    """The fields that all kinds share. Rows of one session follow each other by their time."""
    at = row.get("created_at_epoch") or row.get("created_at")
    project = row.get("project") or session.project
    known_by = (str(own["node_type"]), session.name, str(at), str(own["content"]))
    kept = {name: parsed(row[name]) for name in KEPT if row.get(name)}
    return {
        "id": derived_id(TOOL, target.scope, *known_by),
        "created_at": at,
        "source": TOOL,
        "session_id": session.name,
        "thread": f"{TOOL}:{session.name}",
        "position": _position(at, row.get("id")),
        "agent_id": row.get("agent_id"),
        "project": project,
        "session_title": session.title,
        "platform": session.platform,
        **kept,
        **own,
        "tags": [*_texts(own.get("tags")), *([project] if project else [])],
    }


def _position(at: object, number: object) -> int | None:
    """The order in a session: by time, and at one time by the number of the row."""
    return at * 1_000 + number % 1_000 if isinstance(at, int) and isinstance(number, int) else None


def _texts(value: object) -> list[str]:
    found = parsed(value)
    return [one for one in found if isinstance(one, str) and one.strip()] if isinstance(found, list) else []


def _prompt(row: Row, sessions: Mapping[object, _Session], target: Target) -> Brought:
    session = _of(row, sessions, "content_session_id", "claude_session_id")
    text = row.get("prompt_text")
    fields = _fields(row, session, target, content=text, node_type="prompt", author="user")
    return memory_of(fields, f"user_prompts {row.get('id')}", target)


def _observation(row: Row, sessions: Mapping[object, _Session], target: Target) -> Brought:
    session = _of(row, sessions, "memory_session_id", "sdk_session_id")
    facts = "\n".join(f"- {fact}" for fact in _texts(row.get("facts")))
    head = "\n".join(str(row[name]) for name in ("title", "subtitle") if row.get(name))
    parts = (head, facts, row.get("narrative"), row.get("text"))
    text = "\n\n".join(str(part) for part in parts if part)
    kind = str(row.get("type") or "observation")
    fields = _fields(row, session, target, content=text, node_type=kind, tags=row.get("concepts"))
    return memory_of(fields, f"observations {row.get('id')}", target)


def _summary(row: Row, sessions: Mapping[object, _Session], target: Target) -> Brought:
    session = _of(row, sessions, "memory_session_id", "sdk_session_id")
    lines = [f"{name.replace('_', ' ').capitalize()}: {row[name]}" for name in SUMMARY if row.get(name)]
    fields = _fields(row, session, target, content="\n".join(lines), node_type="summary")
    return memory_of(fields, f"session_summaries {row.get('id')}", target)
