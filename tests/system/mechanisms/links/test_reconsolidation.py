"""Reconsolidation, as seen through the tools after a restart."""

from tests.system.mechanisms.conftest import Living

WRONG, RIGHT = "The importer was written by Grace in March.", "The importer was written by Grace in April."
ASKED = "who wrote the importer"


def test_an_edit_right_after_recall_corrects_the_memory_and_strengthens_it(living: Living) -> None:
    memory_id = living.world.remember(WRONG)
    living.clock.advance(days=3)
    before = living.world.get(memory_id)
    living.world.call("search", query=ASKED, min_confidence=0)
    then = living.clock.now
    world = living.restart()
    living.clock.advance(hours=4 / 60)

    answer = world.call("memory", action="edit", id=memory_id, content=RIGHT)
    assert (answer["changed"], answer["reconsolidated"]) == (True, True)
    world = living.restart()
    after = world.get(memory_id)
    assert after["stability"] > before["stability"] + 1
    assert after["retentionStrength"] > before["retentionStrength"]
    history = world.call("memory", action="history", id=memory_id)
    assert [(one["content"], one["endedBy"]) for one in history["revisions"]] == [(WRONG, "corrected")]
    # What the memory knew then is what it said; what was true then is what the correction says.
    assert world.find(ASKED, min_confidence=0, known_at=then.isoformat()) == [WRONG]
    assert world.find(ASKED, min_confidence=0, as_of=then.isoformat()) == [RIGHT]


def test_an_edit_at_any_other_time_leaves_the_strength_as_it_is(living: Living) -> None:
    memory_id = living.world.remember(WRONG)
    living.clock.advance(days=3)
    living.world.call("search", query=ASKED, min_confidence=0)
    world = living.restart()
    living.clock.advance(hours=6 / 60)
    before = world.get(memory_id)

    answer = world.call("memory", action="edit", id=memory_id, content=RIGHT)
    assert (answer["changed"], answer["reconsolidated"]) == (True, False)
    world = living.restart()
    assert world.get(memory_id)["stability"] == before["stability"]
    revisions = world.call("memory", action="history", id=memory_id)["revisions"]
    assert [one["endedBy"] for one in revisions] == ["edit"]


def test_being_found_again_on_the_same_day_opens_the_window_again(living: Living) -> None:
    memory_id = living.world.remember(WRONG)
    for _ in range(2):
        living.clock.advance(hours=1)
        living.world.call("search", query=ASKED, min_confidence=0)
    world = living.restart()
    living.clock.advance(hours=4 / 60)

    assert world.call("memory", action="edit", id=memory_id, content=RIGHT)["reconsolidated"] is True


def test_without_the_mechanism_every_edit_is_just_an_edit(living: Living) -> None:
    memory_id = living.world.remember(WRONG)
    living.clock.advance(days=3)
    world = living.restart(mechanisms__reconsolidation=False)
    world.call("search", query=ASKED, min_confidence=0)
    before = world.get(memory_id)

    answer = world.call("memory", action="edit", id=memory_id, content=RIGHT)
    assert answer["reconsolidated"] is False
    assert world.get(memory_id)["stability"] == before["stability"]
