"""Insights of a dream: texts built from memories that belong together, with the ids of those memories.

Nothing is made up: an insight names words that its sources share, their dates, or what two of them differ in.
Memories that share no word give no insight.
"""

import enum
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from hashlib import blake2b
from itertools import combinations

from vestige.cognition.evidence.trust import origin
from vestige.cognition.gate.conflict import StatementConflict
from vestige.cognition.gate.relation import stated_at
from vestige.cognition.graph.dreams.replay import Pair, pair
from vestige.cognition.text.analyser import fingerprint, overlap, query_words, text_hash
from vestige.cognition.text.form import Form, features
from vestige.cognition.text.vocabulary import Vocabulary, is_rare, opening
from vestige.core.events import preview
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Memory

MOST_INSIGHTS = 10  # The limit for one dream.
LEAST_NOVELTY = 0.3
MOST_CONFIDENCE = 0.95
TREND_DAYS = 30
"""A topic that recurs over more days than this is a trend."""
SEVERAL = 3  # The number of memories, and of days, that make a pattern.
COMMON_SHARE = 2 / 3  # The share of the sources that must contain a word for it to be their topic.
LEAST_WORDS, TOPIC_WORDS = 2, 3
"""The number of common words that name a topic, and how many of them are named."""
QUOTED = 3  # The number of sources that are quoted; the others are only cited.
QUOTE_CHARS = 80
ANSWERED = 0.6
"""The similarity from which a statement may answer a question."""
SAME_SOURCES = 0.6  # The share of common sources from which an insight of the same kind says nothing new.


class InsightKind(enum.StrEnum):
    CONTRADICTION = "Contradiction"
    HIDDEN_CONNECTION = "HiddenConnection"
    KNOWLEDGE_GAP = "KnowledgeGap"
    RECURRING_PATTERN = "RecurringPattern"
    SYNTHESIS = "Synthesis"
    TEMPORAL_TREND = "TemporalTrend"


@dataclass(frozen=True, slots=True, kw_only=True)
class Insight:
    """An observation, its source memories, its confidence and its novelty."""

    kind: InsightKind
    text: str
    sources: tuple[str, ...]
    confidence: float
    novelty: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DreamMaterial:
    """The input of a dream: memories by id, the replayed ones, groups in which every two are alike, the
    similarity of pairs, the pairs that were linked before, the contradictions (newer memory first), and the
    vocabulary of all."""

    memories: Mapping[str, Memory]
    replayed: Sequence[str]
    groups: Sequence[Sequence[str]]
    near: Mapping[Pair, float]
    linked: AbstractSet[Pair]
    conflicts: Mapping[tuple[str, str], StatementConflict]
    vocabulary: Vocabulary


def draw(material: DreamMaterial) -> list[Insight]:
    """The insights of a dream, best first."""
    found = [*_contradictions(material), *_of_groups(material), *_gaps(material)]
    new = [insight for insight in found if insight.novelty >= LEAST_NOVELTY]
    return sorted(new, key=lambda one: (-one.confidence * one.novelty, one.sources))


def fresh(found: Sequence[Insight], known: Sequence[tuple[str, AbstractSet[str]]]) -> list[Insight]:
    """The insights that say something new compared with the known ones, given as (kind, sources), and with
    each other."""
    seen = list(known)
    kept: list[Insight] = []
    for insight in found:
        sources = frozenset(insight.sources)
        if len(kept) == MOST_INSIGHTS:
            break
        if not any(
            kind == insight.kind and overlap(sources, frozenset(other)) >= SAME_SOURCES
            for kind, other in seen
        ):
            kept.append(insight)
            seen.append((insight.kind, sources))
    return kept


def digest(insight: Insight, memories: Mapping[str, Memory]) -> str:
    """An id for an insight: equal for the same kind of insight into the same texts."""
    texts = (f"{name} {text_hash(memories[name])}" for name in sorted(insight.sources))
    return blake2b("\n".join((insight.kind, *texts)).encode(), digest_size=16).hexdigest()


def _contradictions(material: DreamMaterial) -> Iterator[Insight]:
    for (newer, older), conflict in material.conflicts.items():
        one, other = material.memories[newer], material.memories[older]
        marked = pair(newer, older) in material.linked
        yield Insight(
            kind=InsightKind.CONTRADICTION,
            text=f"{_cited(other)} and {_cited(one)} cannot both hold: {conflict.detail}.",
            sources=(newer, older),
            confidence=_bounded(0.5 + 0.5 * material.near.get(pair(newer, older), 0.5)),
            novelty=0.5 if marked else 1.0,
        )


def _of_groups(material: DreamMaterial) -> Iterator[Insight]:
    for group in material.groups:
        members = sorted(
            (material.memories[name] for name in group), key=lambda one: (stated_at(one), one.id)
        )
        # An insight is read in one scope, so its sources all belong to it.
        for scope in sorted({one.scope for one in members}):
            distinct: dict[str, Memory] = {}  # repeating the same text makes no pattern
            for one in members:
                if one.scope == scope:
                    distinct.setdefault(fingerprint(one.content), one)
            kin = list(distinct.values())
            insight = _of_group(kin, members, material) if len(kin) > 1 else None
            if insight is not None:
                yield insight


def _of_group(members: Sequence[Memory], alike: Sequence[Memory], material: DreamMaterial) -> Insight | None:
    """The insights into memories of one scope that are alike."""
    if len(members) < SEVERAL and not _unrelated(*members):
        return None
    pairs = [(one.id, other.id) for one, other in combinations(members, 2)]
    if any(both in material.conflicts or both[::-1] in material.conflicts for both in pairs):
        return None
    topic = common_words(members, alike, material.vocabulary)
    if not topic:
        return None
    kind, text = _said(members, _listed(topic))
    return Insight(
        kind=kind,
        text=text,
        sources=tuple(one.id for one in members),
        confidence=_bounded(0.6 * _mean_similarity(members, material) + 0.4 * min(len(members) / 5, 1.0)),
        novelty=_novelty(members, material),
    )


def _said(members: Sequence[Memory], topic: str) -> tuple[InsightKind, str]:
    """The insights into memories about one topic, oldest first."""
    first, last = members[0], members[-1]
    span = f"from {stated_at(first):%Y-%m-%d} to {stated_at(last):%Y-%m-%d}"
    if len(members) < SEVERAL:
        return (
            InsightKind.HIDDEN_CONNECTION,
            f"{_cited(first)} and {_cited(last)} come from different places and both tell of {topic}.",
        )
    if (stated_at(last) - stated_at(first)).days > TREND_DAYS:
        text = f"{len(members)} memories {span} tell of {topic}: first {_cited(first)}, last {_cited(last)}"
        return InsightKind.TEMPORAL_TREND, f"{text}{_others(members[1:-1])}."
    shown = "; ".join(_cited(one) for one in members[:QUOTED])
    rest = _others(members[QUOTED:])
    days = len({stated_at(one).date() for one in members})
    if days >= SEVERAL:
        return InsightKind.RECURRING_PATTERN, f"{topic} came up on {days} days {span}: {shown}{rest}."
    return InsightKind.SYNTHESIS, f"{len(members)} memories tell of {topic}: {shown}{rest}."


def _unrelated(one: Memory, other: Memory) -> bool:
    """Whether two memories share no tag and come from two known sources."""
    places = origin(one), origin(other)
    return not set(one.tags) & set(other.tags) and None not in places and places[0] != places[1]


def _gaps(material: DreamMaterial) -> Iterator[Insight]:
    """Recorded questions that no memory seems to answer. Turns of a conversation are left out: the other
    speaker may have answered."""
    for name in sorted(material.replayed):
        memory = material.memories[name]
        if not _asks(memory) or features(memory).form is not Form.NOTE:
            continue
        around = ((set(both), near) for both, near in material.near.items() if name in both)
        answers = (near for both, near in around if not all(_asks(material.memories[end]) for end in both))
        closest = max(answers, default=0.0)
        if closest < ANSWERED:
            yield Insight(
                kind=InsightKind.KNOWLEDGE_GAP,
                text=f"Nothing remembered seems to answer {_cited(memory)}.",
                sources=(name,),
                confidence=_bounded(1.0 - closest),
                novelty=0.5,
            )


def _asks(memory: Memory) -> bool:
    return "?" in memory.content and features(memory).asks


def common_words(members: Sequence[Memory], alike: Sequence[Memory], vocabulary: Vocabulary) -> list[str]:
    """Words that most of these memories contain and few others do, most common first, as written. One word is
    enough if it is a tag; otherwise two are needed."""
    held = Counter(term for member in members for term in vocabulary.named[member.id])
    among = Counter(term for one in alike for term in vocabulary.named[one.id])
    outside = {term: vocabulary.counts[term] - among[term] for term in held}
    others = len(vocabulary.named) - len(alike)
    least = max(2, COMMON_SHARE * len(members))
    ranked = sorted(
        (term for term in held if held[term] >= least and is_rare(outside[term], others)),
        key=lambda term: (-held[term], outside[term], -len(term), term),
    )
    tags = {tag.casefold() for member in members for tag in member.tags}
    if len(ranked) < LEAST_WORDS and tags.isdisjoint(ranked):
        return []
    return [_written(term, members) for term in ranked[:TOPIC_WORDS]]


def _written(term: str, members: Sequence[Memory]) -> str:
    """A term as the first memory writes it; a tag that occurs in no text stays as it is."""
    for member in members:
        said = opening(member)
        for word in query_words(said):
            if term in word.terms:
                return said[word.start : word.end]
    return term


def _mean_similarity(members: Sequence[Memory], material: DreamMaterial) -> float:
    pairs = [pair(a.id, b.id) for a, b in combinations(members, 2)]
    known = [material.near[both] for both in pairs if both in material.near]
    return sum(known) / len(known) if known else 0.0


def _novelty(members: Sequence[Memory], material: DreamMaterial) -> float:
    """Half for pairs that were not linked before, the rest for the number of sources and tags it combines."""
    pairs = list(combinations(members, 2))
    unlinked = sum(pair(a.id, b.id) not in material.linked for a, b in pairs) / len(pairs)
    places = len({origin(one) or one.id for one in members})
    tagged = sum(overlap(frozenset(a.tags), frozenset(b.tags)) for a, b in pairs) / len(pairs)
    return 0.5 * unlinked + 0.3 * (places - 1) / (len(members) - 1) + 0.2 * (1.0 - tagged)


def _cited(memory: Memory) -> str:
    return f"“{preview(memory.content, QUOTE_CHARS)}” [{memory.id}]"


def _others(members: Sequence[Memory]) -> str:
    return f"; also {', '.join(f'[{one.id}]' for one in members)}" if members else ""


def _listed(words: Sequence[str]) -> str:
    return " and ".join((", ".join(words[:-1]), words[-1])) if len(words) > 1 else words[0]


def _bounded(confidence: float) -> float:
    return min(MOST_CONFIDENCE, max(0.0, confidence))
