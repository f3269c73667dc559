"""Cursor's command line: `~/.cursor/chats/<hash of the folder>/<session>/store.db`.

`meta` has one row: JSON as hexadecimal text, with the name, the time of creation and the id of the newest
root. `blobs` are named by the hash of their content: messages as JSON, and roots as Protocol Buffers, whose
field 1 lists the messages in order and whose field 9 is the folder. Messages that the newest root does not
list were edited or summarised; they stay searchable, as a branch that was left. Messages have no times.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote, urlparse

from vestige.core.transcripts import Entry, EntryRole, Restarted, Rewound, SessionFacts, Step
from vestige.exchange.transcripts.factory import entry_of
from vestige.exchange.transcripts.folders import read_small
from vestige.exchange.transcripts.shape import Json, State, listing, parsed, seconds, text_of
from vestige.store.sqlite.file.foreign import ForeignDatabase

NAME = "store.db"
MESSAGES_FIELD, FOLDER_FIELD = 1, 9
ID_BYTES = 32
MAX_SIDECAR_BYTES = 100_000
_ROLES: Mapping[object, EntryRole] = {"user": "user", "assistant": "assistant", "tool": "tool"}
_QUERY = ("<user_query>", "</user_query>")
_INFO = ("<user_info>", "</user_info>")
_FOLDER = re.compile(r"^Workspace Path: (\S.{0,1000})$", re.MULTILINE)


def cursor_store(database: ForeignDatabase, path: Path, state: State) -> Iterator[Step]:
    """The steps of the session in a store, if its root changed."""
    if not (database.has("meta", "key", "value") and database.has("blobs", "id", "data")):
        return
    meta = _meta(database)
    root = str(meta.get("latestRootBlobId") or "")
    session = path.parent.name
    if state.get("root") == root and root:
        return
    state["root"] = root
    listed, folder = _root(_blob(database, root))
    found: dict[str, Entry] = {}
    for row in database.rows("blobs"):
        message = _message(row.get("data"))
        if message is not None:
            folder = folder or _folder_in(message)
            found[str(row.get("id"))] = _entry(session, str(row.get("id")), message)
    beside = parsed(read_small(path.with_name("meta.json"), MAX_SIDECAR_BYTES)) or {}
    yield Restarted(session=session)
    yield SessionFacts(
        id=session,
        cwd=text_of(beside.get("cwd")) or folder,
        title=text_of(beside.get("title")) or text_of(meta.get("name")),
        title_rank=2,
        subagent=beside.get("isSubagent") is True or None,
        started=seconds(_number(beside.get("createdAtMs") or meta.get("createdAt"))),
        ended=seconds(_number(beside.get("updatedAtMs"))),
    )
    yield from _ordered(session, found, listed)


def _ordered(session: str, found: Mapping[str, Entry], listed: list[str]) -> Iterator[Step]:
    """The messages of the newest root in its order, after those that it does not list. Without a root that
    can be read, all in the order in which they were stored."""
    kept = [name for name in listed if name in found] or list(found)
    known = set(kept)
    left = [name for name in found if name not in known]
    for name in left:
        yield found[name]
    if left:
        yield Rewound(session=session, uid=found[left[0]].uid)
    times: Counter[str] = Counter()
    for name in kept:
        again = f":{times[name]}" if times[name] else ""  # an answer such as "yes" may be given twice
        times[name] += 1
        one = found[name]
        yield Entry(
            session=session, uid=f"{one.uid}{again}", role=one.role, text=one.text, thought=one.thought,
            output=one.output, actions=one.actions, results=one.results, replaces=True,
        )  # fmt: skip


def _meta(database: ForeignDatabase) -> Json:
    for row in database.rows("meta"):
        value = row.get("value")
        if isinstance(value, bytes):
            value = value.decode("utf-8", "replace")
        if isinstance(value, str):
            try:
                found = parsed(bytes.fromhex(value))
            except ValueError:
                found = parsed(value)
            if found is not None:
                return found
    return {}


def _blob(database: ForeignDatabase, wanted: str) -> bytes:
    for row in database.rows("blobs") if wanted else ():
        data = row.get("data")
        if row.get("id") == wanted and isinstance(data, bytes):
            return data
    return b""


def _root(data: bytes) -> tuple[list[str], str | None]:
    """The ids of the messages of a root, and its folder."""
    ids, folder = list[str](), None
    for field, value in _fields(data):
        if field == MESSAGES_FIELD and len(value) == ID_BYTES:
            ids.append(value.hex())
        elif field == FOLDER_FIELD:
            folder = _path(value.decode("utf-8", "replace"))
    return ids, folder


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The fields of a message of Protocol Buffers that hold bytes, as far as it can be read."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        match tag & 7:
            case 0:
                _, at = _varint(data, at)
            case 1:
                at += 8
            case 2:
                size, at = _varint(data, at)
                if size > len(data) - at:
                    return
                yield tag >> 3, data[at : at + size]
                at += size
            case 5:
                at += 4
            case _:
                return


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of variable length and the place after it; one that is cut off ends the data."""
    value = 0
    for shift in range(0, 64, 7):
        if at >= len(data):
            break
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    return 0, len(data)


def _path(text: str) -> str | None:
    if text.startswith("file://"):
        text = unquote(urlparse(text).path)
    return text if text.startswith("/") else None


def _message(data: object) -> Json | None:
    if isinstance(data, str):
        data = data.encode("utf-8", "surrogateescape")
    if not isinstance(data, bytes) or not data.startswith(b"{"):
        return None
    found = parsed(data)
    return found if found is not None and text_of(found.get("role")) in _ROLES else None


def _entry(session: str, name: str, message: Json) -> Entry:
    role = _ROLES[message["role"]]
    content = message.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else listing(content)
    one = Entry(session=session, uid=f"{session}:{name}", role=role, replaces=True)
    return entry_of([_block(block, role) for block in blocks], one)


def _block(block: Json, role: EntryRole) -> Json:
    """A block as Anthropic's API has it."""
    match block.get("type"):
        case "text" if role == "user":
            return {"type": "text", "text": asked(str(block.get("text") or ""))}
        case "reasoning":
            return {"type": "thinking", "thinking": block.get("text")}
        case "tool-call":
            return {
                "type": "tool_use", "id": block.get("toolCallId"), "name": block.get("toolName"),
                "input": block.get("args") or block.get("input"),
            }  # fmt: skip
        case "tool-result":
            return {
                "type": "tool_result", "tool_use_id": block.get("toolCallId"), "content": _result(block),
                "is_error": block.get("isError") is True,
            }  # fmt: skip
    return block


def _result(block: Json) -> str:
    value = block.get("result", block.get("output"))
    if isinstance(value, dict):
        value = value.get("value", value.get("text", value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def asked(text: str) -> str:
    """What the user wrote of a message: Cursor puts facts about the machine before it, and tags around it."""
    _, found = _split(text, *_QUERY)
    if found:
        return "\n".join(one.strip() for one in found)
    outside, _ = _split(text, *_INFO)
    return "".join(outside).strip()


def _split(text: str, opening: str, closing: str) -> tuple[list[str], list[str]]:
    """What is outside a pair of tags, and what is inside. After a tag that is not closed no other is, so that
    each character is read once."""
    outside, inside = list[str](), list[str]()
    at = 0
    while (start := text.find(opening, at)) >= 0:
        end = text.find(closing, start + len(opening))
        if end < 0:
            break
        outside.append(text[at:start])
        inside.append(text[start + len(opening) : end])
        at = end + len(closing)
    return [*outside, text[at:]], inside


def _folder_in(message: Json) -> str | None:
    content = message.get("content")
    texts = [content] if isinstance(content, str) else [one.get("text") for one in listing(content)]
    found = (_FOLDER.search(one) for one in texts if isinstance(one, str) and "<user_info>" in one)
    return next((_path(one[1].strip()) for one in found if one), None)


def _number(value: object) -> object:
    """A time that some versions write as text."""
    return int(value) if isinstance(value, str) and value.isdecimal() and len(value) < 20 else value
