"""The memories that the examples of `dedup` and `archive` are about: two to merge, a merge to undo, and one
that is archived; and a bulk change."""

from dataclasses import replace
from datetime import datetime

from vestige.core.documents import Document
from vestige.core.models import Edge, Memory
from vestige.operations.care.archive import EXAMPLE_ARCHIVED
from vestige.operations.memory.bulk import EXAMPLE_RUN
from vestige.operations.memory.dedup import EXAMPLE_MERGED, EXAMPLE_PARTS
from vestige.operations.reasoning.insights import EXAMPLE_INSIGHT
from vestige.store.contract.changes import Add, Change, Link, Put, Revise

SHORT = "The harbour database is backed up every night."
LONG = "The harbour database is backed up every night. Backups are kept for a month."
MERGED_PARTS = ("01890000-0000-7000-8000-0000000000d3", "01890000-0000-7000-8000-0000000000d4")


def merge_examples(now: datetime) -> list[Change]:
    """Changes that plant them."""
    parts = [
        _memory(memory_id, text, now) for memory_id, text in zip(EXAMPLE_PARTS, (SHORT, LONG), strict=True)
    ]
    merged = [_memory(memory_id, "Bo walks to work.", now) for memory_id in MERGED_PARTS]
    whole = replace(
        _memory(EXAMPLE_MERGED, "Bo walks to work.", now),
        valid_from=now,
        metadata={"merged_from": list(MERGED_PARTS)},
    )
    aside = replace(_memory(EXAMPLE_ARCHIVED, "Bo used to cycle to work.", now), archived_at=now)
    ended = [replace(part, valid_until=now, superseded_by=whole.id, revision=2) for part in merged]
    return [
        *(Add(memory=memory) for memory in (*parts, *merged, whole, aside)),
        *(Revise(memory=part, reason="merged") for part in ended),
        *(
            Link(edge=Edge(source_id=whole.id, target_id=part.id, kind="merges", created_at=now))
            for part in ended
        ),
        Put(document=_insight(now)),
        Put(document=_bulk_run(now)),
    ]


def _insight(now: datetime) -> Document:
    body = {"type": "Synthesis", "insight": "Backups.", "confidence": 0.5, "novelty": 0.5, "texts": []}
    return Document(
        kind="insight",
        id=EXAMPLE_INSIGHT,
        cites=(EXAMPLE_PARTS[0],),
        body=body,
        created_at=now,
        updated_at=now,
    )


def _bulk_run(now: datetime) -> Document:
    body = {
        "change": "pin",
        "memories": {EXAMPLE_PARTS[0]: 1},
        "at": now.isoformat(),
        "terms": {"first": True},
    }
    return Document(kind="bulk", id=EXAMPLE_RUN, body=body, created_at=now, updated_at=now)


def _memory(memory_id: str, content: str, now: datetime) -> Memory:
    return Memory(id=memory_id, content=content, created_at=now, updated_at=now)
