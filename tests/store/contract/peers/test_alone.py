from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Lock

import pytest

from testbed.patience import PATIENCE_SECONDS
from tests.store.support.generators import NewStore, a_memory, add, held
from vestige.core.errors import StoreBusy
from vestige.store.contract.store import MemoryStore


def test_who_wants_to_be_alone_beside_another_is_told_who_that_is_and_for_what(store: MemoryStore) -> None:
    (me,) = store.processes()
    with store.alone("re-embed"), pytest.raises(StoreBusy) as caught, store.alone("re-embed"):
        pass
    error = caught.value
    assert error.details["pid"] == me.pid
    assert error.details["command"] == me.command
    assert error.details["since"] == me.since.isoformat()
    assert error.details["purpose"] == "re-embed"
    for told in (str(me.pid), me.command, f"{me.since:%Y-%m-%d %H:%M}", "re-embed"):
        assert told in error.message
    assert error.hint


def test_being_alone_ends_with_the_block_even_if_that_fails(store: MemoryStore) -> None:
    with pytest.raises(KeyError), store.alone("re-embed"):
        raise KeyError
    with store.alone("purge"):
        pass


def test_reading_and_writing_go_on_while_somebody_is_alone(store: MemoryStore) -> None:
    with store.alone("re-embed"):
        add(store, a_memory("m1"))
        assert held(store, "m1").memory.id == "m1"


def test_two_stores_do_not_concern_each_other(new_store: NewStore) -> None:
    with new_store().alone("purge"), new_store().alone("purge"):
        pass


def test_deleting_does_not_wait_for_what_takes_long(store: MemoryStore) -> None:
    with (
        store.alone("embedding anew"),
        store.alone("purge"),
        pytest.raises(StoreBusy, match="embedding anew"),
    ):
        store.alone("restore").__enter__()


def test_any_number_of_threads_delete_one_after_another_and_none_is_refused(store: MemoryStore) -> None:
    together, inside = Barrier(16), Lock()

    def purge(number: int) -> bool:
        together.wait(PATIENCE_SECONDS)
        with store.alone("purge"):
            alone = inside.acquire(blocking=False)
            add(store, a_memory(f"m{number}"))
            inside.release()
        return alone

    with ThreadPoolExecutor(16) as threads:
        assert all(threads.map(purge, range(16)))
