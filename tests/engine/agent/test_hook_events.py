"""Payloads of the clients, in the shapes of their documentation."""

from typing import Any

import pytest

from vestige.engine.agent.hook_events import CLIENTS, NAMES, HookKind, hook_output, read_event

CLAUDE: dict[str, Any] = {
    "session_id": "0f1e",
    "transcript_path": "/home/ada/.claude/projects/-w-x/0f1e.jsonl",
    "cwd": "/w/x",
    "hook_event_name": "UserPromptSubmit",
    "permission_mode": "default",
    "prompt": "fix the login test",
}


def test_a_prompt_of_claude_code_is_read() -> None:
    event = read_event("claude-code", CLAUDE)
    assert event is not None
    assert (event.kind, event.session, event.prompt) == (
        HookKind.PROMPT,
        "claude-code:0f1e",
        "fix the login test",
    )
    assert (event.cwd, str(event.transcript)) == ("/w/x", CLAUDE["transcript_path"])


@pytest.mark.parametrize("name", ["agent_id", "agent_type"])
@pytest.mark.parametrize("client", CLIENTS)
def test_hooks_of_subagents_are_left_alone(client: str, name: str) -> None:
    assert read_event(client, {**CLAUDE, "hook_event_name": "SessionStart", name: "explorer"}) is None


@pytest.mark.parametrize(
    ("source", "renews", "compacted"),
    [("startup", False, False), ("resume", False, False), ("clear", True, False), ("compact", True, True)],
)
def test_a_clear_or_a_compaction_renews_the_pack(source: str, renews: bool, compacted: bool) -> None:
    event = read_event("claude-code", {**CLAUDE, "hook_event_name": "SessionStart", "source": source})
    assert event is not None
    assert (event.renews, event.compacted) == (renews, compacted)


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"hook_event_name": "SessionStart"},
        {"session_id": "x"},
        {"hook_event_name": "PreToolUse", "session_id": "x"},
        {"hook_event_name": ["SessionStart"], "session_id": {"a": 1}},
        {"hook_event_name": "UserPromptSubmit", "session_id": 7},
    ],
)
def test_what_is_unknown_does_nothing(payload: dict[str, Any]) -> None:
    assert [read_event(client, payload) for client in CLIENTS] == [None] * len(CLIENTS)


def test_only_starts_and_prompts_put_something_into_the_context() -> None:
    for client, names in NAMES.items():
        for name, kind in names.items():
            event = read_event(client, {"hook_event_name": name, "session_id": "s", "conversation_id": "s"})
            assert event is not None
            shown = hook_output(event, "text")
            assert bool(shown) == (kind in (HookKind.START, HookKind.PROMPT))
            assert hook_output(event, "") == {}
