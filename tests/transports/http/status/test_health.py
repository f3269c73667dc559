"""`/health` says that the server lives, `/readyz` that it can work; neither needs a key."""

from pathlib import Path

import pytest

from tests.transports.http.support.harness import Site, new_site
from vestige.store.inmemory.store import InMemoryStore


@pytest.mark.parametrize("path", ["/health", "/api/health", "/api/v1/health"])
def test_health_is_told_without_a_key(shell: Site, path: str) -> None:
    response = shell.http.get(path)
    assert (response.status_code, response.json()["status"]) == (200, "ok")


def test_health_does_not_ask_the_store(tmp_path: Path) -> None:
    with new_site(tmp_path, parts=()) as site:
        site.world.app.engine.store.close()
        assert site.http.get("/health").status_code == 200


def test_a_server_whose_store_does_not_answer_is_not_ready(tmp_path: Path) -> None:
    with new_site(tmp_path, parts=()) as site:
        assert site.http.get("/readyz").json()["status"] == "ready"
        site.world.app.engine.store.close()
        site.world.clock.advance(hours=1)
        response = site.http.get("/readyz")
        assert (response.status_code, response.json()["status"]) == (503, "unavailable")


def test_a_server_that_acknowledges_no_more_writes_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with new_site(tmp_path, parts=()) as site:
        monkeypatch.setattr(InMemoryStore, "write_failure", "The write-ahead log was removed")
        response = site.http.get("/health")
        assert (response.status_code, response.json()["status"]) == (503, "degraded")
        assert site.http.get("/readyz").status_code == 503


def test_the_store_is_not_asked_anew_by_everybody_who_wants_to_know(tmp_path: Path) -> None:
    with new_site(tmp_path, parts=()) as site:
        assert site.http.get("/readyz").status_code == 200
        site.world.app.engine.store.close()
        assert site.http.get("/readyz").status_code == 200  # no time has passed


def test_a_server_that_stops_is_not_ready_but_lives(shell: Site) -> None:
    shell.context.stopping.set()
    assert shell.http.get("/readyz").status_code == 503
    assert shell.http.get("/health").status_code == 200
