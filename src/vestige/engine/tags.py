"""Renaming a tag wherever it is used, in one transaction."""

from dataclasses import replace

from vestige.engine.context import Call
from vestige.engine.revising import next_revision
from vestige.errors import InvalidInput, NotFound
from vestige.models import Filter, Memory
from vestige.nearest import nearest_name
from vestige.store.protocol import Revise


def rename_tag(call: Call, tag: str, to: str, *, scope: str | None) -> int:
    """Give a tag another name on every memory in reach; how many memories changed."""
    if not to or tag == to:
        raise InvalidInput("The new name is the old one.", hint="Give another name.")
    now = call.engine.now()
    where = Filter(tags_any=(tag,), scope=scope)
    changes = [
        Revise(memory=next_revision(_renamed(record.memory, tag, to), now), reason="tag")
        for records in call.engine.store.stream(where, access=call.access)
        for record in records
    ]
    if not changes:
        close = nearest_name(tag, call.engine.store.tag_counts(access=call.access))
        raise NotFound(f"No memory has the tag {tag!r}.", hint=f"Did you mean {close!r}?" if close else None)
    call.engine.store.commit(changes, access=call.access)
    return len(changes)


def _renamed(memory: Memory, tag: str, to: str) -> Memory:
    return replace(memory, tags=tuple(dict.fromkeys(to if one == tag else one for one in memory.tags)))
