"""Capture: what rules propose from a transcript waits in the review inbox, with its session and turn."""

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path

from vestige.cognition.evidence.capture.propose import propose as proposals
from vestige.cognition.evidence.capture.turns import Proposal, ProposalKind, Speaker, Turn
from vestige.cognition.text.analyser import fingerprint
from vestige.core.documents import PENDING
from vestige.core.lazy_dataclass import dataclass
from vestige.core.origin import Origin
from vestige.core.transcripts import Action, Entry
from vestige.engine.context import Call
from vestige.engine.ingest.batch import HeldText, NewText
from vestige.engine.ingest.inbox import flags_by_all, pending_of
from vestige.engine.ingest.ingest import ingest
from vestige.exchange.transcripts.files import batches
from vestige.exchange.transcripts.shape import conversations
from vestige.exchange.transcripts.sources import READERS, Source

NODE_TYPES = {
    ProposalKind.DECISION: "decision",
    ProposalKind.FIX: "fix",
    ProposalKind.PREFERENCE: "preference",
    ProposalKind.CORRECTION: "fact",
    ProposalKind.PROCEDURE: "procedure",
}
CAPTURED = "A rule proposes it from a transcript."
MOST = 50
"""The most proposals of one transcript."""
PAGE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """What was proposed: with its id in the inbox, or without one if it was proposed before."""

    proposal: Proposal
    pending_id: str | None
    flags: tuple[str, ...]


def propose(
    call: Call,
    turns: Sequence[Turn],
    *,
    session_id: str | None = None,
    source: str | None = None,
    scope: str | None = None,
    dry_run: bool = False,
) -> list[Captured]:
    """Let what rules find in a transcript wait for a review; each text once, also over several calls. What
    was rejected before is not proposed again."""
    found = proposals(turns)[:MOST]
    known = _known(call)
    fresh = [one for one in found if fingerprint(one.content) not in known]
    ids: dict[str, str] = {}
    if fresh and not dry_run:
        texts = [_text(one, turns, session_id, source, scope) for one in fresh]
        results = ingest(call, texts, secrets="redact")
        held = [one for one in results if isinstance(one, HeldText)] if isinstance(results, list) else []
        ids = {one.content: result.pending_id for one, result in zip(fresh, held, strict=True)}
    return [
        Captured(
            proposal=one,
            pending_id=ids.get(one.content),
            flags=flags_by_all(call, one.content, _origin(one).value),
        )
        for one in found
    ]


def propose_from_file(
    call: Call, path: Path, client: str, session_id: str, *, dry_run: bool = False
) -> list[Captured]:
    """Let what rules find in the transcript of a client wait for a review. Nothing of a client whose
    transcripts are not files of lines, and nothing of subagents."""
    if client not in READERS or not path.is_file():
        return []
    source = Source(client=client, path=path, form="lines", state={"session": session_id})
    steps = (step for batch in batches(source, None) for step in batch.steps)
    found = conversations(steps).get(session_id)
    if found is None or found.facts.subagent:
        return []
    turns = list(turns_of(found.turns()))
    return propose(call, turns, session_id=session_id, source=client, dry_run=dry_run)


def turns_of(entries: Sequence[Entry]) -> Iterator[Turn]:
    """The turns of a conversation for the rules: what was said, and each command when it had ended."""
    ended_later = {result.id for entry in entries for result in entry.results}
    running: dict[str, Action] = {}
    for entry in entries:
        if entry.text and entry.role in ("user", "assistant"):
            yield Turn(role=Speaker(entry.role), text=entry.text)
        ended = [running.pop(result.id) for result in entry.results if result.id in running]
        running |= {action.id: action for action in entry.actions if action.id in ended_later}
        for action in (*ended, *(one for one in entry.actions if one.id not in ended_later)):
            if action.command is not None:
                yield Turn(
                    role=Speaker.TOOL, text=entry.output, command=action.command, exit_status=action.status
                )


def _known(call: Call) -> set[str]:
    """The fingerprints of all texts that are or were in the inbox, by their first wording."""
    known: set[str] = set()
    offset = 0
    while page := call.engine.store.documents(PENDING, access=call.access, limit=PAGE, offset=offset):
        call.check()
        texts = [pending_of(one) for one in page]
        known |= {fingerprint(one.original or one.text.content) for one in texts}
        offset += PAGE
        if len(page) < PAGE:
            break
    return known


def _origin(one: Proposal) -> Origin:
    """The origin of a proposal is that of the turns: what a tool printed is a tool's."""
    printed = one.kind in (ProposalKind.FIX, ProposalKind.PROCEDURE)
    return Origin.TOOL if printed else Origin.ASSISTANT


def _text(
    one: Proposal, turns: Sequence[Turn], session_id: str | None, source: str | None, scope: str | None
) -> NewText:
    """A proposal as a text that waits."""
    digest = blake2b(turns[one.position].text.encode(), digest_size=8).hexdigest()
    given = {
        "node_type": NODE_TYPES[one.kind],
        "tags": ("captured", one.kind.value),
        "metadata": {"capture": {"rule": one.kind.value, "turn": one.position, "turn_digest": digest}},
        **({"session_id": session_id} if session_id else {}),
        **({"source": source} if source else {}),
    }
    return NewText(
        content=one.content,
        scope=scope,
        origin=_origin(one).value,
        hold=CAPTURED,
        **given,  # type: ignore[arg-type]  # fields of different types
        given=frozenset(given),
    )
