"""Factory's Droid, and the command line of Cursor."""

from pathlib import Path

from tests.exchange.transcripts.homes import read, talk, write_lines


def test_messages_of_droid_are_read_without_reminders(tmp_path: Path) -> None:
    reminder = {"type": "text", "text": "<system-reminder>todo list</system-reminder>"}
    call = {"type": "tool_use", "id": "t", "name": "Execute", "input": {"command": "ls"}}
    result = {"type": "tool_result", "tool_use_id": "t", "is_error": True, "content": "no such file"}
    write_lines(
        tmp_path / ".factory/sessions/-w-shop/f1.jsonl",
        [
            {"type": "session_start", "id": "f1", "cwd": "/w/shop", "title": "Listing"},
            {"type": "message", "id": "1", "timestamp": "2026-08-20T10:00:00Z",
             "message": {"role": "user", "content": [reminder, {"type": "text", "text": "list"}]}},
            {"type": "message", "id": "2", "message": {"role": "assistant", "content": [call]}},
            {"type": "message", "id": "3", "message": {"role": "user", "content": [result]}},
        ],
    )  # fmt: skip
    one = read(tmp_path, "factory")["f1"]
    assert talk(one) == [("user", "list")]
    assert one.entries["f1:2"].actions[0].status == 1
    assert (one.entries["f1:3"].role, one.entries["f1:3"].output) == ("tool", "no such file")
    assert (one.facts.cwd, one.facts.title) == ("/w/shop", "Listing")


def test_the_command_line_of_cursor_has_neither_ids_nor_times(tmp_path: Path) -> None:
    write_lines(
        tmp_path / ".cursor/projects/w-shop/agent-transcripts/c1/c1.jsonl",
        [
            {"role": "user", "message": {"content": [{"type": "text", "text": "hello"}]}},
            {"role": "assistant", "message": {"content": [{"type": "text", "text": "hello to you"}]}},
        ],
    )
    assert talk(read(tmp_path, "cursor-cli")["c1"]) == [("user", "hello"), ("assistant", "hello to you")]
