"""The storage against CrewAI: its own `Memory` uses it, and no language model is asked."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

pytest.importorskip("crewai", reason="CrewAI has an environment of its own: `make crewai`")

from crewai.memory import Memory as CrewMemory
from crewai.memory.storage.backend import StorageBackend
from crewai.memory.types import MemoryRecord
from vestige_crewai import VestigeStorage

from vestige import Memory


@pytest.fixture
def storage(memory: Memory) -> VestigeStorage:
    return VestigeStorage(memory)


def record(text: str, **fields: Any) -> MemoryRecord:
    return MemoryRecord(content=text, **fields)


def texts(records: list[MemoryRecord]) -> list[str]:
    return [one.content for one in records]


def test_the_memory_of_crewai_remembers_recalls_and_forgets(storage: VestigeStorage) -> None:
    crew = CrewMemory(storage=storage, embedder=storage.embedder, consolidation_threshold=1.0)
    for text, scope in (("Ada drinks tea.", "/people/ada"), ("The release is on Friday.", "/work")):
        crew.remember(text, scope=scope, categories=["fact"], importance=0.5)
    crew.drain_writes()
    found = crew.recall("What does Ada drink?", depth="shallow")
    assert found[0].record.content == "Ada drinks tea."
    assert crew.list_scopes("/") == ["/people", "/work"]
    assert crew.forget(scope="/people") == 1
    assert texts(crew.list_records()) == ["The release is on Friday."]
    crew.close()


def test_a_record_comes_back_as_it_was_saved(storage: VestigeStorage) -> None:
    assert isinstance(storage, StorageBackend)
    made = record("Ada drinks tea.", scope="/a/b", categories=["x"], metadata={"n": [1, None]}, private=True)
    storage.save([made])
    assert storage.get_record(made.id) == made
    assert storage.get_record("gone") is None


def test_an_update_that_was_cut_off_half_way_shows_only_the_new_record(
    memory: Memory, storage: VestigeStorage
) -> None:
    made = record("Ada drinks tea.")
    storage.save([made])
    (old,) = memory.memory.list()["results"]
    storage.update(made.model_copy(update={"content": "Ada drinks coffee."}))
    memory.memory.set_validity(old["id"], valid_until=None)  # as if the program had ended before this step

    (vector,) = storage.embedder(["Ada drinks tea."])
    assert texts(storage.list_records()) == ["Ada drinks coffee."]
    assert texts([one for one, _ in storage.search(vector)]) == ["Ada drinks coffee."]
    assert storage.count() == 1


def test_an_update_replaces_the_record_and_deleting_it_leaves_no_version(
    memory: Memory, storage: VestigeStorage
) -> None:
    made = record("Ada drinks tea.")
    storage.save([made])
    storage.update(made.model_copy(update={"content": "Ada drinks coffee."}))
    assert texts(storage.list_records()) == ["Ada drinks coffee."]
    assert storage.delete(record_ids=[made.id]) == 1
    assert memory.memory.list()["total"] == 0


def test_filters_narrow_what_is_found_counted_and_deleted(storage: VestigeStorage) -> None:
    today = datetime.now(UTC).replace(tzinfo=None)  # as CrewAI has its times
    old = today - timedelta(days=10)
    storage.save(
        [
            record(
                "Ada drinks tea.", scope="/a", categories=["drink"], metadata={"by": "ada"}, created_at=old
            ),
            record("Grace drinks water.", scope="/a/b", categories=["drink"], metadata={"by": "grace"}),
            record("The release is on Friday.", scope="/c", categories=["work"]),
        ]
    )
    (asked,) = storage.embedder(["Who drinks what?"])
    assert len(storage.search(asked, categories=["drink"])) == 2
    assert texts([one for one, _ in storage.search(asked, metadata_filter={"by": "grace"})]) == [
        "Grace drinks water."
    ]
    assert storage.search(asked, scope_prefix="/c", categories=["drink"]) == []
    assert (storage.count(), storage.count("/a")) == (3, 2)
    assert storage.list_categories() == {"drink": 2, "work": 1}
    info = storage.get_scope_info("/a")
    assert (info.record_count, info.child_scopes, info.categories) == (2, ["/a/b"], ["drink"])
    assert texts(storage.list_records(limit=1)) != ["Ada drinks tea."]
    assert storage.delete(older_than=today - timedelta(days=1)) == 1
    storage.reset("/c")
    assert texts(storage.list_records()) == ["Grace drinks water."]


def test_a_vector_of_another_embedder_is_refused(storage: VestigeStorage) -> None:
    with pytest.raises(ValueError, match=r"storage\.embedder"):
        storage.search([0.0, 1.0])
