"""Documents of every kind are carried to a store of another kind, except what belongs to the installation."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from testbed.postgres_server import Server
from testbed.world import open_world
from tests.store.support.generators import a_memory, add
from tests.store.support.sqlite_files import open_at
from tests.store.support.transfer_ends import NOW, AnyEnd, in_file, on_server, opened, quietly
from vestige.core.documents import BODIES, LOCAL, Document
from vestige.core.models import EVERYTHING
from vestige.store.contract.changes import Put
from vestige.store.transfer.move import move

LEFT_BEHIND = {"running", "peer", "backup"}
"""Processes, machines to sync with and the last backup of the former store. Whoever adds a kind here says why
in docs/howto/postgres-migrate.md."""
AT = NOW.isoformat()
MINIMAL: dict[str, dict[str, Any]] = {
    "review_policy": {"scopes": {"/": "all", "/home": "off"}},
    "intention": {
        "description": "Order paint.",
        "trigger": {"type": "manual"},
        "priority": 2,
        "armed_at": AT,
    },
    "pending": {"content": "It waits.", "origin": "web", "reason": "asked", "terms": {"waiting": True}},
    "importance": {
        "composite": 0.5, "novelty": 0.5, "arousal": 0.5, "reward": 0.5, "attention": 0.5, "boost": 1.0,
        "valence": None, "category": None,
    },
    "pattern": {"together": {}, "hours": {"7": 1.0}, "terms": {}, "shown": 1.0, "last": None, "credit": 0.0},
    "attention": {"number": 1, "at": AT, "terms": {}},
    "prediction": {"waiting": [], "outcomes": [1, 0]},
    "capture": {"event": "user_flag", "at": AT, "until": AT, "captured": {"a": 0.5}},
    "recall": {"labile_until": AT},
    "rivalry": {"times": 1},
    "cascade": {"neighbors": 1},
    "archive": {"ids": ["a"], "minRetention": 0.1, "maxAgeDays": None},
    "bulk": {"change": "pin", "memories": {"a": 1}, "at": AT, "terms": {"first": True}},
    "dream": {"turn": 3},
    "replayed": {"memories": ["a"]},
    "consolidation": {"memories": 1, "steps": [], "duration_ms": 1.0},
    "snapshot": {"memories": 1, "retention": 0.5, "recall": None},
    "insight": {"type": "x", "insight": "It is blue.", "confidence": 0.5, "novelty": 0.5, "texts": []},
    "running": {},
    "backup": {"at": AT, "path": "copy.db", "bytes": 1},
    "domain": {"label": "Garden", "origin": "hand", "terms": []},
    "domain_hand": {"assigned": ["garden"], "unassigned": []},
    "domain_centroids": {"profile": "p", "rows": []},
    "domain_run": {"run": 4},
    "domain_proposal": {
        "kind": "merge", "targets": ["a", "b"], "status": "pending", "parts": [], "confidence": 0.5,
        "seen": 2, "run": 4,
    },
    "domain_moves": {"rows": [["a", ["garden"], ["pond"]]]},
    "peer": {"folder": "shared", "at": AT},
}  # fmt: skip
"""A valid body of each kind of document."""


@pytest.fixture(params=["file", pytest.param("server", marks=pytest.mark.slow)])
def goal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AnyEnd]:
    """An empty place for a store, of each kind in turn."""
    if request.param == "file":
        yield in_file(tmp_path / "goal" / "vestige.db")
        return
    server: Server = request.getfixturevalue("postgres_server")
    url = server.new_database()
    yield on_server(url)
    server.drop(url)


def a_document(kind: str) -> Document:
    cites = ("a",) if BODIES[kind].cites else ()
    return Document(
        kind=kind, id="one", body=MINIMAL[kind], scope="/home", cites=cites, created_at=NOW, updated_at=NOW
    )


def test_every_kind_of_document_is_carried_or_left_behind_on_purpose(tmp_path: Path, goal: AnyEnd) -> None:
    assert MINIMAL.keys() == BODIES.keys(), "give a new kind a body above, so that this test moves it"
    path = tmp_path / "source.db"
    held = {kind: a_document(kind) for kind in BODIES}
    with closing(open_at(path)) as store:
        add(store, a_memory("a"))
        store.commit([Put(document=one) for one in held.values()], access=EVERYTHING)
    assert move(in_file(path), goal, quietly).is_whole
    with closing(opened(goal)) as store:
        moved = {kind for kind in BODIES if store.documents(kind, access=EVERYTHING, limit=2) == [held[kind]]}
    assert BODIES.keys() - moved == LEFT_BEHIND


def test_what_a_migration_leaves_behind_never_travels_otherwise() -> None:
    assert LEFT_BEHIND < LOCAL


def test_a_moved_store_keeps_its_review_policies_and_the_way_back_from_bulk_changes(tmp_path: Path) -> None:
    with open_world(tmp_path / "data") as world:
        note = world.remember("The kettle is on the lower shelf.")
        world.call("review", action="choose", scope="/home", policy="all")
        pin = {"action": "bulk", "change": "pin", "ids": [note], "dry_run": False, "expected": 1}
        undo = world.call("memory", **pin)["undoId"]
        clock = world.clock
    (tmp_path / "moved").mkdir()
    ends = in_file(tmp_path / "data" / "vestige.db"), in_file(tmp_path / "moved" / "vestige.db")
    assert move(*ends, quietly).is_whole
    with open_world(tmp_path / "moved", clock=clock) as world:
        assert world.call("smart_ingest", content="Bo walks.", scope="/home")["status"] == "pending"
        assert world.get(note)["pinned"]
        world.call("memory", action="bulk_undo", id=undo)
        assert not world.get(note).get("pinned")
