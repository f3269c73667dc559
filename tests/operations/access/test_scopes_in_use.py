"""Where a client is at home: what it writes, finds and is told without naming a scope."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from testbed.effort import effort
from testbed.patience import PATIENCE_SECONDS
from testbed.world import HandClock, World, open_world
from vestige.core.caller import Caller, Invocation
from vestige.core.events import SearchPerformed
from vestige.core.models import Access
from vestige.engine.context import Call
from vestige.operations.registry.groups import registry

THINGS = ("crane", "harbour", "ledger", "compass", "lantern", "anchor", "beacon", "rudder", "mast", "keel")


@pytest.fixture
def repositories(tmp_path: Path) -> tuple[Path, Path]:
    folders = (tmp_path / "a" / "api", tmp_path / "b" / "api")
    for folder in folders:
        (folder / ".git").mkdir(parents=True)
    return folders


ISOLATED: dict[str, Any] = {"memory.isolate": True}
IN_A: dict[str, Any] = {"memory.scope": "/project/a"}


def test_what_is_remembered_in_a_repository_is_found_in_the_next_and_names_its_scope(
    tmp_path: Path, repositories: tuple[Path, Path]
) -> None:
    clock = HandClock()
    with open_world(tmp_path / "data", clock=clock, place=repositories[0]) as here:
        kept = here.remember("The deploy key is rotated on Mondays.")
        own = here.get(kept)["scope"]
        assert own.startswith("/project/api~")
    with open_world(tmp_path / "data", clock=clock, place=repositories[1]) as there:
        for level in ("brief", "summary", "full"):
            answer = there.call("search", query="deploy key rotated", detail_level=level)
            assert [(hit["id"], hit["scope"]) for hit in answer["results"]] == [(kept, own)]
            assert answer["scope"] == "/"
        assert own in shown(there, "search", query="deploy key rotated")
        assert own in shown(there, "memory.list")
        assert there.call("deep_reference", query="deploy key rotated")["evidence"][0]["scope"] == own
        assert f"({own})" in there.call("session_context", queries=["deploy key rotated"])["context"]


def shown(world: World, name: str, **arguments: Any) -> str:
    """The answer of an operation as text, as the command line prints it."""
    operation = registry.operations[name]
    return operation.render(operation.answer(Call(engine=world.app.engine), arguments))


def test_an_isolated_project_finds_nothing_of_others(tmp_path: Path, repositories: tuple[Path, Path]) -> None:
    clock = HandClock()
    with open_world(tmp_path / "data", clock=clock, place=repositories[0], **ISOLATED) as here:
        own = here.get(here.remember("The deploy key is rotated on Mondays."))["scope"]
        assert here.find("deploy key") == ["The deploy key is rotated on Mondays."]
        assert here.call("smart_ingest", content="I prefer tabs.")["scope"] == own
    with open_world(tmp_path / "data", clock=clock, place=repositories[1], **ISOLATED) as there:
        answer = there.call("search", query="deploy key rotated")
        assert answer["results"] == []
        assert answer["scope"].startswith("/project/api~")
        assert answer["scope"] != own
        assert answer["scope"] in answer["note"]
        assert 'scope "/"' in answer["note"]
        assert there.find("deploy key", scope="/", limit=1) == ["The deploy key is rotated on Mondays."]
        assert there.find("deploy key", scope=own, limit=1) == ["The deploy key is rotated on Mondays."]


def test_what_holds_everywhere_is_found_in_every_isolated_repository(
    tmp_path: Path, repositories: tuple[Path, Path]
) -> None:
    with open_world(tmp_path / "data", place=repositories[0], **ISOLATED) as world:
        world.remember("Ada prefers tabs.", scope="/user/ada")
        world.remember("Everybody signs commits.", scope="/")
        world.remember("The other team prefers tabs too.", scope="/project/other")
        found = world.find("who prefers tabs and signs commits", min_confidence=0)
        assert sorted(found) == ["Ada prefers tabs.", "Everybody signs commits."]


@pytest.mark.parametrize("home", ["a", "b"])
def test_among_equals_the_current_project_comes_first(tmp_path: Path, home: str) -> None:
    settings: dict[str, Any] = {"memory.scope": f"/project/{home}"}
    with open_world(tmp_path, **settings) as world:
        texts = {"a": "The gateway is written in Go.", "b": "The gateway is written in Rust."}
        for name, text in texts.items():
            world.remember(text, scope=f"/project/{name}")
        answer = world.call("search", query="How is the gateway written?", explain=True, min_confidence=0)
        assert answer["results"][0]["content"] == texts[home]
        assert "scope" in [stage["stage"] for stage in answer["results"][0]["explain"]["stages"]]
        # Two projects are two things: neither overtakes nor contradicts the other.
        assert "competitionSuppressed" not in answer
        assert not any("contradicts" in hit for hit in answer["results"])
        named = world.call(
            "search", query="How is the gateway written?", explain=True, scope="/", min_confidence=0
        )
        assert "scope" not in [stage["stage"] for stage in named["results"][0]["explain"]["stages"]]


def test_a_clearly_better_answer_from_elsewhere_comes_first(tmp_path: Path) -> None:
    with open_world(tmp_path, **IN_A) as world:
        world.remember("The gateway is written in Go.")
        there = world.remember("The gateway listens on port 9090.", scope="/project/b")
        answer = world.call("search", query="Which port does the gateway listen on?", min_confidence=0)
        assert answer["results"][0]["id"] == there


def test_the_notes_of_a_named_codebase_are_found_from_another_project(tmp_path: Path) -> None:
    with open_world(tmp_path, **IN_A) as world:
        noted = world.call(
            "codebase",
            action="remember_decision",
            decision="Use SQLite.",
            rationale="One file.",
            codebase="shop",
            scope="/project/shop",
        )
        assert world.call("codebase", action="get_context")["decisions"]["items"] == []
        named = world.call("codebase", action="get_context", codebase="shop")
        assert [one["id"] for one in named["decisions"]["items"]] == [noted["nodeId"]]
        assert named["scope"] == "/"


def test_a_key_that_is_limited_to_a_scope_still_sees_no_more(tmp_path: Path) -> None:
    with open_world(tmp_path, **IN_A) as world:
        mine = world.remember("The gateway listens on port 8080.")
        world.remember("The gateway listens on port 9090.", scope="/project/b")
        world.remember("The gateway of the user has port 7070.", scope="/user")
        limited = Call(engine=world.app.engine, access=Access(scopes=("/project/a",)), scope="/project/a")
        answer = registry.operations["search"].call(limited, {"query": "gateway port", "min_confidence": 0})
        assert ([hit["id"] for hit in answer["results"]], answer["scope"]) == ([mine], "/project/a")
        stored = registry.operations["smart_ingest"].call(limited, {"content": "I prefer tabs."})
        assert stored["scope"] == "/project/a"


def test_a_search_of_everything_is_announced_in_the_callers_scope(tmp_path: Path) -> None:
    with open_world(tmp_path, **IN_A) as world:
        world.remember("The gateway listens on port 9090.", scope="/project/b")
        world.call("search", query="gateway port")
        [event] = [one for one in world.heard if isinstance(one, SearchPerformed)]
        assert event.scope == "/project/a"


def test_an_idempotency_key_is_one_projects_own(tmp_path: Path, repositories: tuple[Path, Path]) -> None:
    told = {"content": "The linter is ruff.", "idempotency_key": "k1"}
    clock = HandClock()
    with open_world(tmp_path / "data", clock=clock, place=repositories[0]) as here:
        first = here.call("smart_ingest", **told)
    with open_world(tmp_path / "data", clock=clock, place=repositories[1]) as there:
        second = there.call("smart_ingest", **told)
        again = there.call("smart_ingest", **told)
    assert first["nodeId"] != second["nodeId"] == again["nodeId"]
    assert (second["replayed"], again["replayed"]) == (False, True)
    assert first["scope"] != second["scope"]


def test_a_tag_is_renamed_where_one_is_at_home(tmp_path: Path, repositories: tuple[Path, Path]) -> None:
    with open_world(tmp_path / "data", place=repositories[0]) as world:
        mine = world.remember("The mast is oak.", tags=["bug"])
        theirs = world.remember("The keel is iron.", tags=["bug"], scope="/project/other")
        world.call("memory", action="rename_tag", tag="bug", to="defect")
        assert (world.get(mine)["tags"], world.get(theirs)["tags"]) == (["defect"], ["bug"])


def test_a_server_whose_working_directory_is_gone_still_works(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = (
        "import os, sys; os.chdir(sys.argv[1]); os.rmdir(sys.argv[1]);"
        "from vestige.app.app import open_here;"
        "app = open_here({'data_dir': sys.argv[2], 'embeddings.provider': 'hashing'});"
        "print(app._scope(())); app.close()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, gone, tmp_path / "data"], capture_output=True, text=True, check=True
    )
    assert done.stdout == "/\n"


def test_a_scope_that_is_set_wins_over_the_place(tmp_path: Path, repositories: tuple[Path, Path]) -> None:
    settings: dict[str, Any] = {"memory.scope": "/agent/scribe"}
    with open_world(tmp_path / "data", place=repositories[0], **settings) as world:
        assert world.get(world.remember("The mast is oak."))["scope"] == "/agent/scribe"
        assert world.get(world.remember("I prefer tea."))["scope"] == "/agent/scribe"


def test_where_a_server_runs_says_nothing_about_those_who_come_over_the_network(
    tmp_path: Path, repositories: tuple[Path, Path]
) -> None:
    somebody = Caller(name="a key", permissions=frozenset({"read", "write"}))
    with open_world(tmp_path / "data", place=repositories[0], **ISOLATED) as world:
        answer = world.app.call_operation(
            Invocation(name="search", arguments={"query": "mast"}, caller=somebody)
        )
        assert answer["scope"] == "/"
        assert world.call("search", query="mast")["scope"].startswith("/project/api~")


def test_a_clients_root_wins_over_the_servers_own_folder(
    tmp_path: Path, repositories: tuple[Path, Path]
) -> None:
    with open_world(tmp_path / "data", place=repositories[0], **ISOLATED) as world:
        world.remember("The keel is iron.")
        assert _rooted(world, repositories[0])["total"] == 1
        elsewhere = _rooted(world, repositories[1])
        assert (elsewhere["total"], elsewhere["scope"].startswith("/project/api~")) == (0, True)
        # A root that is no local project says nothing.
        assert _rooted(world, tmp_path / "nowhere")["total"] == 1


def _rooted(world: World, root: Path) -> dict[str, Any]:
    return world.app.call_tool(
        Invocation(
            name="search",
            arguments={"query": "keel", "record": False},
            roots=["https://example.org/not-local", root.as_uri()],
        )
    )


@contextmanager
def server(data: Path, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    script = Path(sys.executable).with_name("vestige-mcp")
    process = subprocess.Popen(
        [script, "--data-dir", str(data)],
        cwd=folder,
        env={
            "HOME": str(data),
            "VESTIGE_EMBEDDINGS_PROVIDER": "hashing",
            "VESTIGE_MEMORY_ISOLATE": "true",
            "PATH": "/usr/bin:/bin",
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        _ask(process, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "t"})
        yield process
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(timeout=PATIENCE_SECONDS)
        if process.stdout is not None:
            process.stdout.close()


def _ask(process: subprocess.Popen[bytes], method: str, **params: Any) -> dict[str, Any]:
    assert process.stdin is not None
    assert process.stdout is not None
    line = json.dumps({"jsonrpc": "2.0", "id": method, "method": method, "params": params})
    process.stdin.write(line.encode() + b"\n")
    process.stdin.flush()
    reply: dict[str, Any] = json.loads(process.stdout.readline())
    result: dict[str, Any] = reply["result"]
    return result


def _tool(process: subprocess.Popen[bytes], name: str, **arguments: Any) -> dict[str, Any]:
    answer: dict[str, Any] = _ask(process, "tools/call", name=name, arguments=arguments)["structuredContent"]
    return answer


@pytest.mark.slow
def test_queries_of_two_clients_in_two_isolated_repositories_never_cross(
    tmp_path: Path, repositories: tuple[Path, Path]
) -> None:
    data = tmp_path / "data"
    with server(data, repositories[0]) as one, server(data, repositories[1]) as other:
        for client, name in ((one, "north"), (other, "south")):
            items = [
                {"content": f"The {thing} of the {name} yard is number {n}."}
                for n, thing in enumerate(THINGS)
            ]
            _tool(client, "smart_ingest", items=items)
        scopes = set()
        for turn in range(effort(40, nightly=500)):
            thing = THINGS[turn % len(THINGS)]
            for client, name in ((one, "north"), (other, "south")):
                query = f"{thing} yard number {turn}"
                answer = _tool(client, "search", query=query, limit=20, min_confidence=0, record=False)
                texts = [hit["content"] for hit in answer["results"]]
                assert texts
                assert all(name in text for text in texts)
                scopes.add((name, answer["scope"]))
    assert len(scopes) == len({scope for _, scope in scopes}) == 2
