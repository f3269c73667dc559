"""The versions of a memory: of each one, only what differs from the version before."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from datetime import datetime
from typing import Any

import orjson

from vestige.core.errors import InvalidInput
from vestige.core.models import Memory
from vestige.exchange.portable.values import (
    count,
    flag,
    items,
    mapping,
    moment,
    moment_text,
    named,
    optional,
    scores,
    text,
    texts,
    whole,
)

READERS: Mapping[str, Callable[[object], object]] = {
    "content": text,
    "created_at": moment,
    "updated_at": moment,
    "node_type": text,
    "tags": texts,
    "scope": text,
    "source": optional(text),
    "author": optional(text),
    "agent_id": optional(text),
    "session_id": optional(text),
    "thread": optional(text),
    "position": optional(whole),
    "occurred_at": optional(moment),
    "valid_from": optional(moment),
    "valid_until": optional(moment),
    "superseded_by": optional(text),
    "pinned": flag,
    "suppression_count": count,
    "suppressed_at": optional(moment),
    "archived_at": optional(moment),
    "revision": count,
    "phrasings": texts,
    "domains": texts,
    "domain_scores": scores,
    "metadata": mapping,
    "origin": optional(text),
}
"""Every field of a memory but its id, which is beside the versions."""

REQUIRED = frozenset(one.name for one in fields(Memory) if one.default is one.default_factory is MISSING)


def encode_versions(versions: Sequence[Memory]) -> list[dict[str, object]]:
    """The first version without defaults, the others without unchanged fields."""
    before, written = DEFAULTS, []
    for version in versions:
        now = _plain(version)
        written.append({name: value for name, value in now.items() if not _same(before.get(name), value)})
        before = now
    return written


def decode_versions(memory_id: str, value: object) -> tuple[Memory, ...]:
    """The versions, each complete and checked."""
    state: dict[str, Any] = {}  # every value went through the reader of its field
    made = []
    for one in items(value):
        for name, new in mapping(one).items():
            if name not in READERS:
                raise InvalidInput(f"`{name}` is not a field of a memory in this version of the format.")
            state[name] = named(name, READERS[name], new)
        missing = sorted(REQUIRED - {"id"} - state.keys())
        if missing:
            raise InvalidInput(f"`{missing[0]}` is missing from the first version.")
        made.append(Memory(id=memory_id, **state))
    return tuple(made)


def _plain(memory: Memory) -> dict[str, object]:
    return {name: _plain_value(getattr(memory, name)) for name in READERS}


def _plain_value(value: object) -> object:
    if isinstance(value, datetime):
        return moment_text(value)
    return dict(value) if isinstance(value, Mapping) else value


def _same(before: object, now: object) -> bool:
    """Whether both are written alike. In Python 1, 1.0 and true are equal; in a file they are not."""
    if before != now or not isinstance(now, dict):
        return before == now
    return orjson.dumps(before, option=orjson.OPT_SORT_KEYS) == orjson.dumps(now, option=orjson.OPT_SORT_KEYS)


def _default(name: str) -> object:
    (found,) = (one for one in fields(Memory) if one.name == name)
    return _plain_value(found.default if found.default is not MISSING else {})


DEFAULTS: dict[str, object] = {name: _default(name) for name in READERS if name not in REQUIRED}
