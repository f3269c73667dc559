"""Payloads of every client in the shapes of their documentation, and schemas of the outputs they take."""

from typing import Any

Payload = dict[str, Any]

CLAUDE: Payload = {
    "session_id": "5f0c9b7e-0000-4000-8000-000000000001",
    "transcript_path": "/nowhere/5f0c9b7e.jsonl",
    "permission_mode": "default",
    "prompt_id": "a9a2d5c4-0000-4000-8000-000000000002",
    "effort": {"level": "high"},
}
CODEX: Payload = {
    "session_id": "0199a213-0000-7000-8000-000000000003",
    "transcript_path": None,
    "model": "gpt-5.5",
    "permission_mode": "default",
    "turn_id": "3",
}
CURSOR: Payload = {
    "conversation_id": "c0ffee00-0000-4000-8000-000000000004",
    "generation_id": "g-1",
    "model": "gpt-5.5",
    "cursor_version": "3.20.1",
    "user_email": "ada@example.org",
}
GEMINI: Payload = {
    "session_id": "9e1d0000-0000-4000-8000-000000000005",
    "transcript_path": "/nowhere/session.jsonl",
    "timestamp": "2026-08-20T10:00:00Z",
}
COPILOT: Payload = {"session_id": "7c000000-0000-4000-8000-000000000006", "timestamp": "2026-08-20T10:00:00Z"}
PROMPT = "Which port does the staging database of the orders service listen on?"

EVENTS: dict[str, dict[str, Payload]] = {
    "claude-code": {
        "SessionStart": {**CLAUDE, "source": "startup", "model": "claude-opus"},
        "UserPromptSubmit": {**CLAUDE, "prompt": PROMPT},
        "PreCompact": {**CLAUDE, "trigger": "auto", "custom_instructions": ""},
        "PostCompact": {**CLAUDE, "trigger": "auto", "compact_summary": "We fixed the login."},
        "Stop": {**CLAUDE, "stop_hook_active": False, "last_assistant_message": "Done.", "session_crons": []},
        "SessionEnd": {**CLAUDE, "reason": "prompt_input_exit"},
    },
    "codex": {
        "SessionStart": {**CODEX, "source": "startup"},
        "UserPromptSubmit": {**CODEX, "prompt": PROMPT},
        "PreCompact": {**CODEX, "trigger": "manual"},
        "PostCompact": {**CODEX, "trigger": "manual"},
        "Stop": {**CODEX, "stop_hook_active": False, "last_assistant_message": "Done."},
        "SessionEnd": {**CODEX, "reason": "other"},
    },
    "cursor": {
        "sessionStart": CURSOR,
        "beforeSubmitPrompt": {**CURSOR, "prompt": PROMPT, "attachments": []},
        "preCompact": CURSOR,
        "stop": {**CURSOR, "status": "completed", "loop_count": 0},
        "sessionEnd": {**CURSOR, "reason": "completed"},
    },
    "gemini-cli": {
        "SessionStart": {**GEMINI, "source": "startup"},
        "BeforeAgent": {**GEMINI, "prompt": PROMPT},
        "AfterAgent": {**GEMINI, "prompt": PROMPT, "prompt_response": "Done."},
        "PreCompress": {**GEMINI, "trigger": "auto"},
        "SessionEnd": {**GEMINI, "reason": "exit"},
    },
    "copilot-cli": {
        "SessionStart": {**COPILOT, "source": "new", "initial_prompt": PROMPT},
        "UserPromptSubmit": {**COPILOT, "prompt": PROMPT},
        "PreCompact": {
            **COPILOT,
            "transcript_path": "/nowhere/events.jsonl",
            "trigger": "auto",
            "custom_instructions": "",
        },
        "Stop": {
            **COPILOT,
            "transcript_path": "/nowhere/events.jsonl",
            "stop_reason": "end_turn",
            "stop_hook_active": False,
        },
        "SessionEnd": {**COPILOT, "reason": "complete"},
    },
    "opencode": {
        "SessionStart": {"session_id": "ses_01", "source": "startup"},
        "UserPromptSubmit": {"session_id": "ses_01", "prompt": PROMPT},
        "SessionEnd": {"session_id": "ses_01"},
    },
    "openclaw": {
        "SessionStart": {"session_id": "agent:main:main", "source": "startup"},
        "UserPromptSubmit": {"session_id": "agent:main:main", "prompt": PROMPT},
        "SessionEnd": {"session_id": "agent:main:main"},
    },
}
"""Client to event to payload. `payload_of` adds what all of them have."""
SPEAKING = {"SessionStart", "sessionStart", "UserPromptSubmit", "beforeSubmitPrompt", "BeforeAgent"}
"""Events whose output a client puts into the context."""


def payload_of(client: str, event: str, cwd: str) -> Payload:
    place = {"workspace_roots": [cwd]} if client == "cursor" else {"cwd": cwd}
    return {"hook_event_name": event, **place, **EVENTS[client][event]}


def _specific(event: str) -> Payload:
    """The output of Claude Code, and of Codex, which refuses unknown keys."""
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "continue": {"type": "boolean"},
            "stopReason": {"type": "string"},
            "suppressOutput": {"type": "boolean"},
            "systemMessage": {"type": "string"},
            "hookSpecificOutput": {
                "type": "object",
                "additionalProperties": False,
                "required": ["hookEventName"],
                "properties": {
                    "hookEventName": {"const": event},
                    "additionalContext": {"type": "string", "maxLength": 10_000},
                },
            },
        },
    }


def schema_of(client: str, event: str) -> Payload:
    """What the client takes as the output of an event."""
    if client == "cursor":
        known = {
            "continue": {"type": "boolean"},
            "additional_context": {"type": "string", "maxLength": 10_000},
        }
        return {"type": "object", "additionalProperties": False, "properties": known}
    if client == "copilot-cli":
        known = {"additionalContext": {"type": "string", "maxLength": 10_000}}
        return {"type": "object", "additionalProperties": False, "properties": known}
    return _specific(event)
