"""Clients that keep sessions in SQLite: OpenCode, Goose and Cursor, the editor and the command line.

A session whose time of change is not newer than the one read before is passed over, so that a run costs what
changed. `state` keeps that time by session.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from vestige.core.transcripts import Entry, Restarted, Rewound, SessionFacts, Step
from vestige.exchange.transcripts.clean import said
from vestige.exchange.transcripts.cursor_store import cursor_store
from vestige.exchange.transcripts.factory import CURSOR_CLIENT, entry_of
from vestige.exchange.transcripts.shape import (
    Json,
    State,
    action,
    listing,
    mapping,
    parsed,
    seconds,
    shortened,
    text_of,
)
from vestige.store.sqlite.file.foreign import ForeignDatabase, Row, opened

OPENCODE, GOOSE, CURSOR = "opencode", "goose", "cursor"
_USER_BUBBLE = 1


def steps(client: str, path: Path, state: State) -> Iterator[Step]:
    """The steps of the sessions that changed since `state`."""
    with opened(path) as database:
        if client == OPENCODE:
            yield from opencode(database, state)
        elif client == GOOSE:
            yield from goose(database, state)
        elif client == CURSOR_CLIENT:
            yield from cursor_store(database, path, state)
        else:
            yield from cursor(database, state)


def _changed(state: State, session: str, stamp: object) -> bool:
    """Whether a session changed since it was read; remembers that it is read now."""
    seen = state.setdefault("seen", {})
    mark = json.dumps(stamp, default=repr)  # a database can hold bytes where a time should be
    if seen.get(session) == mark:
        return False
    seen[session] = mark
    return True


def _data(row: Row, name: str = "data") -> Json:
    value = row.get(name)
    return (parsed(value) or {}) if isinstance(value, str | bytes) else {}


# -- OpenCode: session, message, part; newer versions: session_message


def opencode(database: ForeignDatabase, state: State) -> Iterator[Step]:
    wanted: dict[str, Row] = {}
    for row in database.rows("session"):
        session = str(row.get("id"))
        if _changed(state, session, row.get("time_updated")):
            wanted[session] = row
    if not wanted:
        return
    for session, row in wanted.items():
        yield Restarted(session=session)
        yield SessionFacts(
            id=session,
            cwd=text_of(row.get("directory")),
            title=text_of(row.get("title")),
            title_rank=2,
            parent=text_of(row.get("parent_id")),
            subagent=row.get("parent_id") is not None,
            started=seconds(row.get("time_created")),
            ended=seconds(row.get("time_updated")),
        )
    newer = database.has("session_message", "session_id", "data")
    yield from _opencode_new(database, wanted) if newer else _opencode_old(database, wanted)
    for session, row in wanted.items():
        hidden = text_of(mapping(_data(row, "revert")).get("messageID"))
        if hidden:
            yield Rewound(session=session, uid=f"{session}:{hidden}")


def _opencode_old(database: ForeignDatabase, wanted: Mapping[str, Row]) -> Iterator[Step]:
    parts: dict[str, list[Json]] = defaultdict(list)
    for row in database.rows("part", order=_order(database, "part")):
        if str(row.get("session_id")) in wanted or "session_id" not in row:
            parts[str(row.get("message_id"))].append(_data(row))
    for row in database.rows("message", order=_order(database, "message")):
        session = str(row.get("session_id"))
        if session in wanted:
            data, name = _data(row), str(row.get("id"))
            at = seconds(mapping(data.get("time")).get("created")) or seconds(row.get("time_created"))
            yield _opencode_entry(session, name, data.get("role"), at, parts.pop(name, []))


def _opencode_new(database: ForeignDatabase, wanted: Mapping[str, Row]) -> Iterator[Step]:
    order = tuple(name for name in ("session_id", "seq") if name in database.columns["session_message"])
    for row in database.rows("session_message", order=order):
        session = str(row.get("session_id"))
        if session not in wanted:
            continue
        data, kind = _data(row), row.get("type")
        name = str(row.get("id") or data.get("id") or row.get("seq"))
        at = seconds(mapping(data.get("time")).get("created")) or seconds(row.get("time_created"))
        content = listing(data.get("content")) or listing(data.get("parts"))
        if not content and isinstance(data.get("text"), str):
            content = [{"type": "text", "text": data["text"]}]
        yield _opencode_entry(
            session, name, "user" if kind == "user" else data.get("role") or kind, at, content
        )


def _opencode_entry(session: str, name: str, role: object, at: float | None, parts: list[Json]) -> Entry:
    texts = [
        str(one.get("text") or "") for one in parts if one.get("type") == "text" and not one.get("synthetic")
    ]
    thoughts = [str(one.get("text") or "") for one in parts if one.get("type") == "reasoning"]
    calls, outputs = [], []
    for one in parts:
        if one.get("type") == "tool":
            given = mapping(one.get("state"))
            failed = given.get("status") == "error"
            calls.append(action(one.get("callID") or one.get("id"), one.get("tool") or one.get("name"),
                                given.get("input"), _exit(given, failed)))  # fmt: skip
            outputs.append(shortened(str(given.get("output") or given.get("error") or "")))
    return Entry(
        session=session,
        uid=f"{session}:{name}",
        role="user" if role == "user" else "summary" if role == "compaction" else "assistant",
        at=at,
        text=said("\n".join(texts)),
        thought=said("\n".join(thoughts)),
        output="\n".join(outputs).strip(),
        actions=tuple(calls),
        replaces=True,
    )


def _exit(given: Json, failed: bool) -> int | None:
    code = mapping(given.get("metadata")).get("exit")
    if isinstance(code, int):
        return code
    return 1 if failed else 0 if given.get("status") == "completed" else None


def _order(database: ForeignDatabase, table: str) -> tuple[str, ...]:
    return tuple(name for name in ("time_created", "id") if name in database.columns.get(table, ()))


# -- Goose: sessions, messages


def goose(database: ForeignDatabase, state: State) -> Iterator[Step]:
    wanted = set()
    for row in database.rows("sessions"):
        session = str(row.get("id"))
        if not _changed(state, session, row.get("updated_at") or row.get("created_at")):
            continue
        wanted.add(session)
        yield Restarted(session=session)
        yield SessionFacts(
            id=session,
            cwd=text_of(row.get("working_dir")),
            title=text_of(row.get("description")) or text_of(row.get("name")),
            title_rank=2,
            subagent=row.get("session_type") == "sub_agent",
            started=seconds(row.get("created_at")),
            ended=seconds(row.get("updated_at")),
        )
    for row in database.rows("messages") if wanted else ():
        session = str(row.get("session_id"))
        if session in wanted:
            name = row.get("id") or row.get("message_id")
            yield _goose_entry(row, Entry(
                session=session, uid=f"{session}:{name}", replaces=True,
                role="user" if row.get("role") == "user" else "assistant",
                at=seconds(row.get("created_timestamp")),
            ))  # fmt: skip


def _goose_entry(row: Row, one: Entry) -> Entry:
    content = row.get("content_json")
    blocks = _list(content) if isinstance(content, str) else []
    return entry_of([_goose_block(block) for block in blocks], one)


def _goose_block(block: Json) -> Json:
    """A block as Anthropic's API has it."""
    match block.get("type"):
        case "toolRequest":
            call = mapping(mapping(block.get("toolCall")).get("value"))
            return {
                "type": "tool_use",
                "id": block.get("id"),
                "name": call.get("name"),
                "input": call.get("arguments"),
            }
        case "toolResponse":
            result = mapping(block.get("toolResult"))
            value = result.get("value")
            content = value.get("content") if isinstance(value, dict) else value
            failed = result.get("status") == "error"
            return {
                "type": "tool_result", "tool_use_id": block.get("id"), "is_error": failed,
                "content": str(result.get("error") or "") if failed else content,
            }  # fmt: skip
    return block


def _list(text: str) -> list[Json]:
    try:
        return listing(json.loads(text))
    except (ValueError, RecursionError):
        return []


# -- Cursor: composerData:<id> and bubbleId:<composer>:<bubble> in a table of keys and values


def cursor(database: ForeignDatabase, state: State) -> Iterator[Step]:
    if not database.has("cursorDiskKV", "key", "value"):
        return
    heads: dict[str, dict[str, int]] = {}
    for row in database.rows("cursorDiskKV"):
        key = str(row.get("key"))
        if not key.startswith("composerData:"):
            continue
        data, session = _data(row, "value"), key.partition(":")[2]
        headers = listing(data.get("fullConversationHeadersOnly"))
        if not headers or not _changed(state, session, [data.get("lastUpdatedAt"), len(headers)]):
            continue
        heads[session] = {str(one.get("bubbleId")): number for number, one in enumerate(headers)}
        yield Restarted(session=session)
        yield SessionFacts(
            id=session,
            title=text_of(data.get("name")),
            title_rank=2,
            started=seconds(data.get("createdAt")),
            ended=seconds(data.get("lastUpdatedAt")),
        )
    if not heads:
        return
    bubbles: dict[str, dict[str, Json]] = defaultdict(dict)
    for row in database.rows("cursorDiskKV"):
        kind, _, rest = str(row.get("key")).partition(":")
        session, _, bubble = rest.partition(":")
        if kind == "bubbleId" and bubble in heads.get(session, {}):
            bubbles[session][bubble] = _data(row, "value")
            if len(bubbles[session]) == len(heads[session]):
                yield from _cursor_entries(session, heads[session], bubbles.pop(session))
    for session, found in bubbles.items():  # sessions with bubbles that are gone
        yield from _cursor_entries(session, heads[session], found)


def _cursor_entries(session: str, order: Mapping[str, int], found: Mapping[str, Json]) -> Iterator[Step]:
    for bubble in sorted(found, key=order.__getitem__):
        data = found[bubble]
        tool = mapping(data.get("toolFormerData"))
        folder = text_of(data.get("workspaceProjectDir"))
        uris = data.get("workspaceUris")
        if folder is None and isinstance(uris, list) and uris:
            folder = str(uris[0]).removeprefix("file://")
        at = seconds(data.get("createdAt"))
        yield SessionFacts(id=session, cwd=folder, started=at, ended=at)
        called = action(tool.get("toolCallId"), tool.get("name"), tool.get("params") or tool.get("rawArgs"),
                        1 if tool.get("status") == "error" else None)  # fmt: skip
        yield Entry(
            session=session,
            uid=f"{session}:{bubble}",
            role="user" if data.get("type") == _USER_BUBBLE else "assistant",
            at=at,
            text=said(str(data.get("text") or "")),
            thought=said(str(mapping(data.get("thinking")).get("text") or "")),
            output=shortened(str(tool.get("result") or "")),
            actions=(called,) if tool else (),
            replaces=True,
        )
