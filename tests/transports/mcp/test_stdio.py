"""The MCP driver on real pipes, in this process: order, cancellation, size, failure and the end."""

import json
import logging
import select
import signal
import threading
from typing import Any

import mcp_types as types
import pytest

from testbed.patience import PATIENCE_SECONDS
from tests.transports.mcp.apps import Peer, SmallApp, serving
from tests.transports.mcp.harness import MODES, sdk_client
from tests.transports.mcp.lines import CATALOG, HAS_ROOTS, HERE, INITIALIZED, listed
from vestige.core.errors import StoreBusy


def structured(reply: dict[str, Any]) -> Any:
    return reply["result"]["structuredContent"]


# -- the official client ----------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_the_official_client_lists_calls_and_reads(mode: str) -> None:
    with sdk_client(SmallApp(), mode=mode, catalog=CATALOG) as call:
        assert call.version == ("2025-11-25" if mode.endswith("legacy") else "2026-07-28")
        assert [tool.name for tool in call.tools()] == ["search", "dream", "tidy"]
        assert [str(resource.uri) for resource in call.resources()] == ["memory://stats"]
        templates = [template.uri_template for template in call.templates()]
        assert templates == ["memory://stats{?n}", "memory://item/{id}"]
        (content,) = call.resource("memory://item/42").contents
        assert isinstance(content, types.TextResourceContents)
        assert json.loads(content.text) == {"uri": "memory://item/42"}

        found = call.tool("search", {"query": "thé", "steps": 3})

        assert found.structured_content == {"echo": {"query": "thé", "steps": 3}}
        assert not found.is_error
        assert call.progress == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]


@pytest.mark.parametrize("mode", MODES)
def test_the_official_client_sees_the_one_error_value(mode: str) -> None:
    with sdk_client(SmallApp(), mode=mode, catalog=CATALOG) as call:
        failed = call.tool("search", {"fail": True})

    error = {"code": "too_large", "message": "Too much.", "hint": "Send less.", "details": {"limit": 3}}
    assert failed.is_error
    assert failed.structured_content == {"error": error}
    (content,) = failed.content
    assert isinstance(content, types.TextContent)
    assert json.loads(content.text) == {"error": error}


# -- order and cancellation -------------------------------------------------------------------------


def test_jobs_run_in_the_order_they_came() -> None:
    app = SmallApp()
    with serving(lambda: app) as peer:
        for number in range(100):
            peer.call(number, number=number)
        replies = peer.finish()

    assert [reply["id"] for reply in replies] == list(range(100))
    assert [arguments["number"] for arguments in app.seen] == list(range(100))


def test_lists_are_answered_while_a_job_runs() -> None:
    app = SmallApp()
    with serving(lambda: app) as peer:
        peer.call("slow", wait=True)
        assert app.running.wait(PATIENCE_SECONDS)
        peer.send("tools/list", request_id="list")
        assert peer.read()["id"] == "list"
        app.release.set()
        assert peer.read()["id"] == "slow"


def test_a_long_tool_does_not_hold_up_the_others() -> None:
    app = SmallApp()
    with serving(lambda: app) as peer:
        peer.call("long", tool="dream")
        assert app.running.wait(PATIENCE_SECONDS)
        peer.call("short")
        assert peer.read()["id"] == "short"
        peer.cancel("long")
        assert app.cancelled.wait(PATIENCE_SECONDS)
        assert peer.finish() == []


def test_a_running_job_learns_that_it_was_cancelled_and_nothing_is_sent_for_it() -> None:
    app = SmallApp()
    with serving(lambda: app) as peer:
        peer.call("gone", tool="dream", token="p")
        assert app.running.wait(PATIENCE_SECONDS)
        peer.cancel("gone")
        assert app.cancelled.wait(PATIENCE_SECONDS)
        peer.call("next")

        assert [reply["id"] for reply in peer.finish()] == ["next"]


def test_a_queued_job_that_is_cancelled_never_runs() -> None:
    app = SmallApp()
    with serving(lambda: app) as peer:
        peer.call("first", wait=True)
        assert app.running.wait(PATIENCE_SECONDS)
        peer.call("second", never=True)
        peer.call("third", number=3)
        peer.cancel("second")
        peer.send("ping", request_id="ping")
        assert peer.read()["id"] == "ping"  # so the cancellation has been taken
        app.release.set()

        assert [reply["id"] for reply in peer.finish()] == ["first", "third"]
    assert app.seen == [{"wait": True}, {"number": 3}]


def test_progress_comes_in_order_and_before_the_answer() -> None:
    app = SmallApp()
    with serving(lambda: app) as peer:
        peer.call("job", token="p", steps=3)
        messages = peer.finish()

    assert [message.get("params", {}).get("progress") for message in messages] == [1, 2, 3, None]
    assert messages[-1]["id"] == "job"


# -- calls that wait for roots -----------------------------------------------------------------------


def introduce(peer: Peer) -> dict[str, Any]:
    """Shake hands as a client with roots; what it is asked."""
    peer.send("initialize", {"protocolVersion": "2025-11-25", "capabilities": HAS_ROOTS}, "hello")
    peer.send(INITIALIZED)
    assert peer.read()["id"] == "hello"
    return peer.read()


def test_the_driver_holds_calls_until_the_client_has_told() -> None:
    app = SmallApp()
    with serving(lambda: app, roots_seconds=PATIENCE_SECONDS, greet=False) as peer:
        question = introduce(peer)
        peer.call(1, number=1)
        peer.call(2, number=2)
        peer.call(3, number=3)
        peer.cancel(2)
        peer.send("ping", request_id="ping")
        assert peer.read()["id"] == "ping"
        assert app.seen == []
        reply = {"jsonrpc": "2.0", "id": question["id"], "result": listed(HERE)}
        peer.send_bytes(json.dumps(reply).encode() + b"\n")
        assert [peer.read()["id"], peer.read()["id"]] == [1, 3]

    assert app.seen == [{"number": 1}, {"number": 3}]
    assert app.roots == [(HERE,), (HERE,)]


def test_the_driver_goes_on_when_the_client_never_tells() -> None:
    app = SmallApp()
    with serving(lambda: app, roots_seconds=0.05, greet=False) as peer:
        introduce(peer)
        peer.call(1)
        peer.call(2)
        assert [peer.read()["id"], peer.read()["id"]] == [1, 2]

    assert app.roots == [(), ()]


def test_held_calls_are_finished_when_the_client_goes_away() -> None:
    app = SmallApp()
    with serving(lambda: app, roots_seconds=PATIENCE_SECONDS, greet=False) as peer:
        introduce(peer)
        peer.call(1, number=1)
        peer.call(2, number=2)
        assert [message["id"] for message in peer.finish()] == [1, 2]

    assert app.seen == [{"number": 1}, {"number": 2}]
    assert app.closed
    assert peer.ended == [(0, True)]


# -- size and malformed input -----------------------------------------------------------------------


def test_a_request_of_five_megabytes_and_a_reply_of_twenty_pass_whole() -> None:
    app = SmallApp()
    text = "wörter " * 625_000
    with serving(lambda: app) as peer:
        peer.call("big in", text=text)
        assert structured(peer.read())["echo"] == {"text": text}
        peer.call("big out", size=5_000_000)  # as text and as structure, at two bytes each
        raw = peer.reader.readline()

    assert len(raw) > 20_000_000
    assert structured(json.loads(raw))["filler"] == "é" * 5_000_000


def test_a_malformed_line_is_answered_and_the_next_one_served() -> None:
    with serving(SmallApp) as peer:
        peer.send_bytes(b"{nonsense\n\n \r\n\xff\xfe\n")
        peer.call("good")
        replies = peer.finish()

    assert [reply.get("error", {}).get("code") for reply in replies] == [-32700, -32700, None]
    assert replies[2]["id"] == "good"


def test_a_last_line_without_its_newline_is_served() -> None:
    with serving(SmallApp) as peer:
        peer.send_bytes(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')

        assert peer.finish() == [{"jsonrpc": "2.0", "id": 1, "result": {}}]


def test_a_line_may_arrive_byte_by_byte_and_two_at_once() -> None:
    one = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
    with serving(SmallApp) as peer:
        for position in range(len(one)):
            peer.send_bytes(one[position : position + 1])
        peer.send_bytes(one + one)

        assert [reply["id"] for reply in peer.finish()] == [1, 1, 1]


# -- failure ----------------------------------------------------------------------------------------


def test_an_unexpected_error_is_logged_whole_and_told_without_its_inside(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.ERROR), serving(SmallApp) as peer:
        peer.call("bug", bug=True)
        peer.call("exit", exit=True)
        peer.call("good")
        replies = peer.finish()

    for reply in replies[:2]:
        assert reply["result"]["isError"] is True
        assert structured(reply)["error"]["code"] == "internal"
        assert "swordfish" not in json.dumps(reply)
    assert structured(replies[2]) == {"echo": {}}
    assert "swordfish" in caplog.text


def test_an_application_that_cannot_open_says_why_and_is_tried_again() -> None:
    app = SmallApp()
    results = iter([StoreBusy(hint="Close the other one."), None])

    def open_app() -> SmallApp:
        if error := next(results):
            raise error
        return app

    with serving(open_app) as peer:
        peer.call(1)
        refused = peer.read()
        peer.call(2)
        served = peer.read()

    assert refused["result"]["isError"] is True
    assert structured(refused)["error"]["code"] == "store_busy"
    assert structured(refused)["error"]["hint"] == "Close the other one."
    assert structured(served) == {"echo": {}}


# -- the beginning and the end ----------------------------------------------------------------------


@pytest.mark.parametrize("method", ["tools/list", "ping"])
def test_the_application_opens_by_itself_once_the_first_answers_are_out(method: str) -> None:
    opened = threading.Event()
    answered_first: list[bool] = []

    def open_app() -> SmallApp:
        readable, _, _ = select.select([peer.reader], [], [], 0)
        answered_first.append(bool(readable))
        opened.set()
        return SmallApp()

    with serving(open_app) as peer:
        peer.send(method, request_id=1)
        assert opened.wait(PATIENCE_SECONDS)

    assert answered_first == [True]


def test_the_application_is_not_opened_for_a_client_that_only_looks() -> None:
    opened: list[bool] = []

    def open_app() -> SmallApp:
        opened.append(True)
        return SmallApp()

    with serving(open_app) as peer:
        peer.send("tools/list", request_id=1)
        peer.finish()

    assert opened == []
    assert peer.ended == [(0, True)]


def test_at_the_end_of_stdin_queued_jobs_are_finished_and_the_application_closed() -> None:
    app = SmallApp()
    with serving(lambda: app) as peer:
        peer.call("running", wait=True)
        for number in range(20):
            peer.call(number)
        assert app.running.wait(PATIENCE_SECONDS)
        threading.Timer(0.0, app.release.set).start()
        replies = peer.finish()

    assert [reply["id"] for reply in replies] == ["running", *range(20)]
    assert app.closed
    assert peer.ended == [(0, True)]


def test_at_the_end_of_stdin_a_job_may_take_longer_than_the_grace_period() -> None:
    app = SmallApp()
    with serving(lambda: app, grace_seconds=0.01) as peer:
        peer.call("large", wait=True)
        peer.call("behind it")
        assert app.running.wait(PATIENCE_SECONDS)
        threading.Timer(0.3, app.release.set).start()
        replies = peer.finish()

    assert [reply["id"] for reply in replies] == ["large", "behind it"]
    assert app.closed
    assert peer.ended == [(0, True)]


def test_a_client_that_stops_reading_does_not_lose_what_it_had_stored() -> None:
    app = SmallApp()
    with serving(lambda: app, grace_seconds=0.01) as peer:
        peer.call("large", wait=True)
        peer.call("behind it", number=2)
        assert app.running.wait(PATIENCE_SECONDS)
        peer.reader.close()
        peer.send("ping", request_id="nobody hears")
        threading.Timer(0.3, app.release.set).start()
        peer.wait()

    assert app.seen == [{"wait": True}, {"number": 2}]
    assert peer.ended == [(0, True)]


@pytest.mark.parametrize("closed", [False, True], ids=["while the client is there", "after the end of stdin"])
def test_after_a_signal_a_job_that_never_ends_is_abandoned_and_the_exit_code_says_so(
    closed: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    app = SmallApp()
    with serving(lambda: app, grace_seconds=0.05) as peer:
        peer.call("stuck", tool="dream")
        assert app.running.wait(PATIENCE_SECONDS)
        if closed:
            peer.writer.close()
        peer.server.stop(signal.SIGTERM)
        peer.wait()

    assert peer.ended == [(1, False)]
    assert "dream" in capfd.readouterr().err
    assert app.cancelled.wait(PATIENCE_SECONDS)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_after_a_signal_a_job_that_ends_in_time_is_answered(number: int, code: int) -> None:
    app = SmallApp()
    with serving(lambda: app) as peer:
        peer.call("running", wait=True)
        assert app.running.wait(PATIENCE_SECONDS)
        peer.server.stop(number)
        app.release.set()
        assert peer.read()["id"] == "running"
        peer.wait()

    assert peer.ended == [(code, True)]
    assert app.closed


def test_a_client_that_stops_reading_ends_the_server_quietly(capfd: pytest.CaptureFixture[str]) -> None:
    app = SmallApp()
    with serving(lambda: app) as peer:
        peer.reader.close()
        peer.call(1)
        peer.wait()

    assert peer.ended == [(0, True)]
    assert app.closed
    assert capfd.readouterr().err == ""
