"""Snapshots: the whole data directory in one file, and back; what is not one is never unpacked."""

import gzip
import io
import json
import os
import socket
import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.transports.cli.harness import Outcome, invoke
from vestige.core.errors import InvalidInput, StoreCorrupt, StoreFull
from vestige.engine.care import snapshot

SETTINGS = "[memory]\nretention_target = 0.7\n"


def said(home: Path, *words: str) -> dict[str, Any]:
    outcome = invoke([*words, "--data-dir", str(home)])
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    value: dict[str, Any] = json.loads(outcome.stdout)
    return value


def contents(home: Path) -> set[str]:
    return {one["content"] for one in said(home, "memory", "list")["results"]}


def refused(outcome: Outcome) -> str:
    assert outcome.exit_code != 0
    return str(json.loads(outcome.stderr)["error"]["code"])


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A data directory with everything in it that a snapshot takes, and everything that it leaves."""
    folder = tmp_path / "data"
    said(folder, "ingest", "Ada prefers tea.")
    said(folder, "export", "--format", "json")
    said(folder, "backup")
    (folder / "vestige.toml").write_text(SETTINGS, encoding="utf-8")
    (folder / "notes" / "deep").mkdir(parents=True)
    (folder / "notes" / "deep" / "ü.txt").write_text("note", encoding="utf-8")
    (folder / "vestige.db.index").mkdir(exist_ok=True)
    (folder / "vestige.db.index" / "1.seg").write_bytes(b"derived")
    (tmp_path / "outside.txt").write_text("not yours", encoding="utf-8")
    (folder / "link.txt").symlink_to(tmp_path / "outside.txt")
    (folder / "linked").symlink_to(tmp_path)
    return folder


@pytest.fixture
def packed(home: Path, tmp_path: Path) -> Path:
    """A snapshot of it."""
    return Path(said(home, "backup", str(tmp_path / "all.tar.gz"))["path"])


def test_a_snapshot_holds_the_directory_without_what_is_derived_or_running_or_a_copy(
    home: Path, packed: Path
) -> None:
    with tarfile.open(packed) as file:
        members = file.getmembers()
    names = [member.name for member in members]
    (exported,) = (name for name in names if name.startswith("exports/"))
    assert names == [exported, "notes/deep/ü.txt", "vestige.db", "vestige.toml", "manifest.json"]
    assert {(member.mtime, member.uid, member.mode) for member in members} == {(0, 0, 0o600)}
    assert packed.stat().st_mode & 0o777 == 0o600


def test_the_same_directory_gives_the_same_bytes(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "vestige.toml").write_text(SETTINGS, encoding="utf-8")
    (tmp_path / "copy.db").write_bytes(b"database")
    made = []
    for _ in range(2):
        into = io.BytesIO()
        snapshot.pack(tmp_path / "one", tmp_path / "copy.db", into)
        os.utime(tmp_path / "one" / "vestige.toml", (1, 1))
        made.append(into.getvalue())
    assert made[0] == made[1]


def test_a_snapshot_made_without_a_name_is_among_the_backups(home: Path) -> None:
    made = Path(said(home, "backup", "--snapshot")["path"])
    assert made.parent == home / "backups"
    assert made.name.endswith(".tar.gz")
    assert not [path for path in made.parent.iterdir() if path.name.startswith(".")]


def test_a_socket_or_a_pipe_does_not_stop_a_snapshot(home: Path, tmp_path: Path) -> None:
    os.mkfifo(home / "pipe")
    with closing(socket.socket(socket.AF_UNIX)) as listening:
        here = Path.cwd()
        os.chdir(home)  # the path of a socket is short
        try:
            listening.bind("socket")
        finally:
            os.chdir(here)
        made = said(home, "backup", str(tmp_path / "all.tar.gz"))
    assert made["leftOut"] == []


def test_a_name_too_long_to_be_packed_is_left_out_and_told(home: Path, tmp_path: Path) -> None:
    (home / ("x" * 200)).write_text("long", encoding="utf-8")
    made = said(home, "backup", str(tmp_path / "all.tar.gz"))
    assert made["leftOut"] == ["x" * 200]
    assert said(tmp_path / "new", "restore", made["path"], "--yes")["memories"] == 1


def test_a_snapshot_never_overwrites_anything(home: Path, packed: Path) -> None:
    before = packed.read_bytes()
    assert refused(invoke(["backup", str(packed), "--data-dir", str(home)])) == "invalid_input"
    assert packed.read_bytes() == before


def test_a_snapshot_is_restored_with_its_files_and_without_its_settings(packed: Path, tmp_path: Path) -> None:
    new = tmp_path / "new"
    done = said(new, "restore", str(packed), "--yes")
    assert (done["kind"], done["memories"], done["settingsLeft"]) == ("snapshot", 1, True)
    assert contents(new) == {"Ada prefers tea."}
    assert (new / "notes" / "deep" / "ü.txt").read_text(encoding="utf-8") == "note"
    assert len([*(new / "exports").iterdir()]) == 1
    assert not (new / "vestige.toml").exists()
    assert not [*new.glob(".restoring-*")]


def test_its_settings_come_back_by_choice_and_the_present_ones_are_kept(
    home: Path, packed: Path, tmp_path: Path
) -> None:
    said(home, "ingest", "Ben runs on Fridays.")
    (home / "vestige.toml").write_text("[memory]\nretention_target = 0.5\n", encoding="utf-8")
    (home / "notes" / "deep" / "ü.txt").write_text("rewritten", encoding="utf-8")
    done = said(home, "restore", str(packed), "--yes", "--settings")
    assert sorted(done["files"]) == ["notes/deep/ü.txt", "vestige.toml"]
    assert (home / "vestige.toml").read_text(encoding="utf-8") == SETTINGS
    kept = home / "backups" / "files-replaced-1"
    assert (kept / "notes" / "deep" / "ü.txt").read_text(encoding="utf-8") == "rewritten"
    assert "0.5" in (kept / "vestige.toml").read_text(encoding="utf-8")
    assert contents(home) == {"Ada prefers tea."}


def test_settings_that_cannot_be_used_put_everything_back(home: Path, tmp_path: Path) -> None:
    (home / "vestige.toml").write_text("[memory]\nretention_target = 7\n", encoding="utf-8")
    with closing(sqlite3.connect(home / "vestige.db")) as db:
        db.execute("VACUUM INTO ?", (str(tmp_path / "copy.db"),))
    with (tmp_path / "bad.tar.gz").open("wb") as file:
        snapshot.pack(home, tmp_path / "copy.db", file)
    (home / "vestige.toml").write_text(SETTINGS, encoding="utf-8")
    (home / "notes" / "deep" / "ü.txt").write_text("mine", encoding="utf-8")
    said(home, "ingest", "Ben runs on Fridays.")
    outcome = invoke(
        ["restore", str(tmp_path / "bad.tar.gz"), "--yes", "--settings", "--data-dir", str(home)]
    )
    assert refused(outcome) == "config"
    assert contents(home) == {"Ada prefers tea.", "Ben runs on Fridays."}
    assert (home / "vestige.toml").read_text(encoding="utf-8") == SETTINGS
    assert (home / "notes" / "deep" / "ü.txt").read_text(encoding="utf-8") == "mine"


def test_a_dry_run_says_what_a_snapshot_holds(home: Path, packed: Path) -> None:
    before = sorted(path.name for path in home.iterdir())
    told = said(home, "restore", str(packed), "--dry-run")
    assert (told["kind"], told["memories"]) == ("snapshot", 1)
    assert {"vestige.toml", "notes/deep/ü.txt"} < {*told["files"]}
    assert sorted(path.name for path in home.iterdir()) == before


def test_a_link_in_the_data_directory_leads_no_file_elsewhere(packed: Path, tmp_path: Path) -> None:
    new, elsewhere = tmp_path / "new", tmp_path / "elsewhere"
    new.mkdir()
    elsewhere.mkdir()
    (new / "notes").symlink_to(elsewhere)
    assert refused(invoke(["restore", str(packed), "--yes", "--data-dir", str(new)])) == "invalid_input"
    assert not [path for path in elsewhere.rglob("*") if path.is_file()]
    assert not (new / "vestige.db").exists()


# -- what is no snapshot, or no longer one -------------------------------------------------------------


def test_a_snapshot_that_was_cut_or_changed_anywhere_is_refused(packed: Path, tmp_path: Path) -> None:
    data = packed.read_bytes()
    for length in (0, 1, 17, 300, len(data) // 2, len(data) - 9, len(data) - 1):
        (tmp_path / "cut.tar.gz").write_bytes(data[:length])
        with pytest.raises(StoreCorrupt):
            snapshot.check(tmp_path / "cut.tar.gz")
    plain = gzip.decompress(data)
    for place in range(100, len(plain) - 1024, len(plain) // 40):
        changed = bytearray(plain)
        changed[place] ^= 0x10
        (tmp_path / "changed.tar.gz").write_bytes(gzip.compress(bytes(changed)))
        with pytest.raises((StoreCorrupt, InvalidInput)):
            snapshot.check(tmp_path / "changed.tar.gz")


def member(name: str, data: bytes = b"", **more: Any) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for key, value in more.items():
        setattr(info, key, value)
    return info, data


def tar(path: Path, *members: tuple[tarfile.TarInfo, bytes], form: int = tarfile.USTAR_FORMAT) -> Path:
    with tarfile.open(path, "w:gz", format=form) as file:
        for info, data in members:
            file.addfile(info, io.BytesIO(data))
    return path


@pytest.mark.parametrize(
    "hostile",
    [
        member("../escaped.txt", b"x"),
        member("/escaped.txt", b"x"),
        member("exports/../../escaped.txt", b"x"),
        member("exports//escaped.txt", b"x"),
        member("./vestige.toml", b"x"),
        member("C:escaped.txt", b"x"),
        member("exports\\..\\escaped.txt", b"x"),
        member("link", type=tarfile.SYMTYPE, linkname="/etc/passwd"),
        member("link", type=tarfile.LNKTYPE, linkname="/etc/passwd"),
        member("device", type=tarfile.CHRTYPE),
        member("pipe", type=tarfile.FIFOTYPE),
        member("folder", type=tarfile.DIRTYPE),
        member("vestige.db-wal", b"x"),
        member("vestige.db.lock", b"x"),
        member("VESTIGE.DB-WAL", b"x"),
        member("backups/vestige.db", b"x"),
        member("processes/1.json", b"x"),
        member(".bashrc", b"x"),
        member("exports/.hidden", b"x"),
        member("a\x1b[31m", b"x"),
    ],
    ids=lambda given: given[0].name,
)
def test_names_and_sorts_of_file_that_no_snapshot_has_are_refused(
    tmp_path: Path, hostile: tuple[tarfile.TarInfo, bytes]
) -> None:
    made = tar(tmp_path / "hostile.tar.gz", hostile, member("vestige.db", b"x"))
    into = tmp_path / "deep" / "into"
    into.mkdir(parents=True)
    with pytest.raises(InvalidInput):
        snapshot.unpack(made, into)
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and path != made]


def test_a_name_that_comes_twice_is_refused(tmp_path: Path) -> None:
    for number, (first, second) in enumerate(
        [("a.txt", "a.txt"), ("a.txt", "A.TXT"), ("a", "a/b"), ("a/b", "A")]
    ):
        made = tar(tmp_path / f"{number}.tar.gz", member(first, b"1"), member(second, b"2"))
        with pytest.raises(InvalidInput, match="twice"):
            snapshot.check(made)


def test_headers_that_speak_of_the_next_file_are_refused_before_they_are_read(tmp_path: Path) -> None:
    long = member("x/" * 60 + "y", b"x")
    for form in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        made = tar(tmp_path / f"{form}.tar.gz", member("é" * 90, b"x") if form else long, long, form=form)
        with pytest.raises(InvalidInput):
            snapshot.check(made)


def test_a_file_that_grows_beyond_all_measure_is_refused_before_it_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info, _ = member("exports/zeros")
    info.size = 1 << 40
    bomb = tmp_path / "bomb.tar.gz"
    bomb.write_bytes(gzip.compress(info.tobuf(tarfile.GNU_FORMAT) + bytes(1 << 20)))
    into = tmp_path / "into"
    into.mkdir()
    with pytest.raises(InvalidInput, match="unpacks to far more"):
        snapshot.unpack(bomb, into)
    monkeypatch.setattr("shutil.disk_usage", lambda _path: (10**9, 10**9, 1_000))
    with pytest.raises(StoreFull):
        snapshot.unpack(tar(tmp_path / "full.tar.gz", member("vestige.db", b"x" * 2_000)), into)
    assert not [*into.rglob("*")]


def test_an_archive_without_our_manifest_or_database_is_refused(home: Path, tmp_path: Path) -> None:
    told = b'{"files":[],"format":"vestige.snapshot.v1"}'
    for number, members in enumerate(
        [[member("vestige.db", b"x")], [member("manifest.json", told)], [member("manifest.json", b"{")]]
    ):
        made = tar(tmp_path / f"{number}.tar.gz", *members)
        outcome = invoke(["restore", str(made), "--yes", "--data-dir", str(home)])
        assert refused(outcome) in ("invalid_input", "store_corrupt")
    assert contents(home) == {"Ada prefers tea."}


def test_a_snapshot_whose_database_is_damaged_changes_nothing(home: Path, tmp_path: Path) -> None:
    for name, data in (("none", b"not a database"), ("cut", (home / "vestige.db").read_bytes()[:9_000])):
        (tmp_path / "bad.db").write_bytes(data)
        with (tmp_path / f"{name}.tar.gz").open("wb") as file:
            snapshot.pack(home, tmp_path / "bad.db", file)
        outcome = invoke(["restore", str(tmp_path / f"{name}.tar.gz"), "--yes", "--data-dir", str(home)])
        assert refused(outcome) in ("invalid_input", "store_corrupt")
    assert contents(home) == {"Ada prefers tea."}
