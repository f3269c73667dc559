"""Tags: renaming a tag on every memory that has it, in one transaction."""

from dataclasses import replace

from vestige.core.errors import InvalidInput, NotFound, nearest_name
from vestige.core.models import Filter, Memory, check_label
from vestige.engine.context import Call
from vestige.engine.revise import next_revision, retry_on_conflict, updated_event
from vestige.store.contract.changes import Revise


def rename_tag(call: Call, tag: str, to: str, where: Filter) -> int:
    """Rename a tag on every memory that passes the filter; returns how many memories changed."""
    check_label("to", to)
    if tag == to:
        raise InvalidInput("The new name equals the old one.", hint="Give another name.")
    return retry_on_conflict(call, lambda: _rename(call, tag, to, where))


def _rename(call: Call, tag: str, to: str, where: Filter) -> int:
    now, store = call.engine.now(), call.engine.store
    tagged = replace(where, tags_any=(tag,))
    renamed = [
        next_revision(_renamed(record.memory, tag, to), now)
        for records in store.stream(tagged, access=call.access)
        for record in records
    ]
    if not renamed:
        close = nearest_name(tag, store.tag_counts(access=call.access))
        raise NotFound(f"No memory has the tag {tag!r}.", hint=f"Did you mean {close!r}?" if close else None)
    store.commit([Revise(memory=memory, reason="tag") for memory in renamed], access=call.access)
    call.engine.events.emit(*(updated_event(memory, now, ("tags",)) for memory in renamed))
    return len(renamed)


def _renamed(memory: Memory, tag: str, to: str) -> Memory:
    return replace(memory, tags=tuple(dict.fromkeys(to if one == tag else one for one in memory.tags)))
