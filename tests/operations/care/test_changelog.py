"""`memory_changelog`: what changed, newest first, on every store; no text but of what can still be read."""

import json
from pathlib import Path
from typing import Any

import pytest

from testbed.world import HandClock, World, open_world
from vestige.core.errors import NotFound
from vestige.core.models import Access
from vestige.engine.context import Call
from vestige.operations.registry.groups import registry

IN_A: dict[str, Any] = {"memory.scope": "/project/a"}
CHANGELOG = registry.operations["memory_changelog"]


def told(world: World, **arguments: Any) -> list[tuple[str, str]]:
    log = world.call("memory_changelog", **arguments)
    return [(one["change"], one["memoryId"]) for one in log["changes"]]


def lived(world: World) -> tuple[str, str]:
    """A fact that is edited, shown, promoted and superseded, one change a day; the old and the new one."""
    old = world.remember("The service runs on PostgreSQL 14.")
    world.clock.advance(days=1)
    world.call("memory", action="edit", id=old, content="The service runs on PostgreSQL 15.")
    world.clock.advance(days=1)
    world.call("search", query="PostgreSQL")
    world.app.settle()
    world.clock.advance(days=1)
    world.call("memory", action="promote", id=old)
    world.clock.advance(days=1)
    answer = world.call("smart_ingest", content="The service runs on PostgreSQL 16.")
    assert answer["supersededId"] == old
    return old, answer["nodeId"]


def test_one_memory_tells_everything_that_happened_to_it(world: World) -> None:
    old, new = lived(world)

    log = world.call("memory_changelog", memory_id=old)

    assert [one["change"] for one in log["changes"]] == [
        "superseded",
        "remarked",
        "remarked",
        "revised",
        "created",
    ]
    superseded, promoted, shown, edited, created = log["changes"]
    assert (superseded["reason"], set(superseded["fields"])) == (
        "superseded",
        {"valid_until", "superseded_by"},
    )
    assert (promoted["evidence"], shown["evidence"]) == ("promoted", "exposed")
    assert (edited["fields"], edited["reason"]) == (["content"], "edit")
    assert created["timestamp"] == "2026-03-01T09:00:00Z"
    assert (log["supersededBy"], log["more"], log["filter"]) == (new, False, {"memoryId": old})


def test_everywhere_changes_are_told_newest_first_without_what_was_merely_shown(world: World) -> None:
    old, new = lived(world)

    assert told(world) == [
        ("linked", new),
        ("superseded", old),
        ("created", new),
        ("remarked", old),
        ("revised", old),
        ("created", old),
    ]
    link = world.call("memory_changelog")["changes"][0]
    assert (link["link"], link["targetId"]) == ("supersedes", old)


def test_time_is_judged_before_the_limit(world: World) -> None:
    old, new = lived(world)

    assert told(world, end="2026-03-02", limit=1) == [("revised", old)]
    assert told(world, start="2026-03-02", end="2026-03-04") == [("remarked", old), ("revised", old)]
    assert told(world, start="2026-03-05") == [("linked", new), ("superseded", old), ("created", new)]
    assert world.call("memory_changelog", limit=2)["more"] is True
    assert told(world, memory_id=old, end="2026-03-01") == [("created", old)]


def test_a_batch_that_shares_one_moment_is_read_page_by_page(world: World) -> None:
    world.call(
        "smart_ingest",
        items=[{"content": f"Shelf {n} holds jar {n}.", "force_create": True} for n in range(7)],
    )
    whole = world.call("memory_changelog", limit=100)["changes"]
    assert len({one["timestamp"] for one in whole}) == 1

    page = world.call("memory_changelog", limit=3)
    read = page["changes"]
    while page["more"]:
        page = world.call("memory_changelog", limit=3, before=page["next"])
        assert page["shown"] == len(page["changes"]) > 0
        read += page["changes"]
    assert (read, "next" in page) == (whole, False)
    assert [one["position"] for one in whole] == sorted({one["position"] for one in whole}, reverse=True)


def test_the_changes_of_one_memory_are_paged_too(world: World) -> None:
    old, _ = lived(world)
    whole = world.call("memory_changelog", memory_id=old)["changes"]

    first = world.call("memory_changelog", memory_id=old, limit=4)
    rest = world.call("memory_changelog", memory_id=old, before=first["next"])

    assert [*first["changes"], *rest["changes"]] == whole
    assert (rest["more"], "next" in rest) == (False, False)


def test_a_deleted_memory_keeps_its_log_and_nothing_of_its_text(world: World) -> None:
    gone = world.remember("The spare keyboard is in the attic.")
    world.call("memory", action="delete", id=gone)

    whole, own = world.call("memory_changelog"), world.call("memory_changelog", memory_id=gone)

    assert [one["change"] for one in own["changes"]] == ["deleted", "created"]
    assert own["changes"] == whole["changes"]
    assert "attic" not in str(whole)
    assert "attic" not in CHANGELOG.render(CHANGELOG.answer(Call(engine=world.app.engine), {}))


def test_the_preview_is_of_the_memory_as_it_is_now(world: World) -> None:
    one = world.remember("Ada drinks coffee.")
    world.call("memory", action="edit", id=one, content="Ada drinks tea.")

    assert {change["preview"] for change in world.call("memory_changelog")["changes"]} == {"Ada drinks tea."}


def test_changes_are_those_of_every_scope_unless_one_is_asked_for(tmp_path: Path) -> None:
    with open_world(tmp_path, **IN_A) as world:
        own = world.remember("Ours is blue.")
        shared = world.remember("Ada is left-handed.", scope="/user/ada")
        other = world.remember("Theirs is red.", scope="/project/b")

        log = world.call("memory_changelog")

        assert {one["memoryId"] for one in log["changes"]} == {own, shared, other}
        assert log["scope"] == "/"
        assert told(world, scope="/project/b") == [("created", other)]
        assert {one for _, one in told(world, scope="/")} == {own, shared, other}


def test_what_is_out_of_reach_is_neither_told_nor_there(world: World) -> None:
    mine = world.remember("Ours is blue.", scope="/project/a")
    theirs = world.remember("Theirs is red.", scope="/project/b")
    call = Call(engine=world.app.engine, access=Access(scopes=("/project/a",)))

    log = CHANGELOG.call(call, {"scope": "/"})

    assert [one["memoryId"] for one in log["changes"]] == [mine]
    with pytest.raises(NotFound, match="There is no memory"):
        CHANGELOG.call(call, {"memory_id": theirs})


def test_the_changelog_survives_a_restart(tmp_path: Path) -> None:
    clock = HandClock()
    with open_world(tmp_path, clock=clock) as world:
        lived(world)
        world.app.settle()
        before = world.call("memory_changelog")
    with open_world(tmp_path, clock=clock) as world:
        assert world.call("memory_changelog") == before


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"memory_id": "no-such-memory"}, "not_found"),
        ({"memory_id": ""}, "invalid_input"),
        ({"start": "2026-03-02", "end": "2026-03-01"}, "invalid_input"),
        ({"start": "at some time"}, "invalid_input"),
        ({"limit": 0}, "invalid_input"),
        ({"limit": 101}, "invalid_input"),
        ({"before": 0}, "invalid_input"),
        ({"before": 2**63}, "invalid_input"),
        ({"memory_id": "x", "scope": "/a"}, "invalid_input"),
    ],
)
def test_bad_input_is_refused(world: World, arguments: dict[str, Any], code: str) -> None:
    assert world.refused("memory_changelog", **arguments)["code"] == code


def test_sleep_is_told_with_the_states_that_changed(world: World) -> None:
    memory_id = world.remember("Ada drinks green tea.")
    world.clock.advance(days=60)
    world.call("consolidate")

    changes = world.call("memory_changelog")["changes"]

    assert [one["change"] for one in changes] == ["consolidated", "state", "created"]
    assert (changes[0]["document"], "memoryId" in changes[0]) == ("consolidation", False)
    moved = {"memoryId": memory_id, "fromState": "active", "toState": "dormant", "reason": "time_decay"}
    assert moved.items() <= changes[1].items()
    assert world.call("memory_changelog", memory_id=memory_id)["changes"][0] == changes[1]


def test_evidence_that_changes_a_state_says_so(world: World) -> None:
    memory_id = world.remember("Ada drinks green tea.")
    world.call("memory", action="demote", id=memory_id)

    change = world.call("memory_changelog", memory_id=memory_id)["changes"][0]

    assert (change["change"], change["fromState"], change["toState"]) == ("remarked", "active", "dormant")


def test_links_that_were_cut_are_told(world: World) -> None:
    one, other = world.remember("Ada drinks green tea."), world.remember("The parser is in Rust.")
    world.call("memory", action="link", id=one, target=other, type="causal")
    world.call("memory", action="unlink", id=one, target=other)

    change = world.call("memory_changelog")["changes"][0]

    assert (change["change"], change["link"], change["targetId"]) == ("unlinked", "causal", other)


def test_a_strength_that_was_brought_along_is_told(world: World, tmp_path: Path) -> None:
    file = tmp_path / "old.jsonl"
    memory_id = "01890000-0000-7000-9000-000000000001"
    file.write_text(json.dumps({"id": memory_id, "content": "Tea.", "stability": 3.0, "reps": 1}) + "\n")
    world.app.run(registry.operations["import"], {"path": str(file)}, lambda *_: None)
    assert [change for change, _ in told(world, memory_id=memory_id)] == ["brought along", "created"]
