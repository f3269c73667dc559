"""The folders a client works in: asked for in both eras, and no call goes by folders that are not its own."""

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from testbed.world import World
from tests.transports.mcp.apps import SmallApp
from tests.transports.mcp.harness import MODES, sdk_client, sdk_process
from tests.transports.mcp.lines import (
    CATALOG,
    ENVELOPE,
    HAS_ROOTS,
    HERE,
    INITIALIZED,
    META,
    STAMP,
    ask,
    ask_modern,
    cancel,
    connect,
    line,
    listed,
    notify,
    only_reply,
    start,
)
from vestige.app.project_scope import scope_of
from vestige.transports.mcp.protocol.core import ClientConversation
from vestige.transports.mcp.protocol.messages import Action, Done, HoldJobs, Send, Start

THERE = "file:///home/ada/there"
CHANGED = "notifications/roots/list_changed"
MODERN_ROOTS = {META + "clientCapabilities": HAS_ROOTS}


def answer(connection: ClientConversation, question: dict[str, Any], result: object) -> list[Action]:
    return connection.receive(line({"jsonrpc": "2.0", "id": question["id"], "result": result}))


def call(connection: ClientConversation, request_id: str | int, *, modern: bool = False) -> list[Action]:
    params = {"name": "search", "_meta": ENVELOPE if modern else {}}
    return connection.receive(
        line({"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params})
    )


def hold(connection: ClientConversation, request_id: str | int) -> HoldJobs:
    """The hold that a call begins."""
    (action,) = call(connection, request_id)
    assert isinstance(action, HoldJobs)
    return action


def begun(actions: list[Action]) -> list[tuple[str | int, tuple[str, ...]]]:
    """The jobs that start, each by its id and with its roots."""
    started = [action.job for action in actions if isinstance(action, Start)]
    assert len(started) == len(actions)
    return [(job.id, job.roots) for job in started]


# -- the handshake era ------------------------------------------------------------------------------


def test_a_client_with_roots_is_asked_once_it_is_ready() -> None:
    connection = connect("2025-11-25", capabilities=HAS_ROOTS)

    question = only_reply(notify(connection, INITIALIZED))

    assert question == {"jsonrpc": "2.0", "id": question["id"], "method": "roots/list"}
    assert isinstance(question["id"], str)


@pytest.mark.parametrize("capabilities", [{}, {"roots": None}, {"roots": True}, {"sampling": {}}])
def test_a_client_without_roots_is_never_asked(capabilities: dict[str, Any]) -> None:
    connection = connect("2025-11-25", capabilities=capabilities)

    assert notify(connection, INITIALIZED) == []
    assert notify(connection, CHANGED) == []


def test_calls_before_the_answer_wait_for_it_in_order_and_calls_after_it_do_not() -> None:
    connection = connect("2025-11-25", capabilities=HAS_ROOTS)
    question = only_reply(notify(connection, INITIALIZED))

    hold(connection, 1)
    resource = {"jsonrpc": "2.0", "id": 2, "method": "resources/read", "params": {"uri": "memory://stats"}}
    assert connection.receive(line(resource)) == []
    assert call(connection, 3) == []
    released = answer(connection, question, listed(HERE, THERE))

    assert begun(released) == [(number, (HERE, THERE)) for number in (1, 2, 3)]
    assert begun(call(connection, 4)) == [(4, (HERE, THERE))]


def test_a_call_that_comes_before_the_client_can_be_asked_waits_too() -> None:
    connection = connect("2025-11-25", capabilities=HAS_ROOTS)

    hold(connection, 1)
    question = only_reply(notify(connection, INITIALIZED))

    assert begun(answer(connection, question, listed(HERE))) == [(1, (HERE,))]


def test_what_needs_no_roots_is_answered_while_calls_wait() -> None:
    connection = connect("2025-11-25", capabilities=HAS_ROOTS)
    notify(connection, INITIALIZED)
    hold(connection, 1)

    for method in ("ping", "tools/list", "prompts/list"):
        assert "result" in ask(connection, method, request_id=method)
    assert ask(connection, "tools/call", {"name": "nope"}, request_id=2)["error"]["code"] == -32602
    again = ask(connection, "tools/call", {"name": "search"}, request_id=1)
    assert "still being served" in again["error"]["message"]


def test_changed_roots_are_asked_for_again_and_calls_wait_for_the_new() -> None:
    connection = connect("2025-11-25", capabilities=HAS_ROOTS)
    first = only_reply(notify(connection, INITIALIZED))
    answer(connection, first, listed(HERE))

    second = only_reply(notify(connection, CHANGED))
    assert second["id"] != first["id"]
    hold(connection, 1)
    assert answer(connection, first, listed("file:///late")) == []
    assert begun(answer(connection, second, listed(THERE))) == [(1, (THERE,))]


def test_an_answer_that_is_overdue_is_not_waited_for() -> None:
    connection = connect("2025-11-25", capabilities=HAS_ROOTS)
    question = only_reply(notify(connection, INITIALIZED))
    held = hold(connection, 1)
    call(connection, 2)

    assert begun(connection.overdue(held)) == [(1, ()), (2, ())]
    assert connection.overdue(held) == []
    assert begun(call(connection, 3)) == [(3, ())]
    assert answer(connection, question, listed(HERE)) == []
    assert begun(call(connection, 4)) == [(4, (HERE,))]


def test_a_client_that_did_not_answer_is_waited_for_again_only_after_it_did() -> None:
    connection = connect("2025-11-25", capabilities=HAS_ROOTS)
    notify(connection, INITIALIZED)
    connection.overdue(hold(connection, 1))

    question = only_reply(notify(connection, CHANGED))
    assert begun(call(connection, 2)) == [(2, ())]
    answer(connection, question, listed(HERE))
    notify(connection, CHANGED)
    held = hold(connection, 3)
    assert begun(connection.overdue(held)) == [(3, (HERE,))]  # the last it told


def test_a_held_call_that_is_cancelled_never_starts() -> None:
    connection = connect("2025-11-25", capabilities=HAS_ROOTS)
    question = only_reply(notify(connection, INITIALIZED))
    held = hold(connection, 1)
    call(connection, 2)

    assert cancel(connection, 1) == []
    assert begun(answer(connection, question, listed(HERE))) == [(2, (HERE,))]
    assert connection.overdue(held) == []


def test_a_batch_of_held_calls_is_answered_whole() -> None:
    connection = connect("2025-03-26", capabilities=HAS_ROOTS)
    question = only_reply(notify(connection, INITIALIZED))
    calls = [
        {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": "search"}}
        for number in (1, 2, 3)
    ]
    (action,) = connection.receive(line(calls))
    assert isinstance(action, HoldJobs)
    cancel(connection, 2)
    first, last = (start.job for start in answer(connection, question, {}) if isinstance(start, Start))

    assert connection.finish(first, Done({})) == []
    (reply,) = connection.finish(last, Done({}))
    assert isinstance(reply, Send)
    assert isinstance(reply.message, list)
    assert [one["id"] for one in reply.message] == [1, 3]


def test_a_stateless_call_does_not_overtake_a_held_one_and_keeps_its_own_roots() -> None:
    connection = connect("2025-11-25", capabilities=HAS_ROOTS)
    question = only_reply(notify(connection, INITIALIZED))
    hold(connection, 1)

    assert call(connection, 2, modern=True) == []
    assert begun(answer(connection, question, listed(HERE))) == [(1, (HERE,)), (2, ())]


@pytest.mark.parametrize(
    "reply",
    [
        {"result": None},
        {"result": []},
        {"result": {}},
        {"result": {"roots": None}},
        {"result": {"roots": [3, {}, {"uri": 7}, "x"]}},
        {"result": "x"},
        {"error": {"code": -32601, "message": "no"}},
    ],
)
def test_a_refusal_or_nonsense_means_no_roots_and_nothing_waits_longer(reply: dict[str, Any]) -> None:
    connection = connect("2025-11-25", capabilities=HAS_ROOTS)
    question = only_reply(notify(connection, INITIALIZED))
    hold(connection, 1)

    assert begun(connection.receive(line({"jsonrpc": "2.0", "id": question["id"], **reply}))) == [(1, ())]
    assert begun(call(connection, 2)) == [(2, ())]


def test_an_answer_nobody_asked_for_is_not_taken() -> None:
    connection = connect("2025-11-25", capabilities=HAS_ROOTS)
    held = hold(connection, 7)

    for request_id in (1, "vestige-roots-0", "vestige-roots-1", None):
        reply = {"jsonrpc": "2.0", "id": request_id, "result": listed(HERE)}
        assert connection.receive(line(reply)) == []
    assert begun(connection.overdue(held)) == [(7, ())]


def test_a_new_handshake_forgets_the_roots() -> None:
    connection = connect("2025-11-25", capabilities=HAS_ROOTS)
    answer(connection, only_reply(notify(connection, INITIALIZED)), listed(HERE))

    hello = {"protocolVersion": "2025-11-25", "capabilities": {}}
    connection.receive(line({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}))

    assert start(connection).roots == ()


# -- the stateless era ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "search", "arguments": {"query": "tea"}}),
        ("resources/read", {"uri": "memory://stats"}),
    ],
)
def test_a_stateless_call_from_a_client_with_roots_comes_again_with_them(
    method: str, params: dict[str, Any]
) -> None:
    connection = connect()

    question = ask_modern(connection, method, params, meta=MODERN_ROOTS)["result"]
    again = {**params, "inputResponses": {"roots": listed(HERE)}}
    job = start(connection, method, again, modern=True, meta=MODERN_ROOTS)

    asked = {"roots": {"method": "roots/list"}}
    assert question == {"resultType": "input_required", "inputRequests": asked, "_meta": STAMP}
    assert job.roots == (HERE,)
    assert job.arguments == params.get("arguments", {})


@pytest.mark.parametrize("responses", [{}, {"roots": None}, {"other": {}}, None, [], {"roots": {"roots": 3}}])
def test_a_stateless_client_that_answers_something_else_is_served_without_roots(responses: object) -> None:
    params = {"name": "search", "inputResponses": responses}

    assert start(connect(), params=params, modern=True, meta=MODERN_ROOTS).roots == ()


def test_nothing_is_remembered_from_one_stateless_call_to_the_next() -> None:
    connection = connect()
    params = {"name": "search", "inputResponses": {"roots": listed(HERE)}}
    start(connection, params=params, modern=True, meta=MODERN_ROOTS, request_id=8)

    assert start(connection, modern=True, request_id=9).roots == ()
    question = ask_modern(connection, "tools/call", {"name": "search"}, meta=MODERN_ROOTS)["result"]
    assert question["resultType"] == "input_required"


def test_what_cannot_be_called_is_refused_without_asking() -> None:
    connection = connect()

    for method, params in (("tools/call", {"name": "nope"}), ("resources/read", {"uri": "memory://nope"})):
        assert ask_modern(connection, method, params, meta=MODERN_ROOTS)["error"]["code"] == -32602


# -- the official client ----------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_a_client_without_roots_calls_without_them(mode: str) -> None:
    app = SmallApp()
    with sdk_client(app, mode=mode, catalog=CATALOG) as call:
        assert not call.tool("search").is_error

    assert app.roots == [()]


@pytest.mark.parametrize("mode", [mode for mode in MODES if not mode.endswith("legacy")])
def test_the_official_stateless_client_brings_its_roots(mode: str) -> None:
    app = SmallApp()
    with sdk_client(app, mode=mode, catalog=CATALOG, roots=[HERE, THERE]) as call:
        found = call.tool("search", {"query": "tea"})
        call.resource("memory://stats")

    assert found.structured_content == {"echo": {"query": "tea"}}
    assert app.roots == [(HERE, THERE), (HERE, THERE)]


@pytest.mark.parametrize("mode", ["legacy", "http legacy"])
def test_the_first_call_of_the_official_handshake_client_has_its_roots_and_so_after_a_change(
    mode: str,
) -> None:
    app = SmallApp()
    with sdk_client(app, mode=mode, catalog=CATALOG, roots=[HERE]) as client:
        client.tool("search")
        client.change_roots(THERE)
        client.tool("search")

    assert app.roots == [(HERE,), (THERE,)]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_what_a_client_stores_first_is_not_filed_where_its_server_was_started(
    tmp_path: Path, mode: str
) -> None:
    folder = tmp_path / "crane"
    (folder / ".git").mkdir(parents=True)
    command = str(Path(sys.executable).with_name("vestige-mcp"))
    settings = {"VESTIGE_OFFLINE": "1", "VESTIGE_EMBEDDINGS_PROVIDER": "off"}
    data = ("--data-dir", str(tmp_path / "data"))
    with sdk_process(command, *data, mode=mode, cwd="/", roots=[folder.as_uri()], **settings) as client:
        stored = client.tool("smart_ingest", {"content": "The crane server listens on 8080."})
        assert isinstance(stored.structured_content, dict)
        kept = client.tool("memory", {"action": "get", "id": stored.structured_content["nodeId"]})

    assert isinstance(kept.structured_content, dict)
    assert kept.structured_content["node"]["scope"] == scope_of(folder)


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28", "http legacy", "http 2026-07-28"])
def test_two_clients_in_two_repositories_on_one_store_store_into_their_own_scopes(
    world: World, tmp_path: Path, mode: str
) -> None:
    folders = {name: tmp_path / name for name in ("crane", "heron")}
    for folder in folders.values():
        (folder / ".git").mkdir(parents=True)
    with ExitStack() as opened:
        clients = {
            name: opened.enter_context(sdk_client(world.app, mode=mode, roots=[folder.as_uri()]))
            for name, folder in folders.items()
        }

        def seen(name: str) -> dict[str, str]:
            answer = clients[name].tool("memory", {"action": "list"}).structured_content
            assert isinstance(answer, dict)
            return {hit["content"]: hit["scope"] for hit in answer["results"]}

        for name in clients:
            clients[name].tool("smart_ingest", {"content": f"The port of the {name} server is 8080."})
        stored = {
            f"The port of the {name} server is 8080.": scope_of(folder) for name, folder in folders.items()
        }
        assert len(set(stored.values())) == 2
        assert all(seen(name) == stored for name in clients)
