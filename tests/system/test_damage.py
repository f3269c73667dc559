"""What a damaged store does: it says so and what to do, or it recovers; it never loses a record in silence.

Damaged index files are in `store/sqlite/search/test_segments_damage.py`, a disk that is full or cannot be
written in `test_damage_disk.py`, damaged backups in `transports/cli/restore/test_restore.py` and
`test_restore_snapshot.py`.
"""

import json
import logging
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from testbed.world import HandClock, World, open_world
from tests.transports.cli.harness import invoke
from vestige.core.errors import StoreCorrupt, StoreError, VestigeError
from vestige.core.models import EVERYTHING

MEMORIES = 30
CALLS: dict[str, Callable[[World], int]] = {
    "system_status": lambda world: int(world.call("system_status")["totalMemories"]),
    "memory list": lambda world: len(world.call("memory", action="list", limit=100)["results"]),
    "search": lambda world: len(world.call("search", query="granite", limit=50)["results"]),
    "ingest": lambda world: len(world.remember("Zebras sleep standing.")),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with some memories, closed."""
    folder = tmp_path_factory.mktemp("whole") / "data"
    with open_world(folder) as world:
        for number in range(MEMORIES):
            world.remember(f"Note {number} about granite. " + f"word{number} basalt " * 9, force_create=True)
    return folder


@pytest.fixture
def home(whole: Path, tmp_path: Path) -> Path:
    """A copy of it to be damaged, under the same node."""
    folder = tmp_path / "data"
    shutil.copytree(whole, folder)
    with open_world(folder, clock=later()):
        pass
    return folder


def later() -> HandClock:
    """A clock whose ids are none of those in the store."""
    clock = HandClock()
    for _ in range(10_000):
        clock.new_id()
    clock.advance(hours=1)
    return clock


def outcomes(home: Path) -> dict[str, int | VestigeError]:
    """What each call gives; only `open` when that fails already."""
    try:
        with open_world(home, clock=later()) as world:
            return {name: outcome(call, world) for name, call in CALLS.items()}
    except VestigeError as error:
        return {"open": error}


def outcome(call: Callable[[World], int], world: World) -> int | VestigeError:
    try:
        return call(world)
    except VestigeError as error:
        return error


def assert_refused(home: Path) -> None:
    """The store says that it is damaged and what to do, and does not open."""
    ((name, error),) = outcomes(home).items()
    assert name == "open"
    assert isinstance(error, StoreCorrupt)
    assert "estore" in str(error.hint)


def assert_told_or_whole(answers: dict[str, int | VestigeError]) -> None:
    """Every call failed as a damaged store does, or missed nothing."""
    for name, answer in answers.items():
        if isinstance(answer, VestigeError):
            # Mostly StoreCorrupt; bits of the header say whether SQLite may write, and how long a page is.
            assert isinstance(answer, StoreError), (name, answer.message)
            assert answer.hint, (name, answer.message)
        elif name in ("system_status", "memory list"):
            assert answer == MEMORIES


def contents(home: Path) -> set[str]:
    with open_world(home, clock=later()) as world:
        return {one["content"] for one in world.call("memory", action="list", limit=100)["results"]}


# -- the database --------------------------------------------------------------------------------------


def test_a_database_that_was_cut_anywhere_is_refused_and_left_as_it_is(home: Path) -> None:
    database = home / "vestige.db"
    data = database.read_bytes()
    for length in (
        0,
        1,
        15,
        16,
        99,
        100,
        512,
        4_095,
        4_096,
        *range(8_192, len(data) - 4_096, len(data) // 12),
    ):
        database.write_bytes(data[:length])
        assert_refused(home)
        assert database.read_bytes() == data[:length]
    database.write_bytes(data)
    assert len(contents(home)) == MEMORIES


def test_a_bit_flipped_anywhere_is_told_or_costs_nothing(home: Path) -> None:
    database = home / "vestige.db"
    data, rng = database.read_bytes(), random.Random(5)
    places = [*range(0, 100, 9), *(rng.randrange(100, len(data)) for _ in range(40))]
    told = 0
    for place in places:
        damaged = bytearray(data)
        damaged[place] ^= 1 << rng.randrange(8)
        database.write_bytes(damaged)
        answers = outcomes(home)
        assert_told_or_whole(answers)
        told += any(isinstance(answer, VestigeError) for answer in answers.values())
        for beside in home.glob("vestige.db-*"):
            beside.unlink()
    assert told >= 3


def test_pages_overwritten_with_zeros_or_noise_are_told_or_cost_nothing(home: Path) -> None:
    database = home / "vestige.db"
    data, rng = database.read_bytes(), random.Random(6)
    for page in range(0, len(data) // 4_096, 5):
        for noise in (bytes(4_096), rng.randbytes(4_096)):
            damaged = bytearray(data)
            damaged[page * 4_096 : (page + 1) * 4_096] = noise
            database.write_bytes(damaged)
            assert_told_or_whole(outcomes(home))
            for beside in home.glob("vestige.db-*"):
                beside.unlink()


@pytest.mark.parametrize("content", [b"", b"hello", b"no" * 9_000])
def test_a_file_that_is_no_database_any_more_is_not_taken_for_a_new_store(home: Path, content: bytes) -> None:
    (home / "vestige.db").write_bytes(content)
    for words in (["status"], ["ingest", "New."], ["search", "granite"], ["backup"]):
        told = invoke([*words, "--data-dir", str(home)])
        error = json.loads(told.stderr)["error"]
        assert (told.exit_code, error["code"]) == (StoreCorrupt.exit_code, "store_corrupt")
        assert "estore" in error["hint"]
    assert (home / "vestige.db").read_bytes() == content


def test_a_store_moved_away_as_advised_makes_room_for_a_new_one(home: Path) -> None:
    (home / "vestige.db").write_bytes(b"no database" * 1_000)
    for file in home.glob("vestige.db*"):
        file.rename(home / f"old-{file.name}")
    assert contents(home) == set()


def test_a_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    with closing(sqlite3.connect(tmp_path / "data" / "vestige.db")) as db, db:
        db.execute("CREATE TABLE recipes (name TEXT)")
    before = (tmp_path / "data" / "vestige.db").read_bytes()
    told = invoke(["ingest", "New.", "--data-dir", str(tmp_path / "data")])
    error = json.loads(told.stderr)["error"]
    assert error["code"] == "store"
    assert "another program" in error["message"]
    assert "--data-dir" in error["hint"]
    assert (tmp_path / "data" / "vestige.db").read_bytes() == before


def test_a_database_of_a_newer_version_is_left_alone(home: Path) -> None:
    with closing(sqlite3.connect(home / "vestige.db")) as db, db:
        db.execute(
            "INSERT INTO schema_migrations (version, name, applied_at, checksum, written_by)"
            " VALUES (999, 'future', '2030-01-01T00:00:00Z', 'x', '9.9')"
        )
    told = invoke(["search", "granite", "--data-dir", str(home)])
    error = json.loads(told.stderr)["error"]
    assert error["code"] == "store_too_new"
    assert "9.9" in error["message"] + str(error.get("hint"))


# -- the log -------------------------------------------------------------------------------------------


@pytest.fixture
def killed(home: Path, tmp_path: Path) -> tuple[Path, set[str]]:
    """A directory as a killed process leaves it, with ten memories that are only in the log."""
    with open_world(home, clock=later()) as world:
        for number in range(10):
            world.remember(f"Late {number} about marble. " + f"late{number} " * 30, force_create=True)
        every = {one["content"] for one in world.call("memory", action="list", limit=100)["results"]}
        left = tmp_path / "left"
        left.mkdir()
        # The same file, so that it is the same installation; what closing does is undone below.
        for end in ("", "-wal", "-shm"):
            shutil.copyfile(home / f"vestige.db{end}", left / f"vestige.db{end}")
    for end in ("", "-wal", "-shm"):
        shutil.copyfile(left / f"vestige.db{end}", home / f"vestige.db{end}")
    return home, every


def test_what_is_only_in_the_log_of_a_killed_process_is_recovered(killed: tuple[Path, set[str]]) -> None:
    home, every = killed
    assert len(every) == MEMORIES + 10
    assert contents(home) == every


def test_a_damaged_index_of_the_log_costs_nothing(killed: tuple[Path, set[str]]) -> None:
    home, every = killed
    size = (home / "vestige.db-shm").stat().st_size
    (home / "vestige.db-shm").write_bytes(random.Random(7).randbytes(size))
    assert contents(home) == every


def test_writes_lost_with_a_damaged_log_are_told(
    killed: tuple[Path, set[str]], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    home, every = killed
    log = (home / "vestige.db-wal").read_bytes()
    files = {path.name: path.read_bytes() for path in home.glob("vestige.db*") if path.is_file()}
    for place in range(40, len(log), len(log) // 9):
        for name, data in files.items():
            (home / name).write_bytes(data)
        damaged = bytearray(log)
        damaged[place] ^= 0x04
        (home / "vestige.db-wal").write_bytes(damaged)
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            found = contents(home)
        assert found <= every
        assert len(found) >= MEMORIES
        if found != every:
            assert "lacks the last" in caplog.text
            assert "restore a backup" in caplog.text


def test_a_log_whose_database_is_gone_emptied_or_overwritten_is_not_thrown_away(
    killed: tuple[Path, set[str]],
) -> None:
    home, every = killed
    database, log = home / "vestige.db", home / "vestige.db-wal"
    data, logged = database.read_bytes(), log.read_bytes()
    for content in (None, b"", b"no database" * 500):
        database.unlink(missing_ok=True)
        if content is not None:
            database.write_bytes(content)
        assert_refused(home)
        assert log.read_bytes() == logged
    database.write_bytes(data)
    assert contents(home) == every


# -- the clock -----------------------------------------------------------------------------------------


def test_a_clock_set_back_by_a_year_breaks_no_order_and_forgets_nothing(tmp_path: Path) -> None:
    clock = HandClock()
    with open_world(tmp_path / "data", clock=clock) as world:
        first = world.remember("The lighthouse keeper is called Ada.", node_type="state")
        world.remember("The harbour opens at six.", valid_until="2026-06-01T00:00:00Z")
    clock.advance(days=-365)
    with open_world(tmp_path / "data", clock=clock) as world:
        second = world.remember("The lighthouse was painted red.")
        world.call("memory", action="edit", id=first, content="The lighthouse keeper is called Eva.")
        assert "The lighthouse was painted red." in world.find("lighthouse painted")
        assert "The lighthouse keeper is called Eva." in world.find("lighthouse keeper Eva")
        assert world.find("harbour opens")[0] == "The harbour opens at six."
        status = world.call("system_status")
        assert (status["totalMemories"], status["status"]) == (3, "healthy")
        assert 0 <= status["averageRetention"] <= 1
        events = world.app.engine.store.log(access=EVERYTHING)
        assert [event.position for event in events] == sorted({event.position for event in events})
        assert [event.clock for event in events] == sorted({event.clock for event in events})
        history = world.call("memory", action="history", id=first)
        assert "called Ada" in json.dumps(history)
    clock.advance(days=366)
    with open_world(tmp_path / "data", clock=clock) as world:
        assert world.get(second)["content"] == "The lighthouse was painted red."
        assert len(world.call("memory", action="list")["results"]) == 3
    rebuilt = invoke(["rebuild", "--strengths", "--data-dir", str(tmp_path / "data")])
    assert json.loads(rebuilt.stdout)["drifted"] == 0
