import json
import threading
from contextlib import closing

import pytest

from testbed.patience import PATIENCE_SECONDS, until
from tests.store.support.generators import NewStore, a_memory, add, forget
from vestige.core.errors import StoreError
from vestige.store.contract.answers import MOST_NOTICES
from vestige.store.contract.store import MemoryStore

ANOTHER = '{"type": "Another"}'
MOMENT = 0.05


def messages(store: MemoryStore, after: int = 0) -> list[str]:
    return [notice.message for notice in store.notices(after)]


def quoting(*memory_ids: str) -> str:
    return json.dumps({"type": "Quote", "quotes": memory_ids})


def test_what_was_told_is_read_in_order_with_who_told_it(store: MemoryStore) -> None:
    store.notify("one", ['{"n": 1}', '{"n": 2}'])
    store.notify("two", ['{"text": "naïve ☕ \\u0000"}'])

    told = store.notices(0)
    assert [(notice.process, notice.message) for notice in told] == [
        ("one", '{"n": 1}'),
        ("one", '{"n": 2}'),
        ("two", '{"text": "naïve ☕ \\u0000"}'),
    ]
    assert store.notices(told[0].id) == told[1:]
    assert store.notices(told[-1].id) == []


def test_nothing_was_told_in_a_fresh_store_and_telling_nothing_is_nothing(store: MemoryStore) -> None:
    store.notify("one", [])
    assert store.notices(0) == []


def test_who_heard_more_than_there_is_hears_everything(store: MemoryStore) -> None:
    assert store.notices(99) == []
    store.notify("one", ['{"n": 1}', '{"n": 2}'])
    assert messages(store, 99) == ['{"n": 1}', '{"n": 2}']


def test_only_the_last_notices_are_kept(store: MemoryStore) -> None:
    store.notify("one", ['{"n": 0}'])
    last = store.notices(0)[-1].id
    store.notify("one", [json.dumps({"n": n}) for n in range(1, MOST_NOTICES + 10)])

    kept = store.notices(last)
    assert len(kept) == MOST_NOTICES
    assert json.loads(kept[-1].message) == {"n": MOST_NOTICES + 9}


def test_deleting_a_memory_takes_every_notice_away_and_later_ones_are_still_later(store: MemoryStore) -> None:
    add(store, a_memory("a"))
    store.notify("one", [quoting("a"), ANOTHER])
    before = store.notices(0)[-1].id
    forget(store, "a")
    assert store.notices(0) == []

    store.notify("one", [ANOTHER])
    assert messages(store, before) == [ANOTHER]


def test_a_notice_that_comes_after_the_deletion_of_what_it_quotes_is_not_taken(store: MemoryStore) -> None:
    add(store, a_memory("a"), a_memory("b"))
    forget(store, "a")

    store.notify("one", [quoting("b", "a"), quoting("b"), quoting(), ANOTHER])

    assert messages(store) == [quoting("b"), quoting(), ANOTHER]


def test_another_store_hears_nothing(new_store: NewStore) -> None:
    first, second = new_store(), new_store()
    first.notify("one", [ANOTHER])
    assert second.notices(0) == []


def test_who_listens_is_told_that_there_may_be_news(store: MemoryStore) -> None:
    with store.listening() as wait:
        assert wait(MOMENT)  # what was told before is not known
        store.notify("one", [ANOTHER])
        until(lambda: wait(MOMENT))


def test_several_may_listen_at_once_and_again_later(store: MemoryStore) -> None:
    with store.listening() as one, store.listening() as other:
        assert one(MOMENT)
        assert other(MOMENT)
        store.notify("one", [ANOTHER])
        until(lambda: one(MOMENT))
        until(lambda: other(MOMENT))
    with store.listening() as later:
        assert later(MOMENT)


def test_closing_the_store_ends_waiting_for_news(new_store: NewStore) -> None:
    store = new_store()
    listens, answers = threading.Event(), list[bool]()

    def listen() -> None:
        with store.listening() as wait:
            wait(MOMENT)
            listens.set()
            answers.append(wait(PATIENCE_SECONDS))

    thread = threading.Thread(target=listen)
    thread.start()
    with closing(store):
        assert listens.wait(PATIENCE_SECONDS)
    thread.join(PATIENCE_SECONDS)
    assert answers == [False]
    with pytest.raises(StoreError):
        store.listening().__enter__()
