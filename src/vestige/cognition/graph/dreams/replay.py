"""Dream replay: the memories a dream replays, and the links it proposes between them.

Replay is mostly of what mattered recently and partly of old memories (Wilson & McNaughton 1994; Lewis &
Durrant 2011). Old memories are replayed in runs, in their original order, and each dream takes other runs.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import timedelta

from vestige.cognition.gate.relation import comes_after, stated_at
from vestige.cognition.graph import kinds
from vestige.cognition.text.analyser import overlap
from vestige.cognition.text.form import is_threaded
from vestige.cognition.text.likeness import Words
from vestige.cognition.text.vocabulary import Vocabulary
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Edge, Evidence, Memory

LEAST_MEMORIES = 5  # With fewer memories there is nothing to cross-reference.
SALIENT_SHARE = 0.7
"""The share of the replay for memories that mattered recently; the rest is spread over all ages."""
RUN = 5  # The number of old memories replayed together, in the order in which they were stored.
GOLDEN = 0.6180339887498949
"""Steps of this length fall into the largest gap that earlier steps left, so that dreams cover everything."""

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

LINK_KINDS = frozenset({kinds.SHARED_CONCEPTS, kinds.TEMPORAL, kinds.SEMANTIC, kinds.COMPLEMENTARY})
"""The kinds of link that dreams make."""
COMMON_TAGS = 2
TEMPORAL_HOURS, TEMPORAL_SIMILARITY = 24.0, 0.6
SEMANTIC_SIMILARITY = 0.8

LINKS_EACH = 3  # The limit of new links of one memory in one dream …
MOST_LINKS = 12
"""… and of links from dreams in all: a hub that is linked to everything carries no information."""
STRENGTHENED_EVERY = timedelta(days=1)
"""The least time between two replays that strengthen a memory and its links."""
OLD_AMOUNT = 0.5  # The effect of a replay on a memory that is only old, relative to one that mattered.
CONFLICT_SIMILARITY = 0.6  # The similarity from which two notes are checked for a contradiction.
TAGS_SHARE = 0.4
"""The weight of common tags against common words, without vectors, where both memories have tags."""

Pair = tuple[str, str]  # Two memories by id, in alphabetical order.


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkProposal:
    """A new link from the later memory to the earlier one."""

    source_id: str
    target_id: str
    kind: str
    similarity: float


def pair(one: str, other: str) -> Pair:
    return (one, other) if one < other else (other, one)


def runs(memories: int, wanted: int, turn: int) -> list[tuple[int, int]]:
    """Runs to replay in a list of memories sorted by age, as (start, length); different runs at every turn.
    They are spread evenly and do not overlap."""
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
    """How alike two memories are when no vectors are known."""
    shared = overlap(*words)
    if not (one.tags and other.tags):
        return shared
    return TAGS_SHARE * overlap(frozenset(one.tags), frozenset(other.tags)) + (1 - TAGS_SHARE) * shared


def kind_of(one: Memory, other: Memory, similarity: float) -> str:
    """The kind of link between two memories with this similarity."""
    if len(set(one.tags) & set(other.tags)) >= COMMON_TAGS:
        return kinds.SHARED_CONCEPTS
    apart = abs(stated_at(one) - stated_at(other))
    if apart <= timedelta(hours=TEMPORAL_HOURS) and similarity > TEMPORAL_SIMILARITY:
        return kinds.TEMPORAL
    return kinds.SEMANTIC if similarity > SEMANTIC_SIMILARITY else kinds.COMPLEMENTARY


def propose(
    memories: Mapping[str, Memory],
    near: Mapping[Pair, float],
    linked: Collection[Pair],
    degrees: Mapping[str, int],
    vocabulary: Vocabulary,
    links_each: int = LINKS_EACH,
) -> list[LinkProposal]:
    """New links for pairs that are near each other, most alike first.

    `linked` are pairs that already have a link of any kind, `degrees` the number of dream links of each
    memory. Two parts of one thread are not paired: their position links them. Parts of different threads are
    paired if both contain a word that few others contain, because all conversations greet and thank alike.
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
        replace(edge, weight=kinds.reinforced(edge.weight))
        for edge in edges
        if edge.kind in kinds.LEARNED
        and kinds.PRUNE_BELOW <= edge.weight < 1.0
        and {edge.source_id, edge.target_id} <= replayed
    ]


def faint(edges: Iterable[Edge], pinned: AbstractSet[str]) -> list[Edge]:
    """The learned links that have faded away, except those of pinned memories."""
    return [
        edge
        for edge in edges
        if edge.kind in kinds.LEARNED
        and edge.weight < kinds.PRUNE_BELOW
        and pinned.isdisjoint((edge.source_id, edge.target_id))
    ]


def degrees_of(edges: Iterable[Edge]) -> Counter[str]:
    """The number of dream links of each memory."""
    ends = ((edge.source_id, edge.target_id) for edge in edges if edge.kind in LINK_KINDS)
    return Counter(name for both in ends for name in both)
