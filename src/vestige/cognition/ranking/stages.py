"""The stages of recall over the whole pool: a ranking in, a ranking out, nothing cut off before the end.

Relevance comes first (relevance.py). Every later stage multiplies it by a factor close to 1: a memory that is
well remembered, fits the time asked for or helped before wins among equals, and never hides a better answer.
Each stage records its effect in `steps`, which `explain` shows.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import pairwise
from math import nan
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vestige.cognition.evidence.codebase import codebase_at, codebase_of, files_of
from vestige.cognition.fsrs import strength
from vestige.cognition.text.analyser import overlap, terms
from vestige.cognition.text.form import Form, features
from vestige.cognition.time.calendar import WEEKDAYS
from vestige.core.candidates import CandidatePool, Floats, Integers, Labels, Traits
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import ROOT_SCOPE, SHARED_SCOPE, Memory, MemoryContext, Record, covers, nested
from vestige.core.timezone import local, zone_label

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


IN_TIME = 0.1  # The gain of a memory that happened in the time asked for.
VALID_THEN = 0.2  # The gain of a memory that was valid at the past time asked for; its loss if it was not.
LATEST = 0.1
LATEST_HALF_LIFE_DAYS = 30.0
"""The gain of the newest memory if the query asks for the latest, and its half-life in days. Nowhere else
does age count by itself: fading is part of accessibility."""
FADED_NOTE = 0.2
FADED_PART = 0.02
"""The loss of a fully faded memory: a note, and a part of a conversation or a text. A note drops out of use;
a record of what was said is no worse for being old."""
IN_CONTEXT = 0.1  # The gain of a memory whose context matches the caller's completely.
AT_HOME = 0.05
INHERITED = 0.5
"""The gain of a memory of the current project in a search of everything, and the share of it that a memory
gets which the project inherits: one of an enclosing scope, or about the user."""
OVERTAKEN = 0.999  # The factor of a memory that another candidate superseded: it comes right behind it.
ACTIVATED = 0.05  # The gain of a memory that is fully activated by its links to the best ones.
HELPFUL = 0.03  # The gain of a memory that always helped.
DOUBTS = 2.0  # The number of showings assumed to be unhelpful before there is any evidence.

SECONDS_PER_DAY = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StageInputs:
    """The inputs of the stages beside the pool: per candidate, or for the query as a whole.

    `window` is the time asked for (seconds since 1970), `latest` whether the newest is wanted, `then`
    how well the validity of a candidate fits a past time (-1 to 1; None for a question about now). `context`
    is how well the caller's context fits a candidate's (0 to 1), `replaced_by` the index of the candidate
    that superseded it and `newer` that of a later rival (-1 for none; for a question about the past, of the
    rival that was valid then), `activation` what it receives through links (0 to 1), `lent` the same for
    those that links bring in (0 for the others). `home` is how near its scope is to the current project (0 to
    1).
    """

    now: float
    traits: Traits
    window: tuple[float, float] | None
    latest: bool
    context: Floats
    replaced_by: Integers
    newer: Integers
    activation: Floats
    lent: Floats
    home: Floats
    then: Floats | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Candidates in the order of their ids, with their scores now and after each stage so far."""

    ids: tuple[str, ...]
    scores: Floats
    steps: tuple[tuple[str, Floats], ...] = ()

    def scored(self, stage: str, scores: Floats) -> "Ranking":
        """The same candidates after a stage."""
        return Ranking(ids=self.ids, scores=scores, steps=(*self.steps, (stage, scores)))

    def best(self, limit: int | None = None) -> list[int]:
        """Indices of the best candidates: score descending, then id ascending."""
        order: list[int] = np.argsort(-self.scores, kind="stable")[:limit].tolist()
        return order

    def after(self, stage: str) -> Floats:
        """The scores after a stage; the last ones if it did not run."""
        return next((scores for name, scores in self.steps if name == stage), self.scores)

    def lowered_by(self, stage: str) -> frozenset[str]:
        """The candidates whose score a stage has lowered; none if it did not run."""
        for (_, before), (name, after) in pairwise(self.steps):
            if name == stage:
                return frozenset(self.ids[one] for one in np.flatnonzero(after < before))
        return frozenset()


Stage = Callable[[Ranking, StageInputs], Ranking]


def temporal(ranking: Ranking, given: StageInputs) -> Ranking:
    """Favours memories from the time asked for, those valid then, or the latest, as the query asks."""
    happened = np.where(np.isnan(given.traits.happened), given.traits.created, given.traits.happened)
    gain = np.zeros(len(ranking.ids))
    if given.window is not None:
        begin, end = given.window
        gain += IN_TIME * ((happened >= begin) & (happened < end))
    if given.latest and len(happened):
        older_days = (happened.max() - happened) / SECONDS_PER_DAY
        gain += LATEST * np.exp2(-older_days / LATEST_HALF_LIFE_DAYS)
    if given.then is not None:
        gain += VALID_THEN * given.then
    return ranking.scored("temporal", ranking.scores * (1 + gain))


def accessibility(ranking: Ranking, given: StageInputs) -> Ranking:
    """Lowers fading memories a little, and suppressed ones much."""
    traits = given.traits
    kept = ease(retention(traits, given.now), traits.suppressions, notes=traits.form == Form.NOTE)
    return ranking.scored("accessibility", ranking.scores * kept)


def suppression(ranking: Ranking, given: StageInputs) -> Ranking:
    """The part of accessibility without fading, for when decay is switched off."""
    kept = ease(1.0, given.traits.suppressions, notes=False)
    return ranking.scored("accessibility", ranking.scores * kept)


def ease(retention: "ArrayLike", suppressions: "ArrayLike", *, notes: "ArrayLike") -> Floats:
    """The share of its score that a memory keeps: less for a faded or suppressed one."""
    kept = strength.accessibility(1.0, suppressions)
    weight = np.where(notes, FADED_NOTE, FADED_PART)
    return kept * (1 - weight * (1 - np.asarray(retention, dtype=np.float64)))


def joining(retention: "ArrayLike", suppressions: "ArrayLike", *, notes: "ArrayLike") -> Floats:
    """The share of its activation that a memory keeps that links bring in: all of it, if it is new. The ease
    of the activating memory has already been applied."""
    share = ease(retention, suppressions, notes=notes) / ease(strength.NEW, 0, notes=notes)
    return np.minimum(share, 1.0)


def context(ranking: Ranking, given: StageInputs) -> Ranking:
    """Encoding specificity (Tulving & Thomson 1973): favours memories made in a context like the present
    one."""
    return ranking.scored("context", ranking.scores * (1 + IN_CONTEXT * given.context))


def scope(ranking: Ranking, given: StageInputs) -> Ranking:
    """Favours the current project in a search of everything; no step if nothing is near it."""
    if not given.home.any():
        return ranking
    return ranking.scored("scope", ranking.scores * (1 + AT_HOME * given.home))


def nearness(scopes: Labels, home: str) -> Floats:
    """How near each scope is to the current project: 1 in it and below, INHERITED above it and under
    SHARED_SCOPE, else 0. All 0 outside any project."""
    if home == ROOT_SCOPE:
        return np.zeros(len(scopes))
    known = {one: _nearness(one, home) for one in set(scopes.tolist())}
    return np.array([known[one] for one in scopes.tolist()], dtype=np.float64)


def _nearness(one: str, home: str) -> float:
    if covers(home, one):
        return 1.0
    return INHERITED if covers(one, home) or covers(SHARED_SCOPE, one) else 0.0


def competition(ranking: Ranking, given: StageInputs) -> Ranking:
    """Of two rivals the current one wins (retrieval-induced forgetting, Anderson et al. 1994).

    A memory that another candidate superseded comes behind it; of two about the same thing the later one
    comes first, with the score of the better one.
    """
    scores = ranking.scores.copy()
    rivals = np.flatnonzero(given.newer >= 0)
    oldest_first = rivals[np.argsort(given.traits.created[rivals], kind="stable")]
    for older in oldest_first:
        scores[given.newer[older]] = max(scores[given.newer[older]], scores[older])
    for older in oldest_first[::-1]:
        scores[older] = min(scores[older], OVERTAKEN * scores[given.newer[older]])
    replaced = np.flatnonzero(given.replaced_by >= 0)
    for _ in replaced:  # a successor may have been replaced itself: as often as the longest chain has links
        scores[replaced] = np.minimum(scores[replaced], OVERTAKEN * scores[given.replaced_by[replaced]])
    return ranking.scored("competition", scores)


def spreading(ranking: Ranking, given: StageInputs) -> Ranking:
    """Memories linked to the best candidates are activated with them (Collins & Loftus 1975).

    A memory that links bring in gets the share of the best score that they lend it, if its own score is
    lower. A link lends at most a share of the best score (`spread.DECAY`), so the direct answer stays first,
    and nothing to a superseded memory.
    """
    traits = given.traits
    kept = joining(retention(traits, given.now), traits.suppressions, notes=traits.form == Form.NOTE)
    lent = ranking.scores.max(initial=0.0) * given.lent * kept * (given.replaced_by < 0)
    own = ranking.scores * (1 + ACTIVATED * given.activation)
    return ranking.scored("spreading", np.maximum(own, lent))


def utility(ranking: Ranking, given: StageInputs) -> Ranking:
    """A memory that helped before is more likely to help again."""
    useful = given.traits.useful.astype(np.float64)
    shown = np.maximum(given.traits.retrieved, given.traits.useful)
    return ranking.scored("utility", ranking.scores * (1 + HELPFUL * useful / (shown + DOUBTS)))


STAGES: Mapping[str, Stage] = {
    "temporal": temporal,
    "decay": accessibility,
    "context": context,
    "scope": scope,
    "competition": competition,
    "spreading": spreading,
    "utility": utility,
}
"""The stages in order, by their mechanism."""


def stages_without(off: Collection[str] = ()) -> tuple[Stage, ...]:
    """The stages without those of switched-off mechanisms; suppression counts even without decay."""
    stages = {**STAGES, "decay": suppression} if "decay" in off else STAGES
    return tuple(stage for name, stage in stages.items() if name == "decay" or name not in off)


def rank(ranking: Ranking, given: StageInputs, stages: Iterable[Stage] = tuple(STAGES.values())) -> Ranking:
    """The ranking after all stages, in order."""
    for stage in stages:
        ranking = stage(ranking, given)
    return ranking


def retention(traits: Traits, now: float) -> Floats:
    """The retention of each candidate now, 0 to 1."""
    elapsed_days = np.maximum(now - traits.decay_from, 0) / SECONDS_PER_DAY
    return strength.retention(traits.stability, traits.retrieval, traits.storage, elapsed_days, traits.curve)


# -- Traits of memories


def traits_of(records: Sequence[Record], threads: Sequence[int]) -> Traits:
    """The traits of these records; `threads` are the numbers of their threads, -1 outside any."""
    memories, strengths = [one.memory for one in records], [one.strength for one in records]
    found = [features(memory) for memory in memories]
    return Traits(
        created=np.array([one.created_at.timestamp() for one in memories]),
        happened=np.array([one.occurred_at.timestamp() if one.occurred_at else nan for one in memories]),
        stability=np.array([one.stability for one in strengths]),
        decay_from=np.array([one.decay_from.timestamp() for one in strengths]),
        retrieval=np.array([one.retrieval for one in strengths]),
        storage=np.array([one.storage for one in strengths]),
        curve=np.array([one.curve for one in strengths]),
        suppressions=np.array([one.suppression_count for one in memories], dtype=np.int64),
        retrieved=np.array([one.times_retrieved for one in strengths], dtype=np.int64),
        useful=np.array([one.times_useful for one in strengths], dtype=np.int64),
        thread=np.array(threads, dtype=np.int64),
        form=np.array([one.form for one in found], dtype=np.int64),
        first_person=np.array([one.first_person for one in found], dtype=np.bool_),
        asks=np.array([one.asks for one in found], dtype=np.bool_),
        timed=np.array([one.timed for one in found], dtype=np.bool_),
        speaker=np.array([one.speaker for one in found], dtype=np.int64),
        scope=np.array([one.scope for one in memories], dtype=np.object_),
    )


# -- Rivals: of two states of one attribute the later one counts

LOOKED_AT = 20  # The number of best candidates that are compared.
ALIKE = 0.65  # The cosine from which short notes are about the same thing.
STATEMENT_CHARS = 200
"""A longer text makes several statements, so its similarity says little about any of them."""
NEARLY = 0.8  # The share of the older one's score that the newer one needs: it must answer the question too.

INHIBITION = 0.15  # The share of its stability that a memory loses when one that contradicts it is promoted …
INHIBITED_EVERY = timedelta(days=1)
INHIBITED_AT_MOST = 10
"""… at most this often by one rival, and this often in all."""


def later_rivals(pool: CandidatePool, scores: Floats) -> list[tuple[int, int]]:
    """Pairs of an older and a later candidate that are alike and may be two states of one thing, the best
    later ones first. Whether they compete for one attribute is decided by their texts."""
    short = (pool.ends > 0) & (pool.ends - pool.starts <= STATEMENT_CHARS) & ~np.isnan(pool.cosine)
    # What happened at a time is an event: another day's is another event, not a later state.
    short &= np.isnan(pool.traits.happened)
    notes = np.flatnonzero(short & (pool.traits.form == Form.NOTE) & (pool.traits.thread < 0))
    best = notes[np.argsort(-scores[notes], kind="stable")[:LOOKED_AT]]
    created = pool.traits.created[best]
    vectors = pool.vectors[best]
    rivals = np.einsum("ik,jk->ij", vectors, vectors) >= ALIKE
    rivals &= created[np.newaxis, :] > created[:, np.newaxis]
    rivals &= scores[best][np.newaxis, :] >= NEARLY * scores[best][:, np.newaxis]
    scopes = pool.traits.scope[best].tolist()
    if len(set(scopes)) > 1:
        rivals &= np.array([[nested(one, other) for other in scopes] for one in scopes], dtype=np.bool_)
    return [(int(best[older]), int(best[newer])) for older, newer in zip(*np.nonzero(rivals), strict=True)]


def is_inhibited(times: int, last: datetime | None, now: datetime) -> bool:
    """Whether a memory is inhibited once more by a rival that did so before, `last` at that time."""
    return times < INHIBITED_AT_MOST and (last is None or now - last >= INHIBITED_EVERY)


# -- Reranking: the second judgement counts as much as the relevance found so far

RERANKED = 30  # The number of best candidates that the reranker judges: reading them takes the time.


def reranked(scores: Floats, order: Sequence[int], judged: Floats, weight: float = 1.0) -> Floats:
    """New scores for all candidates, where those at `order` were `judged` (0 to 1, in that order).

    The judged ones are sorted by relevance + `weight` · judgement, both on the scale of the best relevance;
    the others keep their scores.
    """
    result = scores.copy()
    if len(order):
        result[np.asarray(order)] += weight * scores.max() * (judged - judged.min())
    return result


# -- Encoding specificity (Tulving & Thomson 1973): a similar context eases recall

TOPICAL, SESSION, TEMPORAL = 0.4, 0.25, 0.2
"""The weight of each part of a context, among those that are known."""

SAME_CODEBASE, SAME_FILE = 0.6, 0.4  # The match outside the same session, which is 1.

NEAR_DAYS, NEAR = (1.0, 7.0), (0.5, 0.25)
HOURS_APART, SAME_HOURS = (3.0, 6.0), (0.3, 0.15)
SAME_WEEKDAY, SAME_HALF_OF_WEEK = 0.2, 0.1
"""The weights of nearness in time, the time of day and the day of the week."""

HOUR_SECONDS, DAY_HOURS = 3_600.0, 24.0
_WEEKEND = 5
_FIRST_WEEKDAY = 3  # 1 January 1970 was a Thursday


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The caller's context, as far as it is known: topics, session, codebase, file and time."""

    topics: tuple[str, ...] = ()
    session_id: str | None = None
    codebase: str | None = None
    file: str | None = None
    moment: datetime | None = None

    @property
    def is_known(self) -> bool:
        """Whether any part is given."""
        placed = (self.session_id, self.codebase, self.file, self.moment)
        return bool(_keys(self.topics)) or any(part is not None for part in placed)

    def matches(self, memories: Sequence[MemoryContext]) -> Floats:
        """How well each memory's context matches, 0 to 1; 0 if nothing is known of both."""
        placed = np.array([self._place(memory) for memory in memories], dtype=np.float64)
        parts = np.stack([self._topical(memories), placed, self._temporal(memories)])
        weights = np.array([[TOPICAL], [SESSION], [TEMPORAL]]) * ~np.isnan(parts)
        known = weights.sum(axis=0)
        total = (weights * np.nan_to_num(parts)).sum(axis=0)
        shares: Floats = total / np.where(known > 0, known, 1.0)
        return shares

    def _topical(self, memories: Sequence[MemoryContext]) -> Floats:
        """The share of the topics that each memory has among its tags."""
        wanted = _keys(self.topics)
        if not wanted:
            return np.full(len(memories), np.nan)
        tagged = [_keys(memory.tags) for memory in memories]
        return np.array([len(wanted & tags) / len(wanted) if tags else np.nan for tags in tagged])

    def _place(self, memory: MemoryContext) -> float:
        """1 in the same session; else by codebase and file; NaN if nothing can be compared."""
        if self.session_id is not None and memory.session_id == self.session_id:
            return 1.0
        compared = [self.session_id is not None and memory.session_id is not None]
        shared = 0.0
        codebase = codebase_of(memory) or codebase_at(memory.scope)
        if self.codebase is not None and codebase is not None:
            compared.append(True)
            shared += SAME_CODEBASE * (codebase == self.codebase)
        if self.file is not None:
            named = {*files_of(memory), *((memory.source,) if memory.source else ())}
            compared.append(bool(named))
            shared += SAME_FILE * (self.file in named)
        return shared if any(compared) else np.nan

    def _temporal(self, memories: Sequence[MemoryContext]) -> Floats:
        """How near each memory's time is, and how similar its time of day and day of the week."""
        if self.moment is None:
            return np.full(len(memories), np.nan)
        then = np.array([_learned(memory).timestamp() for memory in memories], dtype=np.float64)
        now = self.moment.timestamp()
        hours = np.abs(then - now) % SECONDS_PER_DAY / HOUR_SECONDS
        near = _stepped(np.abs(then - now) / SECONDS_PER_DAY, NEAR_DAYS, NEAR)
        at_hour = _stepped(np.minimum(hours, DAY_HOURS - hours), HOURS_APART, SAME_HOURS)
        theirs, ours = _weekday(then), _weekday(np.array([now]))
        half = np.where((theirs < _WEEKEND) == (ours < _WEEKEND), SAME_HALF_OF_WEEK, 0.0)
        return near + at_hour + np.where(theirs == ours, SAME_WEEKDAY, half)


NOWHERE = Context()  # An empty context.


@dataclass(frozen=True, slots=True, kw_only=True)
class Hints:
    """The context in which a memory was made, as cues for recalling it."""

    temporal: str
    topical: str | None
    session: str | None


def hints(memory: Memory, zone: tzinfo = UTC) -> Hints:
    """The context hints of a memory, with its time in `zone`."""
    at = local(_learned(memory), zone)
    part_of_day = ("night", "morning", "afternoon", "evening")[at.hour // 6]
    codebase = codebase_of(memory)
    places = (
        f"session {memory.session_id}" if memory.session_id else None,
        f"agent {memory.agent_id}" if memory.agent_id else None,
        f"codebase {codebase}" if codebase else None,
        f"scope {memory.scope}" if codebase_at(memory.scope) else None,
    )
    return Hints(
        temporal=f"{WEEKDAYS[at.weekday()]} {part_of_day}, {at:%Y-%m-%d} ({zone_label(at)})",
        topical=", ".join(memory.tags) or None,
        session=", ".join(filter(None, places)) or None,
    )


def _learned(memory: Memory | MemoryContext) -> datetime:
    return memory.occurred_at or memory.created_at


def _keys(labels: Sequence[str]) -> frozenset[str]:
    """Labels for comparison: their words, without letter case."""
    return frozenset(" ".join(terms(label)) for label in labels) - {""}


def _stepped(distance: Floats, within: tuple[float, float], worth: tuple[float, float]) -> Floats:
    """The first value within the first distance, the second within the second, else 0."""
    near, far = (distance <= end for end in within)
    return np.where(near, worth[0], np.where(far, worth[1], 0.0))


def _weekday(seconds: Floats) -> NDArray[np.int64]:
    return ((seconds // SECONDS_PER_DAY).astype(np.int64) + _FIRST_WEEKDAY) % len(WEEKDAYS)


# -- Hits: duplicates are folded into the best one, and the top few are diversified

TOP_FEW = 5
MUCH_ALIKE = 0.8  # The share of common terms (Jaccard) from which two texts are much the same.


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedText:
    """A text for comparison. A turn of a conversation never equals another: "yes" is said often."""

    terms: frozenset[str]
    is_turn: bool


def fold_duplicates(found: Sequence[str | None]) -> list[tuple[int, ...]]:
    """Indices of the remaining hits, best first, each with the later ones of the same fingerprint
    (`cognition.text.analyser.fingerprint`); None equals nothing."""
    groups: list[list[int]] = []
    first: dict[str, int] = {}
    for at, one in enumerate(found):
        leader = None if one is None else first.setdefault(one, len(groups))
        if leader is None or leader == len(groups):
            groups.append([at])
        else:
            groups[leader].append(at)
    return [tuple(group) for group in groups]


def spread_out(found: Sequence[ComparedText], rivals: Collection[frozenset[int]] = frozenset()) -> list[int]:
    """The order of display: among the top few, a hit much like a better one moves behind the rest. Rivals,
    given as pairs of indices, stay side by side, since rivals are alike by definition."""
    kept: list[int] = []
    waiting: list[int] = []
    for at, one in enumerate(found):
        crowded = len(kept) < TOP_FEW and any(
            _alike(one, found[other]) and frozenset((at, other)) not in rivals for other in kept
        )
        (waiting if crowded else kept).append(at)
    return kept[:TOP_FEW] + sorted([*waiting, *kept[TOP_FEW:]])


def _alike(one: ComparedText, other: ComparedText) -> bool:
    if one.is_turn or other.is_turn or not one.terms:
        return False
    return overlap(one.terms, other.terms) >= MUCH_ALIKE
