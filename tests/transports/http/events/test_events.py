"""Live events over WebSocket and as server-sent events: who is told what, and how a stream ends."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from starlette.testclient import WebSocketDenialResponse, WebSocketTestSession
from starlette.websockets import WebSocketDisconnect

from testbed.patience import PATIENCE_SECONDS
from tests.transports.http.support.harness import URL, WS, Site, bearer, new_site
from tests.transports.http.support.holders import cookie
from vestige import __version__
from vestige.transports.http import rest
from vestige.transports.http.events import endpoints, listeners
from vestige.transports.http.events.endpoints import MAX_FRAME_BYTES
from vestige.transports.http.events.listeners import LOCKED_OUT

PARTS = (endpoints.routes,)


def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have done at once what is done from time to time."""
    for name in ("RECHECK_SECONDS", "COUNT_SECONDS", "BEAT_SECONDS"):
        monkeypatch.setattr(listeners, name, 0.01)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A server that tells how it is going as soon as it can, so that no test has to wait for it."""
    hurry(monkeypatch)
    with new_site(tmp_path, parts=PARTS) as opened:
        yield opened


def socket(site: Site, key: str, **headers: str) -> WebSocketTestSession:
    return site.http.websocket_connect(f"{WS}/ws", headers={**bearer(key), **headers})


def numbers(session: WebSocketTestSession) -> dict[str, Any]:
    """The next heartbeat for which something was counted; what is told before is not looked at."""
    while True:
        message: dict[str, Any] = session.receive_json()
        if message["type"] == "Heartbeat" and "memory_count" in message["data"]:
            return message


def happened(session: WebSocketTestSession) -> dict[str, Any]:
    """The next event."""
    while True:
        message: dict[str, Any] = session.receive_json()
        if message["type"] != "Heartbeat":
            return message


def ending(session: WebSocketTestSession) -> tuple[int, str]:
    """The code and the reason with which it ends, whatever is told before."""
    while True:
        try:
            session.receive_json()
        except WebSocketDisconnect as ended:
            return ended.code, ended.reason


class Streamed(threading.Thread):
    """A request for server-sent events, whose answer is there when the stream has ended."""

    def __init__(self, site: Site, shown: dict[str, str]) -> None:
        super().__init__(daemon=True)
        self._site, self._shown = site, shown
        self.headers: dict[str, str] = {}
        self.text = ""
        self.start()

    def run(self) -> None:
        response = self._site.http.get("/api/v1/events", headers=self._shown)
        self.headers, self.text = dict(response.headers), response.text

    def messages(self) -> list[dict[str, Any]]:
        """What was told until the stream ended."""
        self.join(PATIENCE_SECONDS)
        events = self.text.removesuffix("\n\n").split("\n\n")
        assert all(one.startswith("data: ") for one in events)
        return [json.loads(one.removeprefix("data: ")) for one in events]


def until_they_listen(site: Site, count: int) -> None:
    """Wait until so many listen."""
    listening, waiting = site.context.gauges["listeners"].read, threading.Event()
    for _ in range(round(PATIENCE_SECONDS / 0.01)):
        if listening() == count:
            return
        waiting.wait(0.01)
    raise AssertionError("they do not listen")


def test_a_client_is_greeted_and_told_how_it_is_going_and_what_happens(site: Site) -> None:
    with socket(site, site.key("read")) as session:
        greeting = session.receive_json()
        assert greeting["type"] == "Connected"
        assert greeting["data"] == {"version": __version__, "timestamp": site.world.clock.now.isoformat()}
        assert numbers(session) == {
            "type": "Heartbeat",
            "data": {"uptime_secs": 0.0, "memory_count": 0, "avg_retention": 0.0, "suppressed_count": 0},
        }
        memory_id = site.world.remember("Ada prefers tea.")
        created = happened(session)
        assert (created["type"], created["data"]["id"]) == ("MemoryCreated", memory_id)
        assert "scopes" not in created["data"]
        while numbers(session)["data"]["memory_count"] != 1:
            pass


@pytest.mark.parametrize("filters", [{"scopes": ["/tea"]}, {"domains": ["drinks"]}])
def test_a_filtered_key_hears_nothing_of_what_it_may_not_reach(
    site: Site, filters: dict[str, list[str]]
) -> None:
    world = site.world
    with socket(site, site.key("read", **filters)) as session:
        happened(session)
        secret = world.remember("CANARY lies under the bed.", scope="/diary", domains=["CANARY"])
        world.call("memory", action="promote", id=secret)
        world.call("search", query="CANARY", scope="/")
        world.call("memory", action="delete", id=secret)
        mine = world.remember("Ada prefers tea.", scope="/tea", domains=["drinks"])
        world.call("memory", action="delete", id=mine)
        told: list[dict[str, Any]] = []
        while not told or told[-1]["type"] != "MemoryDeleted":
            told.append(happened(session))
    assert [one["data"].get("id", mine) for one in told] == [mine] * len(told)
    assert "CANARY" not in json.dumps(told)


@pytest.mark.parametrize(
    ("permissions", "filters", "told"),
    [
        (("read", "write", "admin"), {}, True),
        (("read", "write"), {}, False),
        (("read",), {}, False),
        (("read", "write", "admin"), {"scopes": ["/tea"]}, False),
    ],
    ids=["administrator", "writer", "reader", "limited administrator"],
)
def test_only_who_may_list_the_keys_is_told_where_an_event_came_from(
    tmp_path: Path, permissions: tuple[str, ...], filters: dict[str, list[str]], told: bool
) -> None:
    with new_site(tmp_path, parts=(*PARTS, rest.routes)) as site:
        laptop = bearer(site.key(label="laptop of Ada"))
        with socket(site, site.key(*permissions, label="a listener", **filters)) as session:
            happened(session)
            asked = {"content": "Ada prefers tea.", "scope": "/tea", "session_id": "monday"}
            assert site.http.post("/api/v1/memories", json=asked, headers=laptop).status_code == 201
            question = {"query": "Which drink?", "scope": "/tea", "context_session": "tuesday"}
            assert site.http.post("/api/v1/search", json=question, headers=laptop).status_code == 200
            heard: dict[str, dict[str, Any]] = {}
            while "SearchPerformed" not in heard:
                one = happened(session)
                heard[one["type"]] = one["data"]
    origins = [
        {name: heard[kind][name] for name in ("by", "client", "session") if name in heard[kind]}
        for kind in ("MemoryCreated", "SearchPerformed")
    ]
    ada = {"by": "laptop of Ada"}
    assert origins == ([ada | {"session": "monday"}, ada | {"session": "tuesday"}] if told else [{}, {}])
    assert told or "laptop" not in json.dumps(heard)


def test_a_header_narrows_what_is_heard(site: Site) -> None:
    with socket(site, site.key("read"), **{"X-Vestige-Scope": "/tea"}) as session:
        happened(session)
        site.world.remember("The diary lies under the bed.", scope="/diary")
        mine = site.world.remember("Ada prefers tea.", scope="/tea")
        assert happened(session)["data"]["id"] == mine


def test_a_stream_ends_when_its_key_is_revoked_and_others_go_on(site: Site) -> None:
    key, text = site.mint("read")
    with socket(site, text) as session, socket(site, site.key("read")) as other:
        site.revoke(key)
        assert ending(session) == (4401, LOCKED_OUT.reason)
        happened(other)
        site.world.remember("Ada prefers tea.")
        assert happened(other)["type"] == "MemoryCreated"


def test_a_stream_ends_when_its_key_expires(site: Site) -> None:
    clock = site.world.clock
    with socket(site, site.key("read", expires_at=clock.now.replace(hour=23))) as session:
        happened(session)
        clock.advance(days=1)
        assert ending(session)[0] == 4401


def test_a_stream_ends_when_who_opened_it_logs_out_and_those_of_other_logins_go_on(site: Site) -> None:
    key = site.key("read")
    mine, others = cookie(site, key), cookie(site, key)
    streamed = Streamed(site, mine)
    with (
        site.http.websocket_connect(f"{WS}/ws", headers={**mine, "Origin": URL}) as session,
        site.http.websocket_connect(f"{WS}/ws", headers={**others, "Origin": URL}) as other,
        socket(site, key) as with_the_key,
    ):
        until_they_listen(site, 4)
        assert site.http.post("/logout", headers=mine).status_code == 204
        assert ending(session)[0] == 4401
        assert streamed.messages()[-1]["data"]["code"] == 4401
        site.world.remember("Ada prefers tea.")
        for one in (other, with_the_key):
            assert happened(one)["type"] == "Connected"
            assert happened(one)["type"] == "MemoryCreated"


def test_a_stream_ends_when_the_login_expires_that_opened_it(site: Site) -> None:
    key = site.key("read")
    streamed = Streamed(site, cookie(site, key))
    with socket(site, key) as with_the_key:
        until_they_listen(site, 2)
        site.world.clock.advance(hours=site.context.settings.auth.session_hours)
        assert streamed.messages()[-1]["data"] == {"code": 4401, "reason": LOCKED_OUT.reason}
        site.world.remember("Ada prefers tea.")
        happened(with_the_key)
        assert happened(with_the_key)["type"] == "MemoryCreated"


def test_a_server_that_stops_says_goodbye(site: Site) -> None:
    streamed = Streamed(site, bearer(site.key("read")))
    with socket(site, site.key("read")) as session:
        until_they_listen(site, 2)
        assert site.http.portal
        site.http.portal.call(site.context.stopping.set)
        assert ending(session) == (1001, "The server is stopping.")
    assert streamed.messages()[-1] == {
        "type": "Closed",
        "data": {"code": 1001, "reason": "The server is stopping."},
    }


def test_what_a_client_sends_is_dropped_and_ends_the_stream_only_when_it_is_long(site: Site) -> None:
    with socket(site, site.key("read")) as session:
        happened(session)
        session.send_text("x" * MAX_FRAME_BYTES)
        session.send_bytes(b"\x00")
        site.world.remember("Ada prefers tea.")
        assert happened(session)["type"] == "MemoryCreated"
        session.send_text("x" * (MAX_FRAME_BYTES + 1))
        assert ending(session)[0] == 1009


def test_who_leaves_is_forgotten(site: Site) -> None:
    with socket(site, site.key("read")) as session:
        happened(session)
        until_they_listen(site, 1)
    until_they_listen(site, 0)
    assert not site.world.app.engine.events.followed


def test_server_sent_events_tell_the_same(site: Site) -> None:
    key, text = site.mint("read", scopes=["/tea"])
    streamed = Streamed(site, bearer(text))
    until_they_listen(site, 1)
    site.world.remember("CANARY lies under the bed.", scope="/diary")
    mine = site.world.remember("Ada prefers tea.\nAnd cake.", scope="/tea")
    assert site.http.portal
    site.http.portal.call(anyio.wait_all_tasks_blocked)  # it was told; whoever is sent away is told no more
    site.revoke(key)
    told = [one for one in streamed.messages() if one["type"] != "Heartbeat"]
    assert told[0]["type"] == "Connected"
    assert {one["data"]["id"] for one in told if one["type"] == "MemoryCreated"} == {mine}
    assert told[-1]["data"]["code"] == 4401
    assert "CANARY" not in json.dumps(told)
    assert streamed.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert "content-length" not in streamed.headers


def test_asking_only_for_the_headers_of_the_stream_ends_at_once(site: Site) -> None:
    response = site.http.head("/api/v1/events", headers=bearer(site.key("read")))
    assert (response.status_code, response.content) == (200, b"")


def test_who_asks_for_the_websocket_over_plain_http_is_told_what_it_is(site: Site) -> None:
    assert site.http.get("/ws").status_code == 401
    response = site.http.get("/ws", headers=bearer(site.key("read")))
    assert (response.status_code, response.json()["code"]) == (426, "upgrade_required")
    assert response.headers["upgrade"] == "websocket"
    assert "/api/v1/events" in response.json()["detail"]


@pytest.mark.parametrize("headers", [{}, bearer("vst_wrong")])
def test_who_has_no_key_is_refused(site: Site, headers: dict[str, str]) -> None:
    response = site.http.get("/api/v1/events", headers=headers)
    assert (response.status_code, response.json()["code"]) == (401, "unauthenticated")
    with (
        pytest.raises(WebSocketDenialResponse) as denied,
        site.http.websocket_connect(f"{WS}/ws", headers=headers),
    ):
        pass
    assert (denied.value.status_code, denied.value.json()["code"]) == (401, "unauthenticated")


def test_no_more_listen_than_are_set(tmp_path: Path) -> None:
    with new_site(tmp_path, {"server.max_listeners": 1}, parts=PARTS) as site:
        key = site.key("read")
        with socket(site, key):
            response = site.http.get("/api/v1/events", headers=bearer(key))
            assert (response.status_code, response.json()["code"]) == (503, "too_many_listeners")
            assert response.json()["detail"] == "Too many listeners."
            assert response.headers["retry-after"] == "5"
            with pytest.raises(WebSocketDenialResponse), socket(site, key):
                pass
        until_they_listen(site, 0)
        with socket(site, key) as session:
            assert happened(session)["type"] == "Connected"


def test_no_key_takes_more_than_half_of_the_places_by_whatever_it_is_narrowed(tmp_path: Path) -> None:
    with new_site(tmp_path, {"server.max_listeners": 4}, parts=PARTS) as site:
        key = site.key("read")
        with socket(site, key, **{"X-Vestige-Scope": "/tea"}), socket(site, key) as session:
            for headers in (bearer(key), cookie(site, key), {**bearer(key), "X-Vestige-Scope": "/diary"}):
                response = site.http.get("/api/v1/events", headers=headers)
                assert (response.status_code, response.json()["code"]) == (503, "too_many_listeners")
                assert response.json()["detail"] == "Too many listeners with this key."
            with socket(site, site.key("read")) as other:
                assert happened(other)["type"] == "Connected"
            session.close()
            until_they_listen(site, 1)
            with socket(site, key) as again:
                assert happened(again)["type"] == "Connected"


def test_where_no_key_is_needed_anybody_takes_all_places(tmp_path: Path) -> None:
    settings = {"server.max_listeners": 2, "auth.enabled": False}
    with (
        new_site(tmp_path, settings, parts=PARTS) as site,
        site.http.websocket_connect(f"{WS}/ws"),
        site.http.websocket_connect(f"{WS}/ws") as session,
    ):
        assert happened(session)["type"] == "Connected"
        response = site.http.get("/api/v1/events")
        assert (response.status_code, response.json()["detail"]) == (503, "Too many listeners.")
