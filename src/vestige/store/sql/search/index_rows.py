"""Lexical rows of memories: terms, fingerprints and rows of `places`, all derived from the text."""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from itertools import islice

import numpy as np

from vestige.cognition.text.analyser import ANALYSER_VERSION, fingerprint, memory_terms
from vestige.cognition.text.form import features
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Memory
from vestige.store.sql.database import Database, Surfaces
from vestige.store.sql.filters import RowCodec, json_text, listed, microseconds, optional_text
from vestige.store.sql.rows import memories

# -- Rows of the table `places`: thread, position and form, for the directory of searches

FIRST_PERSON, ASKS, TIMED = 1, 2, 4
GONE = -1
"""The length of a deleted memory."""

MADE_FROM = frozenset({
    "content", "phrasings", "tags", "occurred_at", "author", "scope", "thread", "source", "position",
    "domains", "valid_from", "valid_until", "suppression_count", "archived_at", "created_at",
})  # fmt: skip
"""The fields that terms and this row are made from; a change of any other does not affect them."""


def is_outdated(before: Memory, after: Memory) -> bool:
    """Whether terms and row of a memory must be made again after this change."""
    return any(getattr(before, part) != getattr(after, part) for part in MADE_FROM)


CODEC = RowCodec("thread source position length form flags speaker born")
PUT = f"INSERT INTO places (key, {', '.join(CODEC.columns)}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadRow:
    """A row of `places`: without a `thread` outside any; `born` is the creation time in microseconds."""

    thread: int | None
    source: int | None
    position: int | None
    length: int
    form: int
    flags: int
    speaker: int
    born: int


def of(memory: Memory, length: int) -> ThreadRow:
    """The row of a memory with this number of terms."""
    found = features(memory)
    return ThreadRow(
        thread=thread_hash(memory),
        source=None if memory.source is None else source_hash(memory.source),
        position=memory.position,
        length=length,
        form=int(found.form),
        flags=FIRST_PERSON * found.first_person | ASKS * found.asks | TIMED * found.timed,
        speaker=found.speaker,
        born=microseconds(memory.created_at),
    )


def thread_hash(memory: Memory) -> int | None:
    """A number that memories of the same thread, scope and visibility share; None outside any thread."""
    if memory.suppression_count > 0 or memory.archived_at is not None:
        return None
    if memory.thread is not None:
        named = ("thread", memory.thread)
    elif memory.source is not None and memory.position is not None:
        named = ("source", memory.source)
    else:
        return None
    window = (optional_text(memory.valid_from), optional_text(memory.valid_until))
    return _hash(json_text((*named, memory.scope, sorted(set(memory.domains)), *window)))


def source_hash(source: str) -> int:
    return _hash(source)


def put_threads(db: Database, places: Mapping[int, ThreadRow], *, new: bool = False) -> None:
    """Write the rows of memories, replacing those there under a new `seq`; `new` ones have no rows yet."""
    if not new:
        db.execute("DELETE FROM places WHERE key IN (SELECT value FROM json_each(?))", (listed(places),))
    db.executemany(PUT, [(key, *CODEC.to_row(one)) for key, one in places.items()])


def bury(db: Database, keys: Iterable[int]) -> None:
    """Mark memories as deleted, so that every directory learns it."""
    gone = ThreadRow(thread=None, source=None, position=None, length=GONE, form=0, flags=0, speaker=0, born=0)
    put_threads(db, dict.fromkeys(keys, gone))


def bury_strays(db: Database) -> None:
    """Mark rows whose memory does not exist as deleted."""
    rows = db.execute(
        "SELECT key FROM places WHERE length <> ? AND key NOT IN (SELECT key FROM memories)", (GONE,)
    ).fetchall()
    bury(db, [row[0] for row in rows])


def _hash(text: str) -> int:
    """A signed 64-bit number that is never 0, which means none."""
    return int.from_bytes(blake2b(text.encode("utf-8"), digest_size=8).digest(), "big", signed=True) or 1


# -- Words: terms and fingerprints

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
    terms = memory_terms(memory)
    return Analysis(
        revision=memory.revision,
        terms=" ".join(terms),
        fingerprints=fingerprints(memory),
        place=of(memory, len(terms)),
    )


def fingerprints(memory: Memory) -> frozenset[str]:
    return frozenset(fingerprint(wording) for wording in (memory.content, *memory.phrasings))


def put_words(
    db: Database, analysed: Mapping[int, Analysis], surfaces: Surfaces, *, new: bool = False
) -> None:
    """Write the terms and the rows of `places` of memories, replacing those there. `new` ones have none."""
    coming = iter(analysed.items())
    while some := dict(islice(coming, WRITTEN_AT_ONCE)):
        surfaces.put_words(db, some, new=new)
        put_threads(db, {key: one.place for key, one in some.items()}, new=new)


def delete(db: Database, keys: Sequence[int], surfaces: Surfaces) -> None:
    """Remove the terms of memories and their rows of `places`."""
    surfaces.delete_words(db, keys)
    bury(db, keys)


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
    put_words(db, fresh, surfaces)
    bury_strays(db)
    memories.refresh_fingerprints(db, {key: one.fingerprints for key, one in fresh.items()})
    db.execute(
        "INSERT INTO analysed (one, version) VALUES (1, ?)"
        " ON CONFLICT (one) DO UPDATE SET version = excluded.version",
        (ANALYSER_VERSION,),
    )
    return len(present)
