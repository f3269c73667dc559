"""Who may do what, for everybody and everything that a server offers.

What is offered comes from the server's own table of routes and from the registry, so that something new fails
here until it is told who may use it.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.testclient import WebSocketDenialResponse

from tests.operations.access.access_world import LIMITS, beyond
from tests.operations.access.test_access import ways
from tests.transports.http.support.harness import SECRET, WS, Site
from tests.transports.http.support.holders import (
    HOLDERS,
    PROMPTS,
    Headers,
    Holder,
    Json,
    by_mcp,
    by_rest,
    call_tool,
    mcp,
    open_house,
    problem,
    result,
    tool_error,
)
from tests.transports.http.support.mcp_requests import message, open_session, post
from vestige.core.models import Access
from vestige.operations.memory.read import EXAMPLE_ID
from vestige.operations.registry.groups import registry
from vestige.operations.registry.registry import Operation
from vestige.transports.dashboard.pages import ASSETS, BELOW, PAGES
from vestige.transports.http import app
from vestige.transports.http.auth import gate
from vestige.transports.http.auth.gate import Auth
from vestige.transports.http.context import ServerContext
from vestige.transports.http.status.metrics import Metrics

pytestmark = pytest.mark.slow

House = tuple[Site, dict[str, Headers]]

OFFERED = [registry.operations[route.operation] for route in registry.routes()]
METHODS = {route.operation: route.method for route in registry.routes()}
IMPOSSIBLE = {"backup": "invalid_input"}
"""What a store in memory refuses to whoever may do it."""
NOT_BY_DOMAIN = {
    "intention.set": "forbidden",
    "intention.update": "not_found",
    "intention.delete": "not_found",
    "memory.bulk_undo": "not_found",
    "dream": "forbidden",
    "consolidate": "forbidden",
    **{
        f"review.{action}": "not_found"
        for action in ("show", "approve", "edit", "merge", "reject", "undo", "delete")
    },
}
"""What cannot be done in a part of the store that is made of domains: intentions, waiting texts and
bulk changes belong to none, and what looks after memories goes by scopes."""
OF_A_FOLDER = {one.name for one in OFFERED if one.name.startswith("project")}
FOLDER_CODES: set[str | None] = {"forbidden", "not_found"}
"""What needs the folder that the caller works in. Only who administers the whole store may name a folder of
the server's machine, and that of the examples is not there."""

OF_A_SCOPE = {"review.policy", "review.choose", "memory.move"}
SCOPE_CODES: set[str | None] = {"forbidden", None}
"""What is about one scope: that of the example is out of the access of some."""

OPEN, ANYBODY, WHOLE = "open", "anybody", "whole"
OTHERS = {
    "/": OPEN,
    "/health": OPEN,
    "/api/health": OPEN,
    "/api/v1/health": OPEN,
    "/readyz": OPEN,
    "/login": OPEN,
    "/logout": OPEN,
    "/static/login.js": OPEN,
    "/api/v1/openapi.json": OPEN,
    "/docs": OPEN,
    "/api/v1/docs": OPEN,
    "/api/v1/docs/api.js": OPEN,
    "/api/v1/docs/api-form.js": OPEN,
    "/api/v1/docs/api.css": OPEN,
    "/login/session": ANYBODY,
    "/api/v1/events": ANYBODY,
    "/ws": ANYBODY,
    "/mcp": ANYBODY,
    "/metrics": WHOLE,
    **dict.fromkeys(PAGES, OPEN),
    **{f"{path}/{{id}}": OPEN for path in BELOW},
    f"{ASSETS}/{{version}}/{{path:path}}": OPEN,
}
"""Who may use what is no operation: everybody, whoever is let in, or only who reaches the whole store."""


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A server on which nothing is changed."""
    with open_house(tmp_path_factory.mktemp("house")) as opened:
        yield opened


@pytest.fixture(autouse=True)
def patience(request: pytest.FixtureRequest) -> None:
    """Time enough for the failures of the test before to be forgotten."""
    if "house" in request.fixturenames:
        site, _ = request.getfixturevalue("house")
        site.world.clock.advance(hours=0.2)


def refusal(holder: Holder, operation: Operation, method: str = "POST") -> tuple[int, str] | None:
    return holder.refused(operation.permission, whole=operation.whole, safe=method == "GET")


def contents(site: Site, *, strengths: bool = True) -> Json:
    """Everything that is in the store; without strengths, what reading it must leave alone."""
    nowhere = replace(LIMITS["both"], access=Access(scopes=("/nowhere",)))
    everything, keys = beyond(site.world, nowhere), site.world.app.engine.store.list_keys()
    told: Json = {
        "memories": {name: one.memory for name, one in everything["records"].items()},
        "keys": [replace(key, last_used=None) for key in keys],
    }
    return {**everything, **told} if strengths else told


# -- operations --------------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", OFFERED, ids=lambda one: one.name)
def test_who_may_not_do_a_thing_is_refused_over_rest_and_nothing_happens(
    house: House, operation: Operation
) -> None:
    site, shown = house
    before = contents(site)
    for name, holder in HOLDERS.items():
        expected = refusal(holder, operation, METHODS[operation.name])
        if expected:
            response = by_rest(site, operation, dict(operation.example), shown[name])
            assert problem(response) == expected, name
    assert contents(site) == before


@pytest.mark.parametrize("operation", OFFERED, ids=lambda one: one.name)
def test_who_may_not_do_a_thing_is_refused_over_mcp_by_every_name_it_has(
    house: House, operation: Operation
) -> None:
    site, shown = house
    before = contents(site)
    for name, holder in HOLDERS.items():
        expected = refusal(holder, operation)
        if expected is None:
            continue
        for tool, arguments in names_of(operation) if expected[1] == "forbidden" else names_of(operation)[:1]:
            response = call_tool(site, tool, arguments, shown[name])
            if expected[1] == "forbidden":
                assert tool_error(response) == "forbidden", (name, tool)
            else:
                assert problem(response) == expected, name
    assert contents(site) == before


def names_of(operation: Operation) -> list[tuple[str, Json]]:
    """The calls that mean an operation: of its tools, by old names, and of the tool that leads to all."""
    calls: list[tuple[str, Json]] = []
    for tool in registry.tools.values():
        for action, name in tool.actions.items():
            if name == operation.name and tool.name != registry.gateway:
                calls.append((tool.name, {**operation.example, **({"action": action} if action else {})}))
    for old, (today, fixed) in registry.aliases.items():
        if (today, fixed.get("action")) in [(called, given.get("action")) for called, given in calls]:
            calls.append((old, {**operation.example, **fixed}))
    through = [(str(registry.gateway), {"tool": tool, "arguments": given}) for tool, given in calls]
    return [*calls, *through] or [(str(registry.gateway), dict(operation.example))]


READING = [one for one in OFFERED if one.effect in ("none", "touch")]
WRITING = [one for one in OFFERED if one not in READING]


@pytest.mark.parametrize("operation", READING, ids=lambda one: one.name)
def test_who_may_read_a_thing_reads_it(house: House, operation: Operation) -> None:
    site, shown = house
    for name, holder in HOLDERS.items():
        expected = {NOT_BY_DOMAIN.get(operation.name) if "domains" in holder.filters else None}
        expected = FOLDER_CODES if operation.name in OF_A_FOLDER else expected
        expected = SCOPE_CODES if operation.name in OF_A_SCOPE else expected
        if refusal(holder, operation, METHODS[operation.name]) is None:
            assert code_of(by_rest(site, operation, dict(operation.example), shown[name])) in expected, name
        if refusal(holder, operation) is None:
            assert tool_error(by_mcp(site, operation, dict(operation.example), shown[name])) in expected, name


@pytest.mark.parametrize("operation", WRITING, ids=lambda one: one.name)
def test_who_may_change_a_thing_changes_it(tmp_path: Path, operation: Operation) -> None:
    done = False
    with open_house(tmp_path) as (site, shown):
        for name, holder in HOLDERS.items():
            if refusal(holder, operation):
                continue
            codes = {
                code_of(by_rest(site, operation, dict(operation.example), shown[name])),
                tool_error(by_mcp(site, operation, dict(operation.example), shown[name])),
            }
            if "domains" in holder.filters and operation.name in NOT_BY_DOMAIN:
                # A text that was merged cites a memory of the domain: it is seen, and decided.
                decided = {"invalid_input"} if operation.name == "review.merge" and done else set()
                assert codes <= {NOT_BY_DOMAIN[operation.name], *decided}, name
                continue
            if operation.name in OF_A_FOLDER | OF_A_SCOPE:
                assert codes <= (FOLDER_CODES if operation.name in OF_A_FOLDER else SCOPE_CODES), name
                done = True
                continue
            if not done:  # or what the one before did may be in the way
                assert IMPOSSIBLE.get(operation.name) in codes, name
            assert "forbidden" not in codes, name
            done = True
    assert done


def code_of(response: Any) -> str | None:
    """The code of an error over REST, or None."""
    if response.is_success:
        assert response.headers["content-type"] == "application/json"
        return None
    return problem(response)[1]


@pytest.mark.parametrize(
    "operation", [one for one in OFFERED if one.permission == "read"], ids=lambda one: one.name
)
def test_a_key_that_may_read_changes_nothing_however_it_asks(house: House, operation: Operation) -> None:
    site, shown = house
    strengths = operation.effect == "none"
    before = contents(site, strengths=strengths)
    for arguments in ways(operation):
        by_rest(site, operation, arguments, shown["read"])
    assert contents(site, strengths=strengths) == before


# -- what is listed over MCP -------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name, holder in HOLDERS.items() if holder.permission])
def test_everybody_sees_the_tools_and_resources_that_he_may_use(house: House, name: str) -> None:
    site, shown = house
    holder, headers = HOLDERS[name], shown[name]
    if holder.forged:
        return

    def may(operation: str) -> bool:
        return refusal(holder, registry.operations[operation]) is None

    listed = {one["name"]: one for one in result(mcp(site, "tools/list", {}, headers))["tools"]}
    expected = {
        tool.name: [action for action, operation in tool.actions.items() if may(operation)]
        for tool in registry.tools.values()
        if tool.name != registry.gateway
    }
    assert listed.keys() == {tool for tool, actions in expected.items() if actions}
    for tool, actions in expected.items():
        if actions not in ([], [""]):
            assert listed[tool]["inputSchema"]["properties"]["action"]["enum"] == actions
    uris = {one["uri"] for one in result(mcp(site, "resources/list", {}, headers))["resources"]}
    assert uris == {uri for uri, one in registry.resources.items() if "{" not in uri and may(one.operation)}


@pytest.mark.parametrize("uri", registry.resources)
def test_whoever_is_let_in_may_read_resources_and_nobody_else(house: House, uri: str) -> None:
    site, shown = house
    operation = registry.operations[registry.resources[uri].operation]
    params = {"uri": uri.replace("{id}", EXAMPLE_ID)}
    for name, holder in HOLDERS.items():
        response, expected = mcp(site, "resources/read", params, shown[name]), refusal(holder, operation)
        if expected:
            assert problem(response) == expected, name
        else:
            assert result(response)["contents"][0]["uri"] == params["uri"], name


METHODS_OF_MCP: dict[str, Json] = {
    "server/discover": {},
    "tools/list": {},
    "resources/list": {},
    "resources/templates/list": {},
    "prompts/list": {},
    **{f"prompts/get {one['name']}": one for one in PROMPTS},
}


@pytest.mark.parametrize("method", METHODS_OF_MCP)
def test_everything_else_of_mcp_is_for_whoever_is_let_in(house: House, method: str) -> None:
    site, shown = house
    for name, holder in HOLDERS.items():
        response = mcp(site, method.partition(" ")[0], METHODS_OF_MCP[method], shown[name])
        expected = holder.refused("read", safe=False)
        if expected:
            assert problem(response) == expected, name
        else:
            assert result(response), name


@pytest.mark.parametrize("name", HOLDERS)
def test_a_session_is_for_whoever_is_let_in_with_the_key_that_opened_it(house: House, name: str) -> None:
    site, shown = house
    holder, headers = HOLDERS[name], shown[name]
    if holder.refused("read", safe=False):
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}}
        response = post(site.http, headers, message("initialize", hello))
        assert problem(response) == holder.refused("read", safe=False)
        return
    session = open_session(site.http, headers=headers)
    found = post(site.http, session, message("tools/list"))
    assert {one["name"] for one in result(found)["tools"]} >= {"search"}
    for other in ("write", "admin"):
        if other != name:
            stolen = {"Mcp-Session-Id": session["Mcp-Session-Id"], **shown[other]}
            assert post(site.http, stolen, message("tools/list")).status_code == 404
            assert site.http.delete("/mcp", headers=stolen).status_code == 404
    refused = post(
        site.http, session, message("tools/call", {"name": "keys", "arguments": {"action": "list"}})
    )
    unfiltered_admin = refusal(holder, registry.operations["keys.list"]) is None
    assert (tool_error(refused) is None) == unfiltered_admin
    assert site.http.delete("/mcp", headers=session).status_code == 204


# -- everything else ---------------------------------------------------------------------------------


def table(site: Site) -> dict[str, Any]:
    """The routes of a server like this one, without those of operations."""
    context = ServerContext(
        app=site.context.app,
        settings=site.context.settings,
        registry=registry,
        monotonic=site.context.monotonic,
        entropy=site.context.entropy,
        limiter=anyio.CapacityLimiter(1),
    )
    routes = app.routes(context, Auth(context, SECRET), Metrics())
    operations = {f"/api/v1{route.path}" for route in registry.routes()}
    assert all(isinstance(one, Route | WebSocketRoute | Mount) for one in routes)
    paths = ["/static/login.js" if isinstance(one, Mount) else getattr(one, "path", "") for one in routes]
    assert operations <= set(paths)
    return {path: one for path, one in zip(paths, routes, strict=True) if path not in operations}


def test_it_is_told_of_every_route_who_may_use_it(house: House) -> None:
    assert table(house[0]).keys() == OTHERS.keys()


def test_only_what_is_told_to_be_open_is_open(house: House) -> None:
    site, _ = house
    for path, who in OTHERS.items():
        if path == "/ws":
            continue
        for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"):
            status = site.http.request(method, path).status_code
            assert (status != 401) == (who == OPEN), (method, path)
    for path in ("/nothing", "/API/v1/stats", "/api/v1/stats/", "//api/v1/stats", "/login/x", "/health/x"):
        assert site.http.get(path).status_code == 401, path
    for path in ("/static/../metrics", "/static/%2e%2e/metrics", "/static/..%2f..%2frest.py"):
        assert site.http.get(path).status_code in (401, 404), path
    assert {path for path, who in OTHERS.items() if who == OPEN} >= gate.PUBLIC


@pytest.mark.parametrize("path", [path for path, who in OTHERS.items() if who != OPEN and path != "/ws"])
def test_what_is_no_operation_is_for_those_who_are_told_here(house: House, path: str) -> None:
    site, shown = house
    for name, holder in HOLDERS.items():
        expected = holder.refused("read", whole=OTHERS[path] == WHOLE)
        # A stream would not end; its head says who may open it.
        method = "HEAD" if path == "/api/v1/events" and not expected else "GET"
        response = site.http.request(method, path, headers=shown[name])
        if expected:
            assert problem(response) == expected, name
        else:
            assert response.status_code == (400 if path == "/mcp" else 200), name  # no session is named


def test_a_cookie_opens_a_websocket_from_our_own_pages_only(house: House) -> None:
    site, shown = house
    for name, holder in HOLDERS.items():
        expected = holder.refused("read")
        own_page = {**shown[name], "Origin": "http://127.0.0.1:3927"}
        if expected is None:
            with site.http.websocket_connect(f"{WS}/ws", headers=own_page) as socket:
                assert socket.receive_json()["type"] == "Connected", name
        for headers in [own_page] if expected else [shown[name]] if "cookie" in name else []:
            with (
                pytest.raises(WebSocketDenialResponse) as refused,
                site.http.websocket_connect(f"{WS}/ws", headers=headers),
            ):
                pass
            assert refused.value.status_code == (401 if expected else 403), name
