"""Memories as a transaction leaves them, and what of them must be written or removed."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from vestige.cognition.text import text_hash
from vestige.models import Memory, Revision, Strength
from vestige.store.changes import Embedded
from vestige.store.sql import documents, history, memories, notices, registry, vectors, words
from vestige.store.sql.database import Database, Surfaces


@dataclass(slots=True, kw_only=True)
class Draft:
    """A memory as it will be, and what of it must be written; `past` are the revisions to keep."""

    key: int
    memory: Memory
    strength: Strength
    text_hash: str
    is_new: bool = False
    row: memories.Row | None = None
    analysis: words.Analysis | None = None
    embedded: Embedded | None = None
    lost_vectors: bool = False
    remarked: bool = False
    past: list[Revision] = field(default_factory=list)


def row_of(memory: Memory, fingerprints: frozenset[str]) -> memories.Row:
    """A memory as it is written."""
    return memories.Row(
        columns=memories.to_row(memory),
        text_hash=text_hash(memory),
        tags=memory.tags,
        fingerprints=fingerprints,
    )


def write_texts(
    db: Database, profile: registry.Profile | None, drafts: Sequence[Draft], surfaces: Surfaces
) -> None:
    """Write the memories that are new or changed, with all that is derived from their text."""
    worded = [one for one in drafts if one.row is not None]
    if not worded:
        return
    memories.insert(db, {one.key: one.row for one in worded if one.is_new and one.row})
    memories.update(db, {one.key: one.row for one in worded if not one.is_new and one.row})
    words.put(db, {one.key: one.analysis for one in worded if one.analysis is not None}, surfaces)
    vectors.delete(db, [one.key for one in worded if one.lost_vectors])
    if profile is not None:
        again = [one.key for one in worded if one.embedded and not one.is_new]
        vectors.delete(db, again, profile)
    vectors.write(db, profile, {one.key: one.embedded for one in worded if one.embedded})
    history.keep(db, [(one.key, past) for one in worded for past in one.past])


def write_endings(db: Database, forgotten: Sequence[Draft], surfaces: Surfaces) -> None:
    """Remove memories with everything that is derived from their text or quotes it."""
    if not forgotten:
        return
    gone = [one for one in forgotten if not one.is_new]
    surfaces.erase(db, [one.key for one in gone])
    notices.clear(db)
    for one in gone:
        texts = {one.memory.content, *one.memory.phrasings} | history.texts(db, one.key)
        texts.update(text for past in one.past for text in (past.memory.content, *past.memory.phrasings))
        registry.drop_quoting(db, one.key, texts)
    if gone:
        keys = [one.key for one in gone]
        documents.drop_citing(db, keys)
        vectors.delete(db, keys)
        words.delete(db, keys, surfaces)
        memories.delete(db, keys)
