"""The indexes of words (postings and frequencies) and of literals, and the other parts of `Surfaces`, in
PostgreSQL."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import orjson

from vestige.cognition.query import literals as query_literals
from vestige.cognition.query.literals import count_held, literal_terms
from vestige.cognition.ranking.bm25 import Frequency, Integers, is_prefix
from vestige.store.postgres.search.statement import Answer, Passing, SqlPart
from vestige.store.postgres.server.values import integers, sent_keys
from vestige.store.sql.database import Database, Rows
from vestige.store.sql.filters import SqlList, listed
from vestige.store.sql.rows import memories
from vestige.store.sql.search.index_rows import Analysis, source_hash
from vestige.store.sql.search.pool import (
    LAST_CHARACTER,
    NO_KEYS,
    Ids,
    Mask,
    Occurrences,
    highest,
    is_indexable,
)
from vestige.store.sql.search.threads import Directory

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
    """The `Surfaces` of PostgreSQL."""

    def ask_last_key(self, db: Database) -> Rows:
        """The row of a deleted memory stays in `places`, so the last key is always known and no key is given
        twice, not even one of a memory that lost its row."""
        return db.execute(LAST_KEY)

    def put_words(self, db: Database, analysed: Mapping[int, Analysis], *, new: bool = False) -> None:
        counted = {key: Counter(one.terms.split()) for key, one in analysed.items()}
        gone = [] if new else self._take_out(db, list(analysed))
        db.execute(
            "INSERT INTO words (key, terms) SELECT * FROM unnest(?::bigint[], ?::text[])",
            (listed(analysed), listed(one.terms for one in analysed.values())),
        )
        posted = [(term, key, often) for key, terms in counted.items() for term, often in terms.items()]
        if posted:
            db.execute(POST, tuple(map(listed, zip(*posted, strict=True))))
        _count(db, counted.values(), gone)

    def delete_words(self, db: Database, keys: Sequence[int]) -> None:
        _count(db, (), self._take_out(db, keys))

    def empty_words(self, db: Database) -> None:
        """The transaction may take as long as it needs."""
        db.execute("SET LOCAL statement_timeout = 0")
        for table in ("words", "postings", "terms"):
            db.execute(f"DELETE FROM {table}")

    def erase(self, db: Database, keys: Sequence[int] = ()) -> None:
        """Nothing is left outside the tables. Clients cannot read deleted rows on the pages of the server."""

    def _take_out(self, db: Database, keys: Sequence[int]) -> list[Counter[str]]:
        """Remove the terms of memories; returns them."""
        rows = db.execute(
            "DELETE FROM words WHERE key = ANY(?) RETURNING key, terms", (listed(keys),)
        ).fetchall()
        counted = {key: Counter(terms.split()) for key, terms in rows}
        posted = [(term, key) for key, terms in counted.items() for term in terms]
        if posted:
            db.execute(TAKE_OUT, tuple(map(listed, zip(*posted, strict=True))))
        return list(counted.values())


def _count(db: Database, come: Iterable[Counter[str]], gone: Iterable[Counter[str]]) -> None:
    """Update the frequencies of terms."""
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


# -- The lexical arm: frequencies and postings of terms, as parts of a search's statements

WORD, BEGINNING = "word", "beginning"

# For each term, in order: the number of memories and of occurrences. A prefix adds up its terms.
FREQUENCIES = (
    "SELECT array_send(array_agg(ARRAY[coalesce(t.memories, 0), coalesce(t.occurrences, 0)] ORDER BY w.at))"
    " FROM unnest(?::text[]) WITH ORDINALITY w(term, at)"
    " LEFT JOIN LATERAL (SELECT memories, occurrences FROM terms WHERE term = w.term OFFSET 0) t ON TRUE"
)
BEGUN = (
    "SELECT array_send(array_agg(ARRAY[t.memories, t.occurrences] ORDER BY w.at))"
    " FROM unnest(?::text[], ?::text[]) WITH ORDINALITY w(first, last, at) CROSS JOIN LATERAL"
    " (SELECT coalesce(sum(memories), 0)::bigint AS memories, coalesce(sum(occurrences), 0)::bigint"
    " AS occurrences FROM terms WHERE term >= w.first AND term < w.last) t"
)
# The same in some of the memories, for a term or a prefix.
COUNTED_IN = (
    "SELECT array_send(array_agg(ARRAY[t.memories, t.occurrences] ORDER BY w.at))"
    " FROM unnest(?::text[], ?::text[]) WITH ORDINALITY w(first, last, at) CROSS JOIN LATERAL"
    " (SELECT count(*) AS memories, coalesce(sum(count), 0)::bigint AS occurrences FROM postings"
    " WHERE term >= w.first AND term {upto} w.last AND {passing}) t"
)
# A key and a count share a number: to put arrays together and to send them is half of the work. A count is an
# INTEGER, so it fits; a key that does not is refused by the server.
COUNT_BITS = 31
POSTINGS = (
    f"SELECT '{WORD}', w.at, p.found, NULL::bytea, NULL, NULL"
    " FROM unnest(?::text[]) WITH ORDINALITY w(term, at) CROSS JOIN LATERAL"
    f" (SELECT array_send(array_agg(key * {1 << COUNT_BITS} + count)) AS found FROM postings"
    " WHERE term = w.term AND {passing}) p"
)
BEGUN_POSTINGS = (
    f"SELECT '{BEGINNING}', w.at, p.found, NULL::bytea, NULL, NULL"
    " FROM unnest(?::text[], ?::text[]) WITH ORDINALITY w(first, last, at) CROSS JOIN LATERAL"
    f" (SELECT array_send(array_agg(key * {1 << COUNT_BITS} + often)) AS found FROM"
    " (SELECT key, sum(count)::integer AS often FROM postings WHERE term >= w.first AND term < w.last"
    " AND {passing} GROUP BY key) g) p"
)


def counting(terms: Sequence[str]) -> tuple[SqlPart, SqlPart]:
    """The frequencies of terms and prefixes: for `frequencies`."""
    plain, begun = _parted(terms)
    prefixes = SqlPart(sql=BEGUN, params=_ranges(begun)) if begun else SqlPart(sql="SELECT NULL::bytea")
    return SqlPart(sql=FREQUENCIES, params=(listed(plain),)), prefixes


def frequencies(terms: Sequence[str], sent: bytes | None, begun: bytes | None) -> dict[str, Frequency]:
    """The result of `counting`."""
    found = np.concatenate((integers(sent), integers(begun))).reshape(-1, 2).tolist()
    plain, prefixes = _parted(terms)
    return {
        term: Frequency(term=term, memories=memories, occurrences=occurrences)
        for term, (memories, occurrences) in zip((*plain, *prefixes), found, strict=True)
    }


def counted_in(db: Database, terms: Sequence[str], readable: Passing) -> dict[str, Frequency]:
    """The frequencies of terms and prefixes in the readable memories alone."""
    plain, begun = _parted(terms)
    let = readable.condition("key")
    sent: list[bytes | None] = []
    for upto, params in (("<=", (listed(plain), listed(plain))), ("<", _ranges(begun))):
        sql = COUNTED_IN.format(upto=upto, passing=let.sql)
        sent.append(db.execute(sql, (*params, *let.params)).fetchone()[0])
    return frequencies(terms, *sent)


def postings(terms: Sequence[str], readable: Passing) -> Iterable[SqlPart]:
    """The postings of the terms in readable memories: for `occurrences`."""
    plain, begun = _parted(terms)
    let = readable.condition("key")
    if plain:
        yield SqlPart(sql=POSTINGS.format(passing=let.sql), params=(listed(plain), *let.params))
    if begun:
        yield SqlPart(sql=BEGUN_POSTINGS.format(passing=let.sql), params=(*_ranges(begun), *let.params))


def occurrences(terms: Sequence[str], answers: Iterable[Answer]) -> dict[str, Occurrences]:
    """The result of `postings`, in the order of the terms."""
    plain, begun = _parted(terms)
    asked = {WORD: plain, BEGINNING: begun}
    found = {
        asked[one.kind][one.number - 1]: _postings(integers(one.keys)) for one in answers if one.kind in asked
    }
    return {term: found[term] for term in terms}


def _postings(found: Integers) -> Occurrences:
    return found >> COUNT_BITS, found & (1 << COUNT_BITS) - 1


def _parted(terms: Iterable[str]) -> tuple[list[str], list[str]]:
    """Whole terms, and prefixes."""
    every = list(terms)
    return [one for one in every if not is_prefix(one)], [one for one in every if is_prefix(one)]


def _ranges(prefixes: Iterable[str]) -> tuple[SqlList, SqlList]:
    firsts = [one[:-1] for one in prefixes]
    return listed(firsts), listed(f"{one}{LAST_CHARACTER}" for one in firsts)


# -- The literal arm: memories that hold a text as it is; postings find them, their text decides

TEXT = "text"
READ_BYTES = 16_000_000
"""The most characters read to check literals, those of short memories first; memories beyond them count as
without the literal."""
EVERYWHERE = 50_000
"""A literal whose terms this number of readable memories have, whatever the filter, is not looked for in
their texts."""

# From the rarest term on, so that the postings of a common one are only looked up.
WITH_ALL_TERMS = (
    "SELECT key FROM (SELECT c.key, count(*) OVER () AS several FROM"
    " (SELECT p.key, count(*) OVER () AS everywhere FROM (SELECT p.key FROM postings p WHERE p.term = ?"
    " AND {readable} AND (SELECT count(*) FROM postings o WHERE o.key = p.key"
    " AND o.term = ANY(?::text[])) = ? LIMIT ?) p) c"
    " WHERE c.everywhere < ? AND {passing}) c WHERE c.several <= ?"
)
NAMED = "SELECT c.key FROM memories c WHERE c.id = ANY(?::text[]) AND {passing}"
GIVEN = "SELECT unnest(?::bigint[])"
# The length of a text is known without reading it.
READABLE = (
    "SELECT r.key FROM (SELECT m.key, sum(octet_length(m.content) + octet_length(m.phrasings)"
    " + octet_length(w.terms)) OVER (ORDER BY p.length, m.key) AS so_far FROM ({keys}) c(key)"
    " JOIN memories m ON m.key = c.key JOIN words w ON w.key = c.key JOIN places p ON p.key = c.key) r"
    " WHERE r.so_far <= {most}"
)
TEXTS = (
    f"SELECT '{TEXT}', m.key, NULL, NULL, row_to_json(m)::text, w.terms FROM ({{keys}}) r"
    " JOIN memories m ON m.key = r.key JOIN words w ON w.key = r.key"
)


def terms_of(literals: Iterable[str]) -> list[str]:
    """The terms of literals whose frequencies `arm` needs."""
    every = {term for literal in literals for term in literal_terms(literal)}
    return sorted(filter(is_indexable, every))


def arm(
    literals: Sequence[str],
    common: Mapping[str, Frequency],
    directory: Directory,
    passing: Passing,
    readable: Passing,
    mask: Mask | None,
) -> Iterator[SqlPart]:
    """The texts of the memories that may hold a literal: for `held`."""
    if literals:
        candidates = [part for one in literals for part in _candidates(one, common, passing, readable)]
        candidates.append(_sourced(literals, directory, mask))
        keys = " UNION ".join(f"({one.sql})" for one in candidates)
        params = tuple(param for one in candidates for param in one.params)
        yield SqlPart(sql=TEXTS.format(keys=readable_texts(keys)), params=params)


def readable_texts(keys: str) -> str:
    """The keys of a select whose texts are read."""
    return READABLE.format(keys=keys, most=READ_BYTES)


def held(literals: Sequence[str], answers: Iterable[Answer]) -> dict[int, int]:
    """The number of literals in each memory whose text was read."""
    distinct = list(dict.fromkeys(literals))
    return {
        one.number: count_in(distinct, one.text, one.terms)
        for one in answers
        if one.kind == TEXT and one.text is not None and one.terms is not None
    }


def count_in(literals: Sequence[str], text: str, terms: str) -> int:
    """The number of literals in a memory, from its row in JSON and its terms."""
    columns = orjson.loads(text)
    memory = memories.from_row([columns[name] for name in memories.COLUMNS])
    return count_held(literals, memory, frozenset(terms.split(" ")))


def best(ids_of: Ids, counted: Mapping[int, int], limit: int) -> Integers:
    """The keys of the memories that hold most of the literals, at least one; ties by id."""
    there = {key: count for key, count in counted.items() if count}
    keys = np.array(list(there), dtype=np.int64)
    scores = np.array(list(there.values()), dtype=np.float64)
    return keys[highest(ids_of, keys, (scores,), limit)]


def _candidates(
    literal: str, common: Mapping[str, Frequency], passing: Passing, readable: Passing
) -> Iterator[SqlPart]:
    """The memories that have all terms of a literal, unless these are too common, or whose id it is."""
    let, seen = passing.condition("c.key"), readable.condition("p.key")
    plain = literal.strip()
    yield SqlPart(sql=NAMED.format(passing=let.sql), params=(listed([plain, plain.lower()]), *let.params))
    terms = sorted(literal_terms(literal))
    if terms and all(term in common and common[term].memories for term in terms):
        rarest, *others = sorted(terms, key=lambda term: (common[term].memories, term))
        yield SqlPart(
            sql=WITH_ALL_TERMS.format(passing=let.sql, readable=seen.sql),
            params=(
                rarest,
                *seen.params,
                listed(others),
                len(others),
                EVERYWHERE,
                EVERYWHERE,
                *let.params,
                query_literals.COMMON,
            ),
        )


def _sourced(literals: Iterable[str], directory: Directory, mask: Mask | None) -> SqlPart:
    """The memories whose source a literal is, unless they are many."""
    found = [directory.of_source(source_hash(one.strip())) for one in literals]
    if mask is not None:
        found = [keys[mask[keys]] for keys in found]
    few = [keys for keys in found if len(keys) <= query_literals.COMMON]
    return SqlPart(sql=GIVEN, params=(sent_keys(np.concatenate((NO_KEYS, *few))),))
