"""A store that cannot be opened is still looked at, without a byte of it changed."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.store.sqlite.test_checks import break_it, tear
from tests.store.support.generators import T0, a_memory, add
from tests.store.support.sqlite_files import open_at
from vestige.core.errors import StoreError
from vestige.store.sqlite.file.damage import examine_file


def kept(folder: Path) -> Path:
    """A store with one memory and a backup of it."""
    path = folder / "vestige.db"
    with closing(open_at(path)) as store:
        add(store, a_memory("m1"))
        (folder / "backups").mkdir(mode=0o700)
        store.backup(folder / "backups" / "good.db")
    return path


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def overwritten(path: Path) -> None:
    path.write_bytes(b"These are not the bytes of a database." * 200)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def spoilt(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[100:2000] = b"\xff" * 1900
    path.write_bytes(content)


def torn(path: Path) -> None:
    tear(path, "schema_migrations")


def of_the_future(path: Path) -> None:
    break_it(path, "INSERT INTO schema_migrations VALUES (99, 'future', 'then', 'x', '7.5.0')")


@pytest.mark.parametrize(
    ("damage", "check", "says"),
    [
        (emptied, "file", "is empty"),
        (overwritten, "file", "is not a database"),
        (Path.unlink, "file", "There is no file"),
        (cut, "file", "cannot be opened"),
        (spoilt, "file", "cannot be opened"),
        (torn, "pages", "malformed"),
        (of_the_future, "schema", "written by Vestige 7.5.0"),
    ],
)
def test_what_is_wrong_is_told_with_the_backup_that_would_restore(
    tmp_path: Path, damage: Callable[[Path], None], check: str, says: str
) -> None:
    path = kept(tmp_path)
    damage(path)
    before = {one: one.read_bytes() for one in tmp_path.glob("vestige.db*") if one.is_file()}
    first, *_, last = examine_file(path, T0)
    assert (first.check, first.severity, first.repair) == (check, "broken", None)
    assert says in first.message
    assert last.check == "backups"
    assert "good.db is intact and holds 1 memories" in last.message
    assert {one: one.read_bytes() for one in tmp_path.glob("vestige.db*") if one.is_file()} == before


def test_a_backup_that_is_damaged_too_is_passed_over(tmp_path: Path) -> None:
    path = kept(tmp_path)
    emptied(path)
    (tmp_path / "backups" / "newer.db").write_bytes((tmp_path / "backups" / "good.db").read_bytes()[:9000])
    assert "good.db is intact" in examine_file(path, T0)[-1].message
    (tmp_path / "backups" / "good.db").unlink()
    assert "No backup in" in examine_file(path, T0)[-1].message


def test_such_a_store_is_one_that_does_not_open(tmp_path: Path) -> None:
    path = kept(tmp_path)
    spoilt(path)
    with pytest.raises(StoreError):
        open_at(path)
