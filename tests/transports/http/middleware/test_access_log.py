"""What is logged of a request: a line of JSON, with nothing in it that a client sent."""

import json
import logging
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute
from starlette.testclient import WebSocketDenialResponse
from starlette.websockets import WebSocket, WebSocketDisconnect

from tests.transports.http.support.harness import WS, Site, bearer, new_site
from vestige.core.errors import NotFound
from vestige.transports.http.auth.cookies import COOKIE
from vestige.transports.http.context import ServerContext
from vestige.transports.http.middleware.access_log import ACCESS, JsonLines

CANARY = "canary-4f1c"


def several(context: ServerContext) -> list[BaseRoute]:
    async def fine(request: Request) -> JSONResponse:
        await request.body()
        return JSONResponse("fine")

    async def missing(request: Request) -> JSONResponse:
        raise NotFound("There is no such tea.")

    async def bug(request: Request) -> JSONResponse:
        raise RuntimeError(CANARY)

    async def socket_bug(socket: WebSocket) -> None:
        raise RuntimeError(CANARY)

    async def late_bug(socket: WebSocket) -> None:
        await socket.accept()
        raise RuntimeError(CANARY)

    return [
        Route("/things/{name}", fine, methods=["GET", "POST"]),
        Mount("/inner", routes=[Route("/deep/{name}", fine)]),
        Route("/missing", missing),
        Route("/bug", bug),
        WebSocketRoute("/ws/bug", socket_bug),
        WebSocketRoute("/ws/late", late_bug),
    ]


@pytest.fixture
def logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Iterator[Site]:
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.DEBUG, logger=ACCESS)
    with new_site(tmp_path, parts=(several,)) as site:
        yield site


def requests_in(caplog: pytest.LogCaptureFixture) -> list[dict[str, object]]:
    return [json.loads(record.getMessage()) for record in caplog.records if record.name == ACCESS]


def test_a_request_is_one_line_of_json(logged: Site, caplog: pytest.LogCaptureFixture) -> None:
    headers = {"X-Request-Id": "mine-1", **bearer(logged.key(label="Ada"))}
    logged.http.get("/things/tea?q=x", headers=headers)
    assert requests_in(caplog) == [
        {
            "time": logged.world.clock.now.isoformat(),
            "request": "mine-1",
            "method": "GET",
            "route": "/things/{name}",
            "status": 200,
            "client": "203.0.113.7",
            "ms": 0.0,
            "caller": "Ada",
            "via": "bearer",
        }
    ]


@pytest.mark.parametrize(
    ("path", "route"),
    [
        ("/inner/deep/tea", "/inner/deep/{name}"),
        ("/static/login.js", "/static"),
        ("/no/such/thing", "(none)"),
    ],
)
def test_a_path_is_told_by_its_template(
    logged: Site, caplog: pytest.LogCaptureFixture, path: str, route: str
) -> None:
    logged.http.get(path, headers=bearer(logged.key()))
    assert requests_in(caplog)[0]["route"] == route


def test_a_request_that_is_not_let_in_is_told_with_its_route_and_its_sender(
    logged: Site, caplog: pytest.LogCaptureFixture
) -> None:
    logged.http.get("/things/tea")
    logged.http.get("/things/tea", headers={"Host": "evil.example"})

    told = [(one["route"], one["status"], one["client"], one["caller"]) for one in requests_in(caplog)]
    assert told == [("/things/{name}", 401, "203.0.113.7", ""), ("/things/{name}", 421, "203.0.113.7", "")]


def test_nothing_that_a_client_sends_is_logged(logged: Site, caplog: pytest.LogCaptureFixture) -> None:
    text = logged.key(label="Ada")
    logged.http.post(
        f"/things/{CANARY}",
        params={"q": CANARY, "api_key": CANARY},
        headers={
            "X-API-Key": text,
            "User-Agent": CANARY,
            "Cookie": f"other={CANARY}",
            "X-Request-Id": f"{CANARY} x",
        },
        content=CANARY,
    )
    logged.http.get(f"/{CANARY}", headers=bearer(f"vst_{CANARY:x<30}"))
    logged.http.get("/whatever", headers=bearer(CANARY))
    logged.http.post("/login", json={"api_key": CANARY})
    logged.http.post(
        "/login", content=f'{{"api_key": "{CANARY}'.encode(), headers={"Content-Type": "application/json"}
    )
    logged.http.get("/health", headers={"Host": f"{CANARY}.example"})
    logged.http.get("/health", headers={"Origin": f"http://{CANARY}.example"})
    logged.log_in(text)
    cookie = logged.http.cookies[COOKIE]
    logged.http.get("/things/tea")
    lines = "\n".join(JsonLines().format(record) for record in caplog.records if _is_ours(record))
    assert len(requests_in(caplog)) == 9
    assert [secret for secret in (CANARY, text, cookie, cookie.partition(".")[2]) if secret in lines] == []


def test_an_id_that_is_no_id_is_not_taken_over(logged: Site) -> None:
    for given in ("two words", "x" * 65, 'a"b', ""):
        response = logged.http.get("/health", headers={"X-Request-Id": given})
        assert response.headers["x-request-id"] not in (given, "")


def test_an_error_of_the_application_is_a_problem_with_the_id(logged: Site) -> None:
    response = logged.http.get("/missing", headers={"X-Request-Id": "mine", **bearer(logged.key())})
    assert response.status_code == 404
    assert response.headers["content-type"] == "application/problem+json"
    assert response.json() == {
        "type": "about:blank",
        "title": "Not Found",
        "status": 404,
        "detail": "There is no such tea.",
        "code": "not_found",
        "requestId": "mine",
    }


def test_a_method_that_is_not_taken_is_a_problem_that_names_those_that_are(logged: Site) -> None:
    response = logged.http.delete("/things/tea", headers=bearer(logged.key()))
    assert (response.status_code, response.json()["code"]) == (405, "method_not_allowed")
    assert set(response.headers["allow"].split(", ")) == {"GET", "HEAD", "POST"}


def test_a_bug_is_told_to_the_log_and_not_to_the_client(
    logged: Site, caplog: pytest.LogCaptureFixture
) -> None:
    response = logged.http.get("/bug", headers={"X-Request-Id": "mine", **bearer(logged.key())})
    assert (response.status_code, response.json()["code"]) == (500, "internal")
    assert CANARY not in response.text
    assert "frame-ancestors 'none'" in response.headers["content-security-policy"]
    assert requests_in(caplog)[0]["status"] == 500
    told = [record for record in caplog.records if record.exc_info]
    assert len(told) == 1
    assert "mine" in told[0].getMessage()


def test_a_bug_in_a_websocket_ends_it_and_nothing_else(
    logged: Site, caplog: pytest.LogCaptureFixture
) -> None:
    headers = bearer(logged.key())
    with (
        pytest.raises(WebSocketDenialResponse) as denied,
        logged.http.websocket_connect(f"{WS}/ws/bug", headers=headers),
    ):
        pass
    assert denied.value.status_code == 500
    with (
        logged.http.websocket_connect(f"{WS}/ws/late", headers=headers) as socket,
        pytest.raises(WebSocketDisconnect) as ended,
    ):
        socket.receive_text()
    assert ended.value.code == 1011
    assert [line["status"] for line in requests_in(caplog)] == [500, 101]
    assert logged.http.get("/health").status_code == 200


def test_probes_are_told_only_to_those_who_want_to_know_all(
    logged: Site, caplog: pytest.LogCaptureFixture
) -> None:
    logged.http.get("/health")
    assert [record.levelname for record in caplog.records if record.name == ACCESS] == ["DEBUG"]


def test_other_records_are_lines_of_json_too() -> None:
    try:
        int("seven")
    except ValueError:
        error = sys.exc_info()
    record = logging.LogRecord("vestige.x", logging.ERROR, "file", 1, "two\n%s", ("lines",), error)
    line = JsonLines().format(record)
    told = json.loads(line)
    assert "\n" not in line
    assert (told["level"], told["logger"], told["message"]) == ("error", "vestige.x", "two\nlines")
    assert "ValueError: invalid literal" in told["error"]


def _is_ours(record: logging.LogRecord) -> bool:
    """Whether the server wrote it; the client of the tests logs what it asks for."""
    return not record.name.startswith(("httpx", "httpcore"))
