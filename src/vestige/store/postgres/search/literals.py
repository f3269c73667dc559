"""The literal arm: memories that hold a text as it is. The postings find them, their text decides."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import orjson

from vestige.cognition.query import literals as verbatim
from vestige.cognition.query.literals import literal_terms
from vestige.cognition.ranking.bm25 import Frequency, Integers
from vestige.store.postgres.search.changes_since import Passing
from vestige.store.postgres.search.statement import Answer, SqlPart
from vestige.store.postgres.server.values import sent_keys
from vestige.store.sql.columns import listed
from vestige.store.sql.rows import memories
from vestige.store.sql.search.bm25 import NO_KEYS, Ids, Mask, highest, is_indexable
from vestige.store.sql.search.index_rows import source_hash
from vestige.store.sql.search.threads import Directory

TEXT = "text"
READ_BYTES = 16_000_000
"""The most characters read to check literals, those of short memories first; memories beyond them count as
without the literal."""
EVERYWHERE = 50_000
"""A literal whose terms this number of memories have, whatever the filter, is not looked for in their
texts."""

# From the rarest term on, so that the postings of a common one are only looked up.
WITH_ALL_TERMS = (
    "SELECT key FROM (SELECT c.key, count(*) OVER () AS several FROM"
    " (SELECT p.key, count(*) OVER () AS everywhere FROM (SELECT p.key FROM postings p WHERE p.term = ?"
    " AND (SELECT count(*) FROM postings o WHERE o.key = p.key AND o.term = ANY(?::text[])) = ? LIMIT ?) p) c"
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


@dataclass(frozen=True, slots=True, kw_only=True)
class SoughtLiterals:
    """The literals of a search, with the frequencies of their terms and the directory."""

    literals: tuple[str, ...]
    common: Mapping[str, Frequency]

    @staticmethod
    def terms(literals: Iterable[str]) -> list[str]:
        """The terms whose frequencies are needed."""
        every = {term for literal in literals for term in literal_terms(literal)}
        return sorted(filter(is_indexable, every))


def arm(
    sought: SoughtLiterals, directory: Directory, passing: Passing, mask: Mask | None
) -> Iterator[SqlPart]:
    """The texts of the memories that may hold a literal: for `held`."""
    if sought.literals:
        candidates = [part for one in sought.literals for part in _candidates(one, sought, passing)]
        candidates.append(_sourced(sought.literals, directory, mask))
        keys = " UNION ".join(f"({one.sql})" for one in candidates)
        params = tuple(param for one in candidates for param in one.params)
        yield SqlPart(sql=TEXTS.format(keys=readable(keys)), params=params)


def readable(keys: str) -> str:
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
    return verbatim.held(literals, memory, frozenset(terms.split(" ")))


def best(ids_of: Ids, counted: Mapping[int, int], limit: int) -> Integers:
    """The keys of the memories that hold most of the literals, at least one; ties by id."""
    there = {key: count for key, count in counted.items() if count}
    keys = np.array(list(there), dtype=np.int64)
    scores = np.array(list(there.values()), dtype=np.float64)
    return keys[highest(ids_of, keys, (scores,), limit)]


def _candidates(literal: str, sought: SoughtLiterals, passing: Passing) -> Iterator[SqlPart]:
    """The memories that have all terms of a literal, unless its terms are too common, or whose source it
    is."""
    let = passing.condition("c.key")
    plain = literal.strip()
    yield SqlPart(sql=NAMED.format(passing=let.sql), params=(listed([plain, plain.lower()]), *let.params))
    terms = sorted(literal_terms(literal))
    if terms and all(term in sought.common and sought.common[term].memories for term in terms):
        rarest, *others = sorted(terms, key=lambda term: (sought.common[term].memories, term))
        yield SqlPart(
            sql=WITH_ALL_TERMS.format(passing=let.sql),
            params=(
                *(rarest, listed(others), len(others), EVERYWHERE, EVERYWHERE),
                *(*let.params, verbatim.COMMON),
            ),
        )


def _sourced(literals: Iterable[str], directory: Directory, mask: Mask | None) -> SqlPart:
    """The memories whose source a literal is, unless they are many."""
    found = [directory.of_source(source_hash(one.strip())) for one in literals]
    if mask is not None:
        found = [keys[mask[keys]] for keys in found]
    few = [keys for keys in found if len(keys) <= verbatim.COMMON]
    return SqlPart(sql=GIVEN, params=(sent_keys(np.concatenate((NO_KEYS, *few))),))
