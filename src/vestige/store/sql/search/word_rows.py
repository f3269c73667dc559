"""Lexical rows of memories: terms, fingerprints and rows of `places`, all derived from the text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from vestige.cognition.text.analyser import ANALYSER_VERSION, fingerprint, memory_terms
from vestige.core.models import Memory
from vestige.store.sql.database import Database, Surfaces
from vestige.store.sql.rows import memories
from vestige.store.sql.search import thread_rows
from vestige.store.sql.search.thread_rows import ThreadRow

WRITTEN_AT_ONCE = 2_000
"""The number of memories whose terms are written together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """The rows derived from one revision of a memory."""

    revision: int
    terms: str
    fingerprints: frozenset[str]
    place: ThreadRow


def analyse(memory: Memory) -> Analysis:
    """Derive the rows of a memory."""
    terms = memory_terms(memory)
    return Analysis(
        revision=memory.revision,
        terms=" ".join(terms),
        fingerprints=fingerprints(memory),
        place=thread_rows.of(memory, len(terms)),
    )


def fingerprints(memory: Memory) -> frozenset[str]:
    """The fingerprints of a memory's wordings."""
    return frozenset(fingerprint(wording) for wording in (memory.content, *memory.phrasings))


def put(db: Database, analysed: Mapping[int, Analysis], surfaces: Surfaces) -> None:
    """Write the terms and the rows of `places` of memories, replacing those there."""
    coming = iter(analysed.items())
    while some := dict(islice(coming, WRITTEN_AT_ONCE)):
        surfaces.put_words(db, some)
        thread_rows.put(db, {key: one.place for key, one in some.items()})


def delete(db: Database, keys: Sequence[int], surfaces: Surfaces) -> None:
    """Remove the terms of memories and their rows of `places`."""
    surfaces.delete_words(db, keys)
    thread_rows.bury(db, keys)


def are_current(db: Database) -> bool:
    """Whether the lexical rows were made by the present analyser."""
    row = db.execute("SELECT version FROM analysed").fetchone()
    return row is not None and row[0] == ANALYSER_VERSION


def rebuild(db: Database, analysed: Mapping[int, Analysis], surfaces: Surfaces) -> int:
    """Write all lexical rows anew, from analyses made before the write lock was taken; memories that changed
    since are analysed again."""
    present = dict(db.execute("SELECT key, revision FROM memories").fetchall())
    fresh = {key: one for key, one in analysed.items() if present.get(key) == one.revision}
    stale = np.array([key for key in present if key not in fresh], dtype=np.int64)
    for key, record in zip(stale.tolist(), memories.by_key(db, stale), strict=True):
        fresh[key] = analyse(record.memory)
    surfaces.empty_words(db)
    put(db, fresh, surfaces)
    thread_rows.bury_strays(db)
    memories.refresh_fingerprints(db, {key: one.fingerprints for key, one in fresh.items()})
    db.execute(
        "INSERT INTO analysed (one, version) VALUES (1, ?)"
        " ON CONFLICT (one) DO UPDATE SET version = excluded.version",
        (ANALYSER_VERSION,),
    )
    return len(present)
