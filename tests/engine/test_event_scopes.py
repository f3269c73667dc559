"""Where things happen: every event says so as it is emitted, and truly."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from testbed.world import World
from vestige.core.events import (
    KINDS,
    BackupCompleted,
    DomainsChanged,
    Event,
    EventScope,
    ImportanceScored,
    IntentionTriggered,
    MemoryDeleted,
    MemoryUpdated,
    Rac1CascadeSwept,
    SearchPerformed,
    StoreMerged,
)
from vestige.core.models import EVERYTHING, Access
from vestige.engine.context import Call
from vestige.engine.reactions.relay import MEMORIES
from vestige.engine.revise import revise

TEA, PRIVATE = "/project/tea", "/private"
STORE_WIDE = (BackupCompleted, DomainsChanged, Rac1CascadeSwept)
DRINKS = (
    "Ada prefers green tea from Uji in the morning.",
    "Green tea from Uji must not be brewed with boiling water.",
    "The kettle in the kitchen has a thermometer for green tea.",
    "Bob drinks his coffee black, after lunch only.",
    "The coffee machine is descaled on the first Monday of a month.",
    "Cocoa is kept on the upper shelf, behind the sugar.",
)


def tea(world: World, text: str, **more: Any) -> str:
    return world.remember(text, scope=TEA, domains=["drinks"], force_create=True, **more)


def live(world: World) -> dict[str, EventScope]:
    """Have everything happen that can; where the memories are that it happens to."""
    ids = [tea(world, text) for text in DRINKS]
    secret = world.remember("The diary lies under the bed!", scope=PRIVATE, domains=["diary"])
    places = dict.fromkeys(ids, EventScope(scope=TEA, domains=("drinks",)))
    places[secret] = EventScope(scope=PRIVATE, domains=("diary",))
    world.call("memory", action="link", id=ids[0], target=secret)
    world.call("memory", action="link", id=ids[0], target=ids[1])
    world.call("memory", action="promote", id=ids[0])
    world.call("memory", action="edit", id=ids[5], content="Cocoa is kept on the lower shelf.")
    world.call("search", query="green tea", scope=TEA)
    world.call("search", query="diary under the bed", scope="/")
    world.call("importance_score", content="A kettle exploded! Everybody was terribly frightened.")
    world.call("intention", action="set", description="Buy tea.", scope=TEA, trigger={"in_minutes": 5})
    world.call("suppress", id=ids[3])
    world.call("suppress", id=ids[3], reverse=True)
    world.call("suppress", id=secret)
    world.app.settle()
    world.clock.advance(hours=25)
    world.app.autopilot.tick()
    world.call("dream", scope=TEA)
    for _ in range(12):
        world.call("memory", action="demote", id=ids[4])
    world.clock.advance(days=400)
    world.call("consolidate")
    archived = world.call("gc", scope=TEA, dry_run=False, even_most=True)["archiveId"]
    world.call("archive", action="undo", id=archived)
    world.call("memory", action="delete", id=ids[5])
    exported = Path(world.call("export", scope=TEA, format="json")["path"])
    (exported.parent / "notes.jsonl").write_text('{"content": "Milk goes in first."}\n', encoding="utf-8")
    world.call("import", path="notes.jsonl", scope=TEA)
    said = [{"role": "user", "text": "From now on, always serve the tea at four."}]
    world.call("capture", turns=said, scope=TEA)
    world.call("domains", action="create", label="Drinks")
    world.remember(DRINKS[0], scope=TEA, force_create=True)
    world.call("backup")
    return places


ON_A_FILE = pytest.mark.parametrize("world", ["sqlite"], indirect=True)
"""Only a store that lasts can be backed up, and what is told does not depend on it."""


@pytest.fixture
def heard(world: World) -> list[Event]:
    """Everything that can happen, each event checked against where its memories are."""
    places = live(world)
    for happening in world.heard:
        named = [value for name, value in happening.details().items() if name in MEMORIES and value]
        ids = [one for value in named for one in ((value,) if isinstance(value, str) else value)]
        expected = {places[one] for one in ids if one in places}
        if isinstance(happening, SearchPerformed):
            expected.add(EventScope(scope=happening.scope))
        assert expected <= set(happening.scopes or ()), happening
    return world.heard


@ON_A_FILE
def test_every_event_that_can_happen_says_where_it_did(heard: list[Event]) -> None:
    assert {type(one) for one in heard} == set(KINDS.values())
    assert all(one.scopes for one in heard if not isinstance(one, STORE_WIDE))
    assert all(one.scopes is None for one in heard if isinstance(one, STORE_WIDE))


@ON_A_FILE
def test_what_happens_to_one_memory_or_intention_tells_its_scope(heard: list[Event]) -> None:
    about_one = [one for one in heard if "id" in one.details()]
    assert {one.scope for one in about_one} == {TEA, PRIVATE}
    assert {one.scope for one in about_one if one.within(Access(scopes=(TEA,)))} == {TEA}


@ON_A_FILE
def test_a_filtered_listener_hears_of_its_own_memories_and_of_no_others(heard: list[Event]) -> None:
    in_scope = [one for one in heard if one.within(Access(scopes=(TEA,)))]
    in_domain = [one for one in heard if one.within(Access(domains=("drinks",)))]
    for told in (in_scope, in_domain):
        assert any(isinstance(one, MemoryDeleted) for one in told)
        assert "diary" not in str([one.message() for one in told])
    assert any(isinstance(one, SearchPerformed) for one in in_scope)
    nobodys = (SearchPerformed, IntentionTriggered, StoreMerged)
    assert not [one for one in in_domain if isinstance(one, nobodys)]
    assert all(one.within(EVERYTHING) for one in heard)


@ON_A_FILE
def test_a_text_that_is_only_judged_is_heard_where_its_teller_is(heard: list[Event]) -> None:
    judged = [one for one in heard if isinstance(one, ImportanceScored) and one.memory_id is None]
    assert [one.scopes for one in judged] == [(EventScope(scope="/"),)]


def test_what_a_memory_says_since_it_moved_is_not_heard_where_it_was(world: World) -> None:
    memory_id = tea(world, "Tea is in the cupboard.")
    call = Call(engine=world.app.engine)
    revise(
        call,
        memory_id,
        lambda memory: replace(memory, scope=PRIVATE, content="The diary is in the cupboard."),
        reason="moved",
    )
    (moved,) = [one for one in world.heard if isinstance(one, MemoryUpdated)]
    assert "diary" in moved.content_preview
    assert moved.within(Access(scopes=(PRIVATE,)))
    assert not moved.within(Access(scopes=(TEA,)))
