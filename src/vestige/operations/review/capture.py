"""Proposals from a transcript: `capture`."""

from typing import Literal

from pydantic import Field

from vestige.cognition.evidence.capture.turns import Speaker, Turn
from vestige.engine.context import Call
from vestige.engine.memory.capture import propose
from vestige.operations.registry.arguments import Arguments, Scope, Switch, Wire
from vestige.operations.registry.registry import registry
from vestige.operations.shared.text import clip, count, short_id, table

MOST_TURNS = 20_000
TURN_CHARS = 200_000


class TurnItem(Arguments):
    """One turn of a transcript."""

    role: Literal["user", "assistant", "tool"] = Field(description="Who said it, or `tool` for an output.")
    text: str = Field("", max_length=TURN_CHARS, description="The words, or the output.")
    command: str | None = Field(None, max_length=10_000, description="The command that a tool ran.")
    exit_status: int | None = Field(None, description="Its exit status; 0 if it worked.")


class CaptureArguments(Arguments):
    """The transcript, and where it comes from."""

    turns: list[TurnItem] = Field(max_length=MOST_TURNS, description="The turns, oldest first.")
    session_id: str | None = Field(None, min_length=1, max_length=200, description="Session they are of.")
    source: str | None = Field(None, min_length=1, max_length=500, description="File or system of origin.")
    scope: Scope | None = Field(None, description="Default: the current project.")
    dry_run: Switch = Field(False, description="Only show what would be proposed.")


class ProposedTextView(Wire):
    """A proposal of a rule: its kind, its text, and the number of the turn it is from.

    `id` is its id in the review inbox; without one, it was there before, or this is a dry run. The text of
    one that may give orders to an agent (`flags`) is not shown to an agent.
    """

    id: str | None = None
    kind: str
    content: str | None = None
    flags: list[str] | None = None
    turn: int


class CapturedView(Wire):
    """What the rules propose, and how many of these proposals are new in the inbox."""

    proposed: int
    waiting: int
    proposals: list[ProposedTextView]
    message: str


def render_captured(answer: CapturedView) -> str:
    if not answer.proposals:
        return answer.message
    rows = (
        (short_id(one.id or ""), one.kind, one.turn, clip(one.content or "(text withheld)"))
        for one in answer.proposals
    )
    return f"{table(('id', 'kind', 'turn', 'text'), rows)}\n\n{answer.message}"


@registry.operation(
    "capture",
    permission="write",
    example={
        "turns": [
            {"role": "assistant", "text": "The database listens on port 5432."},
            {"role": "user", "text": "No, it listens on port 5433."},
        ],
        "session_id": "demo",
    },
    title="Propose memories from a transcript",
    render=render_captured,
)
def capture(call: Call, asked: CaptureArguments) -> CapturedView:
    """Propose what of a transcript is worth keeping, by rules; it waits in the review inbox.

    Decisions with their reason, fixes (error, cause, solution), preferences and corrections by the user, and
    procedures that worked three times. Nothing is stored before it is approved with `review`. A text is
    proposed once: not again while it waits, nor after it was rejected. Secrets are redacted.
    """
    turns = [
        Turn(role=Speaker(one.role), text=one.text, command=one.command, exit_status=one.exit_status)
        for one in asked.turns
    ]
    found = propose(
        call,
        turns,
        session_id=asked.session_id,
        source=asked.source,
        scope=asked.scope,
        dry_run=asked.dry_run,
    )
    waiting = sum(one.pending_id is not None for one in found)
    views = [
        ProposedTextView(
            id=one.pending_id,
            kind=one.proposal.kind.value,
            content=None if one.flags and call.in_context else one.proposal.content,
            flags=list(one.flags) or None,
            turn=one.proposal.position,
        )
        for one in found
    ]
    message = f"{count(len(found), 'proposal')}, {waiting} new in the inbox (`vestige review list`)."
    return CapturedView(proposed=len(found), waiting=waiting, proposals=views, message=message)
