"""What a dream replays, and which links it proposes between memories that belong together.

Replay is mostly of what mattered lately and partly of what is old (Wilson & McNaughton 1994; Lewis & Durrant
2011). Old memories are replayed in runs, as they followed each other, and each dream takes other runs.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import timedelta

from vestige.cognition.gate.relation import comes_after, told_at
from vestige.cognition.graph.kinds import (
    COMPLEMENTARY,
    LEARNED,
    PRUNE_BELOW,
    SEMANTIC,
    SHARED_CONCEPTS,
    TEMPORAL,
    reinforced,
)
from vestige.cognition.text.form import is_threaded
from vestige.cognition.text.likeness import Words, overlap
from vestige.cognition.text.vocabulary import Vocabulary
from vestige.core.models import Edge, Evidence, Memory

LEAST_MEMORIES = 5
"""Among fewer there is nothing to cross-reference."""
SALIENT_SHARE = 0.7
"""The share of the replay that is for what mattered lately; the rest is spread over all ages."""
RUN = 5
"""Old memories that are replayed together, in the order in which they came."""
GOLDEN = 0.6180339887498949
"""Steps of this length fall into the largest gap that earlier ones left, so that dreams cover everything."""

SALIENT = (
    Evidence.PROMOTED,
    Evidence.IMPORTANT,
    Evidence.CAPTURED,
    Evidence.USEFUL,
    Evidence.GOOD,
    Evidence.EASY,
    Evidence.REINFORCED,
    Evidence.RECONSOLIDATED,
)
"""Evidence that a memory mattered."""

LINK_KINDS = frozenset({SHARED_CONCEPTS, TEMPORAL, SEMANTIC, COMPLEMENTARY})
"""The kinds of link that dreams make."""
COMMON_TAGS = 2
TEMPORAL_HOURS, TEMPORAL_SIMILARITY = 24.0, 0.6
SEMANTIC_SIMILARITY = 0.8

LINKS_EACH = 3
"""New links of one memory in one dream …"""
MOST_LINKS = 12
"""… and how many it may have from dreams in all: a hub that is linked to everything tells nothing."""
STRENGTHENED_EVERY = timedelta(days=1)
"""Being replayed strengthens a memory, and its links, at most so often, however many dreams there are."""
OLD_AMOUNT = 0.5
"""What being replayed is worth to a memory that was merely old, beside one that mattered."""
CONFLICT_SIMILARITY = 0.6
"""How alike two notes must be to be judged for a contradiction."""
TAGS_SHARE = 0.4
"""Without vectors, what common tags count for beside common words, where both have tags."""

Pair = tuple[str, str]
"""Two memories by id, in alphabetical order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkProposal:
    """A new link from the memory that came later to the earlier one."""

    source_id: str
    target_id: str
    kind: str
    similarity: float


def pair(one: str, other: str) -> Pair:
    """Two ids as a pair, whichever comes first."""
    return (one, other) if one < other else (other, one)


def runs(memories: int, wanted: int, turn: int) -> list[tuple[int, int]]:
    """Where in a list of memories by age to replay, as (place, length); other places at every turn.

    They are spread evenly and do not overlap.
    """
    if wanted <= 0 or memories <= 0:
        return []
    if wanted >= memories:
        return [(0, memories)]
    count = -(-wanted // RUN)
    stride = memories / count
    start = (turn * GOLDEN) % 1.0 * stride
    # The last run may reach past the end; it is shorter then, and nothing comes twice.
    places = [int(start + at * stride) for at in range(count)]
    ends = [*places[1:], memories]
    return [(place, min(RUN, end - place)) for place, end in zip(places, ends, strict=True) if end > place]


def word_similarity(one: Memory, other: Memory, words: tuple[Words, Words]) -> float:
    """How alike two memories are where no vectors are known."""
    shared = overlap(*words)
    if not (one.tags and other.tags):
        return shared
    return TAGS_SHARE * overlap(frozenset(one.tags), frozenset(other.tags)) + (1 - TAGS_SHARE) * shared


def kind_of(one: Memory, other: Memory, similarity: float) -> str:
    """What kind of link two memories that are this alike have."""
    if len(set(one.tags) & set(other.tags)) >= COMMON_TAGS:
        return SHARED_CONCEPTS
    apart = abs(told_at(one) - told_at(other))
    if apart <= timedelta(hours=TEMPORAL_HOURS) and similarity > TEMPORAL_SIMILARITY:
        return TEMPORAL
    return SEMANTIC if similarity > SEMANTIC_SIMILARITY else COMPLEMENTARY


def propose(
    memories: Mapping[str, Memory],
    near: Mapping[Pair, float],
    linked: Collection[Pair],
    degrees: Mapping[str, int],
    vocabulary: Vocabulary,
    links_each: int = LINKS_EACH,
) -> list[LinkProposal]:
    """New links for the pairs that are near each other, the most alike first.

    `linked` are pairs that have a link of any kind already, `degrees` how many links of dreams a memory has.
    Two parts of one thread are no pair: their place in it links them. Parts of different ones are a pair
    where both name something that few others do: all talks greet and thank alike.
    """
    known, made = frozenset(linked), Counter[str]()
    room = {name: min(links_each, MOST_LINKS - degrees.get(name, 0)) for name in memories}
    proposals = []
    for (one, other), similarity in sorted(near.items(), key=lambda item: (-item[1], item[0])):
        if (one, other) in known or made[one] >= room[one] or made[other] >= room[other]:
            continue
        if not _related(memories[one], memories[other], vocabulary):
            continue
        made.update((one, other))
        later, earlier = (one, other) if comes_after(memories[one], memories[other]) else (other, one)
        proposals.append(
            LinkProposal(
                source_id=later,
                target_id=earlier,
                kind=kind_of(memories[one], memories[other], similarity),
                similarity=similarity,
            )
        )
    return proposals


def _related(one: Memory, other: Memory, vocabulary: Vocabulary) -> bool:
    if not (is_threaded(one) and is_threaded(other)):
        return True
    if one.scope == other.scope and (one.thread or one.source) == (other.thread or other.source):
        return False
    return vocabulary.share(one.id, other.id)


def stronger(edges: Iterable[Edge], replayed: AbstractSet[str]) -> list[Edge]:
    """The learned links between memories that were replayed together, each with its new weight."""
    return [
        replace(edge, weight=reinforced(edge.weight))
        for edge in edges
        if edge.kind in LEARNED
        and PRUNE_BELOW <= edge.weight < 1.0
        and {edge.source_id, edge.target_id} <= replayed
    ]


def faint(edges: Iterable[Edge], pinned: AbstractSet[str]) -> list[Edge]:
    """The learned links that have faded away; those of pinned memories are left alone."""
    return [
        edge
        for edge in edges
        if edge.kind in LEARNED
        and edge.weight < PRUNE_BELOW
        and pinned.isdisjoint((edge.source_id, edge.target_id))
    ]


def degrees_of(edges: Iterable[Edge]) -> Counter[str]:
    """How many links of dreams each memory has."""
    ends = ((edge.source_id, edge.target_id) for edge in edges if edge.kind in LINK_KINDS)
    return Counter(name for both in ends for name in both)
