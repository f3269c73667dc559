"""A memory whose text another program changed: its vectors and token bits were made from the earlier text."""

from collections.abc import Callable

import numpy as np

from tests.store.support.generators import (
    SIGNATURE,
    a_memory,
    axis,
    between,
    embedded,
    hits,
    rows,
    some_tokens,
)
from vestige.core.models import ANYTHING, EVERYTHING
from vestige.store.contract.changes import Add
from vestige.store.contract.search import Probe
from vestige.store.contract.store import MemoryStore

MEANING = Probe(vector=axis(0), signature=SIGNATURE, per_arm=5)
BOTH = Probe(vector=axis(0), signature=SIGNATURE, per_arm=5, terms=("zinc",))


def check_that_outdated_vectors_do_not_count(store: MemoryStore, change: Callable[[], object]) -> None:
    """`change` changes the text of the memory `old`, with the store's knowledge or without."""
    for memory, vector, bits in (
        (a_memory("old", "zinc"), axis(0), 1),
        (a_memory("kept", "cobalt"), between(0, 1, 0.5), 2),
    ):
        given = embedded(memory, vector, tokens=[some_tokens(bits)])
        store.commit([Add(memory=memory, embedded=given)], access=EVERYTHING)
    assert set(store.gather(MEANING, access=EVERYTHING).ids) == {"old", "kept"}
    change()

    pool = store.gather(MEANING, access=EVERYTHING)
    assert pool.ids == ("kept",)
    assert pool.sketch is not None
    assert pool.sketch.bits.tolist() == [[2]]
    found = store.gather(BOTH, access=EVERYTHING)
    assert dict(zip(found.ids, found.by_meaning.tolist(), strict=True)) == {"old": False, "kept": True}
    assert dict(zip(found.ids, np.isnan(found.cosine).tolist(), strict=True)) == {"old": True, "kept": False}
    (near,) = store.nearest(rows(axis(0)), SIGNATURE, ANYTHING, access=EVERYTHING, limit=5)
    assert hits(near) == ["kept"]
    assert list(store.vectors(["old", "kept"], SIGNATURE, access=EVERYTHING)) == ["kept"]
