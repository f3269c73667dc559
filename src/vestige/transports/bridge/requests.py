"""What a request to the bridge means: which tool is called, with which arguments.

Names are taken in both spellings, and the forms of both eras of deployments are understood. What is renamed
or belongs to the bridge is read here; everything else goes on to the tool as it is, which refuses what it
does not know and says what would have been right.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import blake2b

from vestige.core.checks import check_label
from vestige.core.errors import InvalidInput
from vestige.transports.bridge.child import Message

TRUNCATE_CHARS = 8_000
"""How much of a memory's text a search shows unless told otherwise."""
SUMMARY_CHARS = 4_000
"""How much of it the engine shows in summary."""
TITLE_CHARS = 80
MODES = ("hybrid", "keyword", "semantic")
LEAST_DREAM = 5
MOST_NOTES = 50
MOST_INTENTIONS = 100
_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A tool to call. `again` says that sending it twice does no more than sending it once; `long` ones get
    more time; `truncate` cuts the texts of a search."""

    tool: str
    arguments: Message
    again: bool = False
    long: bool = False
    truncate: int = 0

    def with_arguments(self, **more: object) -> "ToolCall":
        """The call with these arguments too."""
        return replace(self, arguments={**self.arguments, **more})


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestOrigin:
    """Whom a request comes from: the agent if it says which, and a key that tells it from others."""

    agent: str | None
    idempotency_key: str


class _Fields:
    """The fields of a request's body. Those that are read are gone; null is the same as absent."""

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
        """The value of the first of these that is there; all of them count as read."""
        found = [self._left.pop(name) for name in names if name in self._left]
        return found[0] if found else None

    def text(self, *names: str) -> str | None:
        """The same, for a text."""
        value = self.take(*names)
        if value is not None and not isinstance(value, str):
            raise _invalid(names[0], f"`{names[0]}`: expected a text.")
        return value

    def number(self, name: str) -> int | None:
        """The same, for a whole number that is not negative; null is 0 here."""
        if name in self._nulls:
            return 0
        value = self.take(name)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise _invalid(name, f"`{name}`: expected a whole number, 0 or more.")
        return value

    def needed(self, *names: str) -> str:
        """A text that must be there."""
        value = self.text(*names)
        if not value:
            raise _invalid(names[0], f"`{names[0]}` is needed.")
        return value

    def rest(self) -> Message:
        """Everything that was not read."""
        return self._left


Reader = Callable[[_Fields, RequestOrigin], ToolCall]


def read(path: str, body: Message, origin: RequestOrigin) -> ToolCall:
    """The tool call that a request stands for, or InvalidInput."""
    return READERS[path](_Fields(body), origin)


def _invalid(name: str, message: str, hint: str | None = None) -> InvalidInput:
    return InvalidInput(message, hint=hint, details={"argument": name})


# -- memories --------------------------------------------------------------------------------------


def _search(fields: _Fields, origin: RequestOrigin) -> ToolCall:
    mode = fields.text("mode") or MODES[0]
    if mode not in MODES:  # words and meaning are weighed by what is asked; there is nothing to choose
        raise _invalid("mode", f"`mode`: expected one of {', '.join(MODES)}.")
    truncate = fields.number("truncate_body_chars")
    arguments = _renamed(fields, threshold="min_similarity")
    if truncate is not None and not 0 < truncate <= SUMMARY_CHARS:
        # The engine itself cuts what it shows in summary.
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
            check_label("context", given)  # each item gets it, so that a long one would become very much
        arguments["items"] = [
            _told_by(one, context, origin) if isinstance(one, dict) else one for one in items
        ]
    else:
        arguments = _told_by(arguments, context, origin)
    # With the key a retry changes nothing, so that the death of the process loses no memory and doubles none.
    arguments["idempotency_key"] = _claim(origin, key)
    return ToolCall(tool="smart_ingest", arguments=arguments, again=True)


def _context(given: str | None, origin: RequestOrigin) -> str | None:
    """The context that a memory comes from, with the agent before it."""
    parts = ([f"agent:{origin.agent}"] if origin.agent else []) + ([given] if given else [])
    return " | ".join(parts) or None


def _told_by(item: Message, context: str | None, origin: RequestOrigin) -> Message:
    """A text to remember, with who told it. A context is kept as the source, or beside one that is named."""
    told = dict(item)
    own = told.pop("context", None)
    if isinstance(own, str):
        context = _context(own, origin)
    metadata = told.get("metadata", {})
    if context and "source" not in told:
        told["source"] = context
    elif context and isinstance(metadata, dict):
        told["metadata"] = {"context": context, **metadata}
    if origin.agent:
        told.pop("agentId", None)
        told["agent_id"] = origin.agent
    return told


def _claim(origin: RequestOrigin, key: str) -> str:
    """A key of its own for each agent: two may use the same."""
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
        arguments.pop("reason", None)  # part of every request of older clients; only these have one
    reads = action in ("get", "get_batch", "list", "state", "history")
    return ToolCall(tool="memory", arguments={**arguments, "action": action}, again=reads)


def _explore(fields: _Fields, origin: RequestOrigin) -> ToolCall:
    return ToolCall(
        tool="explore_connections", arguments=_renamed(fields, from_id="from", to_id="to"), again=True
    )


# -- code and intentions ---------------------------------------------------------------------------


def _codebase(fields: _Fields, origin: RequestOrigin) -> ToolCall:
    action = fields.needed("action")
    content = fields.text("content")
    if content is not None:
        told = _note(action, content, fields)
        arguments = {**told, **fields.rest()}
    else:
        arguments = fields.rest()
    _clip(arguments, "limit", MOST_NOTES)
    return ToolCall(
        tool="codebase",
        arguments={**arguments, "action": action},
        again=action in ("get_context", "structure"),
    )


def _note(action: str, content: str, fields: _Fields) -> Message:
    """A pattern or a decision that is told as one text, as the first deployments did."""
    kind, context, tags = fields.text("pattern_type"), fields.text("context"), fields.take("tags")
    labels = [f"Tags: {', '.join(map(str, tags))}"] if isinstance(tags, list) and tags else []
    if action == "remember_decision":
        return {"decision": "\n\n".join([content, *labels]), "rationale": context or "Not told."}
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


# -- the whole -------------------------------------------------------------------------------------


def _dream(fields: _Fields, origin: RequestOrigin) -> ToolCall:
    arguments = fields.rest()
    given = arguments.get("memory_count")
    if isinstance(given, int) and 0 < given < LEAST_DREAM:  # was allowed, and means a small dream
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
    """The rest of the fields, those of old names under the new one."""
    found = {new: fields.take(old, new) for old, new in names.items()}
    return {**fields.rest(), **{name: value for name, value in found.items() if value is not None}}


def _clip(arguments: Message, name: str, most: int) -> None:
    """Older clients may ask for more than there can be."""
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
"""What reads the body of a request to each address."""
