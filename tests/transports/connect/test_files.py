"""Writing into somebody's settings: whole or not at all, with the rights and links that were there."""

import os
from pathlib import Path

import pytest

from tests.transports.connect.scratch import NOW, STDIO, connect, machine, undo
from vestige.core.errors import Conflict, InvalidInput
from vestige.transports.connect import files, plans
from vestige.transports.connect.clients import CLIENTS

CURSOR = CLIENTS["cursor"]


def test_a_link_is_followed_and_stays_a_link(tmp_path: Path) -> None:
    where = machine(tmp_path)
    real, link = tmp_path / "dotfiles" / "cursor.json", plans.place(CURSOR, where, "user")
    real.parent.mkdir()
    real.write_text("{}", encoding="utf-8")
    link.parent.mkdir(parents=True)
    link.symlink_to(real)
    connect(CURSOR, where, STDIO)
    assert link.is_symlink()
    assert "vestige" in real.read_text(encoding="utf-8")
    assert len(list(real.parent.glob("cursor.json.vestige-*.bak"))) == 1
    undo(CURSOR, where)
    assert link.is_symlink()
    assert real.read_text(encoding="utf-8") == "{}"


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_the_file_and_its_copy_keep_the_rights_of_the_file(mode: int, tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text("{}", encoding="utf-8")
    path.chmod(mode)
    backup = files.write(files.read(path), '{"a": 1}', now=NOW, private=True)
    assert backup is not None
    assert backup.name == "mcp.json.vestige-20261116T160000.bak"
    assert backup.read_text(encoding="utf-8") == "{}"
    assert [one.stat().st_mode & 0o777 for one in (path, backup)] == [mode, mode]


def test_two_copies_of_the_same_second_do_not_overwrite_each_other(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text("0", encoding="utf-8")
    for number in range(1, 12):
        files.write(files.read(path), str(number), now=NOW, private=True)
    assert [text for _, text in files.backups(files.read(path))] == [str(number) for number in range(11)]


def test_a_write_that_fails_leaves_the_file_and_no_remains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mcp.json"
    path.write_text("{}", encoding="utf-8")
    file = files.read(path)

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InvalidInput, match="No space left on device"):
        files.write(file, '{"a": 1}', now=NOW, private=True)
    assert path.read_text(encoding="utf-8") == "{}"
    assert [one.name for one in tmp_path.iterdir()] == ["mcp.json"]


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    folder, ring = tmp_path / "folder.json", tmp_path / "ring.json"
    folder.mkdir()
    ring.symlink_to(ring)
    (tmp_path / "file").write_text("", encoding="utf-8")
    for path in (folder, ring, tmp_path / "file" / "mcp.json"):
        with pytest.raises(InvalidInput, match="Nothing was changed"):
            files.read(path)


def test_a_file_that_appeared_or_changed_in_between_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    missing = files.read(path)
    path.write_text("theirs", encoding="utf-8")
    with pytest.raises(Conflict):
        files.write(missing, "ours", now=NOW, private=True)
    with pytest.raises(Conflict):
        files.restore(missing, None, ())
    assert path.read_text(encoding="utf-8") == "theirs"


def test_a_file_for_others_is_made_with_the_usual_rights(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    before = os.umask(0o022)
    try:
        files.write(files.read(path), "{}", now=NOW, private=False)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o644
