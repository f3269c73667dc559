"""What `X-Vestige-Scope` and `X-Vestige-Domain` do to a request, whatever its key reaches."""

from collections.abc import Iterator

import pytest

from tests.operations.reach_world import DOMAIN, MINE
from tests.transports.http.harness import Site, bearer
from tests.transports.http.holders import (
    Headers,
    Json,
    by_mcp,
    by_rest,
    open_house,
    problem,
    result,
    tool_error,
)
from vestige.models import ANYTHING, EVERYTHING, Access
from vestige.operations.all import registry
from vestige.operations.registry import Operation

BELOW = f"{MINE}/below"
NARROWINGS: dict[str, Headers] = {
    "not": {},
    "to the scope": {"X-Vestige-Scope": MINE},
    "below the scope": {"X-Vestige-Scope": BELOW},
    "to the domain": {"X-Vestige-Domain": DOMAIN},
    "to both": {"X-Vestige-Scope": MINE, "X-Vestige-Domain": DOMAIN},
    "to another domain": {"X-Vestige-Domain": "another"},
    "to a scope above": {"X-Vestige-Scope": "/project"},
    "to everything": {"X-Vestige-Scope": "/"},
    "to a scope beside": {"X-Vestige-Scope": f"{MINE}2"},
}
REACHES: dict[str, Json] = {
    "everything": {},
    "a scope": {"scopes": [MINE]},
    "a domain": {"domains": [DOMAIN]},
    "two of both": {"scopes": [MINE, "/user"], "domains": [DOMAIN, "other"]},
}
WIDER: dict[str, set[str]] = {
    "everything": set(),
    "a scope": {"to a scope above", "to everything", "to a scope beside"},
    "a domain": {"to another domain"},
    "two of both": {"to a scope above", "to everything", "to a scope beside", "to another domain"},
}
"""Which of them would reach further than the key does."""


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server with a memory in each of many places."""
    with open_house(tmp_path_factory.mktemp("places"), canaries=True) as (site, _):
        for scope in ("/", "/project", MINE, BELOW, f"{MINE}2", "/user"):
            for domain in ([], [DOMAIN], ["another"], ["other", DOMAIN]):
                text = f"In {scope} of {' and '.join(domain) or 'nothing'}."
                site.world.remember(text, scope=scope, domains=domain, force_create=True)
        yield site


@pytest.mark.parametrize("narrowing", NARROWINGS)
@pytest.mark.parametrize("reach", REACHES)
def test_a_request_can_narrow_what_its_key_reaches_and_never_widen_it(
    places: Site, reach: str, narrowing: str
) -> None:
    headers = {**bearer(places.key("admin", **REACHES[reach])), **NARROWINGS[narrowing]}
    listing = {"scope": "/", "limit": 200, "detail_level": "brief"}
    operation = registry.operations["memory.list"]
    by_address, by_tool = (by(places, operation, listing, headers) for by in (by_rest, by_mcp))
    everything = places.http.get("/metrics", headers=headers)
    if narrowing in WIDER[reach]:
        for response in (by_address, by_tool, everything):
            assert problem(response) == (403, "forbidden")
        return
    scope, domain = headers.get("X-Vestige-Scope"), headers.get("X-Vestige-Domain")
    access = Access(
        scopes=(scope,) if scope else tuple(REACHES[reach].get("scopes", ())) or None,
        domains=(domain,) if domain else tuple(REACHES[reach].get("domains", ())) or None,
    )
    expected = reached(places, access)
    assert {one["id"] for one in by_address.json()["results"]} == expected
    assert {one["id"] for one in result(by_tool)["structuredContent"]["results"]} == expected
    assert everything.status_code == (200 if access == EVERYTHING else 403)


def reached(site: Site, access: Access) -> set[str]:
    """The memories within an access, by the definition of it, that a list shows."""
    store, whole = site.world.app.engine.store, registry.operations["memory.list"]
    shown = by_rest(site, whole, {"scope": "/", "limit": 200}, bearer(site.key("read"))).json()["results"]
    listed = {one["id"] for one in shown}
    records = [one.memory for batch in store.stream(ANYTHING, access=EVERYTHING) for one in batch]
    return {one.id for one in records if access.allows(one) and one.id in listed}


OFFERED = [registry.operations[route.operation] for route in registry.routes()]


@pytest.mark.parametrize("operation", [one for one in OFFERED if one.whole], ids=lambda one: one.name)
@pytest.mark.parametrize("narrowing", ["to the scope", "to the domain", "to everything"])
def test_a_narrowed_request_does_nothing_to_the_whole_store(
    places: Site, operation: Operation, narrowing: str
) -> None:
    headers = {**bearer(places.key("admin")), **NARROWINGS[narrowing]}
    response = by_rest(places, operation, dict(operation.example), headers)
    assert problem(response) == (403, "forbidden")
    assert tool_error(by_mcp(places, operation, dict(operation.example), headers)) == "forbidden"
