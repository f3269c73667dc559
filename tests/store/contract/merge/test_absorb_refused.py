"""Lives that are not taken in, because they cannot be true or because of who tells them."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.store.support.generators import DAY, HOUR, T0, NewStore, a_memory, add, flat, remark, revise
from vestige.core.documents import Document
from vestige.core.errors import Forbidden, InvalidInput
from vestige.core.models import EVERYTHING, Access, Evidence, LogEvent
from vestige.store.contract.store import MemoryStore
from vestige.store.merge.histories import (
    CurveHistory,
    DocumentHistory,
    EdgeHistory,
    EntityHistory,
    MemoryHistory,
)


@pytest.fixture
def life(new_store: NewStore) -> MemoryHistory:
    """The life of a memory that was made, revised and remarked elsewhere."""
    store = new_store()
    add(store, a_memory("a"))
    revise(store, replace(a_memory("a", "copper"), revision=2, updated_at=T0 + HOUR))
    remark(store, "a", Evidence.GOOD, T0 + DAY)
    (told,) = lives(store)
    assert isinstance(told, MemoryHistory)
    return told


@pytest.fixture
def other(new_store: NewStore) -> MemoryStore:
    """A store that knows nothing of it."""
    return new_store()


def lives(store: MemoryStore) -> list[EntityHistory]:
    return flat(store.histories(access=EVERYTHING))


@pytest.mark.parametrize("access", [Access(scopes=("/",)), Access(domains=("home",))])
def test_only_who_reaches_everything_may_do_it(
    other: MemoryStore, life: MemoryHistory, access: Access
) -> None:
    with pytest.raises(Forbidden):
        other.absorb([life], access=access)


def worse(life: MemoryHistory, number: int, **changes: object) -> MemoryHistory:
    """The life with one of its events changed."""
    events = list(life.events)
    events[number] = replace(events[number], **changes)  # type: ignore[arg-type]  # any field
    return replace(life, events=tuple(events))


Damage = Callable[[MemoryHistory], EntityHistory]
DAMAGES: dict[str, Damage] = {
    "no events": lambda life: replace(life, events=()),
    "no creation": lambda life: replace(life, events=life.events[1:], versions=life.versions[1:]),
    "a version too few": lambda life: replace(life, versions=life.versions[1:]),
    "another memory's version": lambda life: replace(
        life, versions=(replace(life.versions[0], id="b"), life.versions[1])
    ),
    "a change nobody told of": lambda life: replace(
        life, versions=(life.versions[0], replace(life.versions[1], pinned=True))
    ),
    "a wrong revision": lambda life: replace(
        life, versions=(life.versions[0], replace(life.versions[1], revision=5))
    ),
    "events out of order": lambda life: replace(life, events=life.events[::-1]),
    "an event twice": lambda life: replace(life, events=(*life.events, life.events[-1])),
    "one name for two events": lambda life: worse(life, 2, seq=life.events[1].seq),
    "another memory's event": lambda life: worse(life, 2, memory_id="b"),
    "an unknown kind": lambda life: worse(life, 2, kind="memory.dreamt"),
    "an impossible clock": lambda life: worse(life, 2, clock=2**63 - 1),
    "no sequence number": lambda life: worse(life, 2, seq=0),
    "a blank node": lambda life: worse(life, 2, node=" "),
    "a time without a zone": lambda life: worse(life, 2, at=T0.replace(tzinfo=None)),
    "a scope that is none": lambda life: worse(life, 2, scope="a/../b"),
    "evidence that is none": lambda life: worse(life, 2, payload={"evidence": "sung"}),
    "evidence without a word": lambda life: worse(life, 2, payload={}),
    "too much of it": lambda life: worse(life, 2, payload={"evidence": "good", "amount": 2}),
    "fields that are none": lambda life: worse(life, 1, payload={"fields": 3, "reason": "x"}),
    "no reason": lambda life: worse(life, 1, payload={"fields": ["content"]}),
    "text of a deleted memory": lambda life: worse(life, 2, kind="memory.deleted", payload={"reason": "x"}),
    "a state that is none": lambda life: worse(
        life, 2, kind="memory.state", payload={"from": "a", "to": "b", "reason": "x"}
    ),
    "a strength that is none": lambda life: worse(
        life, 2, kind="memory.carried", payload={"strength": {"stability": "much"}}
    ),
    "a loop": lambda life: EdgeHistory(source_id="a", target_id="a", kind="k", events=(a_link(life, "a"),)),
    "an edge without a story": lambda life: EdgeHistory(source_id="a", target_id="b", kind="k", events=()),
    "another edge": lambda life: EdgeHistory(
        source_id="a", target_id="c", kind="k", events=(a_link(life, "b"),)
    ),
    "a weight that is none": lambda life: EdgeHistory(
        source_id="a", target_id="b", kind="k", events=(a_link(life, "b", weight="heavy"),)
    ),
    "no curve": lambda life: CurveHistory(
        events=(replace(life.events[2], kind="curve.tuned", memory_id=None, payload={"w20": -1}),)
    ),
    "an installation's own document": lambda life: a_filed(kind="running"),
    "another document": lambda life: replace(a_filed(), id="other"),
    "a document without a node": lambda life: replace(a_filed(), node=""),
    "a document from before the clock": lambda life: replace(a_filed(), clock=0),
    "a document that never was": lambda life: replace(a_filed(), document=None, clock=0, node=""),
    "a document older than its events": lambda life: replace(
        a_filed(),
        events=(
            replace(
                life.events[2], kind="document.put", memory_id=None, payload={"kind": "note", "id": "one"}
            ),
        ),
    ),
}


def a_link(life: MemoryHistory, target: str, weight: object = 1.0) -> LogEvent:
    payload = {"target": target, "kind": "k", "weight": weight}
    return replace(life.events[2], kind="edge.linked", payload=payload)


def a_filed(kind: str = "note") -> DocumentHistory:
    document = Document(kind=kind, id="one", created_at=T0, updated_at=T0)
    return DocumentHistory(kind=kind, id="one", events=(), document=document, clock=5, node="elsewhere")


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_life_that_cannot_be_true_is_refused_with_everything_beside_it(
    new_store: NewStore, other: MemoryStore, life: MemoryHistory, damage: Damage
) -> None:
    third = new_store()
    add(third, a_memory("fine", "iron"))
    with pytest.raises(InvalidInput):
        other.absorb([*lives(third), damage(life)], access=EVERYTHING)
    assert lives(other) == []
    other.absorb([life], access=EVERYTHING)
    assert lives(other) == [life]


def test_an_event_that_is_told_in_two_ways_is_refused(other: MemoryStore, life: MemoryHistory) -> None:
    twofold = worse(life, 2, payload={"evidence": "easy", "details": {}})
    with pytest.raises(InvalidInput, match="two different contents"):
        other.absorb([life, twofold], access=EVERYTHING)
    assert lives(other) == []


def test_an_event_that_is_named_by_another_content_is_refused(
    other: MemoryStore, life: MemoryHistory
) -> None:
    with pytest.raises(InvalidInput, match="named by another content"):
        other.absorb([worse(life, 2, node=f"{life.events[2].node}~00000000000000000000")], access=EVERYTHING)
    assert lives(other) == []


def test_an_event_that_is_told_of_two_memories_is_refused(other: MemoryStore, life: MemoryHistory) -> None:
    twin = MemoryHistory(
        memory_id="z",
        events=tuple(replace(event, memory_id="z") for event in life.events),
        versions=tuple(replace(version, id="z") for version in life.versions),
    )
    with pytest.raises(InvalidInput, match="two different contents"):
        other.absorb([life, twin], access=EVERYTHING)
    assert lives(other) == []
