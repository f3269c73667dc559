"""Two installations that write under one node id: a clone of the machine has it too."""

import pytest

from tests.store.conftest import become_clone
from tests.store.support.generators import NewStore, a_memory, add, held
from tests.store.support.meetings import Pair, a_document, bodies, edit, give, lives, meet, put
from vestige.core.models import EVERYTHING
from vestige.store.contract.store import MemoryStore
from vestige.store.merge.histories import Absorbed, Fork


@pytest.fixture
def clones(new_store: NewStore) -> Pair:
    """A store with the memory `a`, and its clone."""
    original, clone = new_store(), new_store()
    add(original, a_memory("a"))
    give(original, clone)
    become_clone(clone, original)
    return original, clone


def names(store: MemoryStore) -> list[tuple[str, int]]:
    return [(event.node, event.seq) for event in store.log(access=EVERYTHING)]


def test_clones_that_met_have_all_that_both_wrote_and_ids_of_their_own(clones: Pair) -> None:
    original, clone = clones
    shared = original.node
    add(original, a_memory("ours"))
    add(clone, a_memory("theirs"))
    add(clone, a_memory("more of theirs"))

    found = give(original, clone)
    assert found.forks == (Fork(node=shared, successor=clone.node),)
    assert clone.node != shared
    meet(original, clone)
    assert original.node not in (shared, clone.node)
    for store in clones:
        for memory_id in ("a", "ours", "theirs", "more of theirs"):
            assert held(store, memory_id).memory.id == memory_id
        assert len(names(store)) == len(set(names(store))) == 4
    assert give(original, clone) == give(clone, original) == Absorbed()


def test_a_clone_that_only_the_original_wrote_after_is_found_too(clones: Pair) -> None:
    original, clone = clones
    add(original, a_memory("ours"))
    assert give(original, clone).successor == clone.node
    add(clone, a_memory("theirs"))
    assert give(clone, original).forks == ()
    assert lives(original) == lives(clone)


def test_edits_of_one_memory_in_both_clones_are_merged_like_those_of_any_two_stores(clones: Pair) -> None:
    original, clone = clones
    edit(original, 1, content="copper")
    edit(clone, 2, tags=("red",))
    edit(clone, 3, content="tin")
    meet(original, clone)
    memory = held(original, "a").memory
    assert (memory.content, memory.tags) == ("tin", ("red",))
    past = [one.memory.content for one in original.history("a", access=EVERYTHING)]
    assert past[1:] == ["copper", "copper"]


def test_documents_that_both_clones_put_at_one_reading_of_the_clock_become_one(clones: Pair) -> None:
    original, clone = clones
    put(original, a_document("one"))
    put(clone, a_document("other"))
    for store, logged in zip(clones, (True, False), strict=True):
        put(store, a_document("both"), logged=logged)
    meet(original, clone)
    assert bodies(original) == bodies(clone) == {"one": 1, "other": 1, "both": 1}


def test_a_third_store_that_knew_each_clone_by_the_shared_id_names_every_event_once(
    clones: Pair, new_store: NewStore
) -> None:
    original, clone = clones
    third, fourth = new_store(), new_store()
    add(original, a_memory("ours"))
    add(clone, a_memory("theirs"))
    give(original, third)
    give(clone, fourth)
    assert give(third, fourth).forks == (Fork(node=original.node),)
    meet(third, fourth)
    for store in (original, clone):  # each learns of it from a store that is neither
        assert give(third, store).successor == store.node
        assert lives(store) == lives(third)
    assert len({event.node.partition("~")[0] for event in third.log(access=EVERYTHING)}) == 1


def test_a_store_that_was_set_back_gets_its_events_again_and_goes_on_under_a_new_id(
    clones: Pair, new_store: NewStore
) -> None:
    ahead, set_back = clones
    backup = new_store()
    add(ahead, a_memory("later"))
    give(ahead, backup)
    found = give(backup, set_back)
    assert (found.memories_added, found.successor) == (1, set_back.node)
    add(set_back, a_memory("next"))
    assert give(set_back, backup).forks == ()
