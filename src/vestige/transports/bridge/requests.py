"""Parses requests to the bridge: which tool to call, with which arguments. Field names are accepted in both
spellings, and in the forms of older deployments. Fields that are renamed or belong to the bridge are read
here. Everything else goes to the tool unchanged, which refuses unknown arguments with a hint."""

import re
from collections.abc import Callable
from dataclasses import replace
from hashlib import blake2b

from vestige.core.errors import InvalidInput
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import check_label
from vestige.transports.bridge.child import Message

TRUNCATE_CHARS = 8_000
"""Default length of a memory's text in a search."""
SUMMARY_CHARS = 4_000
"""Length of a text in a summary of the engine."""
TITLE_CHARS = 80
MODES = ("hybrid", "keyword", "semantic")
LEAST_DREAM = 5
MOST_NOTES = 50
MOST_INTENTIONS = 100
_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A tool call. `again` is true if sending it twice has the same effect as once; `long` ones have more
    time; `truncate` cuts the texts of a search."""

    tool: str
    arguments: Message
    again: bool = False
    long: bool = False
    truncate: int = 0

    def with_arguments(self, **more: object) -> "ToolCall":
        return replace(self, arguments={**self.arguments, **more})


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestOrigin:
    """The origin of a request: the agent, if it is named, and the idempotency key."""

    agent: str | None
    idempotency_key: str


class _Fields:
    """The fields of a body. Reading a field removes it; null is the same as absent."""

    def __init__(self, body: Message) -> None:
        self._left: Message = {}
        for name, value in body.items():
            plain = _BOUNDARY.sub("_", name).lower()
            if plain in self._left:
                raise _invalid(plain, f"`{plain}` is given twice.")
            self._left[plain] = value
        self._nulls = {name for name, value in self._left.items() if value is None}
        self._left = {name: value for name, value in self._left.items() if value is not None}

    def take(self, *names: str) -> object | None:
        """The value of the first of these fields that is present; all of them count as read."""
        found = [self._left.pop(name) for name in names if name in self._left]
        return found[0] if found else None

    def text(self, *names: str) -> str | None:
        value = self.take(*names)
        if value is not None and not isinstance(value, str):
            raise _invalid(names[0], f"`{names[0]}`: expected a text.")
        return value

    def number(self, name: str) -> int | None:
        """`take` for a whole number that is not negative; null is 0."""
        if name in self._nulls:
            return 0
        value = self.take(name)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise _invalid(name, f"`{name}`: expected a whole number, 0 or more.")
        return value

    def needed(self, *names: str) -> str:
        value = self.text(*names)
        if not value:
            raise _invalid(names[0], f"`{names[0]}` is needed.")
        return value

    def rest(self) -> Message:
        return self._left


Reader = Callable[[_Fields, RequestOrigin], ToolCall]


def read(path: str, body: Message, origin: RequestOrigin) -> ToolCall:
    """The tool call of a request; InvalidInput if it is not valid."""
    return READERS[path](_Fields(body), origin)


def _invalid(name: str, message: str) -> InvalidInput:
    return InvalidInput(message, details={"argument": name})


def _search(fields: _Fields, origin: RequestOrigin) -> ToolCall:
    mode = fields.text("mode") or MODES[0]
    if mode not in MODES:  # accepted and ignored: search weighs words and meaning by itself
        raise _invalid("mode", f"`mode`: expected one of {', '.join(MODES)}.")
    truncate = fields.number("truncate_body_chars")
    arguments = _renamed(fields, threshold="min_similarity")
    if truncate is not None and not 0 < truncate <= SUMMARY_CHARS:
        # The engine itself truncates summaries.
        arguments = {"detail_level": "full", **arguments}
    truncate = TRUNCATE_CHARS if truncate is None else truncate
    return ToolCall(tool="search", arguments=arguments, again=True, truncate=truncate)


def _ingest(fields: _Fields, origin: RequestOrigin) -> ToolCall:
    key = fields.text("idempotency_key") or origin.idempotency_key
    given = fields.text("context")
    context = _context(given, origin)
    arguments = fields.rest()
    items = arguments.get("items")
    if isinstance(items, list):
        if given:
            check_label("context", given)  # each item gets a copy, so its length is limited
        arguments["items"] = [
            _with_origin(one, context, origin) if isinstance(one, dict) else one for one in items
        ]
    else:
        arguments = _with_origin(arguments, context, origin)
    # With the key a retry changes nothing: a crash of the process loses no memory and duplicates none.
    arguments["idempotency_key"] = _claim(origin, key)
    return ToolCall(tool="smart_ingest", arguments=arguments, again=True)


def _context(given: str | None, origin: RequestOrigin) -> str | None:
    """The context of a memory, prefixed with the agent."""
    parts = ([f"agent:{origin.agent}"] if origin.agent else []) + ([given] if given else [])
    return " | ".join(parts) or None


def _with_origin(item: Message, context: str | None, origin: RequestOrigin) -> Message:
    """An item to ingest, with its agent. A context is stored as the source, or beside a given source."""
    given = dict(item)
    own = given.pop("context", None)
    if isinstance(own, str):
        context = _context(own, origin)
    metadata = given.get("metadata", {})
    if context and "source" not in given:
        given["source"] = context
    elif context and isinstance(metadata, dict):
        given["metadata"] = {"context": context, **metadata}
    if origin.agent:
        given.pop("agentId", None)
        given["agent_id"] = origin.agent
    return given


def _claim(origin: RequestOrigin, key: str) -> str:
    """The idempotency key, separate for each agent."""
    return blake2b(f"{origin.agent or ''}\0{key}".encode(), digest_size=20).hexdigest()


def _judged(action: str) -> Reader:
    def reader(fields: _Fields, origin: RequestOrigin) -> ToolCall:
        memory_id = fields.needed("memory_id", "id")
        return ToolCall(tool="memory", arguments={**fields.rest(), "action": action, "id": memory_id})

    return reader


def _memory(fields: _Fields, origin: RequestOrigin) -> ToolCall:
    action = fields.needed("action")
    action = "state" if action == "check_state" else action
    arguments = _renamed(fields, memory_id="id")
    if action not in ("promote", "demote"):
        arguments.pop("reason", None)  # older clients send it with every request; only these actions have it
    reads = action in ("get", "get_batch", "list", "state", "history")
    return ToolCall(tool="memory", arguments={**arguments, "action": action}, again=reads)


def _explore(fields: _Fields, origin: RequestOrigin) -> ToolCall:
    return ToolCall(
        tool="explore_connections", arguments=_renamed(fields, from_id="from", to_id="to"), again=True
    )


def _codebase(fields: _Fields, origin: RequestOrigin) -> ToolCall:
    action = fields.needed("action")
    content = fields.text("content")
    if content is not None:
        given = _note(action, content, fields)
        arguments = {**given, **fields.rest()}
    else:
        arguments = fields.rest()
    _clip(arguments, "limit", MOST_NOTES)
    return ToolCall(
        tool="codebase",
        arguments={**arguments, "action": action},
        again=action in ("get_context", "structure"),
    )


def _note(action: str, content: str, fields: _Fields) -> Message:
    """A pattern or decision sent as one text, as by the first deployments."""
    kind, context, tags = fields.text("pattern_type"), fields.text("context"), fields.take("tags")
    labels = [f"Tags: {', '.join(map(str, tags))}"] if isinstance(tags, list) and tags else []
    if action == "remember_decision":
        return {"decision": "\n\n".join([content, *labels]), "rationale": context or "Not given."}
    about = [f"Context: {context}"] if context else []
    title = kind or content.strip().partition("\n")[0][:TITLE_CHARS]
    return {"name": title, "description": "\n\n".join([content, *about, *labels])}


def _intention(fields: _Fields, origin: RequestOrigin) -> ToolCall:
    action = fields.needed("action")
    tags = fields.take("tags")
    arguments = _renamed(fields, content="description")
    if isinstance(tags, list) and tags and "description" in arguments:
        arguments["description"] = f"{arguments['description']} (tags: {', '.join(map(str, tags))})"
    _clip(arguments, "limit", MOST_INTENTIONS)
    return ToolCall(
        tool="intention", arguments={**arguments, "action": action}, again=action in ("check", "list")
    )


def _dream(fields: _Fields, origin: RequestOrigin) -> ToolCall:
    arguments = fields.rest()
    given = arguments.get("memory_count")
    if isinstance(given, int) and 0 < given < LEAST_DREAM:  # was allowed, and means the smallest dream
        arguments["memory_count"] = LEAST_DREAM
    return ToolCall(tool="dream", arguments=arguments, long=True)


def _session_context(fields: _Fields, origin: RequestOrigin) -> ToolCall:
    arguments = {"queries": ["user preferences"], **fields.rest()}
    return ToolCall(tool="session_context", arguments=arguments, again=True)


def _plain(tool: str, *, again: bool = False, long: bool = False) -> Reader:
    def reader(fields: _Fields, origin: RequestOrigin) -> ToolCall:
        return ToolCall(tool=tool, arguments=fields.rest(), again=again, long=long)

    return reader


def _renamed(fields: _Fields, **names: str) -> Message:
    """The rest of the fields, with old names replaced by new ones."""
    found = {new: fields.take(old, new) for old, new in names.items()}
    return {**fields.rest(), **{name: value for name, value in found.items() if value is not None}}


def _clip(arguments: Message, name: str, most: int) -> None:
    """Reduce an argument to its limit: older clients may send more."""
    value = arguments.get(name)
    if isinstance(value, int):
        arguments[name] = min(value, most)


READERS: dict[str, Reader] = {
    "/search": _search,
    "/ingest": _ingest,
    "/smart_ingest": _ingest,
    "/promote": _judged("promote"),
    "/demote": _judged("demote"),
    "/memory": _memory,
    "/codebase": _codebase,
    "/intention": _intention,
    "/dream": _dream,
    "/session_context": _session_context,
    "/explore_connections": _explore,
    "/predict": _plain("predict", again=True),
    "/importance_score": _plain("importance_score", again=True),
    "/consolidate": _plain("consolidate", long=True),
    "/backup": _plain("backup", long=True),
}
"""The parser of the body for each address."""
