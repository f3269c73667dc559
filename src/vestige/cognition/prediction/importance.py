"""The importance of a new text, by four signals known when it arrives.

Novelty, arousal, reward and attention are what neuromodulators signal to the hippocampus at encoding:
dopamine for novelty (Lisman & Grace 2005) and reward (Schultz 1998), noradrenaline for arousal (McGaugh
2004), acetylcholine for attention (Hasselmo 2006). Each is 0.05 to 1, and 0.5 if nothing is known.
"""

import enum
from collections.abc import Iterable, Sequence, Set
from datetime import datetime, timedelta

from vestige.cognition.english.emotion import Affect, flashbulb_factor, is_flashbulb
from vestige.cognition.fsrs.strength import DEMOTE_STEP
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Strength

WEIGHTS = {"novelty": 0.25, "arousal": 0.30, "reward": 0.25, "attention": 0.20}
LEAST = 0.05
UNKNOWN = 0.5

IMPORTANT_FROM = 0.5  # The importance above which a memory is encoded more strongly.
BOOST_SPAN = 0.6  # The encoding boost ranges from 0.7 to 1.3.

HARM_WEIGHT = 2.0  # A vote against a memory counts more than one for it: people correct what hurt.
IDLE_WEIGHT = 0.1  # Being shown without a vote counts a little against it, since few people vote.

ASKED_PULL = 0.7  # The weight of one recent question that the text answers word for word.
ATTENTION_HALF_LIFE = timedelta(days=1)

Queries = Sequence[tuple[frozenset[str], datetime]]  # Recent questions: the terms of each, and its time.


class ConsolidationPriority(enum.StrEnum):
    """How soon a memory should be consolidated."""

    CRITICAL = "Critical"
    HIGH = "High"
    NORMAL = "Normal"
    LOW = "Low"


@dataclass(frozen=True, slots=True, kw_only=True)
class Channels:
    """The four signals, each 0.05 to 1."""

    novelty: float
    arousal: float
    reward: float
    attention: float

    def values(self) -> dict[str, float]:
        return {name: getattr(self, name) for name in WEIGHTS}

    @property
    def composite(self) -> float:
        """Their weighted sum."""
        return sum(WEIGHTS[name] * value for name, value in self.values().items())

    @property
    def dominant(self) -> str:
        """The channel that adds most to the sum."""
        values = self.values()
        return max(values, key=lambda name: WEIGHTS[name] * values[name])


@dataclass(frozen=True, slots=True, kw_only=True)
class NearbyOutcome:
    """The outcome of a memory near the text: how near it is, how often it proved good or bad, and how often
    it was shown without a vote."""

    memory_id: str
    similarity: float
    good: float
    bad: float
    idle: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The importance of a text and its inputs: its emotion, the similarity of the nearest known memory (None:
    not computed), the outcomes of its neighbours, the number of recent questions, and how many of their terms
    it has."""

    channels: Channels
    affect: Affect
    nearest: float | None = None
    outcomes: tuple[NearbyOutcome, ...] = ()
    questions: int = 0
    attended: int = 0

    @property
    def flashbulb(self) -> bool:
        """Whether it is both new and arousing."""
        return is_flashbulb(self.channels.novelty, self.channels.arousal)

    def gain(self, *, importance: bool = True, emotion: bool = True) -> float:
        """The share by which the stability grows at encoding, with these mechanisms active; at most 0.69."""
        composite = self.channels.composite
        boost = encoding_boost(composite) if importance and composite > IMPORTANT_FROM else 1.0
        glow = flashbulb_factor(self.channels.arousal) if emotion and self.flashbulb else 1.0
        return boost * glow - 1.0


def judge(
    affect: Affect,
    terms: Set[str],
    *,
    nearest: float | None,
    outcomes: Sequence[NearbyOutcome],
    queries: Queries,
    now: datetime,
) -> Judgement:
    """Judge a text by its emotion, its terms, and what is known. Terms matter only if there are questions."""
    asked = frozenset().union(*(wanted for wanted, _ in queries))
    channels = Channels(
        novelty=novelty(nearest),
        arousal=affect.arousal,
        reward=reward(outcomes),
        attention=attention(terms, queries, now),
    )
    return Judgement(
        channels=channels,
        affect=affect,
        nearest=nearest,
        outcomes=tuple(outcomes),
        questions=len(queries),
        attended=len(asked & terms),
    )


def novelty(nearest: float | None) -> float:
    """The novelty of a text, from the similarity of the nearest known memory (None: not computed)."""
    return UNKNOWN if nearest is None else _bounded(1.0 - nearest)


def outcome(memory_id: str, similarity: float, strength: Strength) -> NearbyOutcome:
    """The outcome of a memory, from its strength. Reviews, promotions and repetitions count for it. A lapse
    counts against it, and so does a level below full, which is a demotion that was never reversed."""
    bad = max(float(strength.lapses), (1.0 - strength.retrieval) / DEMOTE_STEP)
    return NearbyOutcome(
        memory_id=memory_id,
        similarity=similarity,
        good=strength.times_useful + max(0.0, strength.reps - bad),
        bad=bad,
        idle=float(max(0, strength.times_retrieved - strength.times_useful)),
    )


def reward(outcomes: Iterable[NearbyOutcome]) -> float:
    """How well the nearest memories did, weighted by nearness; 0.5 if nothing is known."""
    good = against = 0.0
    for one in outcomes:
        good += one.similarity * one.good
        against += one.similarity * (HARM_WEIGHT * one.bad + IDLE_WEIGHT * one.idle)
    return _bounded((UNKNOWN + good) / (1.0 + good + against))


def attention(terms: Set[str], queries: Queries, now: datetime) -> float:
    """How far a text is about recent questions; 0.5 without any.

    A question counts for the text by the share of its terms that the text has, and against it by the rest,
    weighted by recency. Votes for it combine like independent chances: one question among many about
    something else is enough.
    """
    missed, elsewhere = 1.0, 0.0
    for wanted, at in queries:
        if wanted:
            fresh = 0.5 ** (max(timedelta(0), now - at) / ATTENTION_HALF_LIFE)
            match = len(wanted & terms) / len(wanted)
            missed *= 1.0 - ASKED_PULL * fresh * match
            elsewhere += fresh * (1.0 - match)
    return _bounded(0.5 + 0.5 * (1.0 - missed) - 0.5 * missed * elsewhere / (1.0 + elsewhere))


def encoding_boost(composite: float) -> float:
    """The encoding boost for this importance; 1 is neutral."""
    return 1.0 + (composite - 0.5) * BOOST_SPAN


def priority(composite: float) -> ConsolidationPriority:
    if composite > 0.8:
        return ConsolidationPriority.CRITICAL
    if composite > 0.6:
        return ConsolidationPriority.HIGH
    return ConsolidationPriority.NORMAL if composite > 0.4 else ConsolidationPriority.LOW


def seen_share(terms: Set[str], known: Set[str]) -> float:
    """The share of a text's terms that a known one has: the similarity without a model."""
    return len(terms & known) / len(terms) if terms else 0.0


def _bounded(value: float) -> float:
    return min(1.0, max(LEAST, value))
