"""What `X-Vestige-Scope` and `X-Vestige-Domain` do to a request, whatever its key reaches."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from testbed.failures import each
from tests.operations.access.access_world import DOMAIN, MINE
from tests.transports.http.support.harness import Site, bearer
from tests.transports.http.support.holders import (
    Headers,
    Json,
    by_mcp,
    by_rest,
    open_house,
    problem,
    result,
    tool_error,
)
from vestige.core.api_key import RANDOM_BYTES, hash_of, key_text
from vestige.core.models import ANYTHING, EVERYTHING, Access
from vestige.operations.registry.groups import registry
from vestige.operations.registry.registry import Operation

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


@each("narrowing", NARROWINGS)
@each("reach", REACHES)
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
    scope, domain = headers.get("X-Vestige-Scope", "/"), headers.get("X-Vestige-Domain")
    access = Access(
        scopes=(scope,) if scope != "/" else tuple(REACHES[reach].get("scopes", ())) or None,
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


@each("operation", [one for one in OFFERED if one.whole], ids=lambda one: one.name)
@each("narrowing", ["to the scope", "to the domain"])
def test_a_narrowed_request_does_nothing_to_the_whole_store(
    places: Site, operation: Operation, narrowing: str
) -> None:
    headers = {**bearer(places.key("admin")), **NARROWINGS[narrowing]}
    response = by_rest(places, operation, dict(operation.example), headers)
    assert problem(response) == (403, "forbidden")
    assert tool_error(by_mcp(places, operation, dict(operation.example), headers)) == "forbidden"


WHOLE = ("/metrics", "/api/v1/keys")
"""Two addresses that are open to whom the whole store is."""


def test_the_root_narrows_nothing_and_is_still_where_the_request_is_at_home(places: Site) -> None:
    headers = {**bearer(places.key("admin")), **NARROWINGS["to everything"]}
    assert [places.http.get(path, headers=headers).status_code for path in WHOLE] == [200, 200]
    operation, arguments = registry.operations["smart_ingest"], {"content": "Written at the root."}
    assert by_rest(places, operation, arguments, headers).json()["scope"] == "/"


@each(
    ("filters", "status"),
    [
        ({"scopes": ["/"]}, 200),
        ({"scopes": [MINE, "/"]}, 200),
        ({"scopes": [MINE]}, 403),
        ({"scopes": ["/"], "domains": [DOMAIN]}, 403),
    ],
)
@each("stored", ["by now", "before the root was no filter"])
def test_a_key_for_the_root_has_no_filter_of_scopes(
    places: Site, filters: Json, status: int, stored: str
) -> None:
    key, text = places.mint("admin", **filters)
    if stored != "by now":
        text = key_text(places.world.app.engine.entropy(RANDOM_BYTES))
        older = replace(key, id=f"older {key.id}", hash=hash_of(text), scopes=tuple(filters["scopes"]))
        places.world.app.engine.store.put_key(older)
    for narrowing in ("not", "to everything") if status == 200 else ("not",):
        headers = {**bearer(text), **NARROWINGS[narrowing]}
        assert [places.http.get(path, headers=headers).status_code for path in WHOLE] == [status] * 2
