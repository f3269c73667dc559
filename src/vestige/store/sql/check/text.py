"""Checks that rows derived from texts fit the present texts."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from vestige.cognition.text.analyser import text_hash
from vestige.core.models import Memory
from vestige.store.contract.trouble import Trouble, about
from vestige.store.sql.database import Database
from vestige.store.sql.filters import listed
from vestige.store.sql.rows import memories
from vestige.store.sql.search import index_rows
from vestige.store.sql.search.index_rows import ThreadRow

BATCH = 500
AMONG = "IN (SELECT value FROM json_each(?))"
PLACE = f"SELECT key, {', '.join(index_rows.CODEC.columns)} FROM places WHERE key"


@dataclass(slots=True, kw_only=True)
class Wrong:
    """The memories whose derived rows do not fit their text."""

    hashes: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    fingerprints: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivedRows:
    """The derived rows of some memories, by key. A missing row is reported by another check."""

    hashes: Mapping[int, str]
    terms: Mapping[int, str]
    places: Mapping[int, ThreadRow]
    fingerprints: Mapping[int, frozenset[str]]


def texts(db: Database, word_key: str) -> Iterator[Trouble]:
    """Analyse every text again, a batch at a time."""
    wrong, last = Wrong(), 0
    while True:
        some, end = memories.texts_after(db, last, BATCH)
        if end is None:
            break
        _compare(wrong, some, _kept(db, [key for key, _ in some], word_key))
        last = end
    yield from about(
        "texts",
        "The text does not match its hash: the database was damaged, or changed by another program.",
        wrong.hashes,
    )
    for message, found in (
        ("The words in the index are not those of the text.", wrong.words),
        ("The rows of the table places do not fit the memories.", wrong.places),
        ("The fingerprints do not fit the text.", wrong.fingerprints),
    ):
        yield from about("texts", message, found, repair="words")


def _compare(wrong: Wrong, some: Sequence[tuple[int, Memory]], kept: DerivedRows) -> None:
    for key, memory in some:
        right = index_rows.analyse(memory)
        if kept.hashes[key] != text_hash(memory):
            wrong.hashes.append(memory.id)
        if kept.terms.get(key, right.terms) != right.terms:
            wrong.words.append(memory.id)
        if kept.places.get(key, right.place) != right.place:
            wrong.places.append(memory.id)
        if kept.fingerprints.get(key, right.fingerprints) != right.fingerprints:
            wrong.fingerprints.append(memory.id)


def _kept(db: Database, keys: Sequence[int], word_key: str) -> DerivedRows:
    asked = (listed(keys),)
    prints: dict[int, set[str]] = defaultdict(set)
    for key, one in db.execute(f"SELECT key, fingerprint FROM fingerprints WHERE key {AMONG}", asked):
        prints[key].add(one)
    return DerivedRows(
        hashes=dict(db.execute(f"SELECT key, text_hash FROM memories WHERE key {AMONG}", asked)),
        terms=dict(db.execute(f"SELECT {word_key}, terms FROM words WHERE {word_key} {AMONG}", asked)),
        places={
            key: ThreadRow(**index_rows.CODEC.fields(row))
            for key, *row in db.execute(f"{PLACE} {AMONG} AND length >= 0", asked)
        },
        fingerprints={key: frozenset(several) for key, several in prints.items()},
    )
