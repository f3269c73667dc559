"""A login that was ended opens nothing in any process, as long as its cookie would have opened something."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.store.support.generators import DAY, HOUR, T0, NewStore, a_key, a_memory, add
from vestige.core.errors import InvalidInput, TooLarge
from vestige.core.models import EVERYTHING
from vestige.store.contract.store import MemoryStore


def test_a_login_is_not_over_before_it_was_ended(store: MemoryStore) -> None:
    store.put_key(a_key("k"))
    assert not store.login_ended("one")
    assert store.key_of_login("k", "one") == a_key("k")


def test_a_login_that_was_ended_has_no_key_any_more_and_others_have_theirs(store: MemoryStore) -> None:
    store.put_key(a_key("k"))
    store.end_login("one", T0 + HOUR, forgetting=T0)
    assert store.login_ended("one")
    assert store.key_of_login("k", "one") is None
    assert not store.login_ended("two")
    assert store.key_of_login("k", "two") == a_key("k")
    assert store.list_keys() == [a_key("k")]


def test_the_key_of_a_login_is_told_whatever_became_of_it(store: MemoryStore) -> None:
    store.put_key(a_key("k"))
    revoked = store.revoke_key("k", T0 + HOUR)
    assert store.key_of_login("k", "one") == revoked
    assert store.key_of_login("unknown", "one") is None


def test_ending_a_login_again_changes_nothing(store: MemoryStore) -> None:
    store.end_login("one", T0 + HOUR, forgetting=T0)
    store.end_login("one", T0 + DAY, forgetting=T0)
    store.end_login("two", T0 + DAY, forgetting=T0 + 2 * HOUR)
    assert not store.login_ended("one"), "it had the end that was told first"


def test_a_login_is_ended_by_one_call_of_several_at_once(store: MemoryStore) -> None:
    """A ticket that two workers get at the same time logs in once."""
    start = threading.Barrier(4)

    def end(_: int) -> bool:
        start.wait()
        return store.end_login("ticket", T0 + HOUR, forgetting=T0)

    with ThreadPoolExecutor(4) as threads:
        assert sorted(threads.map(end, range(4))) == [False, False, False, True]


def test_what_would_have_ended_by_itself_is_forgotten_with_the_next_one(store: MemoryStore) -> None:
    store.end_login("past", T0 + HOUR, forgetting=T0)
    store.end_login("lasting", T0 + 2 * HOUR, forgetting=T0 + HOUR)
    assert store.login_ended("past"), "as long as it may still be asked for"
    store.end_login("new", T0 + DAY, forgetting=T0 + 2 * HOUR)
    assert [store.login_ended(one) for one in ("past", "lasting", "new")] == [False, True, True]


@pytest.mark.parametrize("asked", ["", "one\0", "ON%", "\ud800"])
def test_only_the_id_of_a_login_finds_it(store: MemoryStore, asked: str) -> None:
    store.put_key(a_key("k"))
    store.end_login("one", T0 + HOUR, forgetting=T0)
    assert not store.login_ended(asked)
    assert store.key_of_login("k", asked) == a_key("k")
    assert store.key_of_login(asked, "two") is None


@pytest.mark.parametrize("wrong", ["", "one\0", "\ud800", "x" * 501])
def test_what_is_no_id_cannot_be_ended(store: MemoryStore, wrong: str) -> None:
    with pytest.raises((InvalidInput, TooLarge)):
        store.end_login(wrong, T0 + HOUR, forgetting=T0)


def test_logins_are_not_told_with_the_memories(new_store: NewStore) -> None:
    store, other = new_store(), new_store()
    add(store, a_memory("a"))
    before = store.log(access=EVERYTHING)
    store.end_login("one", T0 + HOUR, forgetting=T0)
    assert store.log(access=EVERYTHING) == before
    assert store.examine(T0.replace(year=2030)) == []
    for lives in store.histories(access=EVERYTHING):
        other.absorb(lives, access=EVERYTHING)
    assert not other.login_ended("one")
