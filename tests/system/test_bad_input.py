"""Bad input and bad places, through the shipped entry points: a clear error, nothing half-written."""

import json
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from testbed.failures import each
from testbed.patience import PATIENCE_SECONDS
from testbed.world import HandClock, World, open_world
from vestige.core.errors import VestigeError
from vestige.core.models import Access
from vestige.engine.context import Call
from vestige.operations.registry.groups import registry

NOBODY = 65534


@each(
    ("tool", "arguments", "code", "said"),
    [
        ("smart_ingest", {"content": ""}, "invalid_input", "empty"),
        ("smart_ingest", {"content": " \n\t "}, "invalid_input", "empty"),
        ("smart_ingest", {"content": "x" * 2_000_000}, "too_large", "2,000,000"),
        ("smart_ingest", {"content": "a\0b"}, "invalid_input", "NUL"),
        ("smart_ingest", {"content": "a\ud800b"}, "invalid_input", "content"),
        ("smart_ingest", {"content": "a", "tags": ["x\0"]}, "invalid_input", "NUL"),
        ("smart_ingest", {"content": "a", "tags": [""]}, "invalid_input", "blank"),
        ("smart_ingest", {"content": "a", "tags": [f"t{n}" for n in range(101)]}, "too_large", "tags"),
        ("smart_ingest", {"content": "a", "metadata": {"x": "y" * 200_000}}, "too_large", "metadata"),
        ("smart_ingest", {"content": "a", "metadata": [1]}, "invalid_input", "metadata"),
        ("smart_ingest", {"content": "a", "scope": "/a/../b"}, "invalid_input", "scope"),
        ("smart_ingest", {"content": "a", "position": 2**70}, "invalid_input", "position"),
        ("smart_ingest", {"content": "a", "valid_from": "2026-02-30"}, "invalid_input", "valid_from"),
        (
            "smart_ingest",
            {"content": "a", "valid_from": "2026-02-02", "valid_until": "2026-01-15"},
            "invalid_input",
            "before `valid_from`",
        ),
        ("smart_ingest", {}, "invalid_input", "content"),
        ("smart_ingest", {"content": "a", "items": [{"content": "b"}]}, "invalid_input", "either"),
        ("smart_ingest", {"items": []}, "invalid_input", "empty"),
        ("smart_ingest", {"items": [{"content": "a"}], "tags": ["x"]}, "invalid_input", "tags"),
        ("smart_ingest", {"items": [{"content": "a"}] * 501}, "too_large", "items"),
        ("smart_ingest", {"content": 7}, "invalid_input", "content"),
        ("search", {"query": ""}, "invalid_input", "query"),
        ("search", {"query": "   "}, "invalid_input", "blank"),
        ("search", {"query": "a\0"}, "invalid_input", "NUL"),
        ("search", {"query": "a\udfff"}, "invalid_input", "query"),
        ("search", {"query": "x" * 100_000}, "too_large", "query"),
        ("search", {"query": "a", "limit": 0}, "invalid_input", "limit"),
        ("search", {"query": "a", "limit": 101}, "invalid_input", "limit"),
        ("search", {"query": "a", "limit": "many"}, "invalid_input", "limit"),
        ("search", {"query": "a", "detail_level": "huge"}, "invalid_input", "detail_level"),
        ("search", {"query": "a", "min_retention": 2}, "invalid_input", "min_retention"),
        ("search", {"query": "a", "token_budget": 1}, "invalid_input", "token_budget"),
        ("search", {"query": "a", "token_budget": 1_000_000}, "invalid_input", "token_budget"),
        ("search", {"query": "a", "as_of": "yesterday-ish"}, "invalid_input", "as_of"),
        ("search", {"query": "a", "known_at": "soon"}, "invalid_input", "known_at"),
        ("search", {"query": "a", "min_confidence": 1.5}, "invalid_input", "min_confidence"),
        ("search", {"query": "a", "retrieval_mode": "thorough"}, "invalid_input", "retrieval_mode"),
        (
            "search",
            {"query": "a", "created_from": "2026-03-02", "created_to": "2026-03-01"},
            "invalid_input",
            "created_from",
        ),
        (
            "memory",
            {"action": "list", "created_from": "2026-03-02", "created_to": "2026-03-02T00:00:00Z"},
            "invalid_input",
            "created_from",
        ),
        ("search", {"quer": "a"}, "unknown_argument", "quer"),
        ("search", {"query": "a", "limi": 3}, "unknown_argument", "limi"),
        ("memory", {"action": "get", "id": "no-such-id"}, "not_found", "no-such-id"),
        ("memory", {"action": "get", "id": "x" * 100}, "too_large", "id"),
        ("memory", {"action": "explode", "id": "x"}, "invalid_input", "explode"),
        ("memory", {"id": "x"}, "invalid_input", "action"),
        ("memory", {"action": ["get"], "id": "x"}, "invalid_input", "action"),
        ("memory", {"action": "get_batch", "ids": []}, "invalid_input", "ids"),
        ("memory", {"action": "list", "limit": 1000}, "invalid_input", "limit"),
        ("memory", {"action": "list", "offset": -1}, "invalid_input", "offset"),
        ("mark_reviewed", {"id": "x", "rating": 5}, "invalid_input", "rating"),
        ("memory_timeline", {"limit": 0}, "invalid_input", "limit"),
        ("gc", {"dry_run": "no"}, "invalid_input", "true or false"),
        ("gc", {"dry_run": 0}, "invalid_input", "true or false"),
        ("gc", {"dry_run": False, "even_most": "yes"}, "invalid_input", "even_most"),
        ("gc", {"min_retention": True}, "invalid_input", "not true or false"),
        ("purge", {"id": "x", "confirm": "yes"}, "invalid_input", "true or false"),
        ("memory", {"action": "delete", "id": "x", "with_parts": 1}, "invalid_input", "true or false"),
        ("suppress", {"id": "x", "reverse": "yes"}, "invalid_input", "true or false"),
        ("search", {"query": "a", "limit": True}, "invalid_input", "not true or false"),
        (
            "intention",
            {"action": "set", "description": "x", "trigger": {"in_minutes": True}},
            "invalid_input",
            "not true or false",
        ),
        ("nonsense", {}, "not_found", "nonsense"),
    ],
)
def test_bad_arguments_get_a_clear_error_and_change_nothing(
    world: World, tool: str, arguments: dict[str, Any], code: str, said: str
) -> None:
    world.remember("The only memory.")
    before = world.call("system_status")

    error = world.refused(tool, **arguments)

    assert error["code"] == code
    assert said in str(error)
    assert world.call("system_status") == before


@pytest.mark.parametrize(
    ("tool", "arguments", "message", "hint"),
    [
        ("search", {}, "`search` needs the argument `query`.", 'For example {"query": "TypeScript", '),
        ("smart_ingest", {"items": ["a"]}, "`items.0`: expected an object.", "An object with content, tags"),
        ("session_context", {"context": "shop"}, "`context`: expected an object.", "with codebase, topics"),
        ("search", {"query": "a", "scope": "/a/../b"}, "is not a plain path.", "such as /project/vestige"),
        ("memory", {"action": "link", "id": "x", "target": "x"}, "to itself", "another memory"),
    ],
)
def test_a_refusal_says_what_is_expected_in_our_own_words(
    world: World, tool: str, arguments: dict[str, Any], message: str, hint: str
) -> None:
    error = world.refused(tool, **arguments)
    assert message in error["message"]
    assert hint in error["hint"]


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("search", {"query": ""}, "`query`: expected a text of 1 to 10,000 characters."),
        ("search", {"query": "a", "limit": 0}, "`limit`: expected a whole number from 1 to 100."),
        ("gc", {"min_retention": 9}, "`min_retention`: expected a number from 0 to 1."),
        ("insights", {"action": "runs", "kind": "x"}, "`kind`: expected one of: dream, consolidation."),
    ],
)
def test_a_message_that_says_all_has_no_hint_that_repeats_it(
    world: World, tool: str, arguments: dict[str, Any], message: str
) -> None:
    error = world.refused(tool, **arguments)
    assert (error["message"], error.get("hint")) == (message, None)


EMPTY_QUERIES = ("?!…", "—", "*", "^", ":", '"', '""', "'", "`", "-", "(", "_", "\u200b\u200b.", "%", "\\")
ODD_QUERIES = (
    "AND", "AND OR NOT NEAR(", "NOT", "NEAR/2", "content:", "^first", "a*b*", '"unclosed', "{column} : x",
    "'; DROP TABLE memories; --",
    "the of and", "is it", "🎉", "👩‍👩‍👧‍👦", "e\u0301" * 50, "\u202eright to left", "ﬁ½Ⅷ",
    "x" * 10_000, "the " * 2_500, '"a" ' * 2_500, "a/" * 5_000, "🎉" * 10_000,
)  # fmt: skip


@each("query", EMPTY_QUERIES)
def test_a_query_of_signs_only_is_refused_with_what_to_do(world: World, query: str) -> None:
    world.remember("The heron stands in the pond.")
    error = world.refused("search", query=query)
    assert error["code"] == "invalid_input"
    assert "key words" in error["hint"]


@each("query", ODD_QUERIES)
@pytest.mark.parametrize("provider", ["hashing", "off"])
def test_any_text_is_a_query(tmp_path: Path, provider: str, query: str) -> None:
    with open_world(tmp_path, provider=provider) as world:
        world.remember("The heron stands in the pond.")
        world.app.settle()
        before = world.call("system_status")

        answer = world.call("search", query=query, record=False, explain=True, min_confidence=0)

        assert answer["query"] == query
        assert answer["total"] == len(answer["results"]) <= 1
        assert 0 <= answer["confidence"] <= 1
        world.app.settle()
        after = world.call("system_status")
        # That it was asked is counted; nothing else changed.
        assert {**after, "autopilot": None} == {**before, "autopilot": None}


@pytest.mark.parametrize(
    "query",
    [
        'heron" OR 1=1 --', "heron AND", "NEAR(heron", "(heron)", "-heron", "^heron", "heron*",
        "content:heron", "HERON'S", "h\u00e9ron", "ｈｅｒｏｎ", "heron 🎉 東京 Ада",
    ],
)  # fmt: skip
def test_operators_signs_and_other_scripts_do_not_hide_the_word_beside_them(world: World, query: str) -> None:
    heron = world.remember("The heron stands in the pond.")
    world.remember("Nothing of that kind.")

    hits = world.call("search", query=query, min_confidence=0)["results"]

    assert [hit["id"] for hit in hits if "keywordScore" in hit] == [heron]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Party 🎉 tonight", "🎉"),
        ("明日は東京で会議があります", "東京"),
        ("Встреча в Москве", "москве"),
        ("Το τρένο φεύγει", "ΤΡΕΝΟ"),
        ("พรุ่งนี้ฝนตก", "ฝนตก"),
        ("Ich wohne in Zürich", "zurich"),
    ],
)
def test_every_script_is_found_by_its_words(world: World, text: str, query: str) -> None:
    there = world.remember(text)
    world.remember("Nothing of that kind.")

    hits = world.call("search", query=query, min_confidence=0)["results"]

    assert [hit["id"] for hit in hits if "keywordScore" in hit] == [there]


@pytest.mark.parametrize(
    "arguments",
    [
        {"tags": ["x"], "tags_all": ["y"]},
        {"as_of": "0001-01-01"},
        {"known_at": "0001-01-01"},
        {"as_of": "9999-12-31", "known_at": "0001-01-01"},
        {"created_from": "9999-12-31"},
        {"min_retention": 1, "scope": "/nowhere"},
        {"thread": "none", "source": "none", "author": "none", "domains": ["none"]},
    ],
)
def test_filters_that_nothing_passes_get_an_empty_answer(world: World, arguments: dict[str, Any]) -> None:
    world.remember("The heron stands in the pond.", tags=["x"], valid_from="2026-01-01")

    answer = world.call("search", query="heron last week", token_budget=500, explain=True, **arguments)

    assert (answer["results"], answer["total"], answer["confidence"]) == ([], 0, 0.0)
    assert answer["abstained"] is False
    assert world.find("heron", min_confidence=0) == ["The heron stands in the pond."]


@pytest.mark.parametrize(
    "arguments",
    [
        {"query": "a", "tags": [{}] * 1_001},
        {"query": "a", **{f"name{number}": 1 for number in range(1_001)}},
        {"query": "a", "tags": [[0] * 500] * 200},
    ],
)
def test_of_far_too_many_values_none_is_looked_at(world: World, arguments: dict[str, Any]) -> None:
    assert world.refused("search", **arguments)["message"].startswith("The arguments hold more than 1,000")


def test_of_a_list_that_is_too_long_no_value_is_looked_at(world: World) -> None:
    refused = world.refused("search", query="a", tags=[{}] * 101)
    assert (refused["code"], refused["details"]["argument"]) == ("too_large", "tags")


def test_an_unknown_argument_is_answered_with_the_nearest_name(world: World) -> None:
    assert world.refused("search", query="a", limi=3)["hint"] == "Did you mean `limit`?"
    nested = world.refused("smart_ingest", items=[{"content": "a", "tagz": []}])
    assert nested["hint"] == "Did you mean `tags`?"
    needed = world.refused("search", quer="a")
    assert (needed["code"], needed["hint"]) == ("unknown_argument", "Did you mean `query`?")
    assert world.refused("search", colour="a")["message"] == "`search` needs the argument `query`."
    assert world.refused("searches")["hint"] == "Did you mean `search`?"


@pytest.mark.parametrize("operation", ["memory.get", "memory.edit", "memory.delete", "memory.promote"])
def test_a_memory_outside_the_callers_scope_does_not_exist(world: World, operation: str) -> None:
    memory_id = world.remember("Private to project a.", scope="/project/a")
    call = Call(engine=world.app.engine, access=Access(scopes=("/project/b",)))
    arguments: dict[str, Any] = {"id": memory_id}
    if operation == "memory.edit":
        arguments["content"] = "Taken over."

    with pytest.raises(VestigeError) as refused:
        registry.operations[operation].call(call, arguments)

    assert refused.value.code == "not_found"
    assert world.get(memory_id)["content"] == "Private to project a."


def test_writing_outside_the_callers_scope_is_forbidden(world: World) -> None:
    call = Call(engine=world.app.engine, access=Access(scopes=("/project/b",)))

    with pytest.raises(VestigeError) as refused:
        registry.operations["smart_ingest"].call(call, {"content": "Hello.", "scope": "/project/bc"})

    assert refused.value.code == "forbidden"
    assert world.call("system_status")["totalMemories"] == 0
    allowed = registry.operations["smart_ingest"].call(call, {"content": "Hi.", "scope": "/project/b/c"})
    assert allowed["decision"] == "create"
    seen = registry.operations["search"].call(call, {"query": "hi"})
    assert seen["total"] == 1


def test_a_caller_without_the_permission_is_refused(world: World) -> None:
    reader = Call(engine=world.app.engine, permissions=frozenset({"read"}))

    with pytest.raises(VestigeError) as refused:
        registry.operations["smart_ingest"].call(reader, {"content": "No."})

    assert refused.value.code == "forbidden"
    assert registry.operations["memory.list"].call(reader, {})["total"] == 0


def test_a_copied_store_gets_a_new_node_id(tmp_path: Path) -> None:
    clock = HandClock()
    with open_world(tmp_path / "one", clock=clock) as world:
        world.remember("Copied by hand.")
        first = world.call("system_status")["node"]
    shutil.copytree(tmp_path / "one", tmp_path / "two")

    with open_world(tmp_path / "two", clock=clock) as copy:
        second = copy.call("system_status")["node"]
        assert copy.find("copied by hand") == ["Copied by hand."]
    with open_world(tmp_path / "one", clock=clock) as world:
        assert world.call("system_status")["node"] == first
    with open_world(tmp_path / "two", clock=clock) as copy:
        assert copy.call("system_status")["node"] == second
    assert first != second


@pytest.mark.parametrize("damage", [b"this is not a database at all, sorry" * 40, b""])
def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "vestige.db").write_bytes(damage)
    if not damage:
        # An empty file is what SQLite itself makes first: it becomes a new store.
        with open_world(tmp_path) as world:
            assert world.call("system_status")["totalMemories"] == 0
        return

    with pytest.raises(VestigeError) as refused, open_world(tmp_path):
        pass

    assert refused.value.code == "store_corrupt"
    assert refused.value.hint
    assert (tmp_path / "vestige.db").read_bytes() == damage


def test_a_database_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    with open_world(tmp_path) as world:
        world.remember("From the future.")
    with sqlite3.connect(tmp_path / "vestige.db") as db:
        db.execute(
            "INSERT INTO schema_migrations (version, name, applied_at, checksum, written_by)"
            " VALUES (9999, '9999_future', '2030-01-01T00:00:00.000000+00:00', 'x', '9.0.0')"
        )
    db.close()

    with pytest.raises(VestigeError) as refused, open_world(tmp_path):
        pass

    assert refused.value.code == "store_too_new"


def _as_nobody(data: Path) -> subprocess.CompletedProcess[str]:
    """Use a store in a child without privileges, since root may read and write everything."""
    # Python itself may live where nobody else may look, so the child imports everything first.
    drop = f"os.setgid({NOBODY}); os.setuid({NOBODY})" if os.getuid() == 0 else ""
    return subprocess.run(
        [sys.executable, "-c", CHILD.replace("DROP", drop), str(data)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )


def _open_to_all(path: Path) -> None:
    for parent in (path, *path.parents):
        if parent == Path("/"):
            break
        if os.access(parent, os.W_OK):
            parent.chmod(parent.stat().st_mode | stat.S_IXUSR | stat.S_IXOTH | stat.S_IROTH)


CHILD = """
import json, os, sys, tempfile, threading
from vestige.app.app import open_app
from vestige.core.errors import VestigeError
from vestige.core.caller import Invocation

def answers(data):
    told = []
    def tell(tool, **arguments):
        try:
            answer = app.call_tool(Invocation(name=tool, arguments=arguments))
        except VestigeError as error:
            answer = error.value()
        told.append(answer)
    try:
        app = open_app({"data_dir": data, "embeddings.provider": "hashing"})
    except VestigeError as error:
        return [error.value()]
    tell("search", query="heron")
    tell("smart_ingest", content="Cannot be kept.")
    tell("system_status")
    app.close()
    return told

with tempfile.TemporaryDirectory() as warm:
    answers(warm)
DROP
print(json.dumps(answers(sys.argv[1])))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")
def test_a_read_only_directory_can_be_searched_but_not_written(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with open_world(data) as world:
        world.remember("The heron stands in the pond.")
    for file in data.iterdir():
        if file.is_file():
            file.chmod(0o444)
    data.chmod(0o555)
    _open_to_all(tmp_path)

    child = _as_nobody(data)

    assert child.returncode == 0, child.stderr
    found, refused, status = json.loads(child.stdout)
    assert [hit["content"] for hit in found["results"]] == ["The heron stands in the pond."]
    assert refused["code"] == "store_read_only"
    assert refused["hint"]
    assert (status["readOnly"], status["totalMemories"]) == (True, 1)
    data.chmod(0o755)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")
def test_an_unreadable_directory_gets_a_clear_error(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with open_world(data) as world:
        world.remember("Behind a locked door.")
    _open_to_all(tmp_path)
    data.chmod(0o000)

    child = _as_nobody(data)
    data.chmod(0o755)

    assert child.returncode == 0, child.stderr
    (error,) = json.loads(child.stdout)
    assert error["code"] in ("store", "store_read_only", "config")
    assert str(data) in error["message"]
    assert "Traceback" not in child.stderr


def test_a_full_disk_is_said_and_leaves_nothing_half_written(tmp_path: Path) -> None:
    with open_world(tmp_path) as world:
        world.remember("Before the disk was full.")
        before = world.call("system_status")
        connections = world.app.engine.store._connections  # type: ignore[attr-defined]  # to fill the disk
        with connections.writing() as db:
            pages = db.execute("PRAGMA page_count").fetchone()[0]
            db.execute(f"PRAGMA max_page_count = {pages}")

        error = world.refused(
            "smart_ingest", items=[{"content": f"{n} " + "words " * 2000} for n in range(40)]
        )

        assert error["code"] == "store_full"
        assert error["hint"]
        assert world.call("system_status") == before
        with connections.writing() as db:
            db.execute("PRAGMA max_page_count = 1000000")
        world.remember("After room was made.")
        assert world.call("system_status")["totalMemories"] == 2


def test_a_call_whose_time_is_up_stops_and_writes_nothing(world: World) -> None:
    late = Call(engine=world.app.engine, deadline=world.app.engine.monotonic() - 1)

    with pytest.raises(VestigeError) as stopped:
        registry.operations["smart_ingest"].call(late, {"content": "Too late."})

    assert stopped.value.code == "deadline_exceeded"
    assert world.call("system_status")["totalMemories"] == 0
