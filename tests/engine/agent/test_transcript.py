"""The end of a transcript: files, commands and answers in the forms of several clients."""

import json
import os
from pathlib import Path
from typing import Any

from vestige.engine.agent.transcript import read_part
from vestige.exchange.transcripts.clean import without_injected

CLAUDE = [
    {"type": "user", "message": {"role": "user", "content": "fix it"}, "uuid": "1"},
    {
        "type": "assistant",
        "message": {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I use port 5439."},
                {"type": "tool_use", "name": "Edit", "input": {"file_path": "/w/x/db.py", "old_string": "a"}},
                {"type": "tool_use", "name": "Bash", "input": {"command": "make  test"}},
                {"type": "tool_use", "name": "Read", "input": {"file_path": "/w/x/only_read.py"}},
            ],
        },
    },
    {"type": "assistant", "isSidechain": True, "message": {"role": "assistant", "content": "a subagent"}},
]
CODEX = [
    {"type": "response_item", "payload": {"type": "message", "role": "assistant", "content": [
        {"type": "output_text", "text": "Done."}]}},
    {"type": "response_item", "payload": {
        "type": "function_call", "name": "shell", "arguments": '{"command": ["pytest", "-q"]}'}},
    {"type": "response_item", "payload": {
        "type": "custom_tool_call", "name": "apply_patch",
        "input": "*** Begin Patch\n*** Update File: src/a.py\n@@\n*** Add File: b.py\n"}},
]  # fmt: skip


def transcript(tmp_path: Path, lines: list[Any]) -> Path:
    path = tmp_path / "session.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def test_work_and_words_of_claude_code_are_read(tmp_path: Path) -> None:
    part = read_part(transcript(tmp_path, CLAUDE), 0)
    assert (part.work.files, part.work.commands) == (("/w/x/db.py",), ("make test",))
    assert part.text == "I use port 5439."


def test_work_and_words_of_codex_are_read(tmp_path: Path) -> None:
    part = read_part(transcript(tmp_path, CODEX), 0)
    assert (part.work.files, part.work.commands) == (("src/a.py", "b.py"), ("pytest -q",))
    assert part.text == "Done."


def test_only_what_is_new_is_read_and_an_unfinished_line_is_read_later(tmp_path: Path) -> None:
    path = transcript(tmp_path, CLAUDE)
    end = read_part(path, 0).end
    with path.open("ab") as file:
        file.write(json.dumps(CODEX[0]).encode())
    assert read_part(path, end).end == end
    with path.open("ab") as file:
        file.write(b"\n")
    later = read_part(path, end)
    assert (later.text, later.work.files) == ("Done.", ())
    path.write_text("", encoding="utf-8")  # rewritten by the client
    assert read_part(path, later.end).end == 0


def test_what_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"\xff\n[1]\nnull\n" + b"[" * 100_000 + b"\n" + json.dumps(CODEX[0]).encode() + b"\n")
    assert read_part(path, 0).text == "Done."
    assert read_part(tmp_path / "missing.jsonl", 5).end == 5
    assert read_part(None, 5).end == 5


def test_blocks_that_vestige_put_in_are_not_taken_for_words_of_the_agent() -> None:
    text = (
        'x<vestige-recall id="r">secret words</vestige-recall>y<vestige-context id="x">c</vestige-context>z'
    )
    assert without_injected(text) == "xyz"
    assert without_injected('a<vestige-recall id="r">never closed') == "a"


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "pipe.jsonl"
    os.mkfifo(path)
    assert read_part(path, 7).end == 7


def test_the_last_list_of_tasks_says_what_is_open(tmp_path: Path) -> None:
    def todos(*states: str) -> dict[str, Any]:
        names = ("Write the parser", "Test it", "Release it")
        listed = [{"content": one, "status": two} for one, two in zip(names, states, strict=True)]
        call = {"type": "tool_use", "name": "TodoWrite", "input": {"todos": listed}}
        return {"type": "assistant", "message": {"role": "assistant", "content": [call]}}

    path = transcript(
        tmp_path, [todos("pending", "pending", "pending"), todos("completed", "in_progress", "pending")]
    )
    work = read_part(path, 0).work
    assert work.open_threads == ("Test it", "Release it")
    later = transcript(tmp_path, [todos("completed", "completed", "cancelled")])
    assert work.then(read_part(later, 0).work).open_threads == ()
    assert work.then(read_part(transcript(tmp_path, CLAUDE), 0).work).open_threads == (
        "Test it",
        "Release it",
    )


def test_a_plan_of_codex_says_what_is_open(tmp_path: Path) -> None:
    plan = {"plan": [{"step": "Read", "status": "completed"}, {"step": "Fix", "status": "in_progress"}]}
    call = {"type": "function_call", "name": "update_plan", "arguments": json.dumps(plan)}
    path = transcript(tmp_path, [{"type": "response_item", "payload": call}])
    assert read_part(path, 0).work.open_threads == ("Fix",)
