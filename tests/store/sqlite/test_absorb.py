"""Strengths are folded before the write lock is taken; what others write meanwhile counts all the same."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any

import pytest

from tests.store.support.generators import DAY, T0, a_memory, add, forget, held, remark
from tests.store.support.sqlite_files import open_at
from vestige.core.models import EVERYTHING, Evidence, LogEvent
from vestige.store.contract.changes import TUNED, Tune
from vestige.store.contract.store import MemoryStore
from vestige.store.merge.histories import CurveHistory
from vestige.store.merge.strength_log import Curves
from vestige.store.sqlite.connection import SqliteConnections

NAMES = ("a", "b", "c")


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[tuple[MemoryStore, MemoryStore]]:
    """Two that have one file open, with memories that were judged."""
    path = tmp_path / "vestige.db"
    with closing(open_at(path)) as one, closing(open_at(path)) as other:
        add(one, *(a_memory(name, f"word {name}") for name in NAMES))
        for name in NAMES:
            remark(one, name, Evidence.EASY, T0 + DAY)
        yield one, other


def an_early_curve() -> CurveHistory:
    told = LogEvent(
        position=0,
        node="peer",
        seq=1,
        clock=1 << 16,
        at=T0,
        kind=TUNED,
        memory_id=None,
        scope="/",
        payload={"w20": 0.4},
    )
    return CurveHistory(events=(told,))


def before_the_lock(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Have something done that another process may do between the folding and the lock."""
    writing, waiting = SqliteConnections.writing, [act]

    def late(
        self: SqliteConnections, *args: Any, **options: Any
    ) -> AbstractContextManager[Any]:  # Any: as it is
        if waiting:
            waiting.pop()()
        return writing(self, *args, **options)

    monkeypatch.setattr(SqliteConnections, "writing", late)


def assert_explained(store: MemoryStore, *names: str) -> None:
    log = store.log(access=EVERYTHING)
    curves = Curves.from_events(event for event in log if event.kind == TUNED)
    for name in names:
        events = [event for event in log if event.memory_id == name]
        assert held(store, name).strength == curves.folded(T0, events).strength


def test_an_earlier_curve_moves_every_strength(stores: tuple[MemoryStore, MemoryStore]) -> None:
    one, other = stores
    before = held(one, "a").strength
    one.absorb([an_early_curve()], access=EVERYTHING)
    assert held(one, "a").strength.stability != before.stability
    assert_explained(other, *NAMES)


def test_what_is_written_between_folding_and_the_lock_counts(
    stores: tuple[MemoryStore, MemoryStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = stores

    def act() -> None:
        remark(other, "b", Evidence.AGAIN, T0 + 9 * DAY)
        forget(other, "c", at=T0 + 9 * DAY)

    before_the_lock(monkeypatch, act)
    one.absorb([an_early_curve()], access=EVERYTHING)
    assert held(one, "b").strength.lapses == 1
    assert one.get_many(["c"], access=EVERYTHING) == []
    assert_explained(one, "a", "b")


def test_another_curve_between_folding_and_the_lock_counts(
    stores: tuple[MemoryStore, MemoryStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = stores
    tuned = Tune(w20=0.25, at=T0 + 2 * DAY)
    before_the_lock(monkeypatch, lambda: other.commit([tuned], access=EVERYTHING))
    one.absorb([an_early_curve()], access=EVERYTHING)
    assert held(one, "a").strength.curve == 0.25
    assert_explained(one, *NAMES)
