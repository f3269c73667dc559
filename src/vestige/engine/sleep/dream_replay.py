"""The first half of a dream: choosing memories to replay, and finding what is near them. It only reads.

Vectors and neighbours are read in small blocks; between blocks the dream can be cancelled and other work
runs.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from vestige.cognition.evidence.duplicates import Texts, Vectors, clusters, whole
from vestige.cognition.graph.dreams.replay import SALIENT, SALIENT_SHARE, Pair, pair, runs, word_similarity
from vestige.cognition.text.analyser import STOP_WORDS, fingerprint, terms
from vestige.cognition.text.likeness import alike_pairs
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Edge, Filter, Memory, Order, Record, covers
from vestige.embed.protocol import Signature
from vestige.engine.context import Call
from vestige.engine.revise import load_passing
from vestige.store.contract.answers import LogQuery
from vestige.store.contract.changes import REMARKED

NEAREST = 8
"""The nearest neighbours of each memory that are read."""
BLOCK = 25
"""Memories whose neighbours are searched at once."""
MOST_EVENTS = 1000
"""The latest evidence events that are searched for what mattered."""
LINKED_BLOCK, MOST_EDGES = 100, 2000
"""Memories whose links are read at once, and the most of their links, heaviest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """The memories that are replayed, those of them that mattered lately, and those near them. `near` has
    pairs with at least one replayed end. `by_words`: there are no vectors to compare."""

    replayed: Mapping[str, Record]
    salient: frozenset[str]
    reached: Mapping[str, Record]
    near: Mapping[Pair, float]
    by_words: bool

    @property
    def memories(self) -> dict[str, Memory]:
        """All of them by id."""
        return {name: one.memory for some in (self.replayed, self.reached) for name, one in some.items()}


def choose(call: Call, where: Filter, count: int, turn: int) -> tuple[list[Record], frozenset[str]]:
    """The memories to replay (what mattered lately, the newest, some of every age), and which mattered."""
    lately = int(SALIENT_SHARE * count)
    mattered = _salient(call, where, lately)
    chosen = {one.memory.id: one for one in mattered}
    call.check()
    newest = call.engine.store.find(where, access=call.access, limit=count)

    def add(records: Iterable[Record], most: int) -> None:
        for record in records:
            if len(chosen) < most:
                chosen.setdefault(record.memory.id, record)

    add(newest, lately)
    add((*_of_all_ages(call, where, count - len(chosen), turn), *newest), count)
    return list(chosen.values()), frozenset(one.memory.id for one in mattered)


def _salient(call: Call, where: Filter, wanted: int) -> list[Record]:
    """The memories that were promoted, reviewed, captured and the like last."""
    asked = LogQuery(scope=where.scope, inherited=where.inherited, kinds=(REMARKED,), evidence=SALIENT)
    events = call.engine.store.latest(asked, access=call.access, limit=MOST_EVENTS)
    names = list(dict.fromkeys(event.memory_id for event in events if event.memory_id))[:wanted]
    return load_passing(call, names, where)


def _of_all_ages(call: Call, where: Filter, wanted: int, turn: int) -> Iterator[Record]:
    store = call.engine.store
    for place, length in runs(store.count(where, access=call.access), wanted, turn):
        call.check()
        yield from store.find(where, access=call.access, order=Order.OLDEST, limit=length, offset=place)


def compare(
    call: Call, where: Filter, records: Sequence[Record], mattered: frozenset[str], least: float
) -> Replay:
    """What the replayed memories are near to: in the whole scope by vectors, else among them by words."""
    replayed = {record.memory.id: record for record in records}
    signature = call.engine.store.signature()
    near = _near_by_vectors(call, where, records, signature) if signature else {}
    by_words = not near
    near = near or _near_by_words(call, records)
    alike = {name for both, similarity in near.items() if similarity >= least for name in both}
    reached: dict[str, Record] = {}
    for some in _blocks(sorted(alike - replayed.keys())):
        call.check()
        reached |= {one.memory.id: one for one in call.engine.store.get_many(some, access=call.access)}
    known = replayed.keys() | reached.keys()
    return Replay(
        replayed=replayed,
        salient=mattered,
        reached=reached,
        near={both: similarity for both, similarity in near.items() if known >= set(both)},
        by_words=by_words,
    )


def _near_by_vectors(
    call: Call, where: Filter, records: Sequence[Record], signature: Signature
) -> dict[Pair, float]:
    near: dict[Pair, float] = {}
    by_scope: defaultdict[str, list[str]] = defaultdict(list)
    for record in records:
        by_scope[record.memory.scope].append(record.memory.id)
    for scope, names in sorted(by_scope.items()):
        for some in _blocks(names):
            call.check()
            held = _wholes(call, some)
            if not held:
                continue
            matrix, there = np.stack(list(held.values())), _linkable(where, scope)
            found = call.engine.store.nearest(matrix, signature, there, access=call.access, limit=NEAREST + 1)
            for name, neighbours in zip(held, found, strict=True):
                near |= {pair(name, one.memory_id): one.score for one in neighbours if one.memory_id != name}
    return near


def _linkable(where: Filter, scope: str) -> Filter:
    """The filter for neighbours of a memory in this scope: nothing is linked across two projects."""
    if where.scope is not None and scope != where.scope and covers(where.scope, scope):
        return replace(where, scope=scope, inherited=True)
    return where


def _near_by_words(call: Call, records: Sequence[Record]) -> dict[Pair, float]:
    near: dict[Pair, float] = {}
    by_scope: defaultdict[str, list[Record]] = defaultdict(list)
    for record in records:
        by_scope[record.memory.scope].append(record)
    for kin in by_scope.values():
        memories = [record.memory for record in kin]
        words = [frozenset(terms(memory.content)) - STOP_WORDS for memory in memories]
        for at, found in enumerate(alike_pairs(words)):
            if at % BLOCK == 0:
                call.check()
            for one, other in found:
                likeness = word_similarity(memories[one], memories[other], (words[one], words[other]))
                near[pair(memories[one].id, memories[other].id)] = likeness
    return near


def groups(call: Call, replay: Replay, names: Sequence[str], least: float) -> list[list[str]]:
    """Groups of these memories whose members are pairwise at least `least` alike."""
    places = {name: at for at, name in enumerate(names)}
    texts = _texts(call, replay, names)
    ends = (
        (places[one], places[other])
        for (one, other), similarity in replay.near.items()
        if similarity >= least and one in places and other in places
    )
    found = clusters(texts, [(min(both), max(both)) for both in ends], least)
    return [[names[at] for at in group] for group in found]


def _texts(call: Call, replay: Replay, names: Sequence[str]) -> Texts:
    memories = replay.memories
    contents = [memories[name].content for name in names]
    vectors = {} if replay.by_words else _wholes(call, names)
    width = max((len(vector) for vector in vectors.values()), default=1)
    none = np.zeros(width, dtype=np.float32)
    return Texts(
        wholes=np.stack([vectors.get(name, none) for name in names]),
        known=np.array([name in vectors for name in names], dtype=np.bool_),
        marks=[fingerprint(content) for content in contents],
        words=[frozenset(terms(content)) - STOP_WORDS for content in contents],
    )


def _wholes(call: Call, names: Sequence[str]) -> dict[str, Vectors]:
    """One vector for each memory that has any."""
    signature = call.engine.store.signature()
    found: dict[str, Vectors] = {}
    for some in _blocks(names) if signature else ():
        call.check()
        held = call.engine.store.vectors(some, signature, access=call.access) if signature else {}
        found |= {name: whole(pieces) for name, pieces in held.items()}
    return found


def edges_of(call: Call, names: Sequence[str]) -> list[Edge]:
    """The links of these memories, each once."""
    found: dict[tuple[str, str, str], Edge] = {}
    for some in _blocks(names, LINKED_BLOCK):
        call.check()
        for edge in call.engine.store.edges(some, access=call.access, heaviest=MOST_EDGES):
            found[edge.source_id, edge.target_id, edge.kind] = edge
    return list(found.values())


def _blocks(names: Sequence[str], size: int = BLOCK) -> Iterator[Sequence[str]]:
    return (names[at : at + size] for at in range(0, len(names), size))
