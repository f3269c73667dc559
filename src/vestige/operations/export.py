"""Memories as a file: `export`."""

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import PurePath
from typing import Annotated, Literal

import orjson
from pydantic import Field

from vestige.engine.context import Call
from vestige.engine.export import export
from vestige.errors import InvalidInput
from vestige.models import ANYTHING, Filter, Record
from vestige.operations.catalog import registry
from vestige.operations.fields import Moment, Scope, Tags
from vestige.operations.prose import count
from vestige.operations.registry import Arguments, Wire
from vestige.operations.scoping import scoped, used
from vestige.operations.views import MemoryView, view_fields

Format = Literal["json", "jsonl"]
FORMATS: dict[str, Format] = {".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl"}
"""The formats that the ending of a name tells."""


class ExportArguments(Arguments):
    """Which memories, and into which file."""

    format: Annotated[
        Format | None,
        Field(description="json: one array; jsonl: one memory a line. Default: as `path` ends, else json."),
    ] = None
    tags: Annotated[Tags, Field(description="Only memories with all of these tags.")] = []
    since: Annotated[Moment | None, Field(description="Only what was stored at or after this.")] = None
    as_of: Annotated[Moment | None, Field(description="Only what was true then.")] = None
    known_at: Annotated[Moment | None, Field(description="As this memory knew it then.")] = None
    scope: Annotated[
        Scope | None,
        Field(description="Only this scope and what is below it; / is everything. Default is your own."),
    ] = None
    path: Annotated[
        str | None, Field(max_length=255, description="Name of the file, without folders; default is dated.")
    ] = None


class ExportedMemory(MemoryView):
    """A memory with every field it has, without vectors."""

    domain_scores: Mapping[str, float] | None = None


class Exported(Wire):
    """Where the file is, and what is in it."""

    path: str
    format: str
    memories_exported: int
    total_memories: int
    size_bytes: int
    scope: str


def render_exported(done: Exported) -> str:
    """The export for a person."""
    what = f"{count(done.memories_exported, 'memory')} of {done.total_memories:,} from {done.scope}"
    return f"{what}\n{done.path} ({done.size_bytes:,} bytes)"


@registry.operation(
    "export",
    permission="admin",
    effect="write",
    example={"format": "jsonl", "path": "memories.jsonl"},
    positional=("path",),
    lane="long",
    title="Export memories",
    render=render_exported,
)
def export_memories(call: Call, asked: ExportArguments) -> Exported:
    """Write memories to a new file in the folder `exports` of the data directory.

    Every field is written, with the names `memory` shows; vectors are not. The file is readable by its owner
    only, and nothing is overwritten. Superseded, expired, suppressed and archived memories are written too;
    `as_of` leaves out what was not true then. Without a `scope`, the caller's own and what it inherits is
    exported.
    """
    form = _format(asked)
    where = Filter(
        tags_all=tuple(asked.tags),
        created_from=asked.since,
        valid_at=asked.as_of,
        known_at=asked.known_at,
        archived=None,
    )
    path, done = export(
        call,
        scoped(call, where, asked.scope),
        name=asked.path,
        form=form,
        write=_written(call.engine.now()),
    )
    return Exported(
        path=str(path),
        format=form,
        memories_exported=done,
        total_memories=call.engine.store.count(ANYTHING, access=call.access),
        size_bytes=path.stat().st_size,
        scope=used(call, asked.scope),
    )


def _format(asked: ExportArguments) -> Format:
    """The format asked for, or else what the name of the file tells; InvalidInput when they differ."""
    told = FORMATS.get(PurePath(asked.path or "").suffix.lower())
    if asked.format and told and asked.format != told:
        raise InvalidInput(
            f"`{asked.path}` is the name of a {told} file, but the format asked for is {asked.format}.",
            hint="Leave `format` out, or give a name that ends like it.",
            details={"argument": "format"},
        )
    return asked.format or told or "json"


def _written(now: datetime) -> Callable[[Record], bytes]:
    def write(record: Record) -> bytes:
        shown = view_fields(record, now, "full")
        return orjson.dumps(ExportedMemory(domain_scores=record.memory.domain_scores, **shown).wire())

    return write
