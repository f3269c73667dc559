"""The archive: what has faded is put aside by `gc`, comes up nowhere, and comes back as it was."""

from testbed.world import World
from tests.system.mechanisms.conftest import Living

FADED = "The staging password hint is the name of Ottavio's first cello."
KEPT = "Staging is deployed from the release branch."
QUERY = "staging"


def fade(world: World, memory_id: str, *, days: float = 60) -> None:
    for _ in range(4):
        world.call("memory", action="demote", id=memory_id)
    world.clock.advance(days=days)


def test_what_has_faded_is_put_aside_and_brought_back_as_it_was_after_restarts(living: Living) -> None:
    faded = living.world.remember(FADED)
    living.world.remember(KEPT)
    fade(living.world, faded)
    world = living.world
    before = world.get(faded)

    shown = world.call("gc")
    assert (shown["dryRun"], shown["candidateCount"], shown["archived"]) == (True, 1, 0)
    assert set(world.find(QUERY, record=False)) == {FADED, KEPT}

    run = world.call("gc", dry_run=False)
    assert run["archived"] == 1
    world = living.restart()
    assert world.find(QUERY, record=False) == [KEPT]
    assert [one["content"] for one in world.call("memory", action="list")["results"]] == [KEPT]
    assert world.get(faded)["content"] == FADED
    assert world.call("archive", action="list")["archives"][0]["ids"] == [faded]

    world.call("archive", action="undo", id=run["archiveId"])
    world = living.restart()
    assert set(world.find(QUERY, record=False)) == {FADED, KEPT}
    after = world.get(faded)
    changing = {"revision", "updatedAt"}
    assert {k: v for k, v in after.items() if k not in changing} == {
        k: v for k, v in before.items() if k not in changing
    }
