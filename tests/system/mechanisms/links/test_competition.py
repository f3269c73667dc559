"""Competition between rivals, as seen through the tools after a restart."""

from testbed.world import World
from tests.system.mechanisms.conftest import Living

STALE = "Feature flags are stored in Redis for the web shop."
CURRENT = "Feature flags are not stored in Redis for the shop."


def rivals(living: Living) -> tuple[str, str]:
    """Two statements that cannot both hold; which one is right is not clear."""
    stale = living.world.remember(STALE, scope="/project")
    living.clock.advance(hours=1)
    current = living.world.remember(CURRENT, scope="/project")
    return stale, current


def promoted(living: Living, memory_id: str, days: int) -> None:
    for _ in range(days):
        living.world.call("memory", action="promote", id=memory_id)
        living.world.app.settle()
        living.clock.advance(days=1)


def retention(world: World, memory_id: str) -> float:
    return float(world.get(memory_id)["retentionStrength"])


def ease(world: World, memory_id: str, scope: str) -> float:
    """What a search leaves of a memory's score because it has faded."""
    hits = world.call("search", query=STALE, scope=scope, explain=True, min_confidence=0)["results"]
    stages = next(hit["explain"]["stages"] for hit in hits if hit["id"] == memory_id)
    scores = {stage["stage"]: stage["score"] for stage in stages}
    return float(scores["accessibility"] / scores["temporal"])


def test_what_contradicts_a_memory_that_is_used_fades_faster(living: Living) -> None:
    stale, current = rivals(living)
    alone = living.world.remember(STALE, scope="/elsewhere")
    promoted(living, current, days=5)
    world = living.restart()
    living.clock.advance(days=30)

    assert retention(world, stale) < retention(world, alone) - 0.03
    assert ease(world, stale, "/project") < ease(world, alone, "/elsewhere")


def test_without_the_mechanism_the_rival_fades_like_everything_else(living: Living) -> None:
    living.restart(mechanisms__competition=False)
    stale, current = rivals(living)
    alone = living.world.remember("The ledger holds forty pages.", scope="/elsewhere")
    promoted(living, current, days=5)
    world = living.restart(mechanisms__competition=False)

    assert world.get(stale)["stability"] == world.get(alone)["stability"]


def test_of_rivals_in_one_answer_the_one_told_last_goes_first_and_the_other_is_counted(
    living: Living,
) -> None:
    stale, current = rivals(living)
    world = living.restart()
    asked = {"query": STALE, "min_confidence": 0, "record": False}

    answer = world.call("search", **asked)
    assert [hit["id"] for hit in answer["results"]] == [current, stale]
    assert answer["competitionSuppressed"] == 1
    answer = living.restart(mechanisms__competition=False).call("search", **asked)
    assert [hit["id"] for hit in answer["results"]] == [stale, current]
    assert "competitionSuppressed" not in answer


def test_notes_about_siblings_do_not_compete(living: Living) -> None:
    john = living.world.remember("John's laptop has 16 GB of memory.", scope="/project")
    living.clock.advance(hours=1)
    jane = living.world.remember("Jane's laptop has 32 GB of memory.", scope="/project")
    world = living.restart()

    for name, wanted, other in (("John", john, jane), ("Jane", jane, john)):
        answer = world.call("search", query=f"How much memory does {name}'s laptop have?", record=False)
        assert [hit["id"] for hit in answer["results"]] == [wanted, other]
        assert "competitionSuppressed" not in answer


def test_a_rival_without_the_name_in_the_question_does_not_overtake(living: Living) -> None:
    oslo = living.world.remember("The Oslo office is not open on Fridays.", scope="/project")
    living.clock.advance(hours=1)
    office = living.world.remember("The office is open on Fridays.", scope="/project")
    living.world.call("memory", action="link", id=oslo, target=office, type="contradicts")
    world = living.restart()

    answer = world.call("search", query="Is the Oslo office open on Fridays?", record=False, min_confidence=0)
    assert answer["results"][0]["id"] == oslo
