from dataclasses import replace

import pytest

from tests.store.support.generators import DAY, T0, a_memory, add, held, link
from vestige.cognition.fsrs.strength import encode, retention_of
from vestige.core.errors import InvalidInput, NotFound
from vestige.core.models import EVERYTHING, Access, Edge, Evidence, MemoryState
from vestige.store.contract.changes import ChangeState, Link, RecordEvidence, Unlink
from vestige.store.contract.store import MemoryStore


def three(store: MemoryStore) -> None:
    add(store, a_memory("a"), a_memory("b", "copper"), a_memory("c", "iron"))


def ends(store: MemoryStore, *kinds: str, access: Access = EVERYTHING, batch: int = 10) -> list[list[str]]:
    batches = store.stream_edges(kinds or None, access=access, batch=batch)
    return [[f"{edge.source_id}{edge.target_id}" for edge in some] for some in batches]


def unlink(store: MemoryStore, source: str, target: str, kind: str = "related") -> None:
    store.commit([Unlink(source_id=source, target_id=target, kind=kind, at=T0 + DAY)], access=EVERYTHING)


def test_an_unlinked_edge_is_gone_and_the_log_says_so(store: MemoryStore) -> None:
    three(store)
    link(store, "a", "b")
    link(store, "a", "b", "causal")
    unlink(store, "a", "b")
    assert [edge.kind for edge in store.edges(["a"], access=EVERYTHING)] == ["causal"]
    last = store.log(access=EVERYTHING)[-1]
    assert (last.kind, last.memory_id) == ("edge.unlinked", "a")
    assert dict(last.payload) == {"target": "b", "kind": "related"}


def test_unlinking_what_is_not_linked_is_not_found(store: MemoryStore) -> None:
    three(store)
    link(store, "a", "b")
    for source, target, kind in (("b", "a", "related"), ("a", "b", "causal"), ("a", "nobody", "related")):
        with pytest.raises(NotFound):
            unlink(store, source, target, kind)
    assert ends(store) == [["ab"]]


def test_an_edge_can_be_made_ended_and_made_again_in_one_commit(store: MemoryStore) -> None:
    three(store)
    made = Link(edge=Edge(source_id="a", target_id="b", kind="k", weight=0.5, created_at=T0))
    end = Unlink(source_id="a", target_id="b", kind="k", at=T0)
    store.commit([made, end], access=EVERYTHING)
    assert ends(store) == []
    store.commit([made], access=EVERYTHING)
    again = Link(edge=replace(made.edge, weight=0.9, created_at=T0 + DAY))
    store.commit([end, again], access=EVERYTHING)
    assert store.edges(["a"], access=EVERYTHING) == [again.edge]
    with pytest.raises(NotFound):
        store.commit([end, end], access=EVERYTHING)
    assert store.edges(["a"], access=EVERYTHING) == [again.edge]


def test_edges_stream_by_kind_in_batches_with_both_ends_in_reach(store: MemoryStore) -> None:
    add(store, *(replace(a_memory(name, name), scope=f"/{name}") for name in "abc"))
    link(store, "a", "b")
    link(store, "b", "c")
    link(store, "a", "c", "causal")
    assert sorted(one for some in ends(store, batch=2) for one in some) == ["ab", "ac", "bc"]
    assert [len(some) for some in ends(store, batch=2)] == [2, 1]
    assert ends(store, "causal") == [["ac"]]
    assert ends(store, access=Access(scopes=("/a", "/b"))) == [["ab"]]
    with pytest.raises(InvalidInput):
        ends(store, batch=0)


def test_settling_takes_a_new_snapshot_logs_the_states_and_changes_nothing_else(store: MemoryStore) -> None:
    add(store, a_memory("a"))
    before = held(store, "a").strength
    store.commit(
        [
            ChangeState(
                memory_id="a",
                at=T0 + 30 * DAY,
                before=MemoryState.ACTIVE,
                after=MemoryState.DORMANT,
                reason="time_decay",
            )
        ],
        access=EVERYTHING,
    )
    after = held(store, "a").strength
    expected = retention_of(before, T0 + 30 * DAY)
    assert after == replace(before, retention=expected, retention_at=T0 + 30 * DAY)
    last = store.log(access=EVERYTHING)[-1]
    assert last.kind == "memory.state"
    assert dict(last.payload) == {"from": "active", "to": "dormant", "reason": "time_decay"}


def test_a_remark_tells_its_amount_and_the_state_it_led_to(store: MemoryStore) -> None:
    add(store, a_memory("a"))
    for evidence, amount in ((Evidence.CAPTURED, 0.5), (Evidence.DEMOTED, 1.0)):
        store.commit(
            [RecordEvidence(memory_id="a", evidence=evidence, at=T0, amount=amount)], access=EVERYTHING
        )
    captured, demoted = (event.payload for event in store.log(access=EVERYTHING)[1:])
    assert captured["amount"] == 0.5
    assert "state" not in captured
    assert "amount" not in demoted
    assert demoted["state"] == ["active", "dormant"]


@pytest.mark.parametrize("amount", [-0.1, 1.1, float("nan")])
def test_an_amount_outside_of_nothing_and_all_is_refused(store: MemoryStore, amount: float) -> None:
    add(store, a_memory("a"))
    with pytest.raises(InvalidInput):
        store.commit(
            [RecordEvidence(memory_id="a", evidence=Evidence.CAPTURED, at=T0, amount=amount)],
            access=EVERYTHING,
        )
    assert held(store, "a").strength == encode(T0)
