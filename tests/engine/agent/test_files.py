"""The files of an agent: appended by many processes at once, read although they are damaged."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from vestige.core.errors import ConfigError
from vestige.engine.agent.files import append_line, read_lines, replace_text

PROCESSES, LINES = 16, 40
WRITER = """
import sys
from pathlib import Path
from vestige.engine.agent.files import append_line
for number in range(int(sys.argv[3])):
    append_line(Path(sys.argv[1]), {"process": int(sys.argv[2]), "number": number, "text": "é" * 3000})
"""


def test_sixteen_processes_that_append_to_one_file_lose_no_line(tmp_path: Path) -> None:
    path = tmp_path / "sessions" / "2026-03-01.jsonl"
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(number), str(LINES)])
        for number in range(PROCESSES)
    ]
    assert [writer.wait(timeout=120) for writer in writers] == [0] * PROCESSES
    found = read_lines(path)
    assert not found.broken
    seen = {(one["process"], one["number"]) for _, one in found.records}
    assert seen == {(process, number) for process in range(PROCESSES) for number in range(LINES)}
    assert len(found.records) == PROCESSES * LINES


def test_a_line_that_a_killed_process_left_unfinished_does_not_damage_the_next_one(tmp_path: Path) -> None:
    path = tmp_path / "reflections.jsonl"
    path.write_bytes(b'{"type": "pattern", "content": "who')
    append_line(path, {"type": "idea", "content": "next"})
    found = read_lines(path)
    assert (found.broken, [one["content"] for _, one in found.records]) == ((1,), ["next"])


def test_broken_lines_are_reported_and_cost_only_themselves(tmp_path: Path) -> None:
    path = tmp_path / "file.jsonl"
    lines = [b'{"a": 1}', b"no json", b"[1]", b"", b"\xff\xfe", b'"text"', b"[" * 100_000, b'{"b": 2}']
    path.write_bytes(b"\n".join(lines))
    found = read_lines(path)
    assert [number for number, _ in found.records] == [1, 8]
    assert found.broken == (2, 3, 5, 6, 7)


def test_a_missing_file_is_empty_and_an_unreadable_one_states_its_problem(tmp_path: Path) -> None:
    assert read_lines(tmp_path / "missing.jsonl").problem is None
    assert "cannot be read" in str(read_lines(tmp_path).problem)


def test_a_file_that_cannot_be_written_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"below\.jsonl"):
        append_line(tmp_path / "file" / "below.jsonl", {"a": 1})


def test_a_replaced_file_keeps_its_mode_and_leaves_no_draft(tmp_path: Path) -> None:
    path = tmp_path / "MEMORY.md"
    path.write_text("old", encoding="utf-8")
    path.chmod(0o640)
    replace_text(path, json.dumps({"new": "é"}, ensure_ascii=False))
    assert path.stat().st_mode & 0o777 == 0o640
    assert [one.name for one in tmp_path.iterdir()] == ["MEMORY.md"]


@pytest.mark.skipif(os.name != "posix", reason="there are no such permissions")
def test_a_new_file_is_private_unless_it_is_shared(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        replace_text(tmp_path / "state.json", "{}")
        replace_text(tmp_path / "AGENTS.md", "# Rules\n", shared=True)
    finally:
        os.umask(before)
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("state.json", "AGENTS.md")] == [
        0o600,
        0o644,
    ]
