"""Streams of MCP: who reads them has to be welcome for as long as they are open."""

import logging
import threading
import time
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from testbed.patience import PATIENCE_SECONDS
from tests.transports.http.support.harness import Site, bearer, new_site
from tests.transports.http.support.holders import Headers, cookie
from tests.transports.http.support.mcp_requests import ACCEPT, PATH, open_session
from vestige.transports.http.mcp import streams

MANY = 100


def test_it_is_asked_by_the_time_whether_a_reader_is_welcome_also_when_there_is_always_something_to_say(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(streams, "KEEP_ALIVE_SECONDS", 0.0)
    outbox, welcome, told = streams.Outbox(), iter((True, True, False)), []

    async def send(event: MutableMapping[str, Any]) -> None:
        told.append(event.get("body"))
        assert len(told) < MANY, "it was not asked"
        outbox.put({"jsonrpc": "2.0", "method": "notifications/progress"})

    async def still() -> bool:
        return next(welcome)

    anyio.run(lambda: streams.stream(send, outbox, still=still))

    assert told[-1] == b""
    assert len([one for one in told if one and one.startswith(b"event: message")]) == 2


def test_what_is_said_in_time_does_not_have_it_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "KEEP_ALIVE_SECONDS", PATIENCE_SECONDS)
    outbox, told = streams.Outbox(), []
    for number in range(MANY):
        outbox.put({"jsonrpc": "2.0", "id": number, "result": {}})
    outbox.close()

    async def send(event: MutableMapping[str, Any]) -> None:
        told.append(event.get("body"))

    async def still() -> bool:
        raise AssertionError("it was asked")

    anyio.run(lambda: streams.stream(send, outbox, still=still))

    assert len([one for one in told if one and one.startswith(b"event: message")]) == MANY


async def read(site: Site, headers: Headers, begun: threading.Event) -> list[bytes]:
    """Everything that a stream says until it ends; `begun` is set when it begins."""
    written: list[bytes] = []
    scope = {
        "type": "http",
        "method": "GET",
        "path": PATH,
        "query_string": b"",
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        "server": ("127.0.0.1", 3927),
        "client": ("127.0.0.1", 50_000),
        "scheme": "http",
    }
    asked = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive() -> MutableMapping[str, Any]:
        for message in asked:
            return message
        await anyio.sleep_forever()
        raise AssertionError("never")

    async def send(event: MutableMapping[str, Any]) -> None:
        written.append(event.get("body", b""))
        begun.set()

    await site.http.app(scope, receive, send)
    return written


@pytest.mark.parametrize("way", ["logs out", "login expires"])
def test_a_stream_ends_with_the_login_that_opened_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr(streams, "KEEP_ALIVE_SECONDS", 0.01)
    begun = threading.Event()
    with new_site(tmp_path) as site:
        mine = cookie(site, site.key("read"))
        session = {"Host": "127.0.0.1:3927", **ACCEPT, **open_session(site.http, headers=mine), **mine}
        assert site.http.portal
        reading = site.http.portal.start_task_soon(read, site, session, begun)
        assert begun.wait(PATIENCE_SECONDS)
        if way == "logs out":
            assert site.http.post("/logout", headers=mine).status_code == 204
        else:
            site.world.clock.advance(hours=site.context.settings.auth.session_hours)
        written = reading.result(PATIENCE_SECONDS)
    assert b": still here" in written[1]
    assert written[-1] == b""


def test_nobody_is_sent_away_because_the_store_is(
    site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(streams, "KEEP_ALIVE_SECONDS", 0.01)
    caplog.set_level(logging.INFO, "vestige.transports.http.mcp.endpoint")
    session = open_session(site.http, headers=bearer(site.key("read")))
    headers, begun = {"Host": "127.0.0.1:3927", **ACCEPT, **session}, threading.Event()
    assert site.http.portal
    reading = site.http.portal.start_task_soon(read, site, headers, begun)
    assert begun.wait(PATIENCE_SECONDS)
    site.world.app.engine.store.close()
    latest = time.monotonic() + PATIENCE_SECONDS
    while caplog.text.count("could not be checked") < 3:  # so it went on after it could not be asked
        assert not reading.done()
        assert time.monotonic() < latest
    site.http.portal.call(site.context.stopping.set)
    assert reading.result(PATIENCE_SECONDS)[-1] == b""
