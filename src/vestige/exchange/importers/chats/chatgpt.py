"""ChatGPT: the export of its data, with conversations and what it remembered of the user.

A conversation is a tree, because a message can be edited and an answer asked for again. The branch that is
shown is imported; messages of other branches are counted.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import MAX_LABEL_CHARS
from vestige.exchange.importers.bundles import Bundle
from vestige.exchange.importers.chats.turns import (
    ACCOUNT,
    FILE,
    MESSAGE,
    PROFILE,
    ChatThread,
    elements_of,
    exported,
)
from vestige.exchange.importers.memories import memory_of
from vestige.exchange.importers.records import Brought, Reading, Target, UnreadRecords, derived_id

TOOL = "chatgpt"
CONVERSATIONS = re.compile(r"(?:^|/)(?:shared_)?conversations(?:[-_]?\d+)?\.json$")
MEMORIES = re.compile(r"(?:^|/)(?:memory|memories)[\w-]*\.json$")
SAVED = "saved-memory"
"""The tag of what ChatGPT remembered by itself."""
MAX_DEPTH = 100_000
"""The most messages of a branch: a broken tree may be a ring."""
_DATED = re.compile(r"^\s*(?:\d+\.\s*)?\[(\d{4}-\d\d-\d\d)\]\.?\s*")
REASONS = {
    "thoughts": "a thought of the model",
    "reasoning_recap": "a thought of the model",
    "execution_output": "the output of a tool",
    "tether_browsing_display": "the output of a tool",
    "tether_quote": "the output of a tool",
    "system_error": "an error message",
}
"""Why the messages of a content type are not imported."""


def is_conversation(value: object) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("mapping"), Mapping)


@contextmanager
def reading(path: Path, target: Target) -> Iterator[Reading]:
    with exported(path) as files:
        if files is None:
            yield Reading(records=_conversations(elements_of(path), path.name, target))
        else:
            yield Reading(records=_records(files, target))


def _records(files: Bundle, target: Target) -> Iterator[Brought]:
    others = 0
    for name in files.names:
        if CONVERSATIONS.search(name):
            yield from _conversations(files.elements(name), name, target)
        elif MEMORIES.search(name):
            yield from _memories(files.elements(name), name, target)
        elif name.endswith("user.json"):
            yield UnreadRecords(kind=ACCOUNT, place=name, reason="the address and phone of the account")
        else:
            others += 1
    reason = "pictures, sounds, feedback and the page that shows the same conversations"
    yield UnreadRecords(kind=FILE, place=str(files.root), reason=reason, count=others)


def _memories(found: Iterator[object], name: str, target: Target) -> Iterator[Brought]:
    for number, value in enumerate(found, start=1):
        fields = value if isinstance(value, Mapping) else {"content": value}
        yield _saved(fields, f"{name}, {number}", target)


def _saved(fields: Mapping[str, object], place: str, target: Target) -> Brought:
    """Something that ChatGPT remembered of the user; the same text is one memory."""
    text = next((fields[one] for one in ("content", "text", "memory") if fields.get(one)), None)
    own = {
        "id": derived_id(TOOL, target.scope, SAVED, str(text)),
        "source": TOOL,
        "node_type": "fact",
        "tags": [SAVED],
    }
    return memory_of({**fields, **own}, place, target)


def _conversations(found: Iterator[object], name: str, target: Target) -> Iterator[Brought]:
    for number, value in enumerate(found, start=1):
        place = f"{name}, conversation {number}"
        if isinstance(value, Mapping) and isinstance(value.get("mapping"), Mapping):
            yield from _conversation(value, place, target)
        else:
            yield UnreadRecords(kind=MESSAGE, place=place, reason="it is not a conversation")


def _conversation(value: Mapping[str, object], place: str, target: Target) -> Iterator[Brought]:
    known_by = str(value.get("conversation_id") or value.get("id") or value.get("title"))
    known_by = known_by[:MAX_LABEL_CHARS]
    made = ChatThread(tool=TOOL, id=known_by, title=value.get("title"), at=value.get("create_time"))
    title = made.title_memory(place, target)
    if title is not None:
        yield title
    tree = value["mapping"] if isinstance(value["mapping"], Mapping) else {}
    branch = _branch(tree, value.get("current_node"))
    for position, key in enumerate(branch, start=1):
        message = tree[key].get("message")
        if isinstance(message, Mapping):
            where = f"{place}, message {position}"
            at = _MessagePlace(conversation=made, key=key, position=position, place=where)
            yield from _message(message, at, target)
    beside = sum(key not in branch and _holds_message(node) for key, node in tree.items())
    yield UnreadRecords(kind=MESSAGE, place=place, reason="another version of a message", count=beside)


def _holds_message(node: object) -> bool:
    message = node.get("message") if isinstance(node, Mapping) else None
    return isinstance(message, Mapping) and _text(message) != ""


def _branch(tree: Mapping[object, object], last: object) -> dict[str, None]:
    """The messages of the branch that is shown, first to last: those above its last one."""
    if not isinstance(last, str) or last not in tree:
        return {str(key): None for key, node in tree.items() if isinstance(node, Mapping)}
    path: dict[str, None] = {}
    while isinstance(last, str) and last not in path and len(path) < MAX_DEPTH:
        node = tree.get(last)
        if not isinstance(node, Mapping):
            break
        path[last] = None
        last = node.get("parent")
    return dict.fromkeys(reversed(path))


@dataclass(frozen=True, slots=True, kw_only=True)
class _MessagePlace:
    """Where a message is: its conversation, its key and number there, and in words."""

    conversation: ChatThread
    key: str
    position: int
    place: str


def _message(message: Mapping[str, object], at: _MessagePlace, target: Target) -> Iterator[Brought]:
    author, content = message.get("author"), message.get("content")
    role = author.get("role") if isinstance(author, Mapping) else None
    kind = str(content.get("content_type")) if isinstance(content, Mapping) else ""
    text = _text(message)
    if kind == "user_editable_context" and isinstance(content, Mapping):
        yield from _profile(content, at, target)
    elif kind == "model_editable_context" and isinstance(content, Mapping):
        yield from _context(content, at, target)
    elif message.get("recipient") == "bio" and text:
        fields = {"content": text, "created_at": message.get("create_time") or at.conversation.at}
        yield _saved(fields, at.place, target)
    elif not text:
        if role not in ("system", None) or _pictures(content):
            yield UnreadRecords(kind=MESSAGE, place=at.place, reason="it has no text")
    else:
        reason = _unwanted(message, role, kind)
        if reason is not None:
            yield UnreadRecords(kind=MESSAGE, place=at.place, reason=reason)
        else:
            yield _turn(message, text, role, at, target)


def _turn(
    message: Mapping[str, object], text: str, role: object, at: _MessagePlace, target: Target
) -> Brought:
    details = message.get("metadata")
    pictures = _pictures(message.get("content"))
    own = {
        "content": text,
        "author": role,
        "model": details.get("model_slug") if isinstance(details, Mapping) else None,
        **({"pictures_left_out": pictures} if pictures else {}),
        **({"created_at": message["create_time"]} if message.get("create_time") else {}),
        "occurred_at": message.get("create_time"),
    }
    key = str(message.get("id") or at.key)
    return at.conversation.turn(own, key, at.position, at.place, target)


def _unwanted(message: Mapping[str, object], role: object, kind: str) -> str | None:
    """Why a message with a text is not imported, or None."""
    details = message.get("metadata")
    if isinstance(details, Mapping) and details.get("is_visually_hidden_from_conversation"):
        return "it is hidden in the conversation"
    if role == "tool":
        return "the output of a tool"
    if role == "system":
        return "an instruction of the program"
    if message.get("recipient") not in ("all", None):
        return "a call of a tool"
    return REASONS.get(kind)


def _text(message: Mapping[str, object]) -> str:
    content = message.get("content")
    if not isinstance(content, Mapping):
        return content.strip() if isinstance(content, str) else ""
    parts = content.get("parts")
    texts = [
        one if isinstance(one, str) else one.get("text") if isinstance(one, Mapping) else None
        for one in (parts if isinstance(parts, list) else [content.get("text"), content.get("result")])
    ]
    return "\n\n".join(one for one in texts if isinstance(one, str) and one.strip()).strip()


def _pictures(content: object) -> int:
    parts = content.get("parts") if isinstance(content, Mapping) else None
    listed = parts if isinstance(parts, list) else []
    return sum(isinstance(one, Mapping) and "asset_pointer" in one for one in listed)


def _profile(content: Mapping[str, object], at: _MessagePlace, target: Target) -> Iterator[Brought]:
    """What the user wants every conversation to know; the same text is one memory."""
    for name in ("user_profile", "user_instructions"):
        text = content.get(name)
        if isinstance(text, str) and text.strip():
            fields = {
                "id": derived_id(TOOL, target.scope, PROFILE, text),
                "content": text.strip(),
                "created_at": at.conversation.at,
                "node_type": PROFILE,
                "tags": [name],
                "source": TOOL,
            }
            yield memory_of(fields, at.place, target)


def _context(content: Mapping[str, object], at: _MessagePlace, target: Target) -> Iterator[Brought]:
    """The list of what ChatGPT remembered, a line each with its date."""
    listed = content.get("model_set_context")
    for line in listed.splitlines() if isinstance(listed, str) else []:
        dated = _DATED.match(line)
        text = line[dated.end() :].strip() if dated else line.strip()
        if text:
            made_at = dated[1] if dated else at.conversation.at
            yield _saved({"content": text, "created_at": made_at}, at.place, target)
