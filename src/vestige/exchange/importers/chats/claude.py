"""Claude: the export of its data, with conversations, projects and what it remembered of the user."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from vestige.core.models import MAX_LABEL_CHARS
from vestige.exchange.importers.bundles import Bundle
from vestige.exchange.importers.chats.turns import (
    ACCOUNT,
    DOCUMENT,
    FILE,
    MESSAGE,
    PROFILE,
    ChatThread,
    document_memories,
    elements_of,
    exported,
)
from vestige.exchange.importers.records import Brought, Reading, Target, UnreadRecords

TOOL = "claude"
CONVERSATIONS = re.compile(r"(?:^|/)conversations(?:[-_]?\d+)?\.json$")
PROJECTS = re.compile(r"(?:^|/)projects(?:/[^/]+)?\.json$")
MEMORIES = re.compile(r"(?:^|/)memories\.json$")
AUTHORS = {"human": "user"}


def is_conversation(value: object) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("chat_messages"), list)


def is_memory(value: object) -> bool:
    return isinstance(value, Mapping) and bool({"conversations_memory", "project_memories"} & value.keys())


def is_project(value: object) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("docs"), list) and "prompt_template" in value


def is_record(value: object) -> bool:
    return is_conversation(value) or is_memory(value) or is_project(value)


@contextmanager
def reading(path: Path, target: Target) -> Iterator[Reading]:
    with exported(path) as files:
        if files is None:
            yield Reading(records=_all(elements_of(path), path.name, target))
        else:
            yield Reading(records=_records(files, target))


def _records(files: Bundle, target: Target) -> Iterator[Brought]:
    others = 0
    for name in files.names:
        if CONVERSATIONS.search(name) or MEMORIES.search(name):
            yield from _all(files.elements(name), name, target)
        elif PROJECTS.search(name):
            yield from _all(_projects(files, name), name, target)
        elif name.endswith("users.json"):
            yield UnreadRecords(kind=ACCOUNT, place=name, reason="the name and address of the account")
        else:
            others += 1
    reason = "a file that this version of Vestige does not know"
    yield UnreadRecords(kind=FILE, place=str(files.root), reason=reason, count=others)


def _projects(files: Bundle, name: str) -> Iterator[object]:
    """The projects of a file: older exports have one with all, newer ones one for each."""
    with files.open(name) as file:
        whole = file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")
    return files.elements(name) if whole else iter([files.load(name, 256_000_000)])


def _all(found: Iterator[object], name: str, target: Target) -> Iterator[Brought]:
    for number, value in enumerate(found, start=1):
        place = f"{name}, {number}"
        if isinstance(value, Mapping) and is_conversation(value):
            yield from _conversation(value, place, target)
        elif isinstance(value, Mapping) and is_memory(value):
            yield from _memory(value, target)
        elif isinstance(value, Mapping) and is_project(value):
            yield from _project(value, target)
        else:
            yield UnreadRecords(
                kind=MESSAGE, place=place, reason="it is not a conversation, project or memory"
            )


# -- Conversations


def _conversation(value: Mapping[str, object], place: str, target: Target) -> Iterator[Brought]:
    known_by = str(value.get("uuid"))[:MAX_LABEL_CHARS]
    made = ChatThread(tool=TOOL, id=known_by, title=value.get("name"), at=value.get("created_at"))
    title = made.title_memory(place, target)
    if title is not None:
        yield title
    if isinstance(value.get("summary"), str) and str(value["summary"]).strip():
        fields = {"content": value["summary"], "node_type": "summary", "created_at": value.get("updated_at")}
        yield made.turn(fields, "summary", 0, place, target)
    messages = value.get("chat_messages")
    for number, message in enumerate(messages if isinstance(messages, list) else [], start=1):
        where = f"{place}, message {number}"
        if isinstance(message, Mapping):
            yield from _message(message, made, number, where, target)
        else:
            yield UnreadRecords(kind=MESSAGE, place=where, reason="it is not a JSON object")


def _message(
    message: Mapping[str, object], made: ChatThread, number: int, place: str, target: Target
) -> Iterator[Brought]:
    key, sender = str(message.get("uuid") or number), message.get("sender")
    text = _text(message)
    attached = [one for one in _listed(message.get("attachments")) if isinstance(one, Mapping)]
    names = [one.get("file_name") for one in (*attached, *_mappings(message.get("files")))]
    if text:
        fields = {
            "content": text,
            "author": AUTHORS.get(str(sender), sender),
            "created_at": message.get("created_at") or made.at,
            "occurred_at": message.get("created_at"),
            "attachments": [name for name in names if name],
        }
        yield made.turn(fields, key, number, place, target)
    elif not any(one.get("extracted_content") for one in attached):
        yield UnreadRecords(kind=MESSAGE, place=place, reason="it has no text")
    for one in attached:
        name = str(one.get("file_name") or "attachment")
        known_by = (TOOL, "attachment", made.id, key, name)
        about = {"created_at": message.get("created_at"), "session_id": made.id, "title": made.title}
        yield from document_memories(one.get("extracted_content"), name, known_by, about, target)
    left = len(_mappings(message.get("files")))
    yield UnreadRecords(kind=FILE, place=place, reason="a file whose text is not in the export", count=left)


def _text(message: Mapping[str, object]) -> str:
    """What was said: not what the model thought, and not what its tools answered."""
    blocks = _mappings(message.get("content"))
    texts = (
        [one.get("text") for one in blocks if one.get("type") == "text"] if blocks else [message.get("text")]
    )
    return "\n\n".join(one.strip() for one in texts if isinstance(one, str) and one.strip())


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _mappings(value: object) -> list[Mapping[str, object]]:
    return [one for one in _listed(value) if isinstance(one, Mapping)]


# -- Memories and projects


def _memory(value: Mapping[str, object], target: Target) -> Iterator[Brought]:
    """What Claude remembered: of the user, and of each project."""
    about: dict[str, object] = {"node_type": PROFILE, "tags": ["saved-memory"]}
    text = value.get("conversations_memory")
    yield from document_memories(text, "What Claude remembers", (TOOL, "memory"), about, target)
    projects = value.get("project_memories")
    for name, one in projects.items() if isinstance(projects, Mapping) else ():
        known_by = (TOOL, "memory", str(name))
        yield from document_memories(one, "What Claude remembers of a project", known_by, about, target)


def _project(value: Mapping[str, object], target: Target) -> Iterator[Brought]:
    title, key = str(value.get("name") or "project")[:MAX_LABEL_CHARS], str(value.get("uuid"))
    about: dict[str, object] = {"created_at": value.get("created_at"), "tags": [title], "node_type": DOCUMENT}
    for part in ("description", "prompt_template"):
        yield from document_memories(value.get(part), title, (TOOL, "project", key, part), about, target)
    for number, one in enumerate(_mappings(value.get("docs")), start=1):
        name = str(one.get("filename") or f"document {number}")
        known_by = (TOOL, "project", key, str(one.get("uuid") or name))
        made = {**about, "created_at": one.get("created_at") or value.get("created_at")}
        yield from document_memories(one.get("content"), f"{title} › {name}", known_by, made, target)
