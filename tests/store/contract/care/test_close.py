from collections.abc import Callable
from pathlib import Path

import pytest

from tests.store.support.generators import SIGNATURE, T0, a_key, a_memory, add, axis, rows
from vestige.core.errors import StoreError
from vestige.core.models import ANYTHING, EVERYTHING
from vestige.store.contract.answers import LogQuery
from vestige.store.contract.search import Probe
from vestige.store.contract.store import MemoryStore

USES: dict[str, Callable[[MemoryStore], object]] = {
    "commit": lambda store: add(store, a_memory("b")),
    "empty commit": lambda store: store.commit([], access=EVERYTHING),
    "get_many": lambda store: store.get_many(["a"], access=EVERYTHING),
    "contexts": lambda store: store.contexts(["a"], access=EVERYTHING),
    "find": lambda store: store.find(ANYTHING, access=EVERYTHING, limit=5),
    "stream": lambda store: list(store.stream(access=EVERYTHING)),
    "count": lambda store: store.count(ANYTHING, access=EVERYTHING),
    "levels": lambda store: store.levels(access=EVERYTHING, now=T0),
    "stats": lambda store: store.stats(access=EVERYTHING, now=T0),
    "tag_counts": lambda store: store.tag_counts(access=EVERYTHING),
    "ids_like": lambda store: store.ids_like("a", access=EVERYTHING, limit=1),
    "history": lambda store: store.history("a", access=EVERYTHING),
    "earlier": lambda store: store.earlier(["a"], T0, access=EVERYTHING),
    "tombstone": lambda store: store.tombstone("a", access=EVERYTHING),
    "log": lambda store: store.log(access=EVERYTHING),
    "latest": lambda store: store.latest(LogQuery(), access=EVERYTHING, limit=5),
    "edges": lambda store: store.edges(["a"], access=EVERYTHING),
    "stream_edges": lambda store: list(store.stream_edges(access=EVERYTHING)),
    "documents": lambda store: store.documents("finding", access=EVERYTHING, limit=1),
    "count_documents": lambda store: store.count_documents("finding", access=EVERYTHING),
    "claimed": lambda store: store.claimed("k"),
    "same_text": lambda store: store.same_text(["f"], scope="/", valid_at=T0, access=EVERYTHING),
    "reworded": lambda store: store.reworded(["zinc"], ANYTHING, access=EVERYTHING, limit=5),
    "lexical": lambda store: store.lexical(["zinc"], ANYTHING, access=EVERYTHING, limit=5),
    "nearest": lambda store: store.nearest(rows(axis(0)), SIGNATURE, ANYTHING, access=EVERYTHING, limit=5),
    "vectors": lambda store: store.vectors(["a"], SIGNATURE, access=EVERYTHING),
    "voices": lambda store: store.voices({1}, access=EVERYTHING),
    "gather": lambda store: store.gather(Probe(terms=("zinc",), per_arm=5), access=EVERYTHING),
    "signature": lambda store: store.signature(),
    "profiles": lambda store: store.profiles(),
    "adopt": lambda store: store.adopt(SIGNATURE),
    "drop_vectors": lambda store: store.drop_vectors(SIGNATURE),
    "unembedded": lambda store: store.unembedded(SIGNATURE, limit=5),
    "put_vectors": lambda store: store.put_vectors({}),
    "put_strengths": lambda store: store.put_strengths({}, after=0),
    "neighbours": lambda store: store.neighbours(access=EVERYTHING),
    "rebuild_neighbours": lambda store: store.rebuild_neighbours(),
    "rebuild_words": lambda store: store.rebuild_words(),
    "index_status": lambda store: store.index_status(),
    "rebuild_index": lambda store: store.rebuild_index(),
    "alone": lambda store: store.alone("purge").__enter__(),
    "processes": lambda store: store.processes(),
    "has_peers": lambda store: store.has_peers(),
    "leading": lambda store: store.leading(),
    "notify": lambda store: store.notify("one", []),
    "notices": lambda store: store.notices(0),
    "listening": lambda store: store.listening().__enter__(),
    "histories": lambda store: list(store.histories(access=EVERYTHING)),
    "absorb": lambda store: store.absorb([], access=EVERYTHING),
    "put_key": lambda store: store.put_key(a_key("k")),
    "list_keys": lambda store: store.list_keys(),
    "key_by_hash": lambda store: store.key_by_hash("0" * 64),
    "revoke_key": lambda store: store.revoke_key("k", T0),
    "label_key": lambda store: store.label_key("k", "label"),
    "note_keys_used": lambda store: store.note_keys_used({"k": T0}),
    "end_login": lambda store: store.end_login("one", T0, forgetting=T0),
    "login_ended": lambda store: store.login_ended("one"),
    "key_of_login": lambda store: store.key_of_login("k", "one"),
    "settle": lambda store: store.settle(),
    "examine": lambda store: store.examine(T0.replace(year=2030), deep=False),
    "repair": lambda store: store.repair("words", T0),
    "backup": lambda store: store.backup(Path("nowhere/copy.db")),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES.keys())
def test_a_closed_store_refuses_every_use(store: MemoryStore, use: Callable[[MemoryStore], object]) -> None:
    add(store, a_memory("a"))
    store.close()
    with pytest.raises(StoreError):
        use(store)


def test_closing_twice_is_safe(store: MemoryStore) -> None:
    add(store, a_memory("a"))
    store.close()
    store.close()
    with pytest.raises(StoreError):
        add(store, a_memory("b"))


def test_every_method_of_the_contract_is_tried_on_a_closed_store() -> None:
    parts = [part for part in MemoryStore.__mro__ if part.__module__.startswith("vestige.")]
    methods = {name for part in parts for name in vars(part) if not name.startswith("_")}
    assert methods - set(USES) == {"node", "read_only", "software", "write_failure", "lingers_in", "close"}


def test_a_store_in_use_can_be_written(store: MemoryStore) -> None:
    assert not store.read_only
