"""API keys are kept as they are, revoked at once, and are no part of what is told of memories."""

from dataclasses import replace
from threading import Thread
from typing import Any

import pytest

from testbed.failures import each
from tests.store.support.generators import DAY, HOUR, T0, NewStore, a_key, a_memory, add
from vestige.core.api_key import ApiKey
from vestige.core.errors import Conflict, InvalidInput, NotFound
from vestige.core.models import EVERYTHING
from vestige.store.contract.store import MemoryStore

WHOLE = ApiKey(
    id="whole",
    hash="ab" * 32,
    label="Ada's läptop; 'quoted' \u202e",
    permissions=("read", "write"),
    scopes=("/project/a", "/user"),
    domains=("läb", "with, comma"),
    created_at=T0,
    expires_at=T0 + 30 * DAY,
    last_used=T0 + HOUR,
    revoked_at=T0 + DAY,
)


def test_a_store_has_no_keys_at_first(store: MemoryStore) -> None:
    assert store.list_keys() == []
    assert store.key_by_hash(WHOLE.hash) is None


def test_a_key_comes_back_as_it_was_put(store: MemoryStore) -> None:
    plain = a_key("plain", T0 + HOUR)
    store.put_key(WHOLE)
    store.put_key(plain)
    assert store.list_keys() == [WHOLE, plain]
    assert store.key_by_hash(WHOLE.hash) == WHOLE
    assert store.key_by_hash(plain.hash) == plain
    assert store.list_keys(["plain", "unknown", "plain"]) == [plain]
    assert store.list_keys([]) == []


def test_keys_come_oldest_first_and_ties_go_by_id(store: MemoryStore) -> None:
    for key in (a_key("c", T0 + DAY), a_key("b"), a_key("a")):
        store.put_key(key)
    assert [key.id for key in store.list_keys()] == ["a", "b", "c"]


@pytest.mark.parametrize("other", [replace(a_key("b"), hash=a_key("a").hash), a_key("a", T0 + DAY)])
def test_an_id_or_hash_that_is_taken_is_refused(store: MemoryStore, other: ApiKey) -> None:
    store.put_key(a_key("a"))
    with pytest.raises(Conflict):
        store.put_key(other)
    assert store.list_keys() == [a_key("a")]


def test_a_key_gets_another_label_and_stays_the_same_key(store: MemoryStore) -> None:
    store.put_key(WHOLE)
    assert store.label_key(WHOLE.id, "Bob") == replace(WHOLE, label="Bob")
    assert store.list_keys() == [replace(WHOLE, label="Bob")]
    with pytest.raises(NotFound):
        store.label_key("unknown", "Bob")
    with pytest.raises(InvalidInput):
        store.label_key(WHOLE.id, " ")


def test_only_a_whole_hash_finds_a_key(store: MemoryStore) -> None:
    store.put_key(a_key("a"))
    hashed = a_key("a").hash
    assert store.key_by_hash(hashed[:12]) is None
    assert store.key_by_hash(hashed.upper() + "\0") is None
    assert store.key_by_hash("%") is None


def test_a_revoked_key_is_still_known_with_the_time_it_was_first_revoked(store: MemoryStore) -> None:
    store.put_key(a_key("a"))
    revoked = replace(a_key("a"), revoked_at=T0 + HOUR)
    assert store.revoke_key("a", T0 + HOUR) == revoked
    assert store.revoke_key("a", T0 + DAY) == revoked
    assert store.key_by_hash(revoked.hash) == revoked


def test_an_unknown_key_cannot_be_revoked(store: MemoryStore) -> None:
    store.put_key(a_key("a"))
    with pytest.raises(NotFound):
        store.revoke_key("b", T0)
    assert store.list_keys() == [a_key("a")]


def test_a_key_that_replaces_another_revokes_it_in_the_same_transaction(store: MemoryStore) -> None:
    store.put_key(a_key("old"))
    new = a_key("new", T0 + DAY)
    store.put_key(new, replacing="old")
    assert store.list_keys() == [replace(a_key("old"), revoked_at=T0 + DAY), new]


def test_what_cannot_be_replaced_leaves_nothing_behind(store: MemoryStore) -> None:
    store.put_key(a_key("old"))
    with pytest.raises(NotFound):
        store.put_key(a_key("new"), replacing="unknown")
    with pytest.raises(Conflict):
        store.put_key(a_key("old", T0 + DAY), replacing="old")
    assert store.list_keys() == [a_key("old")]
    gone = store.revoke_key("old", T0 + HOUR)
    with pytest.raises(Conflict):
        store.put_key(a_key("new"), replacing="old")
    assert store.list_keys() == [gone]


def test_of_two_who_replace_the_same_key_one_is_refused(store: MemoryStore) -> None:
    store.put_key(a_key("old"))
    refused: list[Conflict] = []

    def replace_it(name: str) -> None:
        try:
            store.put_key(a_key(name, T0 + DAY), replacing="old")
        except Conflict as exc:
            refused.append(exc)

    threads = [Thread(target=replace_it, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 1
    assert len(store.list_keys()) == 2


def test_the_last_use_never_goes_back(store: MemoryStore) -> None:
    store.put_key(a_key("a"))
    store.put_key(a_key("b"))
    store.note_keys_used({"a": T0 + DAY, "unknown": T0})
    store.note_keys_used({"a": T0 + HOUR, "b": T0 + HOUR})
    store.note_keys_used({})
    assert [key.last_used for key in store.list_keys()] == [T0 + DAY, T0 + HOUR]


def test_keys_are_not_told_with_the_memories(new_store: NewStore) -> None:
    store, other = new_store(), new_store()
    add(store, a_memory("a"))
    before = store.log(access=EVERYTHING)
    store.put_key(a_key("k"))
    assert store.log(access=EVERYTHING) == before
    for lives in store.histories(access=EVERYTHING):
        other.absorb(lives, access=EVERYTHING)
    assert other.list_keys() == []


@each(
    "wrong",
    [
        {"hash": "ab"},
        {"hash": "AB" * 32},
        {"label": " "},
        {"permissions": ()},
        {"permissions": ("write",)},
        {"permissions": ("read", "everything")},
        {"scopes": ()},
        {"scopes": ("project/",)},
        {"domains": ()},
        {"domains": ("\0",)},
        {"created_at": T0.replace(tzinfo=None)},
    ],
)
def test_what_is_no_key_cannot_be_made(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        replace(a_key("a"), **wrong)
