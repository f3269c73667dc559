"""What is true of the in-memory store alone."""

from pathlib import Path

import pytest

from tests.store.support.generators import a_memory, add
from vestige.core.errors import InvalidInput
from vestige.store.inmemory import InMemoryStore


def test_it_says_that_it_has_no_file_to_back_up(tmp_path: Path) -> None:
    store = InMemoryStore(node="n")
    add(store, a_memory("a"))
    with pytest.raises(InvalidInput) as refused:
        store.backup(tmp_path / "copy.db")
    assert refused.value.hint is not None
    assert "no file" in refused.value.hint
    assert list(tmp_path.iterdir()) == []


def test_its_node_is_the_one_it_was_given() -> None:
    store = InMemoryStore(node="here")
    (event,) = add(store, a_memory("a"))
    assert (store.node, event.node) == ("here", "here")
