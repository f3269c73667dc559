"""What is told of a store that fails: everything to those who may do everything, to all others its kind only.

Where the store is, as whom it is opened and who else is at work on it is none of the business of a key that
was given to an agent.
"""

import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from testbed.postgres_server import Server
from testbed.world import open_world
from tests.operations.access.access_world import asked
from tests.transports.http.support.harness import Site, bearer, open_site
from tests.transports.http.support.mcp_requests import modern, post
from vestige.core.caller import PERMISSIONS, Caller
from vestige.core.models import Access
from vestige.operations.registry.groups import registry

MINE = "/project/mine"
FILTERS: Mapping[str, Any] = {"scopes": [MINE]}
KEYS: Mapping[str, tuple[tuple[str, ...], Mapping[str, Any]]] = {
    "read": (("read",), {}),
    "write": (("write",), {}),
    "read in scope": (("read",), FILTERS),
    "write in scope": (("write",), FILTERS),
    "admin in scope": (("admin",), FILTERS),
    "admin": (("admin",), {}),
}
Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    """A server on a store that fails at something: what that is, and what of the installation it tells."""

    site: Site
    keys: Mapping[str, str]
    tool: str
    arguments: Json
    method: str
    path: str
    code: str
    status: int
    telling: tuple[str, ...]

    def by_rest(self, key: str) -> tuple[Json, str]:
        """The error as REST tells it, and everything that was sent."""
        body = self.arguments if self.method == "POST" else None
        response = self.site.http.request(self.method, f"/api/v1{self.path}", json=body, headers=bearer(key))
        told = response.json()
        assert (response.status_code, told["code"]) == (self.status, self.code)
        return {**told, "message": told["detail"]}, response.text + str(response.headers)

    def by_mcp(self, key: str) -> tuple[Json, str]:
        """The error as a tool tells it, and everything that was sent."""
        headers, body = modern("tools/call", {"name": self.tool, "arguments": self.arguments})
        response = post(self.site.http, {**headers, **bearer(key)}, body)
        error = response.json()["result"]["structuredContent"]["error"]
        assert error["code"] == self.code
        return error, response.text + str(response.headers)


@contextmanager
def busy(folder: Path) -> Iterator[Failing]:
    """Another Vestige has the store for itself."""
    with (
        served(folder) as (site, keys, memory_id),
        open_world(folder) as other,
        other.app.engine.store.alone("purge"),
    ):
        yield Failing(
            site=site,
            keys=keys,
            tool="memory",
            arguments={"action": "delete", "id": memory_id},
            method="DELETE",
            path=f"/memories/{memory_id}",
            code="store_busy",
            status=503,
            telling=(str(folder), str(os.getpid())),
        )


@contextmanager
def corrupt(folder: Path) -> Iterator[Failing]:
    """A memory cannot be read any more."""
    with served(folder) as (site, keys, memory_id):
        with closing(other_program(folder)) as outsider:
            outsider.execute("UPDATE memories SET created_at = 'x' WHERE id = ?", (memory_id,))
        yield Failing(
            site=site,
            keys=keys,
            tool="memory",
            arguments={"action": "get", "id": memory_id},
            method="GET",
            path=f"/memories/{memory_id}",
            code="store_corrupt",
            status=500,
            telling=(str(folder), "vestige.db"),
        )


@contextmanager
def served(folder: Path) -> Iterator[tuple[Site, Mapping[str, str], str]]:
    """A server on a file with one memory: its keys, and the id of the memory."""
    with open_world(folder) as world, open_site(world) as site:
        keys = {name: site.key(*permissions, **filters) for name, (permissions, filters) in KEYS.items()}
        yield site, keys, world.remember("Bo swims.", scope=MINE)


def other_program(folder: Path) -> sqlite3.Connection:
    return sqlite3.connect(folder / "vestige.db", isolation_level=None)


READABLE, WRITABLE = list(KEYS), [name for name in KEYS if "read" not in name]


@pytest.mark.parametrize(
    ("failing", "holders"), [(busy, WRITABLE), (corrupt, READABLE)], ids=["busy", "corrupt"]
)
@pytest.mark.parametrize("transport", ["by_rest", "by_mcp"])
def test_only_who_may_do_everything_hears_where_a_failing_store_is_and_who_has_it(
    tmp_path: Path, failing: Any, holders: list[str], transport: str, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "data"
    with failing(folder) as case:
        for name in holders:
            caplog.clear()
            error, sent = getattr(case, transport)(case.keys[name])
            if name == "admin":
                assert all(word in sent for word in case.telling)
                continue
            assert [word for word in case.telling if word in sent] == []
            assert "details" not in error
            request = error["hint"].split("request ")[1].rstrip(".")
            assert f"Request {request} failed with {case.code}" in caplog.text
            assert all(word in caplog.text for word in case.telling)


def test_the_general_words_of_an_error_are_those_of_its_kind_with_what_to_do_next(tmp_path: Path) -> None:
    with busy(tmp_path / "data") as case:
        error, _ = case.by_mcp(case.keys["write"])
        assert error["message"] == "Another process is writing and did not finish in time."
        assert error["hint"].startswith("Try again in a moment; the server's log has the details of request ")


def test_who_narrows_himself_is_told_as_little_as_who_reaches_no_more(tmp_path: Path) -> None:
    with corrupt(tmp_path / "data") as case:
        admin = {**bearer(case.keys["admin"]), "X-Vestige-Scope": MINE}
        response = case.site.http.get(f"/api/v1{case.path}", headers=admin)
        assert (response.status_code, response.json()["code"]) == (case.status, case.code)
        assert "details" not in response.json()


@pytest.mark.slow
def test_an_address_of_a_server_that_went_away_is_told_to_who_may_do_everything_only(
    tmp_path: Path, postgres_server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    url = postgres_server.new_database()
    name = urlsplit(url).path.lstrip("/")
    settings: Json = {"storage.backend": "postgres", "storage.postgres.url": url}
    with open_world(tmp_path, **settings) as world:
        postgres_server.drop(url)
        for caller, told in (
            (Caller(name="reader", permissions=frozenset({"read"})), False),
            (Caller(name="writer", permissions=frozenset({"read", "write"})), False),
            (limited(), False),
            (Caller(name="admin", permissions=frozenset(PERMISSIONS)), True),
        ):
            caplog.clear()
            answer = asked(world, registry.operations["memory.list"], {}, caller)
            assert answer["error"]["code"].startswith("store")
            assert (name in str(answer)) is told
            assert told or name in caplog.text


def limited() -> Caller:
    return Caller(name="limited", permissions=frozenset(PERMISSIONS), access=Access(scopes=(MINE,)))
