"""News between processes: here two buses on one store stand for two processes."""

import json
import logging
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from testbed.patience import PATIENCE_SECONDS
from tests.store.conftest import open_inmemory, open_sqlite
from tests.store.support.generators import a_memory, add, forget
from tests.store.support.sqlite_files import open_at
from vestige.core.events import (
    PREVIEW_CHARS,
    ConnectionDiscovered,
    Event,
    EventBus,
    EventScope,
    ImportanceScored,
    IntentionTriggered,
    MemoryCreated,
    MemoryDeleted,
    SearchPerformed,
)
from vestige.engine.reactions.relay import Relay
from vestige.store.contract.answers import MOST_NOTICES
from vestige.store.contract.store import MemoryStore

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
HOME = EventScope(scope="/project/tea", domains=("drinks",))
SCOPE = EventScope(scope="/project/tea")
DELETED = MemoryDeleted(timestamp=NOON, scopes=(SCOPE,), id="1")
CREATED = MemoryCreated(
    timestamp=NOON, scopes=(HOME,), id="a", content_preview="Tea.", node_type="fact", tags=("x",)
)
SEARCH = SearchPerformed(
    timestamp=NOON, scopes=(SCOPE, HOME), query="tea", result_count=1, result_ids=("a",), duration_ms=1.0
)


class Process:
    """A bus with its relay, and what was heard on it."""

    def __init__(self, store: MemoryStore, name: str, *, others: bool = True) -> None:
        self.bus = EventBus()
        self.here: list[Event] = []
        self.everywhere: list[Event] = []
        self.others = others
        self.relay = Relay(store, self.bus, process=name, others=lambda: self.others)

    @contextmanager
    def listening(self) -> Iterator[None]:
        with (
            self.bus.listening(self.here.append),
            self.bus.listening(self.everywhere.append, everywhere=True),
        ):
            yield


@pytest.fixture
def store(tmp_path: Path) -> MemoryStore:
    return open_inmemory(tmp_path)


@pytest.fixture
def one(store: MemoryStore) -> Iterator[Process]:
    process = Process(store, "one")
    with process.listening():
        yield process


@pytest.fixture
def two(store: MemoryStore) -> Iterator[Process]:
    process = Process(store, "two")
    with process.listening():
        yield process


def exchange(*processes: Process) -> None:
    for process in processes:
        process.relay.send()
    for process in processes:
        process.relay.receive()


def test_what_happens_in_one_process_is_told_once_to_those_who_listen_everywhere_in_the_other(
    one: Process, two: Process
) -> None:
    one.bus.emit(CREATED, DELETED)
    exchange(one, two)
    exchange(one, two)

    assert two.everywhere == [CREATED, DELETED]
    assert two.here == []
    assert one.everywhere == one.here == [CREATED, DELETED]


def test_news_goes_both_ways_and_is_not_sent_back(one: Process, two: Process) -> None:
    one.bus.emit(CREATED)
    two.bus.emit(DELETED)
    exchange(one, two)
    exchange(one, two)

    assert one.everywhere == [CREATED, DELETED]
    assert two.everywhere == [DELETED, CREATED]


def test_nothing_is_written_while_nobody_else_is_at_work(store: MemoryStore, one: Process) -> None:
    one.others = False
    one.bus.emit(CREATED)
    exchange(one)
    one.others = True
    exchange(one)
    assert store.notices(0) == []


def test_a_process_that_ends_tells_what_it_has_not_told_yet(store: MemoryStore, two: Process) -> None:
    command = Process(store, "command")
    command.bus.emit(CREATED)
    command.relay.close(PATIENCE_SECONDS)
    command.bus.emit(DELETED)
    two.relay.receive()
    assert two.everywhere == [CREATED]


def test_of_more_news_than_is_kept_the_latest_is_told(one: Process, two: Process) -> None:
    many = [replace(DELETED, id=str(number)) for number in range(MOST_NOTICES + 1)]
    one.bus.emit(*many)
    exchange(one, two)
    assert two.everywhere == many[1:]


def test_a_search_that_leaves_no_trace_is_not_written_down(
    store: MemoryStore, one: Process, two: Process
) -> None:
    one.bus.emit(replace(SEARCH, recorded=False), SEARCH)
    exchange(one, two)
    assert two.everywhere == [SEARCH]
    assert len(store.notices(0)) == 1


def test_what_belongs_to_no_memory_is_written_down_cut_or_not_at_all(one: Process, two: Process) -> None:
    scored = ImportanceScored(
        timestamp=NOON,
        scopes=(SCOPE,),
        memory_id=None,
        content_preview="Not stored.",
        composite_score=0.5,
        novelty=0.1,
        arousal=0.2,
        reward=0.3,
        attention=0.4,
    )
    one.bus.emit(scored, replace(SEARCH, query="long " * PREVIEW_CHARS))
    exchange(one, two)

    assert two.everywhere[0] == replace(scored, content_preview="")
    assert isinstance(two.everywhere[1], SearchPerformed)
    assert len(two.everywhere[1].query) == PREVIEW_CHARS


def test_the_text_of_an_intention_is_not_written_down(store: MemoryStore, one: Process, two: Process) -> None:
    due = IntentionTriggered(
        timestamp=NOON, scopes=(SCOPE,), id="i", description="Call the clinic.", priority="high"
    )
    one.bus.emit(due)
    exchange(one, two)
    assert two.everywhere == [replace(due, description="")]
    assert "clinic" not in store.notices(0)[0].message


def test_of_a_deleted_memory_the_others_are_told_the_scope_only(
    store: MemoryStore, one: Process, two: Process
) -> None:
    one.bus.emit(replace(DELETED, scopes=(HOME,)))
    exchange(one, two)
    assert two.everywhere == [DELETED]
    assert "drinks" not in store.notices(0)[0].message


def test_the_domains_of_a_memory_that_another_process_deleted_meanwhile_are_not_written_down(
    store: MemoryStore, one: Process, two: Process
) -> None:
    add(store, a_memory("a"), a_memory("b"))
    linked = ConnectionDiscovered(
        timestamp=NOON, scopes=(HOME,), source_id="b", target_id="a", connection_type="semantic", weight=0.5
    )
    one.bus.emit(linked)
    exchange(one, two)
    assert two.everywhere == [linked]

    one.bus.emit(linked)
    forget(store, "a")
    exchange(one, two)
    assert store.notices(0) == []


def test_half_a_character_in_a_query_travels(tmp_path: Path) -> None:
    store = open_sqlite(tmp_path)
    one, two = Process(store, "one"), Process(store, "two")
    with two.listening():
        one.bus.emit(replace(SEARCH, query="tea \ud83d"))
        exchange(one, two)
    assert two.everywhere == [replace(SEARCH, query="tea \ud83d")]
    store.close()


def test_the_text_of_a_memory_that_another_process_deleted_meanwhile_is_not_written_down(
    store: MemoryStore, one: Process, two: Process
) -> None:
    add(store, a_memory("a"))
    one.bus.emit(CREATED, SEARCH)
    forget(store, "a")
    two.bus.emit(replace(DELETED, id="a"))
    exchange(one, two)

    assert [json.loads(notice.message)["type"] for notice in store.notices(0)] == ["MemoryDeleted"]
    assert one.everywhere[-1] == replace(DELETED, id="a")


def test_what_is_not_understood_is_passed_over(store: MemoryStore, two: Process) -> None:
    strange = ["{}", '{"type": "Newer", "data": {}}', '{"type": "MemoryDeleted", "data": 3}']
    undated = json.dumps({"type": "MemoryDeleted", "data": {"timestamp": "noon", "id": "1"}})
    placeless = json.dumps({**DELETED.message(), "places": ["/project"]})
    store.notify("newer", [*strange, undated, placeless, json.dumps(DELETED.message())])
    two.relay.receive()
    assert two.everywhere == [replace(DELETED, scopes=None)]


def test_a_store_that_others_keep_busy_gets_the_news_the_next_time(tmp_path: Path) -> None:
    store = open_sqlite(tmp_path)
    one, two = Process(store, "one"), Process(store, "two")
    outside = sqlite3.connect(tmp_path / "vestige.db", isolation_level=None)
    with two.listening():
        one.bus.emit(CREATED)
        outside.execute("BEGIN IMMEDIATE")
        exchange(one, two)
        assert two.everywhere == []
        outside.execute("ROLLBACK")
        one.bus.emit(DELETED)
        exchange(one, two)
    assert two.everywhere == [CREATED, DELETED]
    outside.close()
    store.close()


def test_a_store_that_fails_is_complained_about_once_and_fails_nobody(
    store: MemoryStore, one: Process, caplog: pytest.LogCaptureFixture
) -> None:
    store.close()
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            one.bus.emit(CREATED)
            exchange(one)
        one.relay.close(PATIENCE_SECONDS)
    assert [record.message for record in caplog.records] == [
        "Events are not exchanged with other processes: This store is closed."
    ]


def test_a_store_that_can_only_be_read_is_told_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    open_at(tmp_path / "vestige.db").close()
    store = open_at(tmp_path / "vestige.db", read_only=True)
    one = Process(store, "one")
    with caplog.at_level(logging.WARNING):
        one.bus.emit(CREATED)
        exchange(one)
    assert caplog.records == []
    store.close()


def test_in_the_background_news_is_exchanged_until_it_is_closed(store: MemoryStore) -> None:
    arrived = threading.Event()
    one, two = Process(store, "one"), Process(store, "two")
    store.notify("before", [json.dumps(DELETED.message())])
    with two.listening(), two.bus.listening(lambda _: arrived.set(), everywhere=True):
        for process in (one, two):
            process.relay.start()
        one.bus.emit(CREATED)
        assert arrived.wait(PATIENCE_SECONDS)
        for process in (one, two):
            process.relay.close(PATIENCE_SECONDS)
        one.bus.emit(DELETED)
        exchange(one, two)
    assert two.everywhere == [CREATED]
    assert "vestige-relay" not in {thread.name for thread in threading.enumerate()}
