"""Ranks sessions of coding agents for a query: BM25 over the two best passages, the whole session, its
prompts and its title.

What a session is about is in its talk. Commands, files and tool output are many times as long and name
everything, so a term counts little there. Measured on public transcripts (`benchmarks/sessions`): with them
in the text the mean reciprocal rank falls by a tenth.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vestige.core.lazy_dataclass import dataclass

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

K1, B = 1.2, 0.75
_SAID, _PROMPTED, _DONE = 0, 1, 2
_TALK_FIELDS, _WORK_FIELD, _OUTPUT_FIELD = 1, 2, 3
"""Fields up to the first are talk: prompts (0) and what the model said (1)."""


class TermOccurrences(Protocol):
    """One number for each passage and field in which a term occurs."""

    @property
    def passages(self) -> Integers: ...
    @property
    def sessions(self) -> Integers: ...
    @property
    def fields(self) -> Integers: ...
    @property
    def counts(self) -> Integers: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Lengths in terms by key, of talk, prompts and work; the mean of each; how many there are in all."""

    by_key: Mapping[int, tuple[int, int, int]]
    mean: tuple[float, float, float]
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionWeights:
    """What the parts of a score count, chosen by cross-validation over sessions (`benchmarks/sessions`)."""

    passage: float = 1.0
    second: float = 0.5
    """The share of the second best passage beside the best. One passage that names everything, such as a
    review or a plan, is not what a session is about; what it returns to is."""
    session: float = 1.0
    prompts: float = 0.3
    title: float = 0.5
    """A term in a title that was given. The public transcripts have few and rank alike without: not tuned."""
    work: float = 0.1
    """A term in a command or the name of a file."""
    output: float = 0.01
    """A term that a tool printed and that is said elsewhere: puts such a session at the end of the list. One
    that is said nowhere counts as work."""


SHIPPED = SessionWeights()


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedSession:
    """A session, its score, and its best passages, the best first."""

    session: int
    score: float
    passages: tuple[int, ...]


def rank_sessions(
    terms: Sequence[TermOccurrences],
    passages: Lengths,
    sessions: Lengths,
    *,
    titles: Sequence[Mapping[int, int]] = (),
    shown: int = 3,
    weights: SessionWeights = SHIPPED,
) -> list[RankedSession]:
    """Sessions in which a term of the query occurs, the best first; ties go to the later session. `titles`
    has for each term how often it occurs in the titles of sessions."""
    by_passage: dict[int, float] = {}
    by_session: dict[int, float] = {}
    owner: dict[int, int] = {}
    for term in terms:
        owner.update(zip(term.passages.tolist(), term.sessions.tolist(), strict=True))
        talk = term.fields <= _TALK_FIELDS
        if talk.any():
            _add(by_passage, term.passages[talk], term.counts[talk], passages, _SAID, 1.0)
            _add(by_session, term.sessions[talk], term.counts[talk], sessions, _SAID, weights.session)
            prompt = term.fields == 0
            _add(by_session, term.sessions[prompt], term.counts[prompt], sessions, _PROMPTED, weights.prompts)
        printed = weights.output if talk.any() else weights.work
        for field, weight in ((_WORK_FIELD, weights.work), (_OUTPUT_FIELD, printed)):
            held = term.fields == field
            _add(by_passage, term.passages[held], term.counts[held], passages, _DONE, weight)
            _add(by_session, term.sessions[held], term.counts[held], sessions, _DONE, weight)
    for term, counts in zip(terms, titles, strict=bool(titles)):
        _add_titles(by_session, term, counts, sessions.total, weights.title)
    best: dict[int, list[tuple[float, int]]] = {session: [] for session in by_session}
    for passage, score in by_passage.items():
        best.setdefault(owner[passage], []).append((-score, passage))
    made = []
    for session, found in best.items():
        found.sort()
        score = by_session.get(session, 0.0) + weights.passage * _of_passages(found, weights.second)
        shown_passages = tuple(passage for _, passage in found[:shown])
        made.append(RankedSession(session=session, score=score, passages=shown_passages))
    return sorted(made, key=lambda one: (-one.score, -one.session))


def _of_passages(found: Sequence[tuple[float, int]], share: float) -> float:
    """The score of the best passages; `found` has negative scores, the best first."""
    if not found:  # only the title fits
        return 0.0
    second = -found[1][0] if len(found) > 1 else 0.0
    return (share * second - found[0][0]) / (1 + share)


def _add_titles(
    scores: dict[int, float], term: TermOccurrences, counts: Mapping[int, int], total: int, weight: float
) -> None:
    """Add the worth of a term to each session that has it in its title; titles are all short."""
    if not counts:
        return
    common = len(counts.keys() | set(term.sessions.tolist()))
    idf = float(np.log1p((max(total, common) - common + 0.5) / (common + 0.5)))
    for session, times in counts.items():
        scores[session] = scores.get(session, 0.0) + weight * idf * times * (K1 + 1) / (times + K1)


def _add(
    scores: dict[int, float], keys: Integers, counts: Integers, lengths: Lengths, kind: int, weight: float
) -> None:
    """Add the worth of one term to the score of each key that has it."""
    if not len(keys):
        return
    found, inverse = np.unique(keys, return_inverse=True)
    times = np.bincount(inverse, weights=counts, minlength=len(found))
    long = np.array([lengths.by_key[int(key)][kind] for key in found], dtype=np.float64)
    norm = K1 * (1 - B + B * long / lengths.mean[kind])
    idf = np.log1p((max(lengths.total, len(found)) - len(found) + 0.5) / (len(found) + 0.5))
    worth = weight * idf * times * (K1 + 1) / (times + norm)
    for key, value in zip(found.tolist(), worth.tolist(), strict=True):
        scores[key] = scores.get(key, 0.0) + value
