"""Hook payloads of the clients, read into one form. Everything here is pure.

The names of events and fields are those of the clients' documentation. For what is unknown, comes from a
subagent or has no session, a hook does nothing.
"""

import enum
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vestige.cognition.evidence.capture.turns import Speaker, Turn
from vestige.core.lazy_dataclass import dataclass
from vestige.exchange.transcripts.clean import storable

MAX_CHARS = 200_000
MOST_TURNS = 400
PLUGINS = ("opencode", "openclaw")
"""Clients whose hooks are a plugin of ours."""


class HookKind(enum.StrEnum):
    """What a client reports."""

    START = "start"
    PROMPT = "prompt"
    COMPACT = "compact"
    """The conversation is about to be compacted."""
    STOP = "stop"
    """The agent has answered."""
    END = "end"


@dataclass(frozen=True, slots=True, kw_only=True)
class HookEvent:
    """A hook of a client. `name` is the client's own name of the event, which its output repeats; `renews`
    is set for a start after a clear or a compaction."""

    kind: HookKind
    name: str
    client: str
    session_id: str
    prompt: str = ""
    message: str = ""
    summary: str = ""
    """The summary that a compaction wrote."""
    cwd: str = ""
    transcript: Path | None = None
    renews: bool = False
    compacted: bool = False
    turns: tuple[Turn, ...] = ()
    calls: tuple[Mapping[str, Any], ...] = ()
    """What was said, and the tools called since the last hook: only our own plugins send them, for clients
    without a transcript that can be read."""

    @property
    def session(self) -> str:
        """The name of the session among those of all clients."""
        return f"{self.client}:{self.session_id}"


CLAUDE_NAMES: Mapping[str, HookKind] = {
    "SessionStart": HookKind.START,
    "UserPromptSubmit": HookKind.PROMPT,
    "PreCompact": HookKind.COMPACT,
    "PostCompact": HookKind.COMPACT,
    "Stop": HookKind.STOP,
    "SessionEnd": HookKind.END,
}
NAMES: Mapping[str, Mapping[str, HookKind]] = {
    "claude-code": CLAUDE_NAMES,
    "codex": CLAUDE_NAMES,
    "cursor": {
        "sessionStart": HookKind.START,
        "beforeSubmitPrompt": HookKind.PROMPT,
        "preCompact": HookKind.COMPACT,
        "stop": HookKind.STOP,
        "sessionEnd": HookKind.END,
    },
    "gemini-cli": {
        "SessionStart": HookKind.START,
        "BeforeAgent": HookKind.PROMPT,
        "PreCompress": HookKind.COMPACT,
        "AfterAgent": HookKind.STOP,
        "SessionEnd": HookKind.END,
    },
    # It drops the output of a prompt's hook: what it does not show must not count as shown.
    "copilot-cli": {
        "SessionStart": HookKind.START,
        "PreCompact": HookKind.COMPACT,
        "Stop": HookKind.STOP,
        "SessionEnd": HookKind.END,
    },
    "opencode": CLAUDE_NAMES,
    "openclaw": CLAUDE_NAMES,
}
"""The events of each client. The plugins for OpenCode and OpenClaw are ours, and use the names of Claude
Code."""
CLIENTS = tuple(NAMES)
_SUBAGENT = ("agent_id", "agent_type", "subagent_id", "parent_session_id")
_SESSION = ("session_id", "conversation_id", "sessionId", "thread_id")
_MESSAGE = ("last_assistant_message", "prompt_response", "text", "final_message")


def read_event(client: str, payload: Mapping[str, Any]) -> HookEvent | None:
    """The event of a payload; None for one that does not concern us."""
    name = _text(payload, "hook_event_name", "hookEventName")
    kind = NAMES.get(client, {}).get(name)
    session = _text(payload, *_SESSION)
    if kind is None or not session or is_of_subagent(payload):
        return None
    source = _text(payload, "source", "trigger")
    transcript = _text(payload, "transcript_path", "transcriptPath")
    return HookEvent(
        kind=kind,
        name=name,
        client=client,
        session_id=session,
        prompt=_text(payload, "prompt", "input", "initial_prompt"),
        message=_text(payload, *_MESSAGE),
        summary=_text(payload, "compact_summary"),
        cwd=_text(payload, "cwd") or _first(payload.get("workspace_roots")),
        transcript=Path(transcript) if transcript else None,
        renews=kind is HookKind.START and source in ("clear", "compact"),
        compacted=kind is HookKind.START and source == "compact",
        turns=_turns(payload.get("turns")) if client in PLUGINS else (),
        calls=_calls(payload.get("calls")) if client in PLUGINS else (),
    )


def _turns(value: object) -> tuple[Turn, ...]:
    roles = {one.value: one for one in (Speaker.USER, Speaker.ASSISTANT)}
    given = [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
    return tuple(
        Turn(role=roles[one["role"]], text=_text(one, "text"))
        for one in given[-MOST_TURNS:]
        if _text(one, "role") in roles and _text(one, "text")
    )


def _calls(value: object) -> tuple[Mapping[str, Any], ...]:
    given = [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
    return tuple(one for one in given[-MOST_TURNS:] if isinstance(one.get("name"), str))


def is_of_subagent(payload: Mapping[str, Any]) -> bool:
    """Whether a subagent runs the hook: it has its own task, and is left alone."""
    return any(payload.get(name) for name in _SUBAGENT)


def hook_output(event: HookEvent, context: str) -> dict[str, Any]:
    """The answer that a client takes, in the form of Claude Code and Codex; empty without a context. Codex
    fails on keys that it does not know, so there are no others."""
    takes = event.kind in (HookKind.START, HookKind.PROMPT)
    if not context or not takes:
        return {}
    return {"hookSpecificOutput": {"hookEventName": event.name, "additionalContext": context}}


def _text(payload: Mapping[str, Any], *names: str) -> str:
    found = (payload.get(name) for name in names)
    return storable(next((one[:MAX_CHARS] for one in found if isinstance(one, str) and one), ""))


def _first(value: object) -> str:
    return next((one for one in value if isinstance(one, str)), "") if isinstance(value, list) else ""
