"""Everybody who could come to a server, with what he shows, and what he is told there.

The store behind it is that of `tests/operations/access/access_world.py`: what the examples of all
operations are about is within the reach of every filter here, so that whoever may do a thing succeeds at it.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2

from tests.operations.access.access_world import DOMAIN, LIMITS, MINE, Limit, reach_world
from tests.transports.http.support.harness import Site, bearer, open_site
from tests.transports.http.support.mcp_requests import modern, post
from tests.transports.parity.example_store import session_example
from tests.transports.parity.transports import tool_of
from vestige.core.caller import PERMISSIONS
from vestige.operations.registry.groups import registry
from vestige.operations.registry.registry import Operation
from vestige.transports.http.auth.cookies import COOKIE, CSRF_HEADER
from vestige.transports.http.problems import MEDIA_TYPE
from vestige.transports.mcp import describe

Json = dict[str, Any]
Headers = dict[str, str]

TOKEN = "correct horse battery staple"
PROMPTS: list[Json] = [
    {"name": one["name"], "arguments": {argument["name"]: "tea" for argument in one["arguments"]}}
    for one in describe.document(registry)["prompts"]
]
"""What to ask for to be given each prompt."""
SETTINGS: Mapping[str, Any] = {
    "auth.token": TOKEN,
    "auth.session_hours": 720,
    "server.requests_per_minute": 0,
    "server.max_concurrent": 1_000,
    "mcp.profile": "full",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Somebody with a credential: what it allows, None if it opens nothing, and whether that is in a part of
    the store only. `forged` is a browser that was made to send its cookie."""

    permission: str | None = None
    filters: Mapping[str, Any] = field(default_factory=dict)
    forged: bool = False

    def refused(self, permission: str, *, whole: bool = False, safe: bool = True) -> tuple[int, str] | None:
        """The status and the code with which he is refused what needs this, or None."""
        if self.permission is None:
            return 401, "unauthenticated"
        if self.forged and not safe:
            return 403, "csrf"
        lacking = PERMISSIONS.index(self.permission) < PERMISSIONS.index(permission)
        return (403, "forbidden") if lacking or (whole and self.filters) else None


IN_SCOPE, IN_DOMAIN = {"scopes": [MINE]}, {"domains": [DOMAIN]}
HOLDERS = {
    "no credential": Holder(),
    "malformed": Holder(),
    "unknown": Holder(),
    "revoked": Holder(),
    "expired": Holder(),
    "expired cookie": Holder(),
    "cookie of who logged out": Holder(),
    "write in scope and domain": Holder(permission="write", filters={**IN_SCOPE, **IN_DOMAIN}),
    "admin in scope": Holder(permission="admin", filters=IN_SCOPE),
    "admin in domain": Holder(permission="admin", filters=IN_DOMAIN),
    "read in scope": Holder(permission="read", filters=IN_SCOPE),
    "read in domain": Holder(permission="read", filters=IN_DOMAIN),
    "cookie of read in scope": Holder(permission="read", filters=IN_SCOPE),
    "read": Holder(permission="read"),
    "write": Holder(permission="write"),
    "admin": Holder(permission="admin"),
    "cookie": Holder(permission="admin"),
    "cookie without CSRF": Holder(permission="admin", forged=True),
    "deprecated token": Holder(permission="write"),
}
"""Whoever may do least of what he is let in for comes first."""


def credentials(site: Site) -> dict[str, Headers]:
    """What each of them sends."""
    clock, one = site.world.clock, timedelta(minutes=1)
    revoked, revoked_text = site.mint()
    expired = site.key(expires_at=clock.now + one)
    ended = cookie(site, site.key(expires_at=clock.now + one))
    site.revoke(revoked)
    clock.now += one
    shown: dict[str, Headers] = {
        "no credential": {},
        "malformed": {"Authorization": "Basic dXNlcjpwYXNz"},
        "unknown": bearer("vst_" + "x" * 30),
        "revoked": bearer(revoked_text),
        "expired": {"X-API-Key": expired},
        "expired cookie": ended,
        "deprecated token": bearer(TOKEN),
    }
    for name, holder in HOLDERS.items():
        if name not in shown and holder.permission:
            key = site.key(holder.permission, label=name, **holder.filters)
            shown[name] = cookie(site, key) if "cookie" in name else bearer(key)
    del shown["cookie without CSRF"][CSRF_HEADER]
    out = cookie(site, shown["admin"]["Authorization"].removeprefix("Bearer "))
    assert site.http.post("/logout", headers=out).status_code == 204
    shown["cookie of who logged out"] = out
    assert shown.keys() == HOLDERS.keys()
    return shown


def cookie(site: Site, key: str) -> Headers:
    """Log in with a key: what a page of ours sends from then on. The client forgets it."""
    told = site.log_in(key)
    text = site.http.cookies[COOKIE]
    site.http.cookies.clear()
    return {"Cookie": f"{COOKIE}={text}", CSRF_HEADER: told["csrf"]}


@contextmanager
def open_house(
    folder: Path, limit: Limit = LIMITS["both"], *, canaries: bool = False
) -> Iterator[tuple[Site, dict[str, Headers]]]:
    """A server with everybody's credentials."""
    with reach_world(folder, limit, canaries=canaries, settings=SETTINGS) as world, open_site(world) as site:
        world.app.engine.sessions().store(session_example())
        yield site, credentials(site)


# -- asking ------------------------------------------------------------------------------------------


def by_rest(site: Site, operation: Operation, arguments: Json, headers: Headers) -> httpx2.Response:
    """Ask for an operation at its address."""
    (route,) = (one for one in registry.routes() if one.operation == operation.name)
    rest = {name: value for name, value in arguments.items() if name not in route.places}
    path = "/api/v1" + route.path.format_map(arguments)
    if route.has_body:
        return site.http.request(route.method, path, headers=headers, json=rest)
    # As people write it: JSON's words for switches.
    told = {name: str(one).lower() if isinstance(one, bool) else one for name, one in rest.items()}
    return site.http.request(route.method, path, headers=headers, params=told)


def by_mcp(site: Site, operation: Operation, arguments: Json, headers: Headers) -> httpx2.Response:
    """Ask for it as a tool, in the stateless era."""
    tool, fixed = tool_of(operation)
    return call_tool(site, tool, {**fixed, **arguments}, headers)


def call_tool(site: Site, tool: str, arguments: Json, headers: Headers) -> httpx2.Response:
    """Call a tool, in the stateless era."""
    return mcp(site, "tools/call", {"name": tool, "arguments": arguments}, headers)


def mcp(site: Site, method: str, params: Json, headers: Headers) -> httpx2.Response:
    """Send a request of the stateless era."""
    needed, body = modern(method, params)
    return post(site.http, {**needed, **headers}, body)


# -- being answered ----------------------------------------------------------------------------------


def problem(response: httpx2.Response) -> tuple[int, str]:
    """The status and the code of a problem, which has its shape."""
    assert response.headers["content-type"] == MEDIA_TYPE
    told = response.json()
    assert told["status"] == response.status_code
    assert told["requestId"] == response.headers["x-request-id"]
    assert {"type", "title", "detail"} <= told.keys()
    assert ("www-authenticate" in response.headers) == (response.status_code == 401)
    return response.status_code, str(told["code"])


def result(response: httpx2.Response) -> Json:
    """The result in an answer of the protocol."""
    assert (response.status_code, response.headers["content-type"]) == (200, "application/json")
    told = response.json()
    assert (told["jsonrpc"], told["id"]) == ("2.0", 1)
    found: Json = told["result"]
    return found


def tool_error(response: httpx2.Response) -> str | None:
    """The code of the error that a tool answered with, or None."""
    told = result(response)
    structured: Json = told["structuredContent"]
    assert bool(told.get("isError")) == ("error" in structured)
    return str(structured["error"]["code"]) if "error" in structured else None
