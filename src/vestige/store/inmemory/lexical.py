"""BM25 at the three levels of the contract, by counting everything."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vestige.cognition import bm25
from vestige.cognition.bm25 import Frequency
from vestige.models import Access, Filter
from vestige.pool import TermStatistics, Worded
from vestige.store.inmemory.search import at_least_none, select_worded
from vestige.store.inmemory.state import Held, State
from vestige.store.inmemory.threads import neighbours, threads

K1 = 1.2
B = 0.75
LEAST_IDF = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """What is scored at one level: how long it is, and how often each term of the query is in it."""

    length: int
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lexicon:
    """The scores of every memory, by id, and in how many memories each term is. `sought` are the terms that
    were looked up, `windows` those of them that each memory's window holds."""

    scores: Mapping[str, Worded]
    frequencies: Mapping[str, int]
    sought: frozenset[str]
    windows: Mapping[str, frozenset[str]]


def lexical(
    state: State, terms: Sequence[str], where: Filter, *, access: Access, limit: int, postings: int | None
) -> list[Worded]:
    """The best of what matches."""
    scores = lexicon(state, terms, postings).scores
    return best([scores[held.memory.id] for held in select_worded(state, where, access)], limit)


def best(scored: Sequence[Worded], limit: int) -> list[Worded]:
    """Those with a term in them or beside them, by window, then own, then id."""
    found = [one for one in scored if one.window > 0]
    return sorted(found, key=lambda one: (-one.window, -one.own, one.memory_id))[: at_least_none(limit)]


def lexicon(state: State, terms: Sequence[str], postings: int | None) -> Lexicon:
    """BM25 as the contract defines it, with the statistics of the whole store."""
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
        name: Worded(
            memory_id=name,
            own=by_own[name],
            window=by_window[name],
            thread=by_thread[first[name]] if name in first else 0.0,
        )
        for name in own
    }
    frequencies = {one.term: _frequency(state, one, one.term in asked) for one in common}
    return Lexicon(
        scores=scores,
        frequencies=frequencies,
        sought=frozenset(asked),
        windows={
            name: frozenset(term for term in asked if one.counts[term]) for name, one in windows.items()
        },
    )


def statistics(state: State, terms: Sequence[str], postings: int | None) -> TermStatistics:
    """How common the terms are that count: those that are looked up, and those that occur nowhere."""
    found = lexicon(state, terms, postings)
    return TermStatistics(
        frequencies={
            term: count for term, count in found.frequencies.items() if term in found.sought or not count
        },
        memories=len(state.held),
        words=sum(sum(held.words.values()) for held in state.held.values()),
    )


def _bm25(documents: Mapping[str, Document], asked: Mapping[str, int]) -> dict[str, float]:
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


def _common(state: State, term: str) -> Frequency:
    """How common a term is; memories are counted once per term that a prefix begins."""
    counts = [count for held in state.held.values() for count in _counts(term, held)]
    return Frequency(term=term, memories=len(counts), occurrences=sum(counts))


def _frequency(state: State, common: Frequency, visited: bool) -> int:
    """In how many memories a term is; of a prefix that was left out only the most it can be is known."""
    if not visited:
        return min(common.memories, len(state.held))
    return sum(occurrences(common.term, held) > 0 for held in state.held.values())


def occurrences(term: str, held: Held) -> int:
    """How often a term, or one that a prefix begins, is in a memory."""
    return sum(_counts(term, held))


def _counts(term: str, held: Held) -> list[int]:
    """How often each term of a memory occurs that this one is, or begins."""
    if not bm25.is_prefix(term):
        return [held.words[term]] if term in held.words else []
    return [count for word, count in held.words.items() if word.startswith(term[:-1])]


def _document(held: Held, asked: Mapping[str, int]) -> Document:
    return Document(length=sum(held.words.values()), counts={term: occurrences(term, held) for term in asked})


def _joined(parts: Sequence[Document]) -> Document:
    counts: Counter[str] = Counter()
    for one in parts:
        counts.update(one.counts)
    return Document(length=sum(one.length for one in parts), counts=counts)
