"""Lives that are taken in: what they make with what is here."""

from dataclasses import replace

import pytest

from tests.store.support import meetings
from tests.store.support.generators import (
    DAY,
    HOUR,
    T0,
    NewStore,
    a_memory,
    a_turn,
    add,
    forget,
    held,
    link,
    remark,
    revise,
)
from tests.store.support.meetings import Pair, a_document, bodies, edit, give, lives, meet, put, words
from vestige.cognition.fsrs.strength import after, encode
from vestige.cognition.text.analyser import fingerprint
from vestige.core.errors import Conflict, NotFound
from vestige.core.models import EVERYTHING, Evidence
from vestige.store.contract.changes import Add, Carry, Claim, Link, Revise, Tune, Unlink
from vestige.store.contract.store import MemoryStore
from vestige.store.merge.histories import Absorbed, DocumentHistory

apart = meetings.apart


# -- memories ------------------------------------------------------------------------------------------


def test_a_memory_comes_with_its_text_its_past_and_its_strength(apart: Pair) -> None:
    one, other = apart
    edit(one, 1, content="copper", tags=("red",))
    remark(one, "a", Evidence.GOOD, T0 + 3 * DAY)
    assert give(one, other) == Absorbed(events=2, memories_changed=1)
    assert held(other, "a") == held(one, "a")
    assert other.history("a", access=EVERYTHING) == one.history("a", access=EVERYTHING)
    assert words(other, "copper") == ["a"]
    assert words(other, "zinc") == []
    assert other.tag_counts(access=EVERYTHING) == {"red": 1}
    prints = [fingerprint("copper"), fingerprint("zinc and cobalt")]
    found = other.same_text(prints, scope="/", valid_at=T0 + DAY, access=EVERYTHING)
    assert found == {fingerprint("copper"): "a"}


def test_taking_it_in_again_changes_nothing(apart: Pair) -> None:
    one, other = apart
    edit(one, 1, content="copper")
    link_two(one)
    put(one, a_document(cites=("a",)))
    give(one, other)
    log = other.log(access=EVERYTHING)
    assert give(one, other) == Absorbed()
    assert other.log(access=EVERYTHING) == log


def link_two(store: MemoryStore) -> None:
    add(store, a_memory("b", "iron"))
    link(store, "a", "b", weight=0.5)


def test_events_keep_their_names_and_get_positions_at_the_end_of_the_log(apart: Pair) -> None:
    one, other = apart
    (own,) = add(other, a_memory("own", "iron", at=T0 + DAY))
    add(one, a_memory("b", "nickel"))
    give(one, other)
    log = other.log(access=EVERYTHING)
    assert [(event.position, event.memory_id, event.node) for event in log] == [
        (1, "a", one.node),
        (2, "own", other.node),
        (3, "b", one.node),
    ]
    assert own.seq == 1
    (again,) = add(other, a_memory("again", "marble"))
    assert (again.position, again.seq, again.node) == (4, 2, other.node)


def test_a_store_has_a_new_id_after_events_of_its_own_that_it_did_not_know(new_store: NewStore) -> None:
    one, other = new_store(), new_store()
    add(one, a_memory("a"), a_memory("b", "iron"))
    own = [
        replace(life, events=tuple(replace(event, node=other.node) for event in life.events))
        for life in lives(one)
    ]
    other.absorb(own, access=EVERYTHING)
    (event,) = add(other, a_memory("c", "nickel"))
    assert (event.node, event.seq) == (other.node, 1)
    assert event.node != own[0].events[0].node


def test_the_clock_goes_on_from_the_highest_reading_seen(apart: Pair) -> None:
    one, other = apart
    (ahead,) = add(one, a_memory("ahead", at=T0 + 365 * DAY))
    give(one, other)
    (next_one,) = add(other, a_memory("next"))
    assert next_one.clock == ahead.clock + 1


def test_the_clock_goes_on_from_a_document_that_was_put_without_an_event(apart: Pair) -> None:
    one, other = apart
    put(one, replace(a_document(), updated_at=T0 + 365 * DAY), logged=False)
    give(one, other)
    (life,) = (life for life in lives(one) if isinstance(life, DocumentHistory))
    (event,) = add(other, a_memory("next"))
    assert event.clock == life.clock + 1


def test_what_was_changed_apart_in_different_groups_holds_together(apart: Pair) -> None:
    one, other = apart
    edit(one, 1, content="copper")
    edit(other, 2, tags=("red",), pinned=True)
    edit(one, 3, valid_until=T0 + DAY)
    meet(one, other)
    now = held(one, "a").memory
    assert (now.content, now.tags, now.pinned, now.valid_until) == ("copper", ("red",), True, T0 + DAY)
    assert now.revision == 4
    assert now.updated_at == T0 + 3 * HOUR
    for store in apart:
        assert (words(store, "copper"), words(store, "red"), words(store, "zinc")) == (["a"], ["a"], [])
    past = one.history("a", access=EVERYTHING)
    assert [(one.memory.content, one.memory.tags, one.reason) for one in past] == [
        ("zinc and cobalt", (), "edited at 1"),
        ("copper", (), "edited at 2"),
        ("copper", ("red",), "edited at 3"),
    ]


def test_of_two_texts_the_later_is_present_and_the_other_stays_a_revision(apart: Pair) -> None:
    one, other = apart
    edit(one, 2, content="nickel")
    edit(other, 1, content="copper")
    meet(one, other)
    assert held(other, "a").memory.content == "nickel"
    past = other.history("a", access=EVERYTHING)
    assert [revision.memory.content for revision in past] == ["zinc and cobalt", "copper"]
    assert words(one, "copper") == []


def test_a_validity_that_was_changed_in_two_places_is_one_of_the_two(apart: Pair) -> None:
    one, other = apart
    edit(one, 1, valid_from=T0 + 5 * DAY)
    edit(other, 2, valid_until=T0 + DAY)
    meet(one, other)
    now = held(one, "a").memory
    assert (now.valid_from, now.valid_until) == (None, T0 + DAY)


def test_the_next_revision_follows_the_united_one(apart: Pair) -> None:
    one, other = apart
    edit(one, 1, content="nickel")
    edit(other, 2, tags=("red",))
    stale = held(other, "a").memory
    give(one, other)
    with pytest.raises(Conflict):
        revise(other, replace(stale, content="copper", revision=3))
    edit(other, 3, content="copper")
    give(other, one)
    assert (held(one, "a").memory.content, held(one, "a").memory.tags) == ("copper", ("red",))


def test_of_a_memory_that_was_made_in_two_places_the_first_making_counts(new_store: NewStore) -> None:
    one, other = new_store(), new_store()
    add(one, replace(a_memory("a", "copper", at=T0 + HOUR), tags=("red",)))
    add(other, a_memory("a", "zinc"))
    meet(one, other)
    for store in (one, other):
        now = held(store, "a").memory
        assert (now.content, now.tags, now.created_at, now.revision) == ("zinc", (), T0, 2)
        (past,) = store.history("a", access=EVERYTHING)
        assert (past.memory.content, past.memory.tags, past.reason) == ("copper", ("red",), "created twice")


def test_making_a_memory_again_elsewhere_undoes_nothing_that_was_done_to_it(new_store: NewStore) -> None:
    one, other = new_store(), new_store()
    for store, before, at in ((one, "y", T0), (other, "z", T0 + 30 * DAY)):
        add(store, a_memory(before, "iron", at=at))  # the clocks differ; what is made in both does not
        brought = Carry(memory_id="a", strength=encode(T0 - DAY), at=at)
        store.commit([Add(memory=a_memory("a", "zinc", at=T0 - DAY)), brought], access=EVERYTHING)
    edit(one, 2, content="copper", pinned=True, tags=("red",))
    remark(one, "a", Evidence.EASY, T0 + DAY)
    strength = held(one, "a").strength
    meet(one, other)
    for store in (one, other):
        now = held(store, "a")
        assert (now.memory.content, now.memory.pinned, now.memory.tags) == ("copper", True, ("red",))
        assert now.strength == strength
        reasons = [past.reason for past in store.history("a", access=EVERYTHING)]
        assert reasons == ["created twice", "edited at 2"]


def test_an_earlier_time_of_making_moves_a_memory_in_its_thread(new_store: NewStore) -> None:
    one, other = new_store(), new_store()
    add(one, a_turn("a", "zinc", None, at=T0 + 2 * HOUR), a_turn("b", "iron", None, at=T0 + HOUR))
    add(one, a_turn("c", "cobalt", None, at=T0 + 3 * HOUR))
    add(other, a_turn("a", "zinc", None))
    give(other, one)
    assert words(one, "zinc") == ["a", "b"]


# -- deletion ------------------------------------------------------------------------------------------


def test_a_deletion_wins_over_whatever_was_done_elsewhere(apart: Pair) -> None:
    one, other = apart
    forget(one, "a", at=T0 + HOUR)
    edit(other, 5, content="copper")
    remark(other, "a", Evidence.EASY, T0 + DAY)
    meet(one, other)
    for store in apart:
        assert store.get_many(["a"], access=EVERYTHING) == []
        with pytest.raises(NotFound):
            store.history("a", access=EVERYTHING)
        assert words(store, "copper") == []
        tombstone = store.tombstone("a", access=EVERYTHING)
        assert tombstone is not None
        assert tombstone.deleted_at == T0 + HOUR
        with pytest.raises(Conflict):
            add(store, a_memory("a"))


def test_of_two_deletions_the_first_counts(apart: Pair) -> None:
    one, other = apart
    forget(one, "a", at=T0 + DAY)
    forget(other, "a", at=T0 + HOUR)
    assert give(other, one) == Absorbed(events=1)
    meet(one, other)
    tombstone = one.tombstone("a", access=EVERYTHING)
    assert tombstone is not None
    assert tombstone.deleted_at == T0 + HOUR


def test_with_a_deleted_memory_go_its_edges_what_cites_it_and_answers_that_quote_it(apart: Pair) -> None:
    one, other = apart
    link_two(one)
    put(one, a_document("cites a", cites=("a",)))
    give(one, other)
    claim = Claim(key="k", digest="d", answer='{"text": "zinc and cobalt"}', at=T0)
    revised = replace(held(other, "a").memory, pinned=True, revision=2)
    other.commit([Revise(memory=revised, reason="pinned")], access=EVERYTHING, claim=claim)
    other.notify("me", ['{"type": "x"}'])
    forget(one, "a")
    assert give(one, other) == Absorbed(events=1, memories_ended=1, documents=1)
    assert other.edges(["a", "b"], access=EVERYTHING) == []
    assert bodies(other) == {}
    assert other.claimed("k") is None
    assert other.notices(0) == []
    meet(one, other)


def test_a_deletion_that_comes_before_the_memory_keeps_it_away(new_store: NewStore) -> None:
    one, other, third = new_store(), new_store(), new_store()
    add(one, a_memory("a"))
    give(one, other)
    forget(other, "a")
    give(other, third)
    assert give(one, third) == Absorbed()
    assert third.get_many(["a"], access=EVERYTHING) == []


# -- strength ------------------------------------------------------------------------------------------


def test_evidence_from_both_sides_is_folded_in_the_order_in_which_it_was_given(apart: Pair) -> None:
    one, other = apart
    remark(one, "a", Evidence.EASY, T0 + 8 * DAY)
    remark(other, "a", Evidence.AGAIN, T0 + 3 * DAY)
    meet(one, other)
    expected = after(after(encode(T0), Evidence.AGAIN, T0 + 3 * DAY), Evidence.EASY, T0 + 8 * DAY)
    assert held(one, "a").strength == held(other, "a").strength == expected


def test_a_curve_that_comes_in_late_judges_the_evidence_that_followed_it(apart: Pair) -> None:
    one, other = apart
    one.commit([Tune(w20=0.5, at=T0 + 5 * DAY)], access=EVERYTHING)
    remark(other, "a", Evidence.GOOD, T0 + 4 * DAY)
    remark(other, "a", Evidence.GOOD, T0 + 9 * DAY)
    add(other, a_memory("new", "iron"))
    meet(one, other)
    before = after(encode(T0), Evidence.GOOD, T0 + 4 * DAY)
    expected = after(replace(before, curve=0.5), Evidence.GOOD, T0 + 9 * DAY)
    assert held(one, "a").strength == held(other, "a").strength == expected
    assert held(other, "new").strength == encode(T0, 0.5)


def test_the_curve_that_was_tuned_last_holds_whoever_tells_it_first(apart: Pair) -> None:
    one, other = apart
    one.commit([Tune(w20=0.5, at=T0 + DAY)], access=EVERYTHING)
    other.commit([Tune(w20=0.3, at=T0 + HOUR)], access=EVERYTHING)
    meet(one, other)
    assert {held(store, "a").strength.curve for store in apart} == {0.5}


# -- edges ---------------------------------------------------------------------------------------------


def test_an_edge_is_what_was_last_said_of_it(apart: Pair) -> None:
    one, other = apart
    link_two(one)
    give(one, other)
    other.commit([Unlink(source_id="a", target_id="b", kind="related", at=T0 + HOUR)], access=EVERYTHING)
    again = replace(one.edges(["a"], access=EVERYTHING)[0], weight=0.9, created_at=T0 + 2 * HOUR)
    one.commit([Link(edge=again)], access=EVERYTHING)
    meet(one, other)
    assert other.edges(["a"], access=EVERYTHING) == one.edges(["a"], access=EVERYTHING) == [again]


def test_an_edge_waits_for_both_its_ends(new_store: NewStore) -> None:
    one, other = new_store(), new_store()
    add(one, a_memory("a"))
    link_two(one)
    parts = lives(one)
    for life in reversed(parts):
        other.absorb([life], access=EVERYTHING)
        known = {record.memory.id for record in other.get_many(["a", "b"], access=EVERYTHING)}
        assert len(other.edges(["a", "b"], access=EVERYTHING)) == (known == {"a", "b"})
    assert lives(other) == parts


def test_what_is_told_twice_in_one_batch_is_united_first(apart: Pair) -> None:
    one, other = apart
    (early,) = lives(one)
    edit(one, 1, content="copper")
    (late,) = lives(one)
    other.absorb([late, early, late], access=EVERYTHING)
    assert lives(other) == [late]


def test_nothing_is_taken_in_when_nothing_is_told(store: MemoryStore) -> None:
    assert store.absorb([], access=EVERYTHING) == Absorbed()


def test_what_was_absorbed_can_be_committed_to_at_once(apart: Pair) -> None:
    one, other = apart
    link_two(one)
    give(one, other)
    other.commit(
        [
            Add(memory=a_memory("c", "marble")),
            Link(edge=replace(one.edges(["a"], access=EVERYTHING)[0], source_id="c")),
        ],
        access=EVERYTHING,
    )
    meet(one, other)
    assert len(one.edges(["b"], access=EVERYTHING)) == 2
