"""A portable export takes the place of the store, as a database of its own."""

import gzip
import json
import re
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest

from tests.transports.cli.harness import Outcome, invoke


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
    """A store with two memories, and exports of when it had one."""
    folder = tmp_path / "data"
    said(folder, "ingest", "Ada prefers tea.")
    for name in ("one.jsonl", "one.jsonl.gz"):
        said(folder, "export", str(tmp_path / name), "--format", "portable", "--vectors", "--scope", "/")
    said(folder, "ingest", "Ben runs on Fridays.")
    return folder


@pytest.mark.parametrize("name", ["one.jsonl", "one.jsonl.gz"])
def test_an_export_takes_the_place_of_the_store_and_not_of_its_memories_only(
    home: Path, tmp_path: Path, name: str
) -> None:
    before = said(home, "status")["node"]
    done = said(home, "restore", str(tmp_path / name), "--yes")
    assert (done["kind"], done["memories"]) == ("export", 1)
    assert contents(home) == {"Ada prefers tea."}
    after = said(home, "status")
    assert after["node"] == done["node"] != before
    assert after["withEmbeddings"] == 1
    assert said(home, "search", "tea")["total"] == 1
    again = Path(done["kept"])
    said(home, "restore", str(again), "--yes")
    assert contents(home) == {"Ada prefers tea.", "Ben runs on Fridays."}


def test_an_export_restored_and_exported_again_is_the_same_file(home: Path, tmp_path: Path) -> None:
    new = tmp_path / "new"
    said(new, "restore", str(tmp_path / "one.jsonl"), "--yes")
    words = ("--format", "portable", "--vectors", "--scope", "/")
    said(new, "export", str(tmp_path / "again.jsonl"), *words)
    assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "one.jsonl").read_bytes()


def test_a_dry_run_says_what_an_export_holds(home: Path, tmp_path: Path) -> None:
    told = said(home, "restore", str(tmp_path / "one.jsonl.gz"), "--dry-run")
    assert (told["kind"], told["memories"]) == ("export", 1)
    assert contents(home) == {"Ada prefers tea.", "Ben runs on Fridays."}


def test_a_dry_run_refuses_a_clock_that_is_ahead_as_a_restore_does(home: Path, tmp_path: Path) -> None:
    *lines, _ = (tmp_path / "one.jsonl").read_bytes().splitlines(keepends=True)
    years = 100 * 365 * 86_400_000 << 16
    ahead = [re.sub(rb'"clock":(\d+)', lambda m: b'"clock":%d' % (int(m[1]) + years), one) for one in lines]
    digest = blake2b(b"".join(ahead), digest_size=32).hexdigest()
    seal = f'{{"digest":"{digest}","lines":{len(lines) - 1},"type":"end"}}\n'.encode()
    (tmp_path / "ahead.jsonl").write_bytes(b"".join([*ahead, seal]))
    for how in ("--dry-run", "--yes"):
        outcome = invoke(["restore", str(tmp_path / "ahead.jsonl"), how, "--data-dir", str(home)])
        assert (refused(outcome), "ahead" in outcome.stderr) == ("invalid_input", True)


def test_a_damaged_export_changes_nothing(home: Path, tmp_path: Path) -> None:
    data = (tmp_path / "one.jsonl").read_bytes()
    lines = data.splitlines(keepends=True)
    wrong = {
        "cut.jsonl": data[:-20],
        "short.jsonl": b"".join(lines[:-1]),
        "changed.jsonl": data.replace(b"prefers tea", b"prefers gin"),
        "newer.jsonl": data.replace(b"portable.v1", b"portable.v9"),
        "cut.jsonl.gz": gzip.compress(data)[:-15],
    }
    for name, bad in wrong.items():
        (tmp_path / name).write_bytes(bad)
        outcome = invoke(["restore", str(tmp_path / name), "--yes", "--data-dir", str(home)])
        assert refused(outcome) == "invalid_input"
    assert contents(home) == {"Ada prefers tea.", "Ben runs on Fridays."}
    assert not [*home.glob(".restoring-*")]


def test_a_small_packed_export_that_is_cut_or_changed_anywhere_is_not_called_another_file(
    home: Path, tmp_path: Path
) -> None:
    whole = (tmp_path / "one.jsonl.gz").read_bytes()
    bad = tmp_path / "bad.jsonl.gz"
    cuts = [whole[:size] for size in (2, 10, 20, 60, len(whole) - 9)]
    flips = [
        whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :] for at in (2, 12, 20, 40, len(whole) - 6)
    ]
    for data in (*cuts, *flips):
        bad.write_bytes(data)
        outcome = invoke(["restore", str(bad), "--yes", "--data-dir", str(home)])
        assert refused(outcome) in ("invalid_input", "store_corrupt")
        assert "is not a backup" not in outcome.stderr
    assert contents(home) == {"Ada prefers tea.", "Ben runs on Fridays."}


def test_a_packed_file_of_another_sort_is_no_backup(home: Path, tmp_path: Path) -> None:
    (tmp_path / "diary.gz").write_bytes(gzip.compress(b"Dear diary"))
    outcome = invoke(["restore", str(tmp_path / "diary.gz"), "--yes", "--data-dir", str(home)])
    assert (refused(outcome), "is not a backup" in outcome.stderr) == ("invalid_input", True)


def test_other_lines_of_json_are_no_export_to_restore(home: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.jsonl").write_text('{"content": "Ada prefers tea."}\n', encoding="utf-8")
    outcome = invoke(["restore", str(tmp_path / "notes.jsonl"), "--yes", "--data-dir", str(home)])
    assert refused(outcome) == "invalid_input"
    assert "neither a database nor a snapshot nor an export" in outcome.stderr
