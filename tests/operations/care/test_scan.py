"""`scan`: secrets that are stored already."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from testbed.world import World
from tests.operations.shared.test_secrets import CLEAN, KEY, TEXT, everything_in
from vestige.core.models import ANYTHING, EVERYTHING, LogEvent
from vestige.engine.care.keys import mint
from vestige.engine.context import Call
from vestige.operations.care.scan import ScanResult
from vestige.operations.registry.groups import registry
from vestige.store.contract.changes import Change, Forget


def scan(world: World, **arguments: Any) -> ScanResult:
    operation = registry.operations["scan"]
    result = world.app.run(operation, arguments, lambda done, total, what: None)
    assert isinstance(result, ScanResult)
    return result


def test_a_store_without_secrets_is_clean_and_the_exit_code_says_so(world: World) -> None:
    world.remember("The mirror is cloned at night.")
    result = scan(world)
    assert (result.found, result.memories, result.exit_code) == (0, 1, 0)


def test_secrets_are_found_in_text_tags_sources_metadata_and_intentions(world: World) -> None:
    held = world.remember(
        TEXT, tags=[KEY], source=f"https://x:{KEY}@git.test", metadata={"password": "kuchen77"},
        secrets="allow",
    )  # fmt: skip
    intention = world.call("intention", action="set", description=f"Revoke {KEY}", secrets="allow")
    result = scan(world)
    memory = {(one.field, one.secret) for one in result.findings if one.id == held}
    assert memory == {
        ("content", "GitHub token"),
        ("tags", "GitHub token"),
        ("source", "GitHub token"),
        ("metadata.password", "password"),
    }
    others = {(one.entity, one.id) for one in result.findings if one.id != held}
    assert others == {("intention", intention["intentionId"])}
    assert result.exit_code == 1
    assert KEY not in result.model_dump_json()


def test_a_secret_in_the_label_of_a_key_is_found_and_redacted(world: World) -> None:
    key, _ = mint(Call(engine=world.app.engine), f"bot {KEY}", ["read"])  # as older versions stored it
    (one,) = scan(world).findings
    assert (one.entity, one.id, one.field, one.secret) == ("api_key", key.id, "label", "GitHub token")
    assert scan(world, redact=True).redacted_documents == 1
    assert scan(world).found == 0
    (kept,) = world.app.engine.store.list_keys()
    assert kept == replace(key, label="bot [redacted: GitHub token]")


def test_a_secret_that_only_the_history_holds_is_found_with_its_revision(world: World) -> None:
    held = world.remember(TEXT, secrets="allow")
    world.call("memory", action="edit", id=held, content="The mirror is cloned by the bot.")
    (one,) = scan(world).findings
    assert (one.id, one.revisions, one.present) == (held, [1], False)


def test_redacting_leaves_no_trace_of_a_secret_anywhere(world: World) -> None:
    held = world.remember(TEXT, secrets="allow", idempotency_key="k")
    world.call("memory", action="edit", id=held, content=f"{TEXT} Really.", secrets="allow")
    world.call("intention", action="set", description=f"Revoke {KEY}", secrets="allow")
    world.call("search", query="mirror token bot")
    result = scan(world, redact=True)
    assert result.exit_code == 0
    assert KEY not in everything_in(world)
    assert scan(world).found == 0
    new = (result.replaced or {})[held]
    assert world.get(new)["content"] == f"{CLEAN} Really."
    assert world.call("memory", action="history", id=new)["revisions"] == []
    assert world.find("mirror cloned") == [f"{CLEAN} Really."]
    assert world.refused("memory", action="get", id=held)["code"] == "not_found"
    (kept,) = world.call("intention", action="list")["intentions"]
    assert kept["description"] == "Revoke [redacted: GitHub token]"


def test_what_takes_the_place_keeps_strength_links_and_the_rest(world: World) -> None:
    held = world.remember(TEXT, secrets="allow", tags=["mirror"], pinned=True)
    other = world.remember("Backups run on Sundays at noon.")
    world.call("memory", action="link", id=held, target=other)
    world.clock.advance(days=2)
    world.call("mark_reviewed", id=held, rating=4)
    before = world.app.engine.store.get_many([held], access=EVERYTHING)[0]
    new = (scan(world, redact=True).replaced or {})[held]
    after = world.app.engine.store.get_many([new], access=EVERYTHING)[0]
    assert after.strength == before.strength
    assert after.memory == replace(before.memory, id=new, content=CLEAN, revision=1)
    (edge,) = world.app.engine.store.edges([other], access=EVERYTHING)
    assert {edge.source_id, edge.target_id} == {new, other}


def test_what_it_had_superseded_stays_superseded(world: World) -> None:
    old = world.remember("The bot clones the mirror with the token of Ada.")
    held = world.remember(
        f"Correction: the bot clones the mirror with the token {KEY}, not with the token of Ada.",
        secrets="allow",
    )
    if world.get(old).get("supersededBy") != held:
        pytest.fail("the example is not one of superseding")
    new = (scan(world, redact=True).replaced or {})[held]
    assert world.get(old)["supersededBy"] == new


def test_an_untouched_memory_keeps_its_id_and_history(world: World) -> None:
    world.remember(TEXT, secrets="allow")
    fine = world.remember("Backups run on Sundays.")
    world.call("memory", action="edit", id=fine, content="Backups run on Mondays.")
    scan(world, redact=True)
    assert len(world.call("memory", action="history", id=fine)["revisions"]) == 1


def before_it_goes(monkeypatch: pytest.MonkeyPatch, world: World, act: Callable[[], object]) -> None:
    """Have somebody else act just before the next commit that ends a memory."""
    store, commit, acts = world.app.engine.store, world.app.engine.store.commit, [act]

    def late(changes: Sequence[Change], **rest: Any) -> list[LogEvent]:
        if acts and any(isinstance(change, Forget) for change in changes):
            acts.pop()()
        return commit(changes, **rest)

    monkeypatch.setattr(store, "commit", late)


def test_what_somebody_changes_while_a_memory_is_blacked_out_is_not_lost(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = world.remember(TEXT, secrets="allow")
    later = "The mirror is cloned by Ada, on port 9090."
    before_it_goes(monkeypatch, world, lambda: world.call("memory", action="edit", id=held, content=later))
    new = (scan(world, redact=True).replaced or {})[held]
    assert world.get(new)["content"] == later
    assert KEY not in everything_in(world)
    assert world.app.engine.store.count(ANYTHING, access=EVERYTHING) == 1


def test_a_memory_that_somebody_purges_meanwhile_does_not_stop_the_others(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = world.remember(TEXT, secrets="allow")
    other = world.remember(f"Backups are sent on Sundays with {KEY}.", secrets="allow")
    before_it_goes(monkeypatch, world, lambda: world.call("memory", action="purge", id=gone, confirm=True))
    assert set(scan(world, redact=True).replaced or {}) == {other}
    assert KEY not in everything_in(world)
