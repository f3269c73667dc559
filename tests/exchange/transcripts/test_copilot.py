"""Copilot CLI: events of a session."""

from pathlib import Path

from tests.exchange.transcripts.homes import Record, read, talk, write_lines


def event(number: int, kind: str, **data: object) -> Record:
    return {
        "type": kind,
        "id": f"e{number}",
        "parentId": None,
        "timestamp": "2026-08-20T10:00:00Z",
        "data": data,
    }


def test_messages_tools_and_changed_files_are_read(tmp_path: Path) -> None:
    write_lines(
        tmp_path / ".copilot/session-state/s1/events.jsonl",
        [
            event(1, "session.start", sessionId="s1", context={"cwd": "/w/shop", "branch": "main"}),
            event(2, "user.message", content="add a test"),
            event(
                3, "tool.execution_start", toolCallId="t", toolName="bash", arguments={"command": "npm test"}
            ),
            event(
                4, "tool.execution_complete", toolCallId="t", success=False, result={"content": "2 failing"}
            ),
            event(5, "assistant.message", content="Two tests fail."),
            event(6, "session.shutdown", codeChanges={"filesModified": ["cart.ts"]}),
        ],
    )
    one = read(tmp_path, "copilot")["s1"]
    assert talk(one) == [("user", "add a test"), ("assistant", "Two tests fail.")]
    assert (one.entries["s1:e3"].actions[0].command, one.entries["s1:e3"].actions[0].status) == (
        "npm test",
        1,
    )
    assert one.entries["s1:e4"].output == "2 failing"
    assert one.entries["s1:e6"].actions[0].files == ("cart.ts",)
    assert one.facts.cwd == "/w/shop"


def test_the_old_file_has_the_id_in_its_name(tmp_path: Path) -> None:
    write_lines(tmp_path / ".copilot/session-state/s2.jsonl", [event(1, "user.message", content="hello")])
    assert talk(read(tmp_path, "copilot")["s2"]) == [("user", "hello")]
