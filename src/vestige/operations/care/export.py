"""Exporting memories to a file: `export`."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import orjson
from pydantic import Field

from vestige.core.errors import Forbidden, InvalidInput
from vestige.core.models import ANYTHING, EVERYTHING, ROOT_SCOPE, Filter, Record
from vestige.engine.context import Call
from vestige.engine.exchange.export import export, export_portable
from vestige.operations.registry.arguments import (
    DomainNames,
    FilePath,
    Moment,
    ScopeTree,
    StoredBefore,
    Switch,
    Tags,
    Wire,
    ZonedArguments,
)
from vestige.operations.registry.registry import registry, without_inaccessible_ids
from vestige.operations.shared.filters import domains_named, scoped, used, widening
from vestige.operations.shared.memory_view import MemoryView, view_fields
from vestige.operations.shared.text import count, size, styled

Format = Literal["json", "jsonl", "portable"]
ENDINGS: tuple[tuple[str, Format], ...] = (
    (".vestige.jsonl", "portable"),
    (".gz", "portable"),
    (".json", "json"),
    (".jsonl", "jsonl"),
    (".ndjson", "jsonl"),
)
"""Formats by file ending; the first match counts."""


class ExportArguments(ZonedArguments):
    """Which memories, and the file."""

    format: Format | None = Field(
        None,
        description="json: one array; jsonl: one memory a line; portable: everything, for `import`. "
        "Default: by the ending of `path` (.vestige.jsonl and .gz are portable), else json.",
    )
    tags: Tags = Field([], description="Only memories with all of these tags.")
    domains: DomainNames = Field([], description="Only memories of these domains.")
    since: Moment | None = Field(None, description="Only memories stored at or after this time.")
    until: StoredBefore = None
    as_of: Moment | None = Field(None, description="Only memories that were true at this time.")
    known_at: Moment | None = Field(
        None, description="As stored at this time. Not for portable, which includes all history."
    )
    scope: ScopeTree = None
    vectors: Switch = Field(
        False, description="portable: include vectors, so that an import need not compute them."
    )
    path: FilePath | None = Field(
        None,
        max_length=4096,
        description="File name in exports/ (any path on the command line). Default: a dated name.",
    )


class ExportedMemory(MemoryView):
    """A memory with all its fields, without vectors."""

    domain_scores: Mapping[str, float] | None = None


class Exported(Wire):
    """The file, and what is in it. Only portable files have tombstones, edges and documents.

    `note` states what was left out because no `scope` was given.
    """

    path: str
    format: str
    memories_exported: int
    total_memories: int
    deleted_exported: int | None = None
    edges_exported: int | None = None
    documents_exported: int | None = None
    size_bytes: int
    scope: str
    note: str | None = None


def render_exported(done: Exported) -> str:
    what = f"{count(done.memories_exported, 'memory')} of {done.total_memories:,} from {done.scope}"
    beside = [
        count(number, noun)
        for number, noun in (
            (done.edges_exported, "edge"),
            (done.documents_exported, "document"),
            (done.deleted_exported, "tombstone"),
        )
        if number
    ]
    nothing = "" if done.memories_exported else "No memory matched; the file is empty.\n"
    note = f"\n{done.note}" if done.note else ""
    return (
        f"{nothing}{', '.join([what, *beside])}\n{styled('link', done.path)} ({size(done.size_bytes)}){note}"
    )


@registry.operation(
    "export",
    permission="admin",
    example={"format": "jsonl"},
    positional=("path",),
    long=True,
    title="Export memories",
    render=render_exported,
)
def export_memories(call: Call, asked: ExportArguments) -> Exported:
    """Write memories to a new file; without `path`, in the folder `exports` of the data directory.

    json and jsonl are for reading: every field with the names `memory` uses, without vectors and history.
    portable is for `import`: memories with history, evidence, edges, documents and tombstones; it needs
    access to the whole store. Only the file's owner can read it, and nothing is overwritten. Superseded,
    expired, suppressed and archived memories are included; `as_of` leaves out what was not true then. Without
    `scope`, the current scope and what it inherits is exported.
    """
    form = _format(asked)
    where = Filter(
        tags_all=tuple(asked.tags),
        domains=domains_named(call, asked.domains),
        created_from=asked.since,
        created_to=asked.until,
        valid_at=asked.as_of,
        known_at=asked.known_at,
        archived=None,
    )
    if form == "portable":
        return _portable(call, asked, where)
    if asked.vectors:
        raise InvalidInput(
            f"`vectors` can only be written to portable files, not to {form}.",
            details={"argument": "vectors"},
        )
    within = scoped(call, where, asked.scope)
    path, done = export(call, within, name=asked.path, form=form, write=_written(call))
    return Exported(memories_exported=done, **_about_file(call, asked, where, path, form))


def _about_file(
    call: Call, asked: ExportArguments, where: Filter, path: Path, form: Format
) -> dict[str, Any]:  # fields of Exported, which checks them
    return {
        # The full path is for callers that may know the data directory.
        "path": str(path) if call.sees_installation else f"{path.parent.name}/{path.name}",
        "format": form,
        "total_memories": call.engine.store.count(ANYTHING, access=call.access),
        "size_bytes": path.stat().st_size,
        "scope": used(call, asked.scope),
        "note": _left_out(call, asked, where),
    }


def _portable(call: Call, asked: ExportArguments, where: Filter) -> Exported:
    if call.access != EVERYTHING:  # its events have the numbers of the store's log, which count all of them
        raise Forbidden(
            "A portable file needs access to the whole store, and your access is limited.",
            hint="Choose json or jsonl, or use a key that is not limited to scopes or domains.",
        )
    if asked.known_at is not None:
        raise InvalidInput(
            "A portable file includes all history, so `known_at` does not apply.",
            hint="Omit `known_at`, or choose json or jsonl.",
            details={"argument": "known_at"},
        )
    whole = where == ANYTHING and used(call, asked.scope) == ROOT_SCOPE
    chosen = None if whole else scoped(call, where, asked.scope)
    path, done = export_portable(call, chosen, name=asked.path, vectors=asked.vectors)
    return Exported(
        memories_exported=done.memories,
        deleted_exported=done.deleted,
        edges_exported=done.edges,
        documents_exported=done.documents,
        **_about_file(call, asked, where, path, "portable"),
    )


def _left_out(call: Call, asked: ExportArguments, where: Filter) -> str | None:
    """How many accessible memories of other scopes were left out because no scope was given."""
    wider = widening(call, call.scope, "export") if asked.scope is None else None
    if wider is None:
        return None
    store = call.engine.store
    everywhere, here = (store.count(one, access=call.access) for one in (where, scoped(call, where, None)))
    if everywhere <= here:
        return None
    left = count(everywhere - here, "memory")
    return f"{left} of other scopes {'was' if everywhere - here == 1 else 'were'} left out. {wider}"


def _format(asked: ExportArguments) -> Format:
    """The given format, or the one implied by the file name; InvalidInput if they differ."""
    name = (asked.path or "").lower()
    implied = next((form for ending, form in ENDINGS if name.endswith(ending)), None)
    if (
        asked.format
        and implied
        and asked.format != implied
        and (asked.format, implied) != ("portable", "jsonl")
    ):
        raise InvalidInput(
            f"`{asked.path}` is the name of a {implied} file, but `format` is {asked.format}.",
            hint="Omit `format`, or give a file name with the matching ending.",
            details={"argument": "format"},
        )
    return asked.format or implied or "json"


def _written(call: Call) -> Callable[[Record], bytes]:
    now = call.engine.now()
    everything = call.access == EVERYTHING

    def write(record: Record) -> bytes:
        shown = view_fields(record, now, "full")
        # A score compares a memory with all members of a domain.
        scores = record.memory.domain_scores if everything else None
        whole = ExportedMemory(domain_scores=scores, **shown).wire()
        return orjson.dumps(without_inaccessible_ids(call, whole))

    return write
