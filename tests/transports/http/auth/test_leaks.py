"""Nothing that a server sends tells anybody of what is out of his reach: answers, errors, headers, events.

The canaries are those of `tests/operations/access/access_world.py`, and so are the ways to ask.
"""

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.testclient import WebSocketTestSession

from testbed.failures import each
from tests.operations.access.access_world import (
    CANARY,
    DOMAIN,
    EXAMPLE_TEXT,
    LIMITS,
    MINE,
    WORDS,
    Limit,
    reach_world,
    told_of,
)
from tests.operations.access.test_access import NAMES, OUT, OUTSIDE, named, ways
from tests.transports.http.events.test_events import Streamed, hurry, numbers, until_they_listen
from tests.transports.http.support.harness import WS, Site, bearer, open_site
from tests.transports.http.support.holders import (
    PROMPTS,
    SETTINGS,
    Headers,
    Json,
    by_mcp,
    by_rest,
    mcp,
    result,
)
from tests.transports.http.support.mcp_requests import message, open_session, post
from vestige.operations.memory.read import EXAMPLE_ID
from vestige.operations.registry.groups import registry
from vestige.operations.registry.registry import Operation

pytestmark = pytest.mark.slow  # hundreds of requests; tests/operations/access/test_access.py is the quick one

OFFERED = [registry.operations[route.operation] for route in registry.routes()]
READING = [one for one in OFFERED if one.effect in ("none", "touch")]
WRITING = [one for one in OFFERED if one not in READING]
BOTHS = {**LIMITS, "header": LIMITS["both"]}
"""Who reaches a part only: by his key, or by the headers of his requests."""


@contextmanager
def limited(folder: Path, name: str) -> Iterator[tuple[Site, Headers]]:
    """A server with canaries, and the headers of somebody who may do everything where there are none."""
    limit = BOTHS[name]
    with reach_world(folder, limit, settings=SETTINGS) as world, open_site(world) as site:
        if name == "header":
            narrowing = {"X-Vestige-Scope": MINE, "X-Vestige-Domain": DOMAIN}
            yield site, {**bearer(site.key()), **narrowing}
        else:
            yield site, bearer(key_of(site, limit))


def key_of(site: Site, limit: Limit) -> str:
    return site.key("admin", scopes=limit.access.scopes, domains=limit.access.domains)


@pytest.fixture(scope="module", params=BOTHS)
def house(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Site, Headers]]:
    """One in which nothing is written."""
    with limited(tmp_path_factory.mktemp("house"), request.param) as opened:
        yield opened


@pytest.fixture(autouse=True)
def quiet_log(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Whatever happens in a test here, the log says nothing of it."""
    caplog.set_level(logging.DEBUG)
    yield
    assert [word for word in WORDS if word in caplog.text] == []


def heard(response: httpx2.Response, said: Mapping[str, Any]) -> list[str]:
    """The canaries in a whole response that its caller did not name himself."""
    return told_of([response.text, json.loads(response.text or "null"), list(response.headers.items())], said)


def asked(site: Site, operation: Operation, arguments: Json, headers: Headers) -> list[str]:
    """The canaries that are told to somebody who asks for an operation by its address and as a tool."""
    return [
        word for by in (by_rest, by_mcp) for word in heard(by(site, operation, arguments, headers), arguments)
    ]


# -- answers -----------------------------------------------------------------------------------------


@each("operation", READING)
def test_no_answer_tells_of_what_is_out_of_reach(house: tuple[Site, Headers], operation: Operation) -> None:
    site, headers = house
    for arguments in ways(operation):
        assert asked(site, operation, arguments, headers) == [], arguments
    for name in NAMES:
        if name in operation.arguments.model_fields:
            for out in OUTSIDE:
                arguments = named(operation, name, out)
                assert asked(site, operation, arguments, headers) == [], arguments


@each("operation", WRITING)
def test_no_answer_to_a_change_does_either(tmp_path: Path, operation: Operation) -> None:
    """One who has written a word may read it from then on, so that the ways that name one come last."""
    with limited(tmp_path / operation.name, "both") as (site, headers):
        tried: list[Json] = []
        for arguments in sorted(ways(operation), key=lambda way: "canary" in json.dumps(way)):
            tried.append(arguments)
            for by in (by_rest, by_mcp):
                assert heard(by(site, operation, arguments, headers), {"tried": tried}) == [], arguments
        for name in NAMES:
            if name in operation.arguments.model_fields:
                arguments = named(operation, name, OUT)
                response = by_rest(site, operation, arguments, headers)
                assert heard(response, {"tried": [*tried, arguments]}) == [], arguments


def test_who_reaches_everything_is_told_of_the_canaries_by_the_same_requests(tmp_path: Path) -> None:
    with limited(tmp_path, "both") as (site, _):
        headers, told = bearer(site.key()), set()
        for operation in READING:
            for arguments in ways(operation):
                told |= set(heard(by_rest(site, operation, arguments, headers), arguments))
    assert told == set(WORDS)


REQUESTS: list[tuple[str, Json]] = [
    ("server/discover", {}),
    ("tools/list", {}),
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("prompts/list", {}),
    *(("prompts/get", one) for one in PROMPTS),
    ("prompts/get", {"name": "canary"}),
    ("completion/complete", {"ref": {"type": "ref/resource", "uri": "memory://memories/{id}"}}),
    ("completion/complete", {"argument": {"name": "id", "value": CANARY[:4]}}),
    *(("resources/read", {"uri": uri.replace("{id}", one)}) for uri in registry.resources for one in (OUT,)),
    ("resources/read", {"uri": "codebase://patterns?project=canarycodebase"}),
    ("resources/read", {"uri": "memory://recent?limit=100"}),
    ("resources/subscribe", {"uri": f"memory://memories/{OUT}"}),
    ("tools/call", {"name": "canary", "arguments": {}}),
    ("tools/call", {"name": "memory", "arguments": {"action": "canary"}}),
]


@each("number", range(len(REQUESTS)))
def test_nothing_of_mcp_tells_of_it_in_either_era(house: tuple[Site, Headers], number: int) -> None:
    site, headers = house
    method, params = REQUESTS[number]
    assert heard(mcp(site, method, params, headers), params) == []
    session = open_session(site.http, headers=headers)
    assert heard(post(site.http, session, message(method, params)), params) == []
    site.http.delete("/mcp", headers=session)


PATHS = (
    "/", "/health", "/readyz", "/login", "/login/session", "/metrics", "/mcp", "/api/v1/openapi.json",
    "/api/v1/docs", "/nothing", f"/api/v1/memories/{OUT}/nothing",
)  # fmt: skip


def test_nothing_that_is_no_operation_tells_of_it(house: tuple[Site, Headers]) -> None:
    site, headers = house
    for path in PATHS:
        response = site.http.get(path, headers=headers)
        found = told_of([response.text, list(response.headers.items())], {"path": path})
        assert found == [], path
    assert (
        site.http.get("/api/v1/openapi.json").text
        == site.http.get("/api/v1/openapi.json", headers=headers).text
    )  # it is the same for all


BROKEN: list[Json] = [
    {"content": b"{"},
    {"content": b"[]", "headers": {"Content-Type": "application/json"}},
    {"json": {"query": "canarycontent", "zzzz": 1}},
    {"json": {"query": ["canarycontent"]}},
    {"json": {"query": "TypeScript", "scope": "/project/canaryscope"}},
    {"json": {"query": "TypeScript", "scope": "//"}},
    {"json": {"query": "TypeScript", "domains": ["canarydomain"]}},
]


@each("number", range(len(BROKEN)))
def test_no_error_tells_of_it(house: tuple[Site, Headers], number: int) -> None:
    site, headers = house
    request = dict(BROKEN[number])
    response = site.http.post("/api/v1/search", headers={**headers, **request.pop("headers", {})}, **request)
    assert heard(response, {"said": str(request)}) == []


# -- events ------------------------------------------------------------------------------------------


def happenings(session: WebSocketTestSession, last: str) -> list[Json]:
    """What a listener is told until the memory of this id is gone."""
    told: list[Json] = []
    while not told or (told[-1]["type"], told[-1]["data"].get("id")) != ("MemoryDeleted", last):
        told.append(session.receive_json())
    return told


def stir(site: Site, whole: Headers) -> str:
    """Have everything happen to what is out of reach, and then something within it: the id of that."""
    for operation in WRITING:
        if operation.name in ("keys.create", "keys.revoke", "keys.rotate", "backup", "import"):
            continue  # of these nobody hears
        for name in NAMES:
            if name in operation.arguments.model_fields:
                by_rest(
                    site,
                    operation,
                    named(operation, name, OUT.replace("000000000000", "000000000008")),
                    whole,
                )
        by_rest(site, operation, {**operation.example, **somewhere_else(operation)}, whole)
    searched = {"query": "canarycontent", "scope": "/"}
    by_rest(site, registry.operations["search"], searched, whole)
    by_rest(site, registry.operations["memory.delete"], {"id": OUT}, whole)
    mine = {"content": "Bo swims on Mondays.", "scope": MINE, "domains": [DOMAIN], "force_create": True}
    made = by_rest(site, registry.operations["smart_ingest"], mine, whole).json()["nodeId"]
    assert by_rest(site, registry.operations["memory.delete"], {"id": made}, whole).is_success
    return str(made)


def somewhere_else(operation: Operation) -> Json:
    """Arguments that put what is written out of reach, with a canary in it; none for what changes a thing."""
    if "id" in operation.arguments.model_fields:
        return {}
    given: Json = {
        "scope": "/user",
        "content": f"{EXAMPLE_TEXT} canarycontent",
        "description": "canaryintention",
    }
    return {name: one for name, one in given.items() if name in operation.arguments.model_fields}


@pytest.mark.parametrize("name", LIMITS)
def test_no_event_tells_of_what_is_out_of_reach(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    hurry(monkeypatch)
    with limited(tmp_path, name) as (site, headers):
        whole, count = bearer(site.key()), len(within(site, headers))
        key, text = site.mint("read", scopes=LIMITS[name].access.scopes, domains=LIMITS[name].access.domains)
        streamed = Streamed(site, bearer(text))
        with (
            site.http.websocket_connect(f"{WS}/ws", headers=headers) as some,
            site.http.websocket_connect(f"{WS}/ws", headers=whole) as everything,
        ):
            until_they_listen(site, 3)
            assert some.receive_json()["type"] == "Connected"
            beat = numbers(some)
            last = stir(site, whole)
            told, all_told = happenings(some, last), happenings(everything, last)
        site.revoke(key)  # which ends the stream
        assert beat["data"]["memory_count"] == count
        assert told_of([beat, told, streamed.messages()], {}) == []
        assert {one["type"] for one in streamed.messages()} >= {"Connected", "MemoryCreated", "Closed"}
        assert {"canarycontent", CANARY} <= set(told_of(all_told, {}))


def within(site: Site, headers: Headers) -> list[Json]:
    listing = {"scope": "/", "limit": 200, "detail_level": "brief"}
    found: list[Json] = by_rest(site, registry.operations["memory.list"], listing, headers).json()["results"]
    return found


# -- other people's keys -----------------------------------------------------------------------------


def test_nobody_is_told_a_key_or_its_hash_but_who_made_it(house: tuple[Site, Headers]) -> None:
    site, headers = house
    key, text = site.mint("read", label="canary")
    for operation in READING:
        if operation.name == "keys.list":
            continue
        for by in (by_rest, by_mcp):
            shown = by(site, operation, dict(operation.example), headers).text
            assert text not in shown
            assert key.hash not in shown
    listed = by_rest(site, registry.operations["keys.list"], {}, bearer(site.key())).text
    assert key.id in listed
    assert text not in listed
    assert key.hash not in listed


def test_a_memory_within_reach_is_told_by_the_same_means(house: tuple[Site, Headers]) -> None:
    site, headers = house
    uri = f"memory://memories/{EXAMPLE_ID}"
    assert EXAMPLE_TEXT in result(mcp(site, "resources/read", {"uri": uri}, headers))["contents"][0]["text"]
