"""The lexical arm: how common terms are, and their postings, as parts of a search's statements."""

from collections.abc import Iterable, Sequence

import numpy as np

from vestige.cognition.bm25 import Frequency, Integers, is_prefix
from vestige.store.postgres.arrays import integers
from vestige.store.postgres.parts import Answer, Part
from vestige.store.sql.columns import Listed, listed
from vestige.store.sql.scoring import LAST_CHARACTER, Occurrences

WORD, BEGINNING = "word", "beginning"

# For each term, in order: in how many memories it is and how often. A prefix adds up what it begins.
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
# A key and a count share a number: to put arrays together and to send them is half of the work. A count is an
# INTEGER, so it fits; a key that does not is refused by the server.
COUNT_BITS = 31
POSTINGS = (
    f"SELECT '{WORD}', w.at, p.found, NULL::bytea, NULL, NULL"
    " FROM unnest(?::text[]) WITH ORDINALITY w(term, at) CROSS JOIN LATERAL"
    f" (SELECT array_send(array_agg(key * {1 << COUNT_BITS} + count)) AS found FROM postings"
    " WHERE term = w.term) p"
)
BEGUN_POSTINGS = (
    f"SELECT '{BEGINNING}', w.at, p.found, NULL::bytea, NULL, NULL"
    " FROM unnest(?::text[], ?::text[]) WITH ORDINALITY w(first, last, at) CROSS JOIN LATERAL"
    f" (SELECT array_send(array_agg(key * {1 << COUNT_BITS} + often)) AS found FROM"
    " (SELECT key, sum(count)::integer AS often FROM postings WHERE term >= w.first AND term < w.last"
    " GROUP BY key) g) p"
)


def counting(terms: Sequence[str]) -> tuple[Part, Part]:
    """How common the terms are, and the prefixes: for `frequencies`."""
    plain, begun = _parted(terms)
    prefixes = Part(sql=BEGUN, params=_ranges(begun)) if begun else Part(sql="SELECT NULL::bytea")
    return Part(sql=FREQUENCIES, params=(listed(plain),)), prefixes


def frequencies(terms: Sequence[str], sent: bytes | None, begun: bytes | None) -> dict[str, Frequency]:
    """What `counting` answers."""
    found = np.concatenate((integers(sent), integers(begun))).reshape(-1, 2).tolist()
    plain, prefixes = _parted(terms)
    return {
        term: Frequency(term=term, memories=memories, occurrences=occurrences)
        for term, (memories, occurrences) in zip((*plain, *prefixes), found, strict=True)
    }


def postings(terms: Sequence[str]) -> Iterable[Part]:
    """Who has the terms: for `occurrences`."""
    plain, begun = _parted(terms)
    if plain:
        yield Part(sql=POSTINGS, params=(listed(plain),))
    if begun:
        yield Part(sql=BEGUN_POSTINGS, params=_ranges(begun))


def occurrences(terms: Sequence[str], answers: Iterable[Answer]) -> dict[str, Occurrences]:
    """What `postings` answers, in the order of the terms."""
    plain, begun = _parted(terms)
    asked = {WORD: plain, BEGINNING: begun}
    found = {
        asked[one.kind][one.number - 1]: _postings(integers(one.keys)) for one in answers if one.kind in asked
    }
    return {term: found[term] for term in terms}


def _postings(found: Integers) -> Occurrences:
    return found >> COUNT_BITS, found & (1 << COUNT_BITS) - 1


def _parted(terms: Iterable[str]) -> tuple[list[str], list[str]]:
    """Those that are whole, and those that only begin a term."""
    every = list(terms)
    return [one for one in every if not is_prefix(one)], [one for one in every if is_prefix(one)]


def _ranges(prefixes: Iterable[str]) -> tuple[Listed, Listed]:
    firsts = [one[:-1] for one in prefixes]
    return listed(firsts), listed(f"{one}{LAST_CHARACTER}" for one in firsts)
