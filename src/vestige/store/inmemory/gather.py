"""Gathering the candidates of a search by looking at every memory for every signal."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan, nan

import numpy as np

from vestige.cognition import verbatim
from vestige.cognition.form import features
from vestige.cognition.rarity import mass
from vestige.cognition.traits import traits_of
from vestige.cognition.verbatim import literal_terms, names
from vestige.errors import InvalidInput
from vestige.models import Access, Record
from vestige.pool import NEARBY, OFFSETS, Pool, Sketch, Traits, Vectors, Worded, tokens_kept
from vestige.store.answers import Scored
from vestige.store.inmemory import lexical, search
from vestige.store.inmemory.state import Held, State
from vestige.store.inmemory.threads import Thread, neighbours, threads
from vestige.store.pool import Probe


@dataclass(frozen=True, slots=True, kw_only=True)
class Arms:
    """The ids each arm finds."""

    worded: frozenset[str]
    near: frozenset[str]
    literal: frozenset[str]


def gather(state: State, probe: Probe, *, access: Access) -> Pool:
    """The union of what the arms find, with every signal of each candidate."""
    passing = search.select_worded(state, probe.where, access)
    lexicon = lexical.lexicon(state, probe.terms, probe.postings)
    near = _cosines(state, probe)
    literals = {name: _held_literals(held, probe.literals) for name, held in state.held.items()}
    arms = Arms(
        worded=_ids(lexical.best([lexicon.scores[held.memory.id] for held in passing], probe.per_arm)),
        near=_ids(_nearest(passing, near, probe)),
        literal=_literal(passing, literals, probe),
    )
    ids = sorted(arms.worded | arms.near | arms.literal)
    scores = [lexicon.scores[name] for name in ids]
    pieces = [near.get(name, Scored(memory_id=name, score=nan)) for name in ids]
    every = threads(state)
    company = _company(state, _nearest(passing, near, replace(probe, per_arm=NEARBY + 1, least_cosine=-1.0)))
    frequencies = {term: _frequency(term, company, lexicon, len(state.held)) for term in lexicon.frequencies}
    dated = _dated(state, probe, lexicon)
    return Pool(
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
            [_covered(lexicon.windows[name], lexicon, frequencies, len(company)) for name in ids]
        ),
        dated=np.array([dated[name].window for name in ids]),
        present=np.array([_present(name, every, probe.names) for name in ids], dtype=np.bool_),
        by_words=np.array([name in arms.worded for name in ids], dtype=np.bool_),
        by_meaning=np.array([name in arms.near for name in ids], dtype=np.bool_),
        by_literal=np.array([name in arms.literal for name in ids], dtype=np.bool_),
        traits=_traits([state.held[name] for name in ids], every),
        sketch=_sketch(state, ids, neighbours(every)) if probe.vector is not None else None,
        frequencies=frequencies,
        memories=len(company),
    )


def _dated(state: State, probe: Probe, lexicon: lexical.Lexicon) -> Mapping[str, Worded]:
    """The BM25 of every memory for the date terms alone."""
    dates = [term for term in probe.terms if term in probe.date_terms and term in lexicon.sought]
    return lexical.lexicon(state, dates, None).scores


def _company(state: State, nearest: Sequence[Scored]) -> list[Held]:
    """In whose company words are counted: the nearest, where there are more than NEARBY, or all."""
    if len(nearest) <= NEARBY:
        return list(state.held.values())
    return [state.held[one.memory_id] for one in nearest[:NEARBY]]


def _frequency(term: str, company: Sequence[Held], lexicon: lexical.Lexicon, memories: int) -> int:
    if len(company) == memories:
        return lexicon.frequencies[term]
    if term not in lexicon.sought:
        return round(lexicon.frequencies[term] * len(company) / memories)
    return sum(lexical.occurrences(term, held) > 0 for held in company)


def _covered(
    held: frozenset[str], lexicon: lexical.Lexicon, frequencies: Mapping[str, int], memories: int
) -> float:
    """The share of the query that a window holds."""
    sought = [term for term, count in lexicon.frequencies.items() if term in lexicon.sought or not count]
    whole = mass(sought, frequencies, memories)
    return mass(held, frequencies, memories) / whole if whole else 0.0


def _present(name: str, every: Sequence[Thread], names: Collection[int]) -> bool:
    """Whether one of these speaks in the memory's thread."""
    return any(
        name in {held.memory.id for held in thread}
        and any(features(held.memory).speaker in names for held in thread)
        for thread in every
    )


def _ids(found: Sequence[Scored | Worded]) -> frozenset[str]:
    return frozenset(one.memory_id for one in found)


def _cosines(state: State, probe: Probe) -> Mapping[str, Scored]:
    """The best piece of every memory that has vectors."""
    if probe.vector is None:
        return {}
    if probe.signature is None:
        raise InvalidInput("A probe with a vector needs the signature of its space.")
    query = search.check_queries(state, probe.vector[np.newaxis], probe.signature)[0]
    return {name: search.closest(held, query) for name, held in state.held.items() if held.pieces}


def _vectors(state: State, probe: Probe, pieces: Sequence[Scored]) -> Vectors:
    """The vectors of these pieces; zeros for a memory that has none."""
    vectors = np.zeros((len(pieces), 0 if probe.vector is None else len(probe.vector)), dtype=np.float32)
    for row, one in zip(vectors, pieces, strict=True):
        if not isnan(one.score):
            held = state.held[one.memory_id].pieces
            row[:] = next(piece.vector for piece in held if (piece.start, piece.end) == (one.start, one.end))
    return vectors


def _nearest(passing: Sequence[Held], near: Mapping[str, Scored], probe: Probe) -> list[Scored]:
    there = [near[held.memory.id] for held in passing if held.memory.id in near]
    return search.best([one for one in there if one.score >= probe.least_cosine], probe.per_arm)


def _literal(passing: Sequence[Held], held_literals: Mapping[str, int], probe: Probe) -> frozenset[str]:
    found: set[str] = set()
    for literal in dict.fromkeys(probe.literals):
        needed = literal_terms(literal)
        worded = [held for held in passing if needed and needed <= held.words.keys()]
        sourced = [held for held in passing if held.memory.source == literal.strip()]
        found |= {held.memory.id for held in passing if names(literal, held.memory.id, None)}
        for several in (worded, sourced):
            if len(several) <= verbatim.COMMON:
                found |= {held.memory.id for held in several if _held_literals(held, [literal])}
    return frozenset(sorted(found, key=lambda name: (-held_literals[name], name))[: probe.per_arm])


def _held_literals(held: Held, literals: Sequence[str]) -> int:
    return verbatim.held(dict.fromkeys(literals), held.memory, held.words.keys())


def _traits(candidates: Sequence[Held], every: Sequence[Thread]) -> Traits:
    numbers = {held.memory.id: number for number, thread in enumerate(every) for held in thread}
    records = [Record(memory=held.memory, strength=held.strength) for held in candidates]
    return traits_of(records, [numbers.get(one.memory.id, -1) for one in records])


def _sketch(
    state: State, ids: Sequence[str], beside: Mapping[str, tuple[str | None, str | None]]
) -> Sketch | None:
    """The tokens of the candidates and their neighbours, one owner after the other."""
    around = [[_at_offset(name, offset, beside) for offset in OFFSETS] for name in ids]
    every = {name: state.held[name].tokens() for row in around for name in row if name is not None}
    tokens = {name: told for name, told in every.items() if told is not None and len(told.asked)}
    owners = list(tokens)
    bits = [told.bits for told in tokens.values()]
    asked = [told.asked for told in tokens.values()]
    if not owners:
        return None
    lengths = tokens_kept(np.array([len(one) for one in asked], dtype=np.int64))
    return Sketch(
        bits=np.concatenate([one[:kept] for one, kept in zip(bits, lengths, strict=True)]),
        asked=np.concatenate([one[:kept] for one, kept in zip(asked, lengths, strict=True)]),
        starts=np.cumsum(lengths) - lengths,
        lengths=lengths,
        around=np.array(
            [[owners.index(name) if name in owners else -1 for name in row] for row in around],
            dtype=np.int64,
        ),
    )


def _at_offset(name: str, offset: int, beside: Mapping[str, tuple[str | None, str | None]]) -> str | None:
    """The memory so many places further in the thread."""
    here: str | None = name
    for _ in range(abs(offset)):
        here = beside.get(here, (None, None))[offset > 0] if here is not None else None
    return here
