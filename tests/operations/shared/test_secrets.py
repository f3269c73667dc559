"""Secrets at every door through which words come in."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from testbed.world import World, open_world
from vestige.core.models import ANYTHING, EVERYTHING
from vestige.engine.ingest.secrets import find_in_fields

KEY = "ghp_" + "a8Kx93mPq0ZvT2rYw7LdNc51sBfUeJhGi4Xo"  # made up
TEXT = f"The mirror is cloned\nwith the token {KEY} of the bot."
CLEAN = "The mirror is cloned\nwith the token [redacted: GitHub token] of the bot."


def everything_in(world: World) -> str:
    """All that the store holds, as text."""
    store = world.app.engine.store
    return repr([life for batch in store.histories(access=EVERYTHING) for life in batch])


def remembered(world: World) -> str:
    return world.remember("The bot clones the mirror at night.")


def nested(value: Any, depth: int) -> Any:
    for level in range(depth):
        value = {"a": value} if level % 2 else [value]
    return value


Door = Callable[[World], tuple[str, dict[str, Any]]]

DOORS: dict[str, Door] = {
    "content": lambda w: ("smart_ingest", {"content": TEXT}),
    "tags": lambda w: ("smart_ingest", {"content": "A mirror.", "tags": ["ok", KEY]}),
    "source": lambda w: ("smart_ingest", {"content": "A mirror.", "source": f"https://x:{KEY}@git.test"}),
    "author": lambda w: ("smart_ingest", {"content": "A mirror.", "author": KEY}),
    "node_type": lambda w: ("smart_ingest", {"content": "A mirror.", "node_type": KEY}),
    "thread": lambda w: ("smart_ingest", {"content": "A mirror.", "thread": KEY}),
    "session": lambda w: ("smart_ingest", {"content": "A mirror.", "session_id": KEY}),
    "agent": lambda w: ("smart_ingest", {"content": "A mirror.", "agent_id": KEY}),
    "scope": lambda w: ("smart_ingest", {"content": "A mirror.", "scope": f"/project/{KEY}"}),
    "domains": lambda w: ("smart_ingest", {"content": "A mirror.", "domains": [KEY]}),
    "metadata": lambda w: ("smart_ingest", {"content": "A mirror.", "metadata": {"a": [{"b": KEY}]}}),
    "a key of metadata": lambda w: ("smart_ingest", {"content": "A mirror.", "metadata": {KEY: 1}}),
    "a named value of metadata": lambda w: (
        "smart_ingest",
        {"content": "A mirror.", "metadata": {"env": [{"name": "MIRROR", "value": KEY}]}},
    ),
    "deep metadata": lambda w: (
        "smart_ingest",
        {"content": "A mirror.", "metadata": {"a": nested(KEY, 180)}},
    ),
    "items": lambda w: ("smart_ingest", {"items": [{"content": "Fine."}, {"content": TEXT}]}),
    "edit": lambda w: ("memory", {"action": "edit", "id": remembered(w), "content": TEXT}),
    "tag": lambda w: ("memory", {"action": "tag", "id": remembered(w), "add": [KEY]}),
    "rename_tag": lambda w: ("memory", {"action": "rename_tag", "tag": "bots", "to": KEY}),
    "pattern": lambda w: (
        "codebase",
        {"action": "remember_pattern", "name": "Mirrors", "description": TEXT, "codebase": "shop"},
    ),
    "decision": lambda w: (
        "codebase",
        {"action": "remember_decision", "decision": "Mirror.", "rationale": "Fast.", "alternatives": [TEXT]},
    ),
    "files": lambda w: (
        "codebase",
        {"action": "remember_pattern", "name": "Mirrors", "description": "Nightly.", "files": [KEY]},
    ),
    "intention": lambda w: ("intention", {"action": "set", "description": TEXT}),
    "trigger": lambda w: (
        "intention",
        {"action": "set", "description": "Look.", "trigger": {"condition": f"the token {KEY} expires"}},
    ),
    "part of a trigger": lambda w: (
        "intention",
        {
            "action": "set",
            "description": "Look.",
            "trigger": {"all": [{"topic": f"token {KEY}"}, {"codebase": "shop"}]},
        },
    ),
    "new words for an intention": lambda w: (
        "intention",
        {
            "action": "update",
            "id": w.call("intention", action="set", description="Look at the mirror.")["intentionId"],
            "description": TEXT,
        },
    ),
}


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_a_secret_is_refused_at_every_door_and_nothing_of_it_is_kept(
    door: Door, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.remember("Bots have tags.", tags=["bots"])
    tool, arguments = door(world)
    before = everything_in(world)
    world.heard.clear()
    with caplog.at_level(logging.DEBUG):
        error = world.refused(tool, **arguments)
    assert error["code"] == "secret_found"
    assert error["details"]["secrets"][0]["kind"] == "GitHub token"
    assert error["details"]["secrets"][0]["excerpt"] == "ghp_…i4Xo"
    for told in (repr(error), repr(world.heard), caplog.text, everything_in(world)):
        assert KEY not in told
    assert everything_in(world) == before


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_redacting_stores_all_but_the_secret_at_every_door(door: Door, world: World) -> None:
    world.remember("Bots have tags.", tags=["bots"])
    tool, arguments = door(world)
    answer = world.call(tool, **arguments, secrets="redact")
    assert "[redacted: GitHub token]" in everything_in(world)
    for told in (repr(answer), repr(world.heard), everything_in(world)):
        assert KEY not in told


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_a_secret_that_is_allowed_is_stored_as_it_is_at_every_door(door: Door, world: World) -> None:
    world.remember("Bots have tags.", tags=["bots"])
    tool, arguments = door(world)
    world.call(tool, **arguments, secrets="allow")
    assert KEY in everything_in(world)


def test_the_refusal_names_the_kind_the_place_and_what_to_do(world: World) -> None:
    error = world.refused("smart_ingest", content=TEXT)
    assert error["message"] == (
        "`content` holds a secret (GitHub token, line 2, column 16: ghp_…i4Xo). Nothing was stored."
    )
    assert "redact" in error["hint"]
    assert "allow" in error["hint"]
    assert error["details"]["secrets"] == [
        {"kind": "GitHub token", "argument": "content", "line": 2, "column": 16, "excerpt": "ghp_…i4Xo"}
    ]


def test_a_batch_with_a_secret_in_one_item_is_refused_whole_and_says_which(world: World) -> None:
    error = world.refused("smart_ingest", items=[{"content": "Fine."}, {"content": TEXT}])
    assert error["details"]["index"] == 1
    assert world.app.engine.store.count(ANYTHING, access=EVERYTHING) == 0


def test_redacted_text_is_what_is_found_and_shown(world: World) -> None:
    name = world.remember(TEXT, secrets="redact")
    assert world.get(name)["content"] == CLEAN
    assert world.find("mirror cloned token") == [CLEAN]


def test_of_a_password_nothing_is_shown(world: World) -> None:
    error = world.refused("smart_ingest", content="The wifi password is Kuchen-77-blau.")
    assert error["details"]["secrets"][0]["excerpt"] == "…"
    assert "Kuchen" not in repr(error)


def test_a_secret_in_metadata_is_known_by_its_key(world: World) -> None:
    error = world.refused("smart_ingest", content="The router.", metadata={"wifi": {"password": "kuchen77"}})
    told = error["details"]["secrets"][0]
    assert (told["argument"], told["line"], told["column"]) == ("metadata.wifi.password", 1, 1)


@pytest.mark.parametrize(
    ("metadata", "kind"),
    [
        ({"db": {"password": {"value": "kuchen77"}}}, "password"),
        ({"env": [{"name": "DB_PASSWORD", "value": "kuchen77"}]}, "password"),
        ({"key": "wifi password", "text": "kuchen77"}, "password"),
        ({"command": ["psql", "--password", "kuchen77"]}, "password"),
        ({"door": {"pin": 471108}}, "PIN"),
        ({"pаssword": "ｋｕｃｈｅｎ７７"}, "password"),
        ({"a": {f"{KEY[:9]}\u200b{KEY[9:]}": [1]}}, "GitHub token"),
    ],
    ids=str,
)
def test_a_secret_in_nested_metadata_is_known_by_the_names_around_it(
    metadata: dict[str, Any], kind: str, world: World
) -> None:
    error = world.refused("smart_ingest", content="The router.", metadata=metadata)
    assert error["details"]["secrets"][0]["kind"] == kind
    kept = world.get(world.remember("The router.", metadata=metadata, secrets="redact"))
    assert f"[redacted: {kind}]" in repr(kept["metadata"])


def test_two_redacted_keys_of_metadata_are_both_kept(world: World) -> None:
    other = "ghp_" + KEY[:3:-1]
    kept = world.get(world.remember("A mirror.", metadata={KEY: 1, other: 2}, secrets="redact"))
    assert sorted(kept["metadata"].values()) == [1, 2]


def test_metadata_nested_deeper_than_any_call_allows_is_searched_and_redacted_as_a_whole() -> None:
    clean, found = find_in_fields(
        {"body": nested({"password": [KEY, 5]}, 5_000), "other": nested("x", 5_000)}
    )
    assert [one.kind for one in found] == ["GitHub token"]
    assert list(clean) == ["body"]


def test_a_retry_of_a_redacted_request_gives_the_same_answer(world: World) -> None:
    first = world.call("smart_ingest", content=TEXT, secrets="redact", idempotency_key="k")
    again = world.call("smart_ingest", content=TEXT, secrets="redact", idempotency_key="k")
    assert again == {**first, "replayed": True}


def test_a_refused_request_leaves_its_idempotency_key_free(world: World) -> None:
    world.refused("smart_ingest", content=TEXT, idempotency_key="k")
    assert world.call("smart_ingest", content="The mirror.", idempotency_key="k")["replayed"] is False


def test_an_idempotency_key_is_nowhere_in_the_files(tmp_path: Path) -> None:
    """Some make it of a token; nobody who scans for secrets would find it there."""
    data = tmp_path / "data"
    with open_world(data) as world:
        first = world.call("smart_ingest", content="The mirror.", idempotency_key=KEY)
    with open_world(data) as world:
        again = world.call("smart_ingest", content="The mirror.", idempotency_key=KEY)
        files = [path for path in data.rglob("*") if path.is_file()]
        holding = [path for path in files if KEY.encode() in path.read_bytes()]

    assert again == {**first, "replayed": True}
    assert (data / "vestige.db") in files
    assert holding == []


def test_the_setting_says_what_happens_when_a_call_does_not(tmp_path: Path) -> None:
    redacting: dict[str, Any] = {"memory.secrets": "redact"}
    with open_world(tmp_path / "data", **redacting) as world:
        assert world.get(world.remember(TEXT))["content"] == CLEAN
        assert world.refused("smart_ingest", content=TEXT, secrets="refuse")["code"] == "secret_found"
    allowing: dict[str, Any] = {"memory.secrets": "allow"}
    with open_world(tmp_path / "other", **allowing) as world:
        assert KEY in world.get(world.remember(TEXT))["content"]


PASSING = {
    "promote": ("memory", {"action": "promote", "reason": f"token {KEY}"}),
    "demote": ("memory", {"action": "demote", "reason": f"token {KEY}"}),
    "suppress": ("suppress", {"reason": f"token {KEY}"}),
    "search": ("search", {"query": f"mirror {KEY}", "contextTopics": [KEY], "contextFile": KEY}),
    "predict": ("predict", {"context": {"codebase": KEY}}),
    "session": ("session_context", {"queries": [KEY]}),
    "reference": ("deep_reference", {"query": f"why {KEY}"}),
}


@pytest.mark.parametrize("passing", PASSING.values(), ids=PASSING)
def test_arguments_that_are_not_stored_leave_no_trace_of_a_secret(
    passing: tuple[str, dict[str, Any]], tmp_path: Path
) -> None:
    tool, arguments = passing
    with open_world(tmp_path / "data") as world:
        own = {"id": remembered(world)} if "reason" in arguments else {}
        world.call(tool, **own, **arguments)
        assert KEY.casefold() not in everything_in(world).casefold()
        assert KEY not in repr(world.heard)
    files = [path for path in (tmp_path / "data").rglob("*") if path.is_file()]
    assert files
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []


def test_a_search_for_a_secret_leaves_no_trace_of_it(world: World) -> None:
    world.remember("The mirror is cloned by the bot with a token.")
    for _ in range(2):
        world.call("search", query=f"mirror bot token {KEY}")
    assert KEY.casefold() not in everything_in(world).casefold()
    assert KEY not in repr(world.heard)
