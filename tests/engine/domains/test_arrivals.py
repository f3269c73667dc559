"""Memories that come without domains: from a file, before their vectors, or after their time has ended."""

import json
import shutil
from pathlib import Path

import pytest

from testbed.world import HandClock, World, open_world
from tests.engine.domains.corpus import IN_MEMORY, TOPICS, discovered, domain_of, membership, notes, store_all
from vestige.core.models import EVERYTHING
from vestige.embed.hashing import HashingEmbedder
from vestige.engine import embedding
from vestige.engine.context import Call
from vestige.engine.domains.catalogue import centres


def test_a_store_that_was_imported_assigns_new_memories_at_once(quick: World, tmp_path: Path) -> None:
    """It has the domains that were made by hand; of found ones it finds its own."""
    _, infra, _ = discovered(quick)
    quick.call("domains", action="create", label="Network")
    members = [name for name, held in membership(quick).items() if held == (infra,)]
    quick.call("domains", action="assign", domain="Network", ids=members)
    path = quick.call("export", format="portable", scope="/")["path"]
    with open_world(tmp_path / "other", clock=HandClock(first=5000), **IN_MEMORY) as other:
        (tmp_path / "other" / "exports").mkdir(parents=True)
        shutil.copy(
            tmp_path / "data" / "exports" / Path(path).name, tmp_path / "other" / "exports" / "all.jsonl"
        )
        other.call("import", path="all.jsonl")
        listed = other.call("domains", action="list")["domains"]
        assert [(one["id"], one["label"]) for one in listed] == [("network", "Network")]
        assert centres(other.app.engine.store).keys() == {"network"}
        assert {name for name, held in membership(other).items() if held == ("network",)} == set(members)
        assert domain_of(other, other.remember(notes("infra", 1, seed=4)[0])) == ["network"]


def test_memories_of_a_foreign_file_get_their_domains(world: World, tmp_path: Path) -> None:
    domains, before = discovered(world), membership(world)
    path = tmp_path / "data" / "exports" / "notes.jsonl"
    path.parent.mkdir(parents=True)
    rows = [{"content": notes(topic, 1, seed=8)[0]} for topic in TOPICS]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    world.call("import", path=path.name)
    after = membership(world)
    assert sorted(after[name] for name in after.keys() - before.keys()) == sorted((one,) for one in domains)
    assert after.items() >= before.items()


def test_a_memory_whose_vectors_come_late_is_assigned_with_them(
    quick: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    dev, *_ = discovered(quick)
    engine = quick.app.engine
    with monkeypatch.context() as without_model:
        without_model.setattr(embedding, "embedder_or_none", lambda engine: None)
        late = quick.remember(notes("dev", 1, seed=7)[0])
    assert domain_of(quick, late) == []
    embedding.backfill(Call(engine=engine, access=EVERYTHING), HashingEmbedder())
    assert domain_of(quick, late) == [dev]


def test_what_has_ended_belongs_to_its_topic_too(quick: World) -> None:
    (ended,) = store_all(quick, notes("dev", 1, seed=2), valid_until="2020-01-01")
    dev, *_ = discovered(quick)
    assert domain_of(quick, ended) == [dev]
