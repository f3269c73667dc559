"""The index of words in PostgreSQL: who has a term and how often. What else it keeps in its own way."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from vestige.store.sql.columns import listed
from vestige.store.sql.database import Database
from vestige.store.sql.words import Analysis

COUNT = (
    "INSERT INTO terms (term, memories, occurrences)"
    " SELECT * FROM unnest(?::text[], ?::bigint[], ?::bigint[]) ON CONFLICT (term) DO UPDATE"
    " SET memories = terms.memories + excluded.memories,"
    " occurrences = terms.occurrences + excluded.occurrences"
)
# One statement for all rows: half the time of one for each.
POST = "INSERT INTO postings (term, key, count) SELECT * FROM unnest(?::text[], ?::bigint[], ?::integer[])"
TAKE_OUT = (
    "DELETE FROM postings p USING unnest(?::text[], ?::bigint[]) AS gone(term, key)"
    " WHERE p.term = gone.term AND p.key = gone.key"
)
LAST_KEY = "SELECT greatest(0, (SELECT max(key) FROM places), (SELECT max(key) FROM memories))"
FORGET = "DELETE FROM terms WHERE term = ANY(?) AND memories <= 0"


class PostgresSurfaces:
    """What is kept in PostgreSQL's own way; `store.sql.database.Surfaces` says what each method promises."""

    def next_key(self, db: Database) -> int:
        """The key a new memory gets. The place of a deleted one stays, so the last key is always there; and
        that of a memory which has lost its place is not given twice."""
        (last,) = db.execute(LAST_KEY).fetchone()
        return int(last) + 1

    def put_words(self, db: Database, analysed: Mapping[int, Analysis]) -> None:
        """Write the terms of memories, replacing what is there."""
        counted = {key: Counter(one.terms.split()) for key, one in analysed.items()}
        gone = self._take_out(db, list(analysed))
        db.execute(
            "INSERT INTO words (key, terms) SELECT * FROM unnest(?::bigint[], ?::text[])",
            (listed(analysed), listed(one.terms for one in analysed.values())),
        )
        posted = [(term, key, often) for key, terms in counted.items() for term, often in terms.items()]
        if posted:
            db.execute(POST, tuple(map(listed, zip(*posted, strict=True))))
        _count(db, counted.values(), gone)

    def delete_words(self, db: Database, keys: Sequence[int]) -> None:
        """Remove the terms of memories."""
        _count(db, (), self._take_out(db, keys))

    def empty_words(self, db: Database) -> None:
        """Make the index empty, in a transaction that may take as long as it takes."""
        db.execute("SET LOCAL statement_timeout = 0")
        for table in ("words", "postings", "terms"):
            db.execute(f"DELETE FROM {table}")

    def erase(self, db: Database, keys: Sequence[int] = ()) -> None:
        """Nothing is left outside the tables. What the server keeps of deleted rows is its own affair."""

    def _take_out(self, db: Database, keys: Sequence[int]) -> list[Counter[str]]:
        """Remove the terms of memories; what they were."""
        rows = db.execute(
            "DELETE FROM words WHERE key = ANY(?) RETURNING key, terms", (listed(keys),)
        ).fetchall()
        counted = {key: Counter(terms.split()) for key, terms in rows}
        posted = [(term, key) for key, terms in counted.items() for term in terms]
        if posted:
            db.execute(TAKE_OUT, tuple(map(listed, zip(*posted, strict=True))))
        return list(counted.values())


def _count(db: Database, come: Iterable[Counter[str]], gone: Iterable[Counter[str]]) -> None:
    """Keep how common terms are."""
    memories: Counter[str] = Counter()
    occurrences: Counter[str] = Counter()
    for sign, several in ((1, come), (-1, gone)):
        for terms in several:
            for term, often in terms.items():
                memories[term] += sign
                occurrences[term] += sign * often
    changed = sorted(term for term in occurrences if memories[term] or occurrences[term])
    if changed:
        counts = (listed(memories[term] for term in changed), listed(occurrences[term] for term in changed))
        db.execute(COUNT, (listed(changed), *counts))
    fewer = [term for term in changed if memories[term] < 0]
    if fewer:
        db.execute(FORGET, (listed(fewer),))
