"""Where a phrase is kept: the action `trace` of the tool `memory`."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from vestige.core.events import preview
from vestige.engine.care.trace import TracedRecord, trace
from vestige.engine.context import Call
from vestige.engine.memory.delete import file_copies
from vestige.operations.registry.arguments import Wire
from vestige.operations.registry.registry import registry
from vestige.operations.shared.text import clip, count, short_id, table

MOST_COPIES = 20


class TracedView(Wire):
    """A record that holds the phrase. `fields` of the memory hold it now, `revisions` are earlier ones that
    hold it; a `document` is the kind of a record that is not a memory, such as an insight."""

    id: str
    document: str | None = None
    fields: list[str]
    revisions: list[int]
    suppressed: bool = False
    archived: bool = False
    pinned: bool = False
    source: str | None = None
    created_at: datetime | None = None
    preview: str | None = None


class TracedPhrase(Wire):
    """What was read letter by letter, and the records that hold the phrase. `copies` are backups and exports,
    which may hold it and are not read."""

    memories: int
    documents: int
    total: int
    shown: int
    found: list[TracedView]
    copies: list[str] | None = None


def render_traced(answer: TracedPhrase) -> str:
    read = f"{count(answer.memories, 'memory')} and {count(answer.documents, 'other record')} read"
    copies = f" Not read: {count(len(answer.copies), 'copy')} (backups and exports)." if answer.copies else ""
    if not answer.found:
        return f"{read}: none holds it.{copies}"
    rows = ((short_id(one.id), _where(one), clip(one.preview or "")) for one in answer.found)
    held = f"{read}: {answer.total} hold it."
    return f"{table(('id', 'where', 'text'), rows)}\n\n{held}{copies}"


def _where(one: TracedView) -> str:
    state = [name for name, true in (("suppressed", one.suppressed), ("archived", one.archived)) if true]
    revisions = [f"revision {number}" for number in one.revisions]
    return ", ".join([*([one.document] if one.document else []), *one.fields, *revisions, *state])


@registry.operation(
    "memory.trace",
    permission="read",
    effect="none",
    example={"phrase": "forty connections"},
    positional=("phrase",),
    title="Trace a phrase",
    render=render_traced,
)
def memory_trace(
    call: Call,
    phrase: Annotated[
        str, Field(min_length=2, max_length=1000, description="The exact phrase; case does not matter.")
    ],
    limit: Annotated[int, Field(ge=1, le=1000, description="Maximum number of records.")] = 100,
) -> TracedPhrase:
    """Find every record that holds a phrase, letter by letter: memories with their wordings, tags, origin and
    earlier revisions, suppressed and archived ones too, and insights, intentions and other records.

    Use it for a leaked secret or a wrong statement, and `purge` for what must go. It needs access to the
    whole store.
    """
    traced = trace(call, phrase)
    shown = [_view(one) for one in traced.found[:limit]]
    kept = file_copies(call)[:MOST_COPIES]
    return TracedPhrase(
        memories=traced.memories,
        documents=traced.documents,
        total=len(traced.found),
        shown=len(shown),
        found=shown,
        copies=kept or None,
    )


def _view(one: TracedRecord) -> TracedView:
    memory = one.now
    if memory is None:
        return TracedView(id=one.id, document=one.document, fields=[], revisions=[])
    return TracedView(
        id=one.id,
        fields=list(one.fields),
        revisions=list(one.revisions),
        suppressed=memory.suppression_count > 0,
        archived=memory.archived_at is not None,
        pinned=memory.pinned,
        source=memory.source,
        created_at=memory.created_at,
        preview=preview(memory.content),
    )
