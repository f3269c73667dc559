import errno
import os
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.store.support.generators import SIGNATURE, a_memory, add, add_with, axis, held, revise
from tests.store.support.sqlite_files import open_at, query
from vestige.core.errors import InvalidInput, StoreCorrupt, StoreError
from vestige.core.models import ANYTHING, EVERYTHING, Memory
from vestige.store.sqlite.backup import backup
from vestige.store.sqlite.store import SqliteStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    opened = open_at(tmp_path / "vestige.db", prefix="first")
    yield opened
    opened.close()


def test_a_backup_is_one_private_file_that_opens_as_another_node(store: SqliteStore, tmp_path: Path) -> None:
    first = a_memory("m1")
    add_with(store, first, axis(0))
    revise(
        store,
        Memory(id="m1", content="tin", created_at=first.created_at, updated_at=first.updated_at, revision=2),
    )
    folder = tmp_path / "safe"
    folder.mkdir()
    store.backup(folder / "copy.db")
    assert [(file.name, file.stat().st_mode & 0o777) for file in folder.iterdir()] == [("copy.db", 0o600)]
    copied = open_at(folder / "copy.db", prefix="second")
    assert copied.node == "second-1"
    assert held(copied, "m1") == held(store, "m1")
    assert copied.history("m1", access=EVERYTHING) == store.history("m1", access=EVERYTHING)
    assert copied.log(access=EVERYTHING) == store.log(access=EVERYTHING)
    assert copied.signature() == store.signature()
    copied.close()


def test_a_backup_put_in_place_of_the_original_is_another_node_too(
    store: SqliteStore, tmp_path: Path
) -> None:
    add(store, a_memory("m1"))
    store.backup(tmp_path / "copy.db")
    add(store, a_memory("m2"))
    store.close()
    # As `cp` does: the same file, with other contents.
    (tmp_path / "vestige.db").write_bytes((tmp_path / "copy.db").read_bytes())
    restored = open_at(tmp_path / "vestige.db", prefix="second")
    (event,) = add(restored, a_memory("m3"))
    assert (event.node, event.seq) == ("second-1", 1)
    restored.close()


def test_an_earlier_copy_of_the_file_put_in_its_place_is_another_node_too(tmp_path: Path) -> None:
    path = tmp_path / "vestige.db"
    with closing(open_at(path, prefix="first")) as store:
        add(store, a_memory("m1"))
    earlier = path.read_bytes()
    with closing(open_at(path)) as store:
        (told,) = add(store, a_memory("m2"))
        assert (told.node, told.seq) == ("first-1", 2)
    # As `cp` does: the same file, with other contents, and what it said of its node was true then.
    path.write_bytes(earlier)
    with closing(open_at(path, prefix="second")) as store:
        (other,) = add(store, a_memory("m3"))
        assert (other.node, other.seq) == ("second-1", 1)
    with closing(open_at(path, prefix="third")) as store:
        assert store.node == "second-1"


def test_a_store_keeps_its_node_whoever_ends_it_and_however(tmp_path: Path) -> None:
    path = tmp_path / "vestige.db"
    one = open_at(path, prefix="first")
    with closing(open_at(path, prefix="second")) as other:
        add(one, a_memory("m1"))
        add(other, a_memory("m2"))
    one.close()
    assert reopened_node(path) == "first-1"
    Path(f"{path}.mark").write_bytes(b"nonsense")
    assert reopened_node(path) == "first-1"
    Path(f"{path}.mark").unlink()
    assert reopened_node(path) == "first-1"


def reopened_node(path: Path) -> str:
    with closing(open_at(path, prefix="another")) as store:
        return store.node


def test_a_backup_never_overwrites_anything(store: SqliteStore, tmp_path: Path) -> None:
    (tmp_path / "copy.db").write_text("precious", encoding="utf-8")
    with pytest.raises(InvalidInput, match="exists"):
        store.backup(tmp_path / "copy.db")
    assert (tmp_path / "copy.db").read_text(encoding="utf-8") == "precious"
    with pytest.raises(InvalidInput, match="does not exist"):
        store.backup(tmp_path / "nowhere" / "copy.db")


def test_a_backup_into_a_place_that_takes_no_files_is_a_store_error(store: SqliteStore) -> None:
    with pytest.raises(StoreError, match="cannot be used"):
        store.backup(Path("/proc/vestige.db"))


def test_a_backup_is_of_one_moment_while_others_write(store: SqliteStore, tmp_path: Path) -> None:
    sibling = open_at(tmp_path / "vestige.db")
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set() and number < 500:
            pair = [a_memory(f"a{number}"), a_memory(f"b{number}")]
            add(sibling, *pair)
            number += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(3):
            store.backup(tmp_path / f"copy{number}.db")
    finally:
        stop.set()
        writer.join()
    for number in range(3):
        rows = query(tmp_path / f"copy{number}.db", "SELECT id FROM memories")
        ids = {str(row[0]) for row in rows}
        assert {name[1:] for name in ids if name[0] == "a"} == {name[1:] for name in ids if name[0] == "b"}
    sibling.close()


def test_a_damaged_store_gives_no_backup(store: SqliteStore, tmp_path: Path) -> None:
    add(store, *(a_memory(f"m{number}", "granite " * 300) for number in range(100)))
    store.close()
    path = tmp_path / "vestige.db"
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(size // 2)
        file.write(b"\xaa" * (size // 4))
    damaged = open_at(path)
    with pytest.raises(StoreCorrupt):
        damaged.backup(tmp_path / "copy.db")
    damaged.close()
    assert sorted(file.name for file in tmp_path.glob("*.db*")) == [
        "vestige.db", "vestige.db.lock", "vestige.db.mark"
    ]  # fmt: skip


def test_a_backup_can_be_read_from_where_nothing_can_be_written(store: SqliteStore, tmp_path: Path) -> None:
    add_with(store, a_memory("m1"), axis(0))
    store.backup(tmp_path / "copy.db")
    reader = open_at(tmp_path / "copy.db", read_only=True)
    (row,) = reader.nearest(axis(0).reshape(1, -1), SIGNATURE, ANYTHING, access=EVERYTHING, limit=3)
    assert [one.memory_id for one in row] == ["m1"]
    reader.close()


def test_a_file_made_while_the_backup_ran_is_not_overwritten(tmp_path: Path) -> None:
    finished, taken = tmp_path / "finished", tmp_path / "taken"
    finished.write_text("copy", encoding="utf-8")
    taken.write_text("precious", encoding="utf-8")
    with pytest.raises(InvalidInput, match="exists"):
        backup._publish(finished, taken)
    assert taken.read_text(encoding="utf-8") == "precious"


def test_a_file_system_without_hard_links_takes_backups_too(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(source: Path, target: Path) -> None:
        raise OSError(errno.EPERM, "no hard links here")

    monkeypatch.setattr(os, "link", refuse)
    add(store, a_memory("m1"))
    store.backup(tmp_path / "copy.db")
    assert query(tmp_path / "copy.db", "SELECT id FROM memories") == [("m1",)]
    with pytest.raises(InvalidInput, match="exists"):
        backup._publish(tmp_path / "copy.db", tmp_path / "vestige.db")
