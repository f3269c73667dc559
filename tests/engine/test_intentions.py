"""Intentions under the hood: several who look at once, the clock's own news, limits and reach."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest

from testbed.world import START, HandClock, World, open_world
from tests.store.support.sqlite_files import open_at
from vestige.cognition.intentions.triggers import TriggerSituation
from vestige.core.errors import InvalidInput, NotFound
from vestige.core.events import IntentionTriggered, MemoryCreated
from vestige.core.models import Access, Filter
from vestige.engine import intentions
from vestige.engine.context import Call
from vestige.engine.intentions import check, drop_ended, on_created, poll
from vestige.operations.registry.groups import registry


def intend(world: World, description: str, **arguments: Any) -> str:
    return str(world.call("intention", action="set", description=description, **arguments)["intentionId"])


def announced(world: World) -> list[str]:
    return [one.description for one in world.heard if isinstance(one, IntentionTriggered)]


def created(world: World, content: str, **arguments: Any) -> None:
    """A memory is written, and the reaction to it runs."""
    world.remember(content, **arguments)
    (news,) = [
        one
        for one in world.heard
        if isinstance(one, MemoryCreated) and content.startswith(one.content_preview)
    ]
    on_created(Call(engine=world.app.engine), [news])


@contextmanager
def two_worlds(folder: Path) -> Iterator[tuple[World, World]]:
    """Two who have the same store open."""
    clock = HandClock()
    with open_world(folder, clock=clock) as one, open_world(folder, clock=clock) as other:
        yield one, other


def test_of_two_who_look_at_once_one_is_the_first(tmp_path: Path) -> None:
    with two_worlds(tmp_path) as both:
        for number in range(20):
            intend(both[0], f"Do {number}.", trigger={"in_minutes": 1})
        both[0].clock.now += timedelta(minutes=1)
        barrier = Barrier(2)
        firsts: list[str] = []
        seen: list[int] = []

        def look(world: World) -> None:
            barrier.wait()
            found = check(
                Call(engine=world.app.engine), TriggerSituation(now=world.clock.now), Filter(), limit=100
            )
            seen.append(len(found.triggered))
            firsts.extend(one.after.id for one in found.triggered if one.counted)

        threads = [Thread(target=look, args=(world,)) for world in both]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert seen == [20, 20]
        assert len(firsts) == len(set(firsts)) == 20
        assert sorted(announced(both[0]) + announced(both[1])) == sorted(
            f"Do {number}." for number in range(20)
        )


def test_the_clock_announces_once_and_the_next_check_tells_all_the_same(world: World) -> None:
    intend(world, "Call Bob.", trigger={"in_minutes": 5})
    intend(world, "Check the indexes.", trigger={"codebase": "shop"})
    call = Call(engine=world.app.engine)

    assert poll(call) == ()
    world.clock.now += timedelta(minutes=5)
    assert [one.description for one in poll(call)] == ["Call Bob."]
    assert poll(call) == ()
    (told,) = world.call("intention", action="check")["triggered"]
    assert told["first"]
    assert announced(world) == ["Call Bob."]


def test_a_rule_is_announced_every_time_it_comes_up(world: World) -> None:
    intend(world, "Stretch every day at 10:00")
    call = Call(engine=world.app.engine)
    for _ in range(3):
        world.clock.now += timedelta(days=1)
        poll(call)

    assert announced(world) == ["Stretch"] * 3
    (told,) = world.call("intention", action="check")["triggered"]
    assert told["missed"] == 2


def test_a_memory_that_tells_of_an_event_brings_it_up(world: World) -> None:
    intend(world, "Renew it.", trigger={"condition": "certificate expired"})
    created(world, "The certificate is fine.")
    assert announced(world) == []
    created(world, "This morning the certificate of the shop expired.")

    assert announced(world) == ["Renew it."]
    (told,) = world.call("intention", action="check")["triggered"]
    assert told["description"] == "Renew it."
    assert announced(world) == ["Renew it."]


def test_tags_tell_of_an_event_too_and_foreign_scopes_do_not(world: World) -> None:
    intend(world, "Write the notes.", trigger={"condition": "release"}, scope="/project/shop")
    created(world, "It went well.", tags=["release"], scope="/project/other")
    assert world.call("intention", action="check", scope="/project/shop")["triggered"] == []
    created(world, "It went very well here.", tags=["release"], scope="/project/shop/web")

    assert len(world.call("intention", action="check", scope="/project/shop")["triggered"]) == 1


def test_a_scope_holds_so_many_and_no_more(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intentions, "MOST", 3)
    names = [intend(world, f"Do {number}.", scope="/a") for number in range(3)]
    intend(world, "Elsewhere.", scope="/a/b")

    error = world.refused("intention", action="set", description="One more.", scope="/a")
    assert (error["code"], error["details"]) == (InvalidInput.code, {"scope": "/a", "limit": 3})
    world.call("intention", action="update", id=names[0], status="complete")
    intend(world, "One more.", scope="/a")


def test_what_ended_long_ago_is_tidied_away(world: World) -> None:
    call = Call(engine=world.app.engine)
    done, kept = intend(world, "Done."), intend(world, "Kept.")
    world.call("intention", action="update", id=done, status="complete")
    world.clock.now += timedelta(days=30)
    assert drop_ended(call) == 0
    world.clock.now += timedelta(days=1)

    assert drop_ended(call) == 1
    assert drop_ended(call) == 0
    assert world.refused("intention", action="update", id=done, status="resume")["code"] == "not_found"
    assert world.call("intention", action="update", id=kept, status="complete")["success"]


def test_a_call_reaches_only_the_intentions_in_its_reach(world: World) -> None:
    own = intend(world, "Own.", trigger={"in_minutes": 1}, scope="/user/ada")
    other = intend(world, "Other.", trigger={"in_minutes": 1}, scope="/user/eve")
    world.clock.now += timedelta(minutes=1)
    call = Call(engine=world.app.engine, access=Access(scopes=("/user/ada",)), scope="/user/ada")

    checked = registry.operations["intention.check"].call(call, {"scope": "/"})
    assert [one["id"] for one in checked["triggered"]] == [own]
    with pytest.raises(NotFound, match="There is no intention"):
        registry.operations["intention.update"].call(call, {"id": other, "status": "complete"})


def test_more_intentions_than_a_page_holds_are_all_looked_at(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intentions, "PAGE", 4)
    for number in range(10):
        intend(world, f"Do {number}.", trigger={"at": START.isoformat()})

    assert world.call("intention", action="check")["totalTriggered"] == 10


def test_where_nothing_can_be_written_who_looks_is_told_all_the_same(tmp_path: Path) -> None:
    with open_world(tmp_path / "data") as world:
        intend(world, "Call Bob.", trigger={"at": START.isoformat()})
        world.app.engine.store.backup(tmp_path / "copy.db")
        with closing(open_at(tmp_path / "copy.db", read_only=True)) as reader:
            call = Call(engine=replace(world.app.engine, store=reader))
            told = [check(call, TriggerSituation(now=START), Filter(), limit=9).triggered for _ in range(2)]

    assert [[one.after.description for one in each] for each in told] == [["Call Bob."]] * 2
