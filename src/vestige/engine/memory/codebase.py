"""Notes about codebases: the notes of one codebase, and the patterns that others share with it."""

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from vestige.cognition.evidence.codebase import (
    DECISION,
    PATTERN,
    TAG,
    Shared,
    codebase_of,
    codebase_tag,
    files_of,
    shared_patterns,
    strongest,
)
from vestige.core.errors import ModelMismatch
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Filter, Record
from vestige.engine.context import Call
from vestige.engine.embedding import vectors_for

logger = logging.getLogger(__name__)

LIKE = 0.5
"""The least cosine of two notes that count as the same pattern in other words.

With all-MiniLM-L6-v2, ten such pairs had 0.44 to 0.78 (eight of them at least 0.5), and 180 pairs of
different patterns at most 0.46.
"""
COMPARED = 10
"""How many patterns of this codebase are compared with others; that many are embedded."""
NEIGHBOURS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class FileNotes:
    """A file that notes mention, and the number of these notes."""

    path: str
    patterns: int
    decisions: int


def notes(call: Call, kind: str, codebase: str | None, within: Filter) -> list[Record]:
    """The patterns or decisions that are valid now, of one codebase or of all, strongest first."""
    now = call.engine.now()
    where = replace(
        within,
        node_types=(kind,),
        tags_all=(codebase_tag(codebase) if codebase else TAG,),
        valid_at=now,
        include_suppressed=False,
    )
    batches = call.engine.store.stream(where, access=call.access)
    return strongest([record for batch in batches for record in batch], now)


def cross_project(call: Call, codebase: str | None, own: Sequence[Record]) -> list[Shared]:
    """Patterns of other accessible codebases that matter here too."""
    mine = {record.memory.id for record in own} if codebase else set()
    others = [
        record
        for record in notes(call, PATTERN, None, Filter())
        if record.memory.id not in mine and not (codebase and codebase_of(record.memory) == codebase)
    ]
    if not others:
        return []
    alike = _alike(call, own[:COMPARED] if codebase else (), {record.memory.id for record in others})
    return shared_patterns(own if codebase else (), others, alike, call.engine.now())


def structure(call: Call, codebase: str | None, within: Filter) -> list[FileNotes]:
    """The files that notes mention, most often mentioned first."""
    counts = {
        kind: Counter(path for note in notes(call, kind, codebase, within) for path in files_of(note.memory))
        for kind in (PATTERN, DECISION)
    }
    total = counts[PATTERN] + counts[DECISION]
    return [
        FileNotes(path=path, patterns=counts[PATTERN][path], decisions=counts[DECISION][path])
        for path in sorted(total, key=lambda path: (-total[path], path))
    ]


def _alike(call: Call, own: Sequence[Record], others: set[str]) -> dict[str, float]:
    """The cosine of each of the others with its nearest own note, if at least LIKE; empty without a model."""
    made = vectors_for(call, [record.memory for record in own]) if own else []
    if not made:
        return {}
    where = Filter(node_types=(PATTERN,), tags_all=(TAG,))
    vectors = np.stack([embedded.pieces[0].vector for embedded in made])
    try:
        found = call.engine.store.nearest(
            vectors, made[0].signature, where, access=call.access, limit=NEIGHBOURS + len(own)
        )
    except ModelMismatch as exc:
        logger.warning("The model has changed; patterns are compared by name only: %s", exc.message)
        return {}
    best: dict[str, float] = {}
    for one in (one for row in found for one in row):
        if one.memory_id in others and one.score >= LIKE:
            best[one.memory_id] = max(best.get(one.memory_id, 0.0), one.score)
    return best
