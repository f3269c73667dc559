"""OpenClaw: a tree of lines, tool results, noise, the key to resume by."""

from pathlib import Path

from tests.exchange.transcripts.homes import Record, read, talk, write_lines

FOLDER = Path(".openclaw/agents/main/sessions")


def message(name: str, parent: str | None, role: str, content: object, **more: object) -> Record:
    return {"type": "message", "id": name, "parentId": parent, "timestamp": "2026-08-20T10:00:00Z",
            "message": {"role": role, "content": content, **more}}  # fmt: skip


def test_tool_calls_branches_and_summaries_are_read(tmp_path: Path) -> None:
    call = [{"type": "toolCall", "id": "t", "name": "bash", "arguments": {"command": "date"}}]
    write_lines(
        tmp_path / FOLDER / "s1.jsonl",
        [
            {
                "type": "session",
                "version": 3,
                "id": "s1",
                "timestamp": "2026-08-20T10:00:00Z",
                "cwd": "/w/home",
            },
            message("1", None, "user", "what day is it?"),
            message("2", "1", "assistant", call),
            message("3", "2", "toolResult", [{"type": "text", "text": "Thu"}], toolCallId="t", isError=False),
            message("4", "3", "assistant", [{"type": "text", "text": "An old answer"}]),
            message("5", "3", "assistant", [{"type": "text", "text": "Thursday"}]),
            {"type": "compaction", "id": "6", "parentId": "5", "summary": "They asked for the day."},
            message("7", "6", "assistant", "NO_REPLY"),
        ],
    )
    write_lines(tmp_path / FOLDER / "s1.checkpoint.2.jsonl", [message("9", None, "user", "a copy")])
    (tmp_path / FOLDER / "sessions.json").write_text(
        '{"agent:main:main": {"sessionId": "s1"}}', encoding="utf-8"
    )
    made = read(tmp_path, "openclaw")
    assert list(made) == ["s1"]
    one = made["s1"]
    assert talk(one) == [
        ("user", "what day is it?"), ("assistant", "Thursday"), ("summary", "They asked for the day."),
    ]  # fmt: skip
    assert one.side == {"s1:4"}
    assert (one.entries["s1:2"].actions[0].status, one.entries["s1:3"].output) == (0, "Thu")
    assert one.facts.resume == "agent:main:main"
