"""The benchmark of many processes on one store, short. Here its counts are judged, not its times."""

from pathlib import Path

import pytest

from benchmarks.contention import durability, outside, visibility
from benchmarks.contention.durability import Outcome, Tally
from benchmarks.contention.visibility import Look

KILLS = 12
STATEMENTS = 4


def test_a_write_that_another_process_misses_is_told_from_one_that_nobody_finds() -> None:
    def look(statement: int, reader: int, place: int | None) -> Look:
        return Look(statement=statement, writer=0, reader=reader, place=place, milliseconds=1.0)

    looks = [
        look(0, 1, 3),
        look(0, 0, 1),
        look(1, 1, None),
        look(1, 0, 2),
        look(2, 1, None),
        look(2, 0, None),
    ]
    missed, found = visibility.targets(looks)
    assert (missed.value, missed.met) == (1, False)
    assert found.value == pytest.approx(0.5)


def test_fairness_is_one_among_equals_and_falls_when_one_takes_all() -> None:
    def outcome(*calls: int) -> Outcome:
        writers = [Tally(name="w", milliseconds=[1.0] * many, alive_seconds=1.0) for many in calls]
        return Outcome(writers=writers, readers=[], kills=0, lost=[], integrity=[], journal_megabytes=0.0)

    assert outcome(10, 10).fairness == pytest.approx(1.0)
    assert outcome(10, 0).fairness == pytest.approx(0.5)


@pytest.mark.slow
@pytest.mark.nightly
def test_writers_that_are_killed_lose_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    outcome = durability.run(tmp_path, writers=4, readers=2, kills=KILLS, every_seconds=0.3)

    assert outcome.kills == KILLS
    assert sum(len(tally.acknowledged) for tally in outcome.writers) > KILLS
    assert [(target.name, target.value) for target in outcome.targets() if not target.met] == []
    assert all(tally.milliseconds for tally in outcome.readers)


@pytest.mark.slow
@pytest.mark.nightly
def test_the_next_search_of_another_process_finds_a_write_by_its_meaning(
    tmp_path: Path, real_model_dir: Path
) -> None:
    looks = visibility.run(tmp_path, processes=3, pairs=visibility.PAIRS[:STATEMENTS])

    assert len(looks) == 3 * STATEMENTS
    assert [(target.name, target.value) for target in visibility.targets(looks) if not target.met] == []


@pytest.mark.slow
@pytest.mark.nightly
def test_a_write_waits_for_an_outside_client_then_says_why_it_failed(tmp_path: Path) -> None:
    held = outside.run(tmp_path, held_seconds=8.0)

    assert [(target.name, target.value) for target in held.targets() if not target.met] == []
    assert held.waited >= outside.BUSY_SECONDS - 0.5
    assert held.searches > 0
