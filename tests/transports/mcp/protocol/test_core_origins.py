"""A connection whose messages come on several ways: each answer finds the way its request came."""

from typing import Any

import pytest

from tests.transports.mcp.lines import ENVELOPE, HAS_ROOTS, INITIALIZED, connect, listed
from vestige.transports.mcp.protocol.core import ClientConversation
from vestige.transports.mcp.protocol.messages import Action, Cancel, Done, HoldJobs, Job, Send, Start

HERE, THERE = "one way", "another"


def call(request_id: int) -> dict[str, Any]:
    params = {"name": "search", "arguments": {}, "_meta": {"progressToken": request_id}}
    return {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params}


def begin(connection: ClientConversation, message: object, origin: object) -> Job:
    (action,) = connection.take(message, 10, origin)
    assert isinstance(action, Start)
    return action.job


def sent(actions: list[Action]) -> list[tuple[Any, object]]:
    """What is written, each with the way it goes."""
    return [(one.message, one.origin) for one in actions if isinstance(one, Send)]


def test_answers_and_progress_go_the_way_their_request_came() -> None:
    connection = connect("2025-11-25")
    first, second = begin(connection, call(1), HERE), begin(connection, call(2), THERE)

    ((_, progress),) = sent(connection.progress(second, 1, None, None))
    ((reply, answered),) = sent(connection.finish(first, Done({})))
    ((_, at_once),) = sent(connection.take({"jsonrpc": "2.0", "id": 3, "method": "ping"}, 10, THERE))

    assert (progress, answered, at_once) == (THERE, HERE, THERE)
    assert reply["id"] == 1


def test_a_batch_is_answered_on_its_way() -> None:
    connection = connect("2025-03-26")
    starts = connection.take([call(1), call(2)], 10, HERE)
    jobs = [action.job for action in starts if isinstance(action, Start)]

    assert sent(connection.finish(jobs[0], Done({}))) == []
    ((replies, way),) = sent(connection.finish(jobs[1], Done({})))
    assert ([reply["id"] for reply in replies], way) == ([1, 2], HERE)


def test_a_question_of_ours_goes_no_particular_way() -> None:
    connection = connect("2025-11-25", capabilities=HAS_ROOTS)

    ((question, way),) = sent(connection.take({"jsonrpc": "2.0", "method": INITIALIZED}, 10, HERE))

    assert (question["method"], way) == ("roots/list", None)


def test_what_is_held_back_is_still_served_and_starts_when_another_way_brings_the_answer() -> None:
    connection = connect("2025-11-25", capabilities=HAS_ROOTS)
    ((question, _),) = sent(connection.take({"jsonrpc": "2.0", "method": INITIALIZED}, 10, HERE))
    (held,) = connection.take(call(1), 10, HERE)
    assert isinstance(held, HoldJobs)
    assert connection.serves(HERE)

    reply = {"jsonrpc": "2.0", "id": question["id"], "result": listed("file:///x")}
    (start,) = connection.take(reply, 10, THERE)

    assert isinstance(start, Start)
    assert start.job.origin == HERE
    assert not connection.serves(THERE)


def test_abandoning_a_way_takes_back_what_came_on_it_alone() -> None:
    connection = connect("2025-11-25")
    first, second = begin(connection, call(1), HERE), begin(connection, call(2), THERE)

    (action,) = connection.abandon(HERE)

    assert isinstance(action, Cancel)
    assert action.job is first
    assert not connection.serves(HERE)
    assert connection.serves(THERE)
    assert connection.finish(first, Done({})) == []
    assert sent(connection.finish(second, Done({})))


@pytest.mark.parametrize("method", ["initialize", "ping", "tools/list"])
def test_a_stateless_connection_takes_every_request_for_one_of_its_era(method: str) -> None:
    connection = connect(stateless=True)
    bare = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {}}
    whole = {**bare, "params": {"_meta": ENVELOPE}}

    ((refused, _),) = sent(connection.take(bare, 10))
    ((answered, _),) = sent(connection.take(whole, 10))

    assert refused["error"]["code"] == -32602
    assert answered.get("error", {}).get("code") == (None if method == "tools/list" else -32601)


def test_a_client_on_another_machine_is_not_asked_for_its_folders() -> None:
    remote = connect("2025-11-25", capabilities=HAS_ROOTS, local=False)
    assert remote.take({"jsonrpc": "2.0", "method": INITIALIZED}, 10) == []
    assert begin(remote, call(1), HERE).roots == ()

    envelope = {key: HAS_ROOTS if key.endswith("Capabilities") else value for key, value in ENVELOPE.items()}
    modern = call(2)
    modern["params"]["_meta"] = envelope
    assert begin(connect(stateless=True, local=False), modern, HERE).roots == ()


def test_folders_that_a_client_on_another_machine_tells_unasked_are_not_looked_at() -> None:
    modern = call(2)
    told = {"roots": {"roots": [{"uri": "file:///srv/secret"}]}}
    modern["params"] |= {"_meta": ENVELOPE, "inputResponses": told}
    assert begin(connect(stateless=True, local=True), modern, HERE).roots == ("file:///srv/secret",)
    assert begin(connect(stateless=True, local=False), modern, HERE).roots == ()
