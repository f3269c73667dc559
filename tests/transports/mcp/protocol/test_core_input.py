"""How the pure MCP core takes what clients send: cancellation, batches, mistakes, and noise."""

import json
import math
import random
from typing import Any

import pytest

from testbed.failures import each
from tests.transports.mcp.lines import (
    ENVELOPE,
    LEGACY_VERSIONS,
    ask,
    ask_modern,
    cancel,
    connect,
    line,
    only_reply,
    start,
)
from vestige.transports.mcp.protocol.jsonrpc import encode
from vestige.transports.mcp.protocol.messages import Action, Cancel, Done, Failed, Job, Send, Start

# -- progress and cancellation ----------------------------------------------------------------------


@pytest.mark.parametrize("modern", [False, True])
@pytest.mark.parametrize("token", ["p", 0, 12])
def test_progress_goes_to_the_token_and_only_forwards(modern: bool, token: str | int) -> None:
    connection = connect(None if modern else "2025-11-25")
    job = start(connection, modern=modern, meta={"progressToken": token})

    steps: list[float] = [0, 1, 1, 0.5, math.nan, math.inf, 2.5]
    sent = [only_reply(actions) for step in steps if (actions := connection.progress(job, step, 3, "on"))]

    assert [message["params"]["progress"] for message in sent] == [0, 1, 2.5]
    assert sent[0] == {
        "jsonrpc": "2.0",
        "method": "notifications/progress",
        "params": {"progressToken": token, "progress": 0, "total": 3, "message": "on"},
    }


@pytest.mark.parametrize("token", [None, True, 1.5, ["x"]])
def test_without_a_usable_token_there_is_no_progress(token: object) -> None:
    connection = connect("2025-11-25")
    job = start(connection, meta={"progressToken": token})

    assert connection.progress(job, 1, None, None) == []


def test_after_the_answer_there_is_no_progress_and_no_second_answer() -> None:
    connection = connect("2025-11-25")
    job = start(connection, meta={"progressToken": "p"})
    connection.finish(job, Done({}))

    assert connection.progress(job, 1, None, None) == []
    assert connection.finish(job, Done({})) == []


@pytest.mark.parametrize("modern", [False, True])
def test_a_cancelled_job_is_stopped_and_never_heard_of_again(modern: bool) -> None:
    connection = connect(None if modern else "2025-11-25")
    job = start(connection, modern=modern, meta={"progressToken": "p"})

    (action,) = cancel(connection, 7)

    assert isinstance(action, Cancel)
    assert action.job is job
    assert connection.progress(job, 1, None, None) == []
    assert connection.finish(job, Done({})) == []


@pytest.mark.parametrize("request_id", [8, "7", None, [7], True])
def test_cancelling_what_is_not_running_does_nothing(request_id: object) -> None:
    connection = connect("2025-11-25")
    job = start(connection, request_id=7)

    assert cancel(connection, request_id) == []
    assert connection.finish(job, Done({})) != []


def test_a_cancelled_id_may_be_used_again_and_only_the_new_job_answers() -> None:
    connection = connect("2025-11-25")
    old = start(connection, request_id=7)
    cancel(connection, 7)
    new = start(connection, request_id=7)

    assert connection.finish(old, Done({"which": "old"})) == []
    reply = only_reply(connection.finish(new, Done({"which": "new"})))
    assert reply["result"]["structuredContent"] == {"which": "new"}


def test_an_id_that_is_still_being_served_is_refused() -> None:
    connection = connect("2025-11-25")
    job = start(connection, request_id=7)

    assert ask(connection, "tools/list", request_id=7)["error"]["code"] == -32600
    assert connection.finish(job, Done({})) != []


# -- malformed input --------------------------------------------------------------------------------


@each(
    "raw",
    [
        b"{",
        b"nonsense",
        b'{"jsonrpc":"2.0",}',
        b"\xff\xfe{}",
        b'{"jsonrpc":"2.0","id":1,"method":"\xe9t\xe9"}',
        b'{"a":"\x00"}',
        b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"ping"}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
    ],
)
def test_a_line_that_is_not_json_is_answered_and_survived(raw: bytes) -> None:
    connection = connect("2025-11-25")

    reply = only_reply(connection.receive(raw))

    assert reply["error"]["code"] == -32700
    assert reply["id"] is None
    assert ask(connection, "ping")["result"] == {}


@each(
    ("message", "request_id", "code"),
    [
        (3, None, -32600),
        ("ping", None, -32600),
        (None, None, -32600),
        ({}, None, -32600),
        ({"jsonrpc": "2.0", "id": 1}, 1, -32600),
        ({"id": 1, "method": "ping"}, 1, -32600),
        ({"jsonrpc": "1.0", "id": "a", "method": "ping"}, "a", -32600),
        ({"jsonrpc": "2.0", "id": None, "method": "ping"}, None, -32600),
        ({"jsonrpc": "2.0", "id": 1.5, "method": "ping"}, None, -32600),
        ({"jsonrpc": "2.0", "id": True, "method": "ping"}, None, -32600),
        ({"jsonrpc": "2.0", "id": {}, "method": "ping"}, None, -32600),
        ({"jsonrpc": "2.0", "id": 1, "method": 5}, 1, -32600),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": []}, 1, -32602),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": "x"}, 1, -32602),
    ],
)
def test_a_message_that_is_no_request_is_refused_under_its_id(
    message: object, request_id: object, code: int
) -> None:
    reply = only_reply(connect("2025-11-25").receive(line(message)))

    assert (reply["id"], reply["error"]["code"]) == (request_id, code)


def test_a_purely_modern_client_gets_no_null_id() -> None:
    connection = connect()
    ask_modern(connection, "server/discover")

    assert "id" not in only_reply(connection.receive(b"{"))
    ask(connection, "initialize", {"protocolVersion": "2025-11-25"})
    assert only_reply(connection.receive(b"{"))["id"] is None


@each(
    "raw",
    [
        b"",
        b"  \r",
        line({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        line({"jsonrpc": "2.0", "method": "notifications/cancelled"}),
        line({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": []}),
        line({"jsonrpc": "2.0", "method": "nonsense", "params": {}}),
        line({"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "search"}}),
        line({"jsonrpc": "2.0", "id": 1, "result": {}}),
        line({"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "x"}}),
    ],
)
def test_blank_lines_notifications_and_replies_are_not_answered(raw: bytes) -> None:
    assert connect("2025-11-25").receive(raw) == []


def test_a_byte_order_mark_and_windows_line_ends_are_taken() -> None:
    raw = "\ufeff".encode() + line({"jsonrpc": "2.0", "id": 1, "method": "ping"}) + b"\r"

    assert only_reply(connect().receive(raw))["result"] == {}


def test_a_long_name_is_cut_in_the_error_that_repeats_it() -> None:
    connection = connect("2025-11-25")

    assert len(ask(connection, "x" * 1_000_000)["error"]["message"]) < 300
    assert len(ask(connection, "tools/call", {"name": "x" * 100_000})["error"]["message"]) < 300


# -- batches ----------------------------------------------------------------------------------------

PING = {"jsonrpc": "2.0", "id": "ping", "method": "ping"}
CALL = {"jsonrpc": "2.0", "id": "call", "method": "tools/call", "params": {"name": "search"}}
CANCEL_CALL = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "call"}}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def replies_of(actions: list[Action]) -> list[dict[str, Any]]:
    (action,) = actions
    assert isinstance(action, Send)
    replies: list[dict[str, Any]] = json.loads(encode(action.message))
    assert isinstance(replies, list)
    return replies


def test_a_batch_is_answered_as_one_array_when_its_last_job_is_done() -> None:
    connection = connect("2025-03-26")

    (action,) = connection.receive(line([PING, CALL, INITIALIZED, {"jsonrpc": "2.0", "id": 5}, 3]))
    assert isinstance(action, Start)
    replies = replies_of(connection.finish(action.job, Done({"ok": True})))

    assert [reply["id"] for reply in replies] == ["ping", 5, None, "call"]
    assert [reply.get("error", {}).get("code") for reply in replies] == [None, -32600, -32600, None]


def test_a_batch_without_jobs_is_answered_at_once_and_one_of_notifications_not_at_all() -> None:
    connection = connect("2025-03-26")

    assert [reply["id"] for reply in replies_of(connection.receive(line([PING])))] == ["ping"]
    assert connection.receive(line([INITIALIZED, CANCEL_CALL])) == []


def test_a_batch_goes_on_without_what_was_cancelled() -> None:
    connection = connect("2025-03-26")

    begun = connection.receive(line([CALL, CANCEL_CALL, PING]))
    assert [type(action) for action in begun] == [Start, Cancel, Send]
    assert [reply["id"] for reply in replies_of(begun[2:])] == ["ping"]

    connection.receive(line([PING, CALL]))
    later = cancel(connection, "call")
    assert [reply["id"] for reply in replies_of(later[1:])] == ["ping"]

    connection.receive(line([CALL]))
    assert [type(action) for action in cancel(connection, "call")] == [Cancel]


def test_what_may_not_be_in_a_batch_is_refused_inside_it() -> None:
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}
    modern = {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {"_meta": ENVELOPE}}

    replies = replies_of(connect("2025-03-26").receive(line([hello, modern])))

    assert [(reply["id"], reply["error"]["code"]) for reply in replies] == [(1, -32600), (2, -32600)]


@pytest.mark.parametrize("version", [None, "2024-11-05", "2025-06-18", "2025-11-25"])
def test_other_versions_have_no_batches(version: str | None) -> None:
    assert only_reply(connect(version).receive(line([PING])))["error"]["code"] == -32600


def test_an_empty_batch_is_refused() -> None:
    assert only_reply(connect("2025-03-26").receive(b"[]"))["error"]["code"] == -32600


# -- anything at all --------------------------------------------------------------------------------

SEEDS: list[Any] = [
    PING,
    CALL,
    CANCEL_CALL,
    [PING, CALL],
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-03-26"}},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {"_meta": ENVELOPE}},
    {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "search", "_meta": ENVELOPE}},
    {"jsonrpc": "2.0", "id": 4, "method": "resources/read", "params": {"uri": "memory://item/é"}},
    {"jsonrpc": "2.0", "id": 5, "method": "server/discover", "params": {"_meta": ENVELOPE}},
    {
        "jsonrpc": "2.0",
        "id": 6,
        "method": "prompts/get",
        "params": {"name": "greet", "arguments": {"who": "x"}},
    },
    {
        "jsonrpc": "2.0",
        "id": 7,
        "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {"roots": {}}},
    },
    INITIALIZED,
    {"jsonrpc": "2.0", "id": "vestige-roots-1", "result": {"roots": [{"uri": "file:///x"}]}},
]
ODD_VALUES: list[Any] = [None, True, 0, -1, 1e999, 10**30, "", "\ud800", [], {}, [[]], {"": {}}, "x" * 999]


def mutated(value: Any, rng: random.Random) -> Any:
    """A value like this one with some part replaced, dropped or renamed."""
    if rng.random() < 0.15:
        return rng.choice(ODD_VALUES)
    if isinstance(value, dict):
        kept = {key: mutated(part, rng) for key, part in value.items() if rng.random() > 0.08}
        return {**kept, "odd": 1} if rng.random() < 0.1 else kept
    if isinstance(value, list):
        return [mutated(part, rng) for part in value if rng.random() > 0.1]
    return value


def mangled(raw: bytes, rng: random.Random) -> bytes:
    """The same bytes with a few of them changed, removed or added."""
    edited = bytearray(raw)
    for _ in range(rng.randrange(4)):
        at = rng.randrange(len(edited) + 1)
        edited[at : at + rng.randrange(3)] = rng.randbytes(rng.randrange(3))
    return bytes(edited)


def assert_valid(message: dict[str, Any]) -> None:
    assert message["jsonrpc"] == "2.0"
    if "method" in message:
        assert message["method"] in ("notifications/progress", "roots/list")
        return
    assert ("result" in message) != ("error" in message)
    if "result" in message:
        assert isinstance(message["id"], str | int)
        assert isinstance(message["result"], dict)
    else:
        assert message.get("id") is None or isinstance(message["id"], str | int)
        assert isinstance(message["error"]["code"], int)
        assert isinstance(message["error"]["message"], str)


def test_five_thousand_random_lines_never_break_the_core_or_its_replies() -> None:
    rng = random.Random(20260728)
    connection = connect()
    jobs: list[Job] = []
    answered = 0
    for number in range(5_000):
        if number % 500 == 0:
            connection, jobs = connect(rng.choice([None, *LEGACY_VERSIONS])), []
        raw = line(mutated(rng.choice(SEEDS), rng))
        actions = connection.receive(mangled(raw, rng) if rng.random() < 0.4 else raw)
        jobs += [action.job for action in actions if isinstance(action, Start)]
        if jobs and rng.random() < 0.5:
            job = jobs.pop(rng.randrange(len(jobs)))
            actions += connection.progress(job, rng.random(), None, None)
            outcomes: list[Done | Failed] = [Done({"a": 1}), Failed({"code": "x"})]
            actions += connection.finish(job, rng.choice(outcomes))
        for action in actions:
            if isinstance(action, Send):
                sent = json.loads(encode(action.message))
                for message in sent if isinstance(sent, list) else [sent]:
                    assert_valid(message)
                    answered += 1
    assert answered > 2_000
