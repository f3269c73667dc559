"""Reading on from a checkpoint: appended, changed, rotated, truncated files."""

import gzip
import json
from pathlib import Path

import pytest

from tests.exchange.transcripts.homes import Record, found, write_lines
from vestige.core.transcripts import Entry
from vestige.exchange.transcripts import files
from vestige.exchange.transcripts.files import Checkpoint, StepBatch, batches
from vestige.exchange.transcripts.sources import Source

FILE = Path(".factory/sessions/f1.jsonl")


def message(text: str) -> Record:
    return {"type": "message", "id": text, "message": {"role": "user", "content": text}}


def texts(made: list[StepBatch]) -> list[str]:
    return [step.text for batch in made for step in batch.steps if isinstance(step, Entry)]


def read_on(home: Path, before: Checkpoint | None) -> list[StepBatch]:
    (source,) = found(home, "factory")
    return list(batches(source, before))


def test_an_appended_line_is_all_that_is_read(tmp_path: Path) -> None:
    path = write_lines(tmp_path / FILE, [message(f"line {number}") for number in range(200)])
    first = read_on(tmp_path, None)
    write_lines(path, [message("appended")], "a")
    second = read_on(tmp_path, first[-1].checkpoint)
    assert texts(second) == ["appended"]
    assert sum(batch.bytes_read for batch in second) < 200
    assert read_on(tmp_path, second[-1].checkpoint) == []


@pytest.mark.parametrize("how", ["changed", "rotated", "truncated"])
def test_a_file_that_is_not_the_one_read_is_read_from_its_beginning(how: str, tmp_path: Path) -> None:
    path = write_lines(tmp_path / FILE, [message("one"), message("two")])
    checkpoint = read_on(tmp_path, None)[-1].checkpoint
    if how == "changed":
        write_lines(path, [message("new"), message("row"), message("end")])
    elif how == "rotated":
        write_lines(path.with_suffix(".new"), [message("new"), message("row"), message("end")]).replace(path)
    else:
        write_lines(path, [message("new")])
    assert texts(read_on(tmp_path, checkpoint))[0] == "new"


def test_a_line_that_is_being_written_is_read_when_it_is_whole(tmp_path: Path) -> None:
    path = write_lines(tmp_path / FILE, [message("one")])
    line = json.dumps(message("two"))
    with path.open("a", encoding="utf-8") as file:
        file.write(line[:20])
    first = read_on(tmp_path, None)
    assert texts(first) == ["one"]
    with path.open("a", encoding="utf-8") as file:
        file.write(line[20:])
    second = read_on(tmp_path, first[-1].checkpoint)
    assert texts(second) == ["two"]  # without the end of the line: the object is whole
    with path.open("a", encoding="utf-8") as file:
        file.write("\n")
    write_lines(path, [message("three")], "a")
    assert texts(read_on(tmp_path, second[-1].checkpoint)) == ["three"]


def test_a_large_file_comes_in_parts_that_can_be_read_on_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "BATCH_BYTES", 500)
    expected = [f"line {number}" for number in range(50)]
    write_lines(tmp_path / FILE, [message(text) for text in expected])
    made = read_on(tmp_path, None)
    assert len(made) > 3
    assert texts(made) == expected
    assert texts(made[:2]) + texts(read_on(tmp_path, made[1].checkpoint)) == expected


def test_a_line_that_is_too_long_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_LINE_BYTES", 300)
    write_lines(tmp_path / FILE, [message("one"), message("x" * 5_000), message("two")])
    made = read_on(tmp_path, None)
    assert texts(made) == ["one", "two"]
    assert made[-1].broken_lines == 1


@pytest.mark.parametrize("bomb", [b"\n" * 3_000_000, b"x" * 3_000_000, b"{}\n" * 1_000_000])
def test_of_a_copy_that_grows_without_end_a_part_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bomb: bytes
) -> None:
    """A copy may come from the snapshot of another machine."""
    monkeypatch.setattr(files, "MOST_UNPACKED_BYTES", 100_000)
    monkeypatch.setattr(files, "MOST_EXPANSION", 10)
    monkeypatch.setattr(files, "MAX_LINE_BYTES", 50_000)
    path = tmp_path / "copy.gz"
    path.write_bytes(gzip.compress(json.dumps(message("one")).encode() + b"\n" + bomb))
    made = list(batches(Source(client="factory", path=path, form="lines", state={"session": "s"}), None))
    assert texts(made) == ["one"]
    assert made[-1].damage == "damaged: it unpacks to more than 10 times its size"
    assert sum(batch.bytes_read for batch in made) < 200_000
