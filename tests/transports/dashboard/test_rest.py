"""What the pages of the dashboard ask the server over REST, as every other client can."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from testbed.world import World
from tests.transports.http.support.harness import Site, new_site
from tests.transports.http.support.inside import URL, inside
from vestige.transports.http import rest


@pytest.fixture
def http(world: World) -> Iterator[httpx.Client]:
    """A client of a server on the world that lets everybody in."""
    with (
        inside(world.app) as transport,
        httpx.Client(transport=transport, base_url=f"{URL}/api/v1") as client,
    ):
        yield client


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A server that asks for a key."""
    with new_site(tmp_path, parts=(rest.routes,)) as opened:
        yield opened


def test_memories_that_were_never_recalled_are_listed_over_rest(world: World, http: httpx.Client) -> None:
    found = world.remember("Ada drinks tea.", force_create=True)
    other = world.remember("Grace rides a bicycle.", force_create=True)
    http.post("/search", json={"query": "What does Ada drink?", "limit": 1})
    world.app.settle()
    never, once = (http.get(f"/memories?recalled={value}").json() for value in ("false", "true"))
    assert ([one["id"] for one in never["results"]], never["total"]) == ([other], 1)
    assert ([one["id"] for one in once["results"]], once["total"]) == ([found], 1)
    assert http.get("/memories").json()["total"] == 2
