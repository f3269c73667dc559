"""The indexes of words (FTS5) and of literals, and the other parts of `Surfaces`, in SQLite."""

import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial

import numpy as np

from vestige.cognition.query import literals as query_literals
from vestige.cognition.query.literals import count_held, literal_terms
from vestige.cognition.ranking.bm25 import Frequency, Integers, is_prefix
from vestige.cognition.text.analyser import searchable
from vestige.core.candidates import distinct
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Memory
from vestige.store.sql.database import Database, Rows
from vestige.store.sql.filters import keys_from_text, listed
from vestige.store.sql.rows import memories
from vestige.store.sql.search import pool
from vestige.store.sql.search.index_rows import Analysis, source_hash
from vestige.store.sql.search.threads import Directory
from vestige.store.sqlite.file import wal
from vestige.store.sqlite.search import segments

TABLES = {
    "words": "fts5 (terms, tokenize = \"ascii tokenchars '_'\")",
    "words_seen": "fts5vocab (words, row)",
    "words_at": "fts5vocab (words, instance)",
}
"""The word index, as the migrations make it."""
NEEDED_TO_OPEN = (
    "INSERT OR REPLACE INTO words_config (k, v) VALUES ('version', 4)",
    "INSERT OR REPLACE INTO words_data (id, block) VALUES (10, zeroblob(7))",
)
"""The rows that FTS5 needs to open a table, even to drop it, as in an empty one."""

MOST_LEVELS = 1_000
"""The number of levels at which the index is built anew. Up to SQLite 3.40 at least, each merge puts its
result a level higher, and an index of more than 2,000 levels can never be opened again."""
_CONTINUES = 0x80


LAST_KEY = "SELECT seq FROM sqlite_sequence WHERE name = 'memories'"


def next_key(db: Database) -> int:
    return memories.next_key(db.execute(LAST_KEY))


class SqliteSurfaces:
    def ask_last_key(self, db: Database) -> Rows:
        return db.execute(LAST_KEY)

    def put_words(self, db: Database, analysed: Mapping[int, Analysis], *, new: bool = False) -> None:
        db.executemany(
            "INSERT OR REPLACE INTO words (rowid, terms) VALUES (?, ?)",
            [(key, one.terms) for key, one in analysed.items()],
        )

    def delete_words(self, db: Database, keys: Sequence[int]) -> None:
        """FTS5 only marks terms as deleted until segments merge, so they are merged now, which removes the
        terms from the pages of the index. Its own secure-delete (SQLite 3.42) would make the file unreadable
        to older SQLite versions."""
        db.executemany("DELETE FROM words WHERE rowid = ?", [(key,) for key in keys])
        deep = _levels(db) > MOST_LEVELS
        db.execute("INSERT INTO words (words) VALUES (?)", ("rebuild" if deep else "optimize",))

    def empty_words(self, db: Database) -> None:
        """The table is created again: FTS5 deletes rows only from an index that is whole."""
        try:
            db.execute("DROP TABLE IF EXISTS words")
        except sqlite3.DatabaseError:
            for row in NEEDED_TO_OPEN:
                db.execute(row)
            db.execute("DROP TABLE words")
        for name, made_of in TABLES.items():
            db.execute(f"DROP TABLE IF EXISTS {name}")
            db.execute(f"CREATE VIRTUAL TABLE {name} USING {made_of}")

    def erase(self, db: Database, keys: Sequence[int] = ()) -> None:
        """Request a truncation of the write-ahead log, and unlist the index files that hold these vectors."""
        wal.owe(db)
        if keys:
            segments.unlist(db, keys)


def _levels(db: Database) -> int:
    """The number of levels of the index: the number after the first four bytes of the row with its structure,
    seven bits per byte."""
    row = db.execute("SELECT block FROM words_data WHERE id = 10").fetchone()
    levels = 0
    for byte in bytes(row[0])[4:] if row else b"":
        levels = levels << 7 | byte & ~_CONTINUES
        if byte < _CONTINUES:
            break
    return levels


# -- The lexical arm: the postings of the word index, read from FTS5 and scored by `store.sql.search.pool`

# One number per occurrence.
OCCURRENCES = "SELECT group_concat(doc) FROM words_at WHERE {where}"
HOLDING = "SELECT group_concat(doc) FROM (SELECT doc FROM words_at WHERE {where} GROUP BY term, doc)"
TERMS = "SELECT rowid, terms FROM words WHERE rowid IN (SELECT value FROM json_each(?)) ORDER BY rowid"
POSTINGS_PER_WORD = 6  # The number of postings that are read in the time of one word of a memory.
KEPT, KEPT_TERMS = 60_000, 16  # The limits of occurrences of a term, and of terms, that are kept.
FREQUENCY = "SELECT coalesce(sum(doc), 0), coalesce(sum(cnt), 0) FROM words_seen WHERE {where}"


MOST_KEPT, TERM_SIZE = 1_000_000, 32
"""The postings that a process keeps, 16 MB, and what a term counts beside its postings: a search can ask for
any number of words that occur nowhere."""
MOST_FREQUENCIES = 4_096
MOST_CHANGED = 256
"""The number of memories written since postings were read, above which they are read again."""
CHANGED = "SELECT key FROM places WHERE seq > ?"


@dataclass(slots=True)
class PostingsCache:
    """The postings of terms that were asked for; the least recently used go first. Whatever writes words
    writes a row of `places` with them, so the `seq` of the directory says which memories were written since:
    those are held with all their terms, and take the place of their postings. To be used under the lock of
    the directory."""

    _seq: int = -1
    _held: dict[str, pool.Occurrences] = field(default_factory=dict)
    _size: int = 0
    _changed: dict[int, Counter[str]] = field(default_factory=dict)
    _frequencies: dict[str, Frequency] = field(default_factory=dict)

    def catch_up(self, db: sqlite3.Connection, directory: Directory) -> None:
        """Bring it to the moment of the directory, in its read transaction."""
        if directory.seq == self._seq:
            return
        self._frequencies.clear()
        keys = [row[0] for row in db.execute(CHANGED, (self._seq,))] if self._held else []
        if directory.seq < self._seq or len(keys) + len(self._changed) > MOST_CHANGED:
            self._held.clear()
            self._changed.clear()
            self._size, keys = 0, []
        if not self._held:
            self._changed.clear()
        elif keys:
            self._changed |= {key: Counter() for key in keys}
            self._changed |= {
                key: Counter(terms.split(" ")) for key, terms in db.execute(TERMS, (listed(keys),))
            }
        self._seq = directory.seq

    def occurrences(self, db: sqlite3.Connection, term: str) -> pool.Occurrences:
        found = self._held.pop(term, None)
        if found is None:
            found = _counted(_occurrences(db, term))
            if is_prefix(term) or len(found[0]) > KEPT:
                return found
            self._size += len(found[0]) + TERM_SIZE
        self._held[term] = found  # the last in the order of use
        while self._size > MOST_KEPT:
            self._size -= len(self._held.pop(next(iter(self._held)))[0]) + TERM_SIZE
        return self._as_changed(term, found) if self._changed else found

    def frequency(self, db: sqlite3.Connection, term: str) -> Frequency:
        """How common a term is in the whole store."""
        if term in self._held:
            keys, counts = self.occurrences(db, term)
            return Frequency(term=term, memories=len(keys), occurrences=int(counts.sum()))
        if term not in self._frequencies:
            if len(self._frequencies) >= MOST_FREQUENCIES:
                self._frequencies.clear()
            self._frequencies[term] = _stored_frequency(db, term)
        return self._frequencies[term]

    def _as_changed(self, term: str, found: pool.Occurrences) -> pool.Occurrences:
        keys, counts = found
        fresh = [(key, terms[term]) for key, terms in self._changed.items() if terms[term]]
        left = ~np.isin(keys, list(self._changed))
        keys = np.concatenate((keys[left], np.array([key for key, _ in fresh], dtype=np.int64)))
        counts = np.concatenate((counts[left], np.array([count for _, count in fresh], dtype=np.int64)))
        order = np.argsort(keys, kind="stable")
        return keys[order], counts[order]


def score(
    db: sqlite3.Connection,
    directory: Directory,
    terms: Sequence[str],
    budget: int | None,
    also: Integers = pool.NO_KEYS,
    *,
    cache: PostingsCache | None = None,
) -> pool.Lexical:
    """The scores of every memory that matches, and of those in `also`, with the statistics of what the
    directory has."""
    kept = PostingsCache() if cache is None else cache
    kept.catch_up(db, directory)
    sought = pool.SoughtTerms.of(terms)
    common, read = None, dict[str, pool.Occurrences]()
    if sought.must_choose(directory.total, budget):
        common = [_frequency(db, term, directory, read, kept) for term in sought.indexable]
    chosen = pool.looked_up(sought, common, budget)
    if common is None and _few_are_readable(db, directory, sought, budget, kept):
        readable = listed(np.flatnonzero(directory.collection().lengths >= 0))
        found = pool.occurrences_in(db.execute(TERMS, (readable,)), chosen)
    else:
        found = {term: read.get(term) or kept.occurrences(db, term) for term in chosen}
    return pool.score(sought, common, found, directory, also)


def _few_are_readable(
    db: sqlite3.Connection,
    directory: Directory,
    sought: pool.SoughtTerms,
    budget: int | None,
    kept: PostingsCache,
) -> bool:
    """Whether a limited caller's memories have far fewer words than the terms have occurrences in the store:
    then reading the memories is bounded by the budget, and reading the postings is not."""
    if not directory.unseen or not sought.must_choose(directory.total + directory.unseen, budget):
        return False
    spent = sum(kept.frequency(db, term).occurrences for term in sought.indexable)
    return spent > POSTINGS_PER_WORD * directory.total


def _frequency(
    db: sqlite3.Connection,
    term: str,
    directory: Directory,
    read: dict[str, pool.Occurrences],
    kept: PostingsCache,
) -> Frequency:
    """How common a term is in what the directory has. Some of what is read for that is kept in `read`."""
    if not directory.unseen:
        return kept.frequency(db, term)
    occurrences = _occurrences(db, term)
    occurrences = occurrences[directory.has(occurrences)]
    if len(occurrences) <= KEPT and len(read) < KEPT_TERMS:
        read[term] = _counted(occurrences)
    if is_prefix(term):  # a memory counts once for each of its terms
        where, params = _matching(term)
        holding = keys_from_text(db.execute(HOLDING.format(where=where), params).fetchone()[0])
        holding = holding[directory.has(holding)]
    else:
        holding = _counted(occurrences)[0]
    return Frequency(term=term, memories=len(holding), occurrences=len(occurrences))


def _stored_frequency(db: sqlite3.Connection, term: str) -> Frequency:
    where, params = _matching(term)
    found = db.execute(FREQUENCY.format(where=where), params).fetchone()
    return Frequency(term=term, memories=found[0], occurrences=found[1])


def _occurrences(db: sqlite3.Connection, term: str) -> Integers:
    """The key of the memory of every occurrence."""
    where, params = _matching(term)
    return keys_from_text(db.execute(OCCURRENCES.format(where=where), params).fetchone()[0])


def _counted(occurrences: Integers) -> pool.Occurrences:
    """Each memory's key once, and its number of occurrences; the index gives them in order, except for
    prefixes."""
    ordered = np.sort(occurrences, kind="stable")
    firsts = np.flatnonzero(np.diff(ordered, prepend=-1))
    return ordered[firsts], np.diff(firsts, append=len(ordered))


def _matching(term: str) -> tuple[str, tuple[str, ...]]:
    """The condition on the vocabulary for a term, or for all terms with a prefix."""
    if not is_prefix(term):
        return "term = ?", (term,)
    first = term[:-1]
    return "term >= ? AND term < ?", (first, first + pool.LAST_CHARACTER)


# -- The literal arm: memories that hold a text as it is; the word index finds them, their text decides

READ_CHARS = 16_000_000
"""The most characters read to check literals, those of short memories first; memories beyond them count as
without the literal."""
EVERYWHERE = 50_000
"""A literal whose terms this number of readable memories have, whatever the filter, is not looked for in
their texts."""

BY_LENGTH = (
    "SELECT m.key FROM memories m LEFT JOIN places p ON p.key = m.key"
    " WHERE m.key IN (SELECT value FROM json_each(?)) ORDER BY p.length, m.key"
)
# In the order given: the first table of a cross join is the outer loop. Sorting would read every text first.
TEXTS = (
    f"SELECT m.key, coalesce(w.terms, ''), {memories.MEMORY} FROM json_each(?) j"
    " CROSS JOIN memories m ON m.key = j.value LEFT JOIN words w ON w.rowid = m.key"
)
MATCHES = "SELECT group_concat(rowid) FROM (SELECT rowid FROM words WHERE words MATCH ? LIMIT ?)"


def find(
    db: sqlite3.Connection,
    directory: Directory,
    literals: Sequence[str],
    allowed: pool.Mask | None,
    limit: int,
) -> Integers:
    """The keys of the memories that hold most of the literals, at least one; ties by id."""
    if not literals:
        return pool.NO_KEYS
    keys = distinct(np.concatenate([_candidates(db, directory, one, allowed) for one in literals]))
    held = count(db, literals, keys)
    keys, held = keys[held > 0], held[held > 0]
    return keys[pool.highest(partial(memories.ids_of, db), keys, (held.astype(np.float64),), limit)]


def count(db: sqlite3.Connection, literals: Sequence[str], keys: Integers) -> Integers:
    """The number of literals that each of these memories holds."""
    if not literals or not len(keys):
        return np.zeros(len(keys), dtype=np.int64)
    distinct = list(dict.fromkeys(literals))
    held = {key: count_held(distinct, memory, terms) for key, terms, memory in _texts(db, keys)}
    return np.array([held.get(key, 0) for key in keys.tolist()], dtype=np.int64)


def _candidates(
    db: sqlite3.Connection, directory: Directory, literal: str, allowed: pool.Mask | None
) -> Integers:
    """The memories that have all terms of a literal, unless those are too common, or whose source it is."""
    plain = literal.strip()
    named = db.execute(
        "SELECT group_concat(key) FROM memories WHERE id IN (SELECT value FROM json_each(?))",
        (listed([plain, plain.lower()]),),
    ).fetchone()[0]
    found = [keys_from_text(named), _with_all_terms(db, directory, sorted(literal_terms(literal)))]
    found.append(directory.of_source(source_hash(plain)))
    if allowed is not None:
        found = [keys[allowed[keys]] for keys in found]
    return np.concatenate([keys for keys in found if len(keys) <= query_literals.COMMON] or [pool.NO_KEYS])


def _with_all_terms(db: sqlite3.Connection, directory: Directory, terms: Sequence[str]) -> Integers:
    if not terms or not all(map(pool.is_indexable, terms)):
        return pool.NO_KEYS
    match = " AND ".join(f'"{term}"' for term in terms)
    most = -1 if directory.unseen else EVERYWHERE
    found = keys_from_text(db.execute(MATCHES, (match, most)).fetchone()[0])
    if directory.unseen:
        found = found[directory.has(found)]
    return found if len(found) < EVERYWHERE else pool.NO_KEYS


def _texts(db: sqlite3.Connection, keys: Integers) -> Iterator[tuple[int, frozenset[str], Memory]]:
    """The memories of these keys and their terms, short ones first, until READ_CHARS are read."""
    ordered = [row[0] for row in db.execute(BY_LENGTH, (listed(keys),))]
    left = READ_CHARS
    # One row after the other: a memory can be large, and no two of them need be held.
    for key, terms, *row in db.execute(TEXTS, (listed(ordered),)):
        memory = memories.from_row(row)
        left -= len(terms) + len(searchable(memory))
        if left < 0:
            return
        yield key, frozenset(terms.split(" ")), memory
