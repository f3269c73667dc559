"""MCP over HTTP in the handshake era: sessions, their streams, and who they belong to."""

from collections.abc import MutableMapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from testbed.patience import PATIENCE_SECONDS
from tests.transports.http.support.harness import Site, bearer, new_site
from tests.transports.http.support.mcp_requests import (
    ACCEPT,
    LEGACY_VERSION,
    PATH,
    Body,
    Headers,
    call,
    events,
    message,
    open_session,
    post,
    sent,
    talking_to,
    watched,
)
from tests.transports.http.support.pauses import holding
from tests.transports.mcp.apps import SmallApp
from tests.transports.mcp.lines import HAS_ROOTS, HERE, LEGACY_VERSIONS, listed
from vestige.transports.http.mcp import driver, streams

HELLO: Body = {"protocolVersion": LEGACY_VERSION, "capabilities": {}, "clientInfo": {}}


def refusal(response: httpx2.Response) -> tuple[int, int]:
    """The status and the code of what was refused."""
    return response.status_code, response.json()["error"]["code"]


# -- the handshake ----------------------------------------------------------------------------------


@pytest.mark.parametrize("version", LEGACY_VERSIONS)
def test_a_session_serves_calls_until_it_is_ended(version: str) -> None:
    with talking_to(SmallApp()) as http:
        session = open_session(http, version)
        found = post(http, session, call("search", query="tea"))
        ended = http.delete(PATH, headers=session)
        after = post(http, session, call("search"))

    assert found.headers["content-type"] == "application/json"
    assert found.json()["result"]["structuredContent"] == {"echo": {"query": "tea"}}
    assert (ended.status_code, ended.content) == (204, b"")
    assert refusal(after) == (404, -32600)


def test_a_session_id_cannot_be_guessed_and_fits_a_header() -> None:
    with talking_to(SmallApp()) as http:
        ids = {open_session(http)["Mcp-Session-Id"] for _ in range(5)}

    assert len(ids) == 5
    assert all(len(one) >= 32 and one.isascii() and one.isprintable() for one in ids)


def test_without_a_session_only_a_handshake_is_served() -> None:
    with talking_to(SmallApp()) as http:
        missing = post(http, {}, call("search"))
        unknown = post(http, {"Mcp-Session-Id": "nope"}, call("search"))
        listening = http.get(PATH, headers=ACCEPT)
        half = post(http, {}, message("initialize", {"capabilities": {}}))
        batched = post(http, {}, [message("initialize", HELLO)])

    assert refusal(missing) == (400, -32600)
    assert refusal(unknown) == (404, -32600)
    assert refusal(listening) == (400, -32600)
    assert refusal(half) == (400, -32602)
    assert "mcp-session-id" not in half.headers
    assert refusal(batched) == (400, -32600)


def test_a_version_that_is_not_spoken_is_refused_and_none_is_taken_for_the_sessions() -> None:
    with talking_to(SmallApp()) as http:
        session = open_session(http, "2025-03-26")
        wrong = post(http, {**session, "MCP-Protocol-Version": "1999-01-01"}, call("search"))
        del session["MCP-Protocol-Version"]
        absent = post(http, session, [call("search", 1), message("ping", request_id=2)])

    assert wrong.status_code == 400
    assert sorted(reply["id"] for reply in absent.json()) == [1, 2]


def test_errors_of_a_request_are_answers_and_what_is_no_request_is_a_bad_one() -> None:
    with talking_to(SmallApp()) as http:
        session = open_session(http)
        unknown = post(http, session, message("nope"))
        batch = post(http, session, [message("ping")])
        broken = http.post(
            PATH, content=b"{", headers={**ACCEPT, **session, "Content-Type": "application/json"}
        )

    assert refusal(unknown) == (200, -32601)
    assert refusal(batch) == (400, -32600)  # this version has no batches
    assert refusal(broken) == (400, -32700)
    assert broken.json()["id"] is None


def test_notifications_and_answers_are_taken_without_an_answer() -> None:
    with talking_to(SmallApp()) as http:
        session = open_session(http)
        for body in (
            message("notifications/progress", request_id=None),
            {"jsonrpc": "2.0", "id": "unasked", "result": {}},
            {"jsonrpc": "2.0", "id": "unasked", "error": {"code": 1, "message": "no"}},
        ):
            response = post(http, session, body)
            assert (response.status_code, response.content) == (202, b"")


# -- who a session belongs to -----------------------------------------------------------------------


def test_a_session_is_not_there_for_another_key(site: Site) -> None:
    mine, others = bearer(site.key(label="same")), bearer(site.key(label="same"))
    session = open_session(site.http, headers=mine)

    assert post(site.http, {**session, **mine}, message("ping")).status_code == 200
    for method in ("POST", "DELETE", "GET"):
        taken = site.http.request(method, PATH, json=message("ping"), headers={**ACCEPT, **session, **others})
        assert refusal(taken) == (404, -32600)
    assert post(site.http, {**session, **mine}, message("ping")).status_code == 200


def test_so_many_sessions_are_open_at_most(tmp_path: Path) -> None:
    with new_site(tmp_path, {"server.max_sessions": 2, "auth.enabled": False}) as site:
        first, _ = open_session(site.http), open_session(site.http)
        full = post(site.http, {}, message("initialize", HELLO))
        site.http.delete(PATH, headers=first)
        again = post(site.http, {}, message("initialize", HELLO))

    assert refusal(full) == (503, -32600)
    assert int(full.headers["retry-after"]) > 0
    assert again.status_code == 200


def test_one_key_has_at_most_half_of_the_sessions_and_gives_up_the_oldest(tmp_path: Path) -> None:
    with new_site(tmp_path, {"server.max_sessions": 4}) as site:
        mine, yours = bearer(site.key(label="mine")), bearer(site.key(label="yours"))
        first, second = open_session(site.http, headers=mine), open_session(site.http, headers=mine)
        site.world.clock.sleep(1)
        assert post(site.http, first, message("ping")).status_code == 200  # so the second was idle longer
        other = open_session(site.http, headers=yours)
        broken = post(site.http, mine, message("initialize", {"capabilities": {}}))
        assert (broken.status_code, post(site.http, second, message("ping")).status_code) == (400, 200)
        site.world.clock.sleep(1)
        assert post(site.http, first, message("ping")).status_code == 200
        third = open_session(site.http, headers=mine)

        answers = [post(site.http, one, message("ping")).status_code for one in (first, second, third, other)]
        assert answers == [200, 404, 200, 200]


def test_a_session_that_is_in_use_is_not_given_up(tmp_path: Path) -> None:
    with (
        new_site(tmp_path, {"server.max_sessions": 2}) as site,
        ThreadPoolExecutor() as threads,
        holding("search") as held,
    ):
        mine = bearer(site.key())
        session = open_session(site.http, headers=mine)
        asked = threads.submit(post, site.http, session, call("search", query="tea"))
        held.wait(1)
        full = post(site.http, mine, message("initialize", HELLO))
        held.let_go()

        assert refusal(full) == (503, -32600)
        assert asked.result(PATIENCE_SECONDS).status_code == 200
        assert post(site.http, session, message("ping")).status_code == 200


def test_a_session_that_is_not_used_for_a_while_is_over(tmp_path: Path) -> None:
    with new_site(tmp_path, {"server.session_idle_minutes": 30, "auth.enabled": False}) as site:
        session, other = open_session(site.http), open_session(site.http)
        for _ in range(3):
            site.world.clock.advance(hours=0.4)
            assert post(site.http, session, message("ping")).status_code == 200
        gone = post(site.http, other, message("ping"))

        assert gone.status_code == 404
        assert site.context.gauges["mcp_sessions"].read() == 1


# -- order and cancellation -------------------------------------------------------------------------


def test_short_calls_of_a_session_run_one_after_another_and_others_beside_them() -> None:
    app = SmallApp()
    with talking_to(app) as http, ThreadPoolExecutor() as threads:
        session, other = open_session(http), open_session(http)
        slow = threads.submit(post, http, session, call("search", 1, wait=True))
        assert app.running.wait(PATIENCE_SECONDS)
        app.running.clear()
        behind = threads.submit(post, http, session, call("search", 2, number=2))
        long = threads.submit(post, http, session, call("dream", 3))
        assert app.running.wait(PATIENCE_SECONDS)  # the long one did not wait
        beside = post(http, other, call("search", 4, number=4))
        started = [arguments.get("number") for arguments in app.seen]
        assert (
            post(http, session, message("notifications/cancelled", {"requestId": 3}, None)).status_code == 202
        )
        app.release.set()
        answers = [one.result(PATIENCE_SECONDS) for one in (slow, behind)]

    assert beside.json()["result"]["structuredContent"] == {"echo": {"number": 4}}
    assert 2 not in started
    assert [answer.json()["id"] for answer in answers] == [1, 2]
    assert long.result(PATIENCE_SECONDS).content == b""  # what was taken back is not answered


def test_a_lost_response_does_not_take_a_request_back() -> None:
    app = SmallApp()
    with talking_to(app) as http:
        session = open_session(http)
        with sent(http, session, call("search", wait=True, number=1)):
            assert app.running.wait(PATIENCE_SECONDS)
        assert post(http, session, message("ping", request_id=2)).status_code == 200
        app.release.set()
        post(http, session, call("search", 3, number=3))

    assert [arguments["number"] for arguments in app.seen] == [1, 3]
    assert not app.cancelled.is_set()


def test_a_call_that_waits_for_roots_is_not_lost_with_its_response(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "ROOTS_SECONDS", 0.1)
    app = SmallApp()
    app.release.set()
    with talking_to(app) as http:
        session = open_session(http, capabilities=HAS_ROOTS)
        with sent(http, session, call("search", 1, wait=True, number=1)):
            post(http, session, message("ping"))  # what was sent before has been read
        assert app.running.wait(PATIENCE_SECONDS)
        after = post(http, session, call("search", 2, number=2))

    assert after.status_code == 200
    assert [arguments["number"] for arguments in app.seen] == [1, 2]


def test_a_session_has_so_many_unfinished_calls_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "MAX_UNFINISHED", 3)
    app, conversations = SmallApp(), watched(monkeypatch)
    with talking_to(app) as http, ThreadPoolExecutor() as threads:
        session = open_session(http, "2025-03-26")
        batch = [call("search", number, wait=True) for number in (1, 2)]
        asked = threads.submit(post, http, session, batch)
        assert app.running.wait(PATIENCE_SECONDS)
        more = post(http, session, [call("search", 3), message("ping", request_id=4), call("search", 5)])
        fits = threads.submit(post, http, session, [call("search", 6), message("ping", request_id=7)])
        while conversations[0].has_room_for(1):
            assert not fits.done()
        cancel = message("notifications/cancelled", {"requestId": 99}, None)
        full = post(http, session, call("search", 9))
        others = [post(http, session, one).status_code for one in (message("ping"), cancel)]
        app.release.set()
        answers = [one.result(PATIENCE_SECONDS).json() for one in (asked, fits)]
        after = post(http, session, call("search", 10))

    assert refusal(more) == refusal(full) == (429, -32600)
    assert full.json()["id"] == 9
    assert full.headers["retry-after"] == "1"
    assert others == [200, 202]
    assert [[one["id"] for one in answer] for answer in answers] == [[1, 2], [7, 6]]
    assert after.status_code == 200


def test_calls_that_wait_for_roots_are_unfinished_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "MAX_UNFINISHED", 1)
    monkeypatch.setattr(driver, "ROOTS_SECONDS", PATIENCE_SECONDS)
    with talking_to(SmallApp()) as http:
        session = open_session(http, capabilities=HAS_ROOTS)
        body = call("search", 1)
        with http.stream("POST", PATH, headers={**ACCEPT, **session}, json=body) as response:
            told = events(response.iter_lines())
            question = next(told)
            full = post(http, session, call("search", 2))
            answer_roots(http, session, question)
            assert [one["id"] for one in told] == [1]
        after = post(http, session, call("search", 3))

    assert refusal(full) == (429, -32600)
    assert after.status_code == 200


def test_each_message_of_a_batch_counts_as_a_request(tmp_path: Path) -> None:
    with new_site(tmp_path, {"server.requests_per_minute": 20, "auth.enabled": False}) as site:
        session = open_session(site.http, "2025-03-26")  # two requests
        batch = [message("ping", request_id=number) for number in range(8)]
        answers = [post(site.http, session, batch) for _ in range(2)]
        again = post(site.http, session, batch)

    assert [answer.status_code for answer in answers] == [200, 200]
    assert refusal(again) == (429, -32600)
    assert again.headers["retry-after"] == "18"


def test_a_batch_has_a_limit() -> None:
    with talking_to(SmallApp()) as http:
        session = open_session(http, "2025-03-26")
        most = post(http, session, [message("ping", request_id=number) for number in range(100)])
        more = post(http, session, [message("ping", request_id=number) for number in range(101)])

    assert len(most.json()) == 100
    assert refusal(more) == (400, -32600)


def test_ids_that_have_no_bytes_or_are_huge_come_back_as_they_were() -> None:
    with talking_to(SmallApp()) as http:
        headers = {**ACCEPT, **open_session(http), "Content-Type": "application/json"}
        for request_id in (b'"\\ud800"', b"1" + b"0" * 30):
            body = b'{"jsonrpc": "2.0", "method": "ping", "id": ' + request_id + b"}"
            response = http.post(PATH, content=body, headers=headers)
            assert response.content == b'{"jsonrpc":"2.0","id":' + request_id + b',"result":{}}'


def test_ending_a_session_stops_what_runs_in_it() -> None:
    app = SmallApp()
    with talking_to(app) as http, ThreadPoolExecutor() as threads:
        session = open_session(http)
        running = threads.submit(post, http, session, call("dream"))
        assert app.running.wait(PATIENCE_SECONDS)
        http.delete(PATH, headers=session)

        assert app.cancelled.wait(PATIENCE_SECONDS)
        assert running.result(PATIENCE_SECONDS).content == b""


# -- the server's own stream ------------------------------------------------------------------------


def test_the_question_for_roots_goes_out_on_the_listening_stream() -> None:
    app = SmallApp()
    with talking_to(app) as http, ThreadPoolExecutor() as threads:
        session = open_session(http, capabilities=HAS_ROOTS)
        with http.stream("GET", PATH, headers={**ACCEPT, **session}) as listening:
            assert listening.headers["content-type"].startswith("text/event-stream")
            told = events(listening.iter_lines())
            question = next(told)
            waiting = threads.submit(post, http, session, call("search"))
            answer_roots(http, session, question)
            found = waiting.result(PATIENCE_SECONDS)
            second = http.get(PATH, headers={**ACCEPT, **session})

    assert question["method"] == "roots/list"
    assert found.headers["content-type"] == "application/json"
    assert app.roots == [(HERE,)]
    assert second.status_code == 409


def test_a_client_that_does_not_listen_is_asked_on_the_stream_of_its_call() -> None:
    app = SmallApp()
    with talking_to(app) as http:
        session = open_session(http, capabilities=HAS_ROOTS)
        body = call("search", query="tea")
        with http.stream("POST", PATH, headers={**ACCEPT, **session}, json=body) as response:
            told = events(response.iter_lines())
            answer_roots(http, session, next(told))
            (found,) = told

    assert found["result"]["structuredContent"] == {"echo": {"query": "tea"}}
    assert app.roots == [(HERE,)]


def answer_roots(http: httpx2.Client, session: Headers, question: Body) -> None:
    answer = {"jsonrpc": "2.0", "id": question["id"], "result": listed(HERE)}
    assert post(http, session, answer).status_code == 202


def test_a_stream_says_from_time_to_time_that_it_is_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "KEEP_ALIVE_SECONDS", 0.01)
    with talking_to(SmallApp()) as http:
        session = open_session(http)
        with http.stream("GET", PATH, headers={**ACCEPT, **session}) as listening:
            lines = listening.iter_lines()
            comments = [line for line in (next(lines) for _ in range(6)) if line]
            http.delete(PATH, headers=session)
            rest = list(lines)  # the end of the session is the end of the stream

    assert len(comments) == 3
    assert all(line.startswith(":") for line in [*comments, *filter(None, rest)])


def test_a_stream_ends_when_its_reader_is_not_welcome_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "KEEP_ALIVE_SECONDS", 0.01)
    written: list[Any] = []
    welcome = iter((True, False))

    async def listen() -> None:
        async def send(event: MutableMapping[str, Any]) -> None:
            written.append(event)

        async def still() -> bool:
            return next(welcome)

        await streams.stream(send, streams.Outbox(), still=still)

    anyio.run(listen)

    comments = [one["body"] for one in written[1:-1]]
    assert len(comments) == 2
    assert written[-1] == {"type": "http.response.body", "body": b""}


def test_an_answer_that_takes_long_becomes_a_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "STREAM_AFTER_SECONDS", 0.01)
    app = SmallApp()
    with talking_to(app) as http:
        session = open_session(http)
        body = call("search", wait=True)
        with http.stream("POST", PATH, headers={**ACCEPT, **session}, json=body) as response:
            assert response.headers["content-type"].startswith("text/event-stream")
            app.release.set()
            (reply,) = events(response.iter_lines())

    assert reply["result"]["structuredContent"] == {"echo": {"wait": True}}


def test_a_call_in_a_stream_ends_when_its_key_is_revoked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "STREAM_AFTER_SECONDS", 0.01)
    monkeypatch.setattr(streams, "KEEP_ALIVE_SECONDS", 0.01)
    with new_site(tmp_path) as site, ThreadPoolExecutor(1) as threads, holding("search") as held:
        minted, text = site.mint("read")
        session = open_session(site.http, headers=bearer(text))
        asked = threads.submit(post, site.http, session, call("search", query="tea"))
        held.wait(1)
        site.revoke(minted)
        held.wait(0)  # it was cancelled, not let go
        answer = asked.result(PATIENCE_SECONDS)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert list(events(iter(answer.text.splitlines()))) == []


def test_messages_for_a_client_that_does_not_listen_are_bounded() -> None:
    outbox = streams.Outbox()
    for number in range(2 * streams.MAX_WAITING):
        outbox.put({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"n": number}})
    outbox.put({"jsonrpc": "2.0", "id": 1, "result": {}})

    kept = outbox.drain()
    assert len(kept) == streams.MAX_WAITING + 1
    assert "result" in kept[-1]
