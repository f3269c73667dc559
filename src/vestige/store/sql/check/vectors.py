"""Checks that vectors fit the texts and the model in use."""

from collections.abc import Iterator

import numpy as np

from vestige.store.contract.trouble import Trouble, about
from vestige.store.sql.check.log import ids
from vestige.store.sql.database import Database
from vestige.store.sql.rows import store_facts
from vestige.store.sql.search.vectors import width

BATCH = 4_096
UNIT = 1e-2
"""The tolerance of the length of a vector: models round."""

USED = store_facts.KEPT
"""The profile in use, the coming one and the former."""
FOREIGN = f"SELECT count(*) FROM vectors WHERE profile NOT IN {USED}"
STALE = (
    "SELECT DISTINCT m.id FROM vectors v JOIN memories m ON m.key = v.key"
    f" WHERE v.text_hash <> m.text_hash AND v.profile IN {USED}"
)
EVERY = (
    "SELECT v.id, m.id, v.vector FROM vectors v JOIN memories m ON m.key = v.key"
    " WHERE v.profile = ? AND v.id > ? ORDER BY v.id LIMIT ?"
)
BITS = (
    "SELECT m.id FROM token_bits t JOIN memories m ON m.key = t.key WHERE t.profile = ?"
    " AND length(t.bits) <> ? * length(t.asked)"
)
# The + keeps SQLite from looking through all vectors of the profile for every memory.
BARE = (
    "SELECT m.id FROM token_bits t JOIN memories m ON m.key = t.key WHERE NOT EXISTS"
    " (SELECT 1 FROM vectors v WHERE v.key = t.key AND +v.profile = t.profile)"
)


def vectors(db: Database) -> Iterator[Trouble]:
    """Vectors of another text, of an unused model, or invalid ones."""
    yield from about("vectors", "Vectors were made from another text.", ids(db, STALE), repair="vectors")
    foreign = db.execute(FOREIGN).fetchone()[0]
    if foreign:
        yield Trouble(
            check="vectors",
            message="Vectors of models that are no longer used take up space.",
            severity="warning",
            count=foreign,
            repair="vectors",
        )
    yield from about(
        "vectors", "Vectors have the wrong dimension or length.", sorted(misshapen(db)), repair="vectors"
    )


def tokens(db: Database) -> Iterator[Trouble]:
    """Token bits of the wrong size, or without the vectors they belong to."""
    yield from about("tokens", "Token bits exist without their vectors.", ids(db, BARE), repair="vectors")
    wrong = missized(db)
    yield from about("tokens", "Token bits have the wrong size for the model.", wrong, repair="vectors")


def missized(db: Database) -> list[str]:
    """The memories whose token bits have another size than the model's."""
    profile = store_facts.profile(db)
    if profile is None:
        return []
    return [row[0] for row in db.execute(BITS, (profile.id, width(profile.signature.dimension)))]


def misshapen(db: Database) -> set[str]:
    """The memories with a vector in use that has the wrong dimension, or not the length 1."""
    profile = store_facts.profile(db)
    if profile is None:
        return set()
    found: set[str] = set()
    last, size = 0, 4 * profile.signature.dimension
    while rows := db.execute(EVERY, (profile.id, last, BATCH)).fetchall():
        last = rows[-1][0]
        found.update(name for _, name, packed in rows if len(packed) != size)
        whole = [(name, packed) for _, name, packed in rows if len(packed) == size]
        joined = np.frombuffer(b"".join(packed for _, packed in whole), dtype="<f4")
        lengths = np.linalg.norm(joined.reshape(len(whole), -1), axis=1) if whole else joined
        # Written so that a length of NaN is wrong too. A text without a word has the zero vector.
        fine = (np.abs(lengths - 1) <= UNIT) | (lengths == 0)
        found.update(name for (name, _), good in zip(whole, fine.tolist(), strict=True) if not good)
    return found
