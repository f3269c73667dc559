"""Gathers the candidates of a search by brute force: every memory, every signal."""

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from math import isnan, nan

import numpy as np
from numpy.typing import NDArray

from vestige.cognition.query import literals as query_literals
from vestige.cognition.query.literals import count_held, literal_terms, names
from vestige.cognition.ranking import bm25
from vestige.cognition.ranking.bm25 import Frequency, mass
from vestige.cognition.ranking.stages import traits_of
from vestige.cognition.text.form import Form, features
from vestige.core.candidates import (
    NEARBY,
    OFFSETS,
    CandidatePool,
    LexicalScores,
    Sketch,
    TermStatistics,
    Vectors,
    Voices,
    tokens_kept,
)
from vestige.core.errors import InvalidInput
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import EVERYTHING, Access, Filter, non_negative
from vestige.embed.protocol import Signature
from vestige.store.contract.answers import Scored
from vestige.store.contract.search import POSTINGS_BUDGET, Probe, Reworded
from vestige.store.inmemory import search
from vestige.store.inmemory.profiles import require_signature
from vestige.store.inmemory.search import Neighbours, Thread, closest, neighbours, threads
from vestige.store.inmemory.state import MemoryEntry, PublishedState, StoreState

# -- BM25 at the three levels of the contract, by counting everything

K1 = 1.2
B = 0.75
LEAST_IDF = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredDocument:
    """A unit that BM25 scores at one level: its length, and the occurrences of each query term in it."""

    length: int
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lexicon:
    """The scores of every memory, by id, and the number of memories that have each term. `sought` are the
    terms that were looked up, `windows` those of them in the window of each memory."""

    scores: Mapping[str, LexicalScores]
    frequencies: Mapping[str, int]
    sought: frozenset[str]
    windows: Mapping[str, frozenset[str]]

    def counted(self) -> list[str]:
        """The terms that count: those that were looked up, and those that occur nowhere."""
        return [term for term, count in self.frequencies.items() if term in self.sought or not count]


def best(scored: Sequence[LexicalScores], limit: int) -> list[LexicalScores]:
    """The memories with a term in or beside them, by window, then own, then id."""
    found = [one for one in scored if one.window > 0]
    return sorted(found, key=lambda one: (-one.window, -one.own, one.memory_id))[: non_negative(limit)]


def lexicon_of(state: StoreState, terms: Sequence[str], postings: int | None) -> Lexicon:
    """BM25 as the contract defines it, with the statistics of all that is held."""
    common = [_common(state, term) for term in bm25.considered(terms)]
    affordable = frozenset(bm25.affordable(common, postings))
    asked = Counter(term for term in terms if term in affordable)
    own = {name: _document(held, asked) for name, held in state.held.items()}
    every = threads(state)
    beside = neighbours(every)
    windows = {
        name: _joined([one, *(own[other] for other in beside.get(name, ()) if other is not None)])
        for name, one in own.items()
    }
    whole = {
        thread[0].memory.id: _joined([own[held.memory.id] for held in thread]) for thread in every
    }  # a thread goes by its first member
    first = {held.memory.id: thread[0].memory.id for thread in every for held in thread}
    by_own, by_window, by_thread = _bm25(own, asked), _bm25(windows, asked), _bm25(whole, asked)
    scores = {
        name: LexicalScores(
            memory_id=name,
            own=by_own[name],
            window=by_window[name],
            thread=by_thread[first[name]] if name in first else 0.0,
        )
        for name in own
    }
    return Lexicon(
        scores=scores,
        frequencies={one.term: _document_frequency(state, one, one.term in asked) for one in common},
        sought=frozenset(asked),
        windows={
            name: frozenset(term for term in asked if one.counts[term]) for name, one in windows.items()
        },
    )


def _bm25(documents: Mapping[str, ScoredDocument], asked: Mapping[str, int]) -> dict[str, float]:
    scores = dict.fromkeys(documents, 0.0)
    total = sum(one.length for one in documents.values())
    for term, times in asked.items():
        found = sum(one.counts[term] > 0 for one in documents.values())
        idf = max(LEAST_IDF, math.log((len(documents) - found + 0.5) / (found + 0.5)))
        for name, one in documents.items():
            tf = one.counts[term]
            if tf:
                norm = K1 * (1 - B + B * one.length / (total / len(documents)))
                scores[name] += times * idf * tf * (K1 + 1) / (tf + norm)
    return scores


def _common(state: StoreState, term: str) -> Frequency:
    """The frequency of a term; memories are counted once per term that a prefix matches."""
    counts = [count for held in state.held.values() for count in _counts(term, held)]
    return Frequency(term=term, memories=len(counts), occurrences=sum(counts))


def _document_frequency(state: StoreState, common: Frequency, visited: bool) -> int:
    """The number of memories with a term; of a prefix that was left out, its upper bound."""
    if not visited:
        return min(common.memories, len(state.held))
    return sum(occurrences(common.term, held) > 0 for held in state.held.values())


def occurrences(term: str, held: MemoryEntry) -> int:
    """The occurrences of a term, or of the terms of a prefix, in a memory."""
    return sum(_counts(term, held))


def _counts(term: str, held: MemoryEntry) -> list[int]:
    """The occurrences of each term of a memory that this one is, or is a prefix of."""
    if not bm25.is_prefix(term):
        return [held.words[term]] if term in held.words else []
    return [count for word, count in held.words.items() if word.startswith(term[:-1])]


def _document(held: MemoryEntry, asked: Mapping[str, int]) -> ScoredDocument:
    counts = {term: occurrences(term, held) for term in asked}
    return ScoredDocument(length=sum(held.words.values()), counts=counts)


def _joined(parts: Sequence[ScoredDocument]) -> ScoredDocument:
    counts: Counter[str] = Counter()
    for one in parts:
        counts.update(one.counts)
    return ScoredDocument(length=sum(one.length for one in parts), counts=counts)


def gather(state: StoreState, probe: Probe, *, access: Access) -> CandidatePool:
    """The union of what the arms find, with every signal of each candidate."""
    state = state.seen_by(access)
    passing = search.select_worded(state, probe.where, access)
    lexicon = lexicon_of(state, probe.terms, probe.postings)
    near = _cosines(state, probe)
    literals = {name: _held_literals(held, probe.literals) for name, held in state.held.items()}
    by_words = _ids(best([lexicon.scores[held.memory.id] for held in passing], probe.per_arm))
    by_meaning = _ids(_nearest(passing, near, probe))
    by_literal = _literal(passing, literals, probe)
    ids = sorted(by_words | by_meaning | by_literal)
    scores = [lexicon.scores[name] for name in ids]
    pieces = [near.get(name, Scored(memory_id=name, score=nan)) for name in ids]
    every = threads(state)
    numbers = {held.memory.id: number for number, thread in enumerate(every) for held in thread}
    nearby = _neighbours(
        state, _nearest(passing, near, replace(probe, per_arm=NEARBY + 1, least_cosine=-1.0))
    )
    frequencies = {term: _frequency(term, nearby, lexicon, len(state.held)) for term in lexicon.frequencies}
    dates = [term for term in probe.terms if term in probe.date_terms and term in lexicon.sought]
    dated = lexicon_of(state, dates, None).scores
    return CandidatePool(
        ids=tuple(ids),
        own=np.array([one.own for one in scores]),
        window=np.array([one.window for one in scores]),
        thread=np.array([one.thread for one in scores]),
        cosine=np.array([one.score for one in pieces]),
        starts=np.array([one.start for one in pieces], dtype=np.int64),
        ends=np.array([one.end for one in pieces], dtype=np.int64),
        vectors=_vectors(state, probe, pieces),
        literals=np.array([literals[name] for name in ids], dtype=np.int64),
        covered=np.array(
            [_covered(lexicon.windows[name], lexicon, frequencies, len(nearby)) for name in ids]
        ),
        dated=np.array([dated[name].window for name in ids]),
        present=np.array([_present(name, every, probe.names) for name in ids], dtype=np.bool_),
        by_words=np.array([name in by_words for name in ids], dtype=np.bool_),
        by_meaning=np.array([name in by_meaning for name in ids], dtype=np.bool_),
        by_literal=np.array([name in by_literal for name in ids], dtype=np.bool_),
        traits=traits_of(
            [state.held[name].record() for name in ids], [numbers.get(name, -1) for name in ids]
        ),
        sketch=_sketch(state, ids, neighbours(every)) if probe.vector is not None else None,
        frequencies=frequencies,
        memories=len(nearby),
    )


def _neighbours(state: StoreState, nearest: Sequence[Scored]) -> list[MemoryEntry]:
    """The neighbourhood in which words are counted: the nearest if there are more than NEARBY, or all."""
    if len(nearest) <= NEARBY:
        return list(state.held.values())
    return [state.held[one.memory_id] for one in nearest[:NEARBY]]


def _frequency(term: str, nearby: Sequence[MemoryEntry], lexicon: Lexicon, memories: int) -> int:
    if len(nearby) == memories:
        return lexicon.frequencies[term]
    if term not in lexicon.sought:
        return round(lexicon.frequencies[term] * len(nearby) / memories)
    return sum(occurrences(term, held) > 0 for held in nearby)


def _covered(held: frozenset[str], lexicon: Lexicon, frequencies: Mapping[str, int], memories: int) -> float:
    """The share of the query that a window covers."""
    whole = mass(lexicon.counted(), frequencies, memories)
    return mass(held, frequencies, memories) / whole if whole else 0.0


def _present(name: str, every: Sequence[Thread], names: Collection[int]) -> bool:
    """Whether one of these speaks in the memory's thread."""
    return any(
        name in {held.memory.id for held in thread}
        and any(features(held.memory).speaker in names for held in thread)
        for thread in every
    )


def _ids(found: Sequence[Scored | LexicalScores]) -> frozenset[str]:
    return frozenset(one.memory_id for one in found)


def _cosines(state: StoreState, probe: Probe) -> Mapping[str, Scored]:
    """The best piece of every memory that has vectors."""
    if probe.vector is None:
        return {}
    if probe.signature is None:
        raise InvalidInput("A probe with a vector needs the signature of its space.")
    query = search.check_queries(state, probe.vector[np.newaxis], probe.signature)[0]
    return {name: closest(held, query) for name, held in state.held.items() if held.pieces}


def _vectors(state: StoreState, probe: Probe, pieces: Sequence[Scored]) -> Vectors:
    """The vectors of these pieces; zeros for a memory that has none."""
    vectors = np.zeros((len(pieces), 0 if probe.vector is None else len(probe.vector)), dtype=np.float32)
    for row, one in zip(vectors, pieces, strict=True):
        if not isnan(one.score):
            held = state.held[one.memory_id].pieces
            row[:] = next(piece.vector for piece in held if (piece.start, piece.end) == (one.start, one.end))
    return vectors


def _nearest(passing: Sequence[MemoryEntry], near: Mapping[str, Scored], probe: Probe) -> list[Scored]:
    there = [near[held.memory.id] for held in passing if held.memory.id in near]
    return search.best([one for one in there if one.score >= probe.least_cosine], probe.per_arm)


def _literal(
    passing: Sequence[MemoryEntry], held_literals: Mapping[str, int], probe: Probe
) -> frozenset[str]:
    found: set[str] = set()
    for literal in dict.fromkeys(probe.literals):
        needed = literal_terms(literal)
        worded = [held for held in passing if needed and needed <= held.words.keys()]
        sourced = [held for held in passing if held.memory.source == literal.strip()]
        found |= {held.memory.id for held in passing if names(literal, held.memory.id, None)}
        for several in (worded, sourced):
            if len(several) <= query_literals.COMMON:
                found |= {held.memory.id for held in several if _held_literals(held, [literal])}
    return frozenset(sorted(found, key=lambda name: (-held_literals[name], name))[: probe.per_arm])


def _held_literals(held: MemoryEntry, literals: Sequence[str]) -> int:
    return count_held(dict.fromkeys(literals), held.memory, held.words.keys())


def _sketch(state: StoreState, ids: Sequence[str], beside: Neighbours) -> Sketch | None:
    """The tokens of the candidates and their neighbours, one owner after the other."""
    around = [[_at_offset(name, offset, beside) for offset in OFFSETS] for name in ids]
    every = {name: state.held[name].tokens() for row in around for name in row if name is not None}
    tokens = {name: found for name, found in every.items() if found is not None and len(found.asked)}
    if not tokens:
        return None
    lengths = tokens_kept(np.array([len(one.asked) for one in tokens.values()], dtype=np.int64))
    kept = list(zip(tokens.values(), lengths, strict=True))
    owners: dict[str | None, int] = {name: at for at, name in enumerate(tokens)}
    return Sketch(
        bits=np.concatenate([one.bits[:length] for one, length in kept]),
        asked=np.concatenate([one.asked[:length] for one, length in kept]),
        starts=np.cumsum(lengths) - lengths,
        lengths=lengths,
        around=np.array([[owners.get(name, -1) for name in row] for row in around], dtype=np.int64),
    )


def _at_offset(here: str | None, offset: int, beside: Neighbours) -> str | None:
    """The memory at an offset in the thread."""
    for _ in range(abs(offset)):
        here = beside.get(here, (None, None))[offset > 0] if here is not None else None
    return here


class InMemorySearch(PublishedState):
    """Finds candidates. `MemoryStore` has the contract."""

    @property
    def software(self) -> dict[str, str]:
        return {}

    def reworded(self, terms: Sequence[str], where: Filter, *, access: Access, limit: int) -> Reworded:
        state = self._state().seen_by(access)
        found = lexicon_of(state, terms, POSTINGS_BUDGET)
        statistics = TermStatistics(
            frequencies={term: found.frequencies[term] for term in found.counted()},
            memories=len(state.held),
            words=sum(sum(held.words.values()) for held in state.held.values()),
        )
        records = tuple(search.reworded(state, where, access, limit))
        return Reworded(records=records, statistics=statistics)

    def lexical(
        self,
        terms: Sequence[str],
        where: Filter,
        *,
        access: Access,
        limit: int,
        postings: int | None = POSTINGS_BUDGET,
    ) -> list[LexicalScores]:
        state = self._state().seen_by(access)
        scores = lexicon_of(state, terms, postings).scores
        return best([scores[held.memory.id] for held in search.select_worded(state, where, access)], limit)

    def nearest(
        self, vectors: NDArray[np.float32], signature: Signature, where: Filter, *, access: Access, limit: int
    ) -> list[list[Scored]]:
        state = self._state()
        queries = search.check_queries(state, vectors, signature)
        embedded = [held for held in search.select_worded(state, where, access) if held.pieces]
        return [search.best((closest(held, query) for held in embedded), limit) for query in queries]

    def vectors(
        self, memory_ids: Sequence[str], signature: Signature, *, access: Access
    ) -> dict[str, NDArray[np.float32]]:
        state = self._state()
        require_signature(state, signature)
        found = (state.accessible(memory_id, access) for memory_id in memory_ids)
        return {
            held.memory.id: np.array([piece.vector for piece in held.pieces])
            for held in found
            if held is not None and held.pieces
        }

    def voices(self, names: Collection[int], *, access: Access) -> Voices:
        found = [features(held.memory) for held in self._state().within(access)]
        if access != EVERYTHING:
            return Voices(speakers=frozenset(), notes=True)
        talking = {one.speaker for one in found if one.form is not Form.NOTE}
        return Voices(speakers=frozenset(names) & talking, notes=any(one.form is Form.NOTE for one in found))

    def gather(self, probe: Probe, *, access: Access) -> CandidatePool:
        non_negative(probe.per_arm)
        return gather(self._state(), probe, access=access)
