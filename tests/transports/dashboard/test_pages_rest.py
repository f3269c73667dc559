"""What the pages of the dashboard ask the server over REST, as every other client can."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from testbed.world import World
from tests.transports.http.support.harness import Site, bearer, new_site
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


def test_a_memory_and_a_selection_move_over_rest_and_back(world: World, http: httpx.Client) -> None:
    ids = [world.remember(f"Berth {name} has a crane.", scope="/a", force_create=True) for name in "xyz"]
    moved = http.put(f"/memories/{ids[0]}/scope", json={"to": "/b"}).json()
    assert (moved["changed"], moved["node"]["scope"]) == (True, "/b")
    plan = http.post("/memories/bulk", json={"change": "move", "to": "/b", "scope": "/a"}).json()
    assert (plan["matched"], plan["changed"], plan["dryRun"]) == (2, 2, True)
    asked = {"change": "move", "to": "/b", "scope": "/a", "dry_run": False, "expected": 2}
    done = http.post("/memories/bulk", json=asked).json()
    assert http.get("/memories?scope=/b").json()["total"] == 3
    assert http.get("/memories/bulk").json()["runs"][0]["change"] == "move"
    back = http.post(f"/memories/bulk/{done['undoId']}/undo").json()
    assert (sorted(back["restored"]), back["skipped"]) == (sorted(ids[1:]), 0)
    assert http.get("/memories?scope=/a").json()["total"] == 2


def test_a_key_moves_memories_only_between_scopes_of_its_own(site: Site) -> None:
    memory = site.world.remember("The ledger is blue.", scope="/project/a")
    at, to_b = f"/api/v1/memories/{memory}/scope", {"to": "/project/b"}

    def status(*permissions: str, scopes: list[str], to: str = "/project/b") -> int:
        key = bearer(site.key(*permissions, scopes=scopes))
        return site.http.put(at, json={"to": to}, headers=key).status_code

    assert status("read", "write", scopes=["/project/a"]) == 403
    assert status("read", "write", scopes=["/project/b"]) == 404
    assert status("read", scopes=["/project/a", "/project/b"]) == 403
    assert site.world.get(memory)["scope"] == "/project/a"
    assert status("read", "write", scopes=["/project/a"], to="/project/a/b") == 200
    assert status("read", "write", scopes=["/project/a", "/project/b"]) == 200
    one = bearer(site.key("read", "write", scopes=["/project/a"]))
    asked = {"change": "move", **to_b, "dry_run": False, "expected": 0}
    assert site.http.post("/api/v1/memories/bulk", json=asked, headers=one).status_code == 403
    assert site.world.get(memory)["scope"] == "/project/b"


def test_everything_that_waits_for_a_person_is_one_answer(world: World, http: httpx.Client) -> None:
    first = world.remember("The retry limit of the uploader is 5.", force_create=True)
    second = world.remember("The retry limit of the uploader is 8.", force_create=True)
    for copy in ("Anna leads the billing team.", "Anna leads the billing team!"):
        world.remember(copy, force_create=True)
    held = world.call("smart_ingest", content="The gate is rusty.", review=True)["nodeId"]
    waiting = http.get("/review/waiting?limit=5").json()
    assert [one["id"] for one in waiting["proposedMemories"]["texts"]] == [held]
    [pair] = waiting["contradictions"]["contradictions"]
    assert {pair["stronger"]["id"], pair["weaker"]["id"]} == {first, second}
    assert waiting["duplicates"]["totalClusters"] == 2
    for name, path in (
        ("proposedMemories", "/review"), ("contradictions", "/contradictions"),
        ("domainProposals", "/domains/proposals"), ("duplicates", "/duplicates"), ("insights", "/insights"),
    ):  # fmt: skip
        limit = "" if "proposals" in path else "?limit=5"
        assert waiting[name] == http.get(f"{path}{limit}").json()


def test_what_waits_is_limited_to_what_a_key_sees(site: Site) -> None:
    for scope in ("/project/a", "/project/b"):
        for value in (5, 8):
            site.world.remember(f"The retry limit of {scope[-1]} is {value}.", scope=scope, force_create=True)
    key = bearer(site.key("read", scopes=["/project/a"]))
    waiting = site.http.get("/api/v1/review/waiting", headers=key).json()
    assert waiting["contradictions"]["total"] == 1
    assert "domainProposals" not in waiting
    assert "/project/b" not in str(waiting)
