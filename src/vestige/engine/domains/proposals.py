"""Proposals that wait for a decision, and what is needed to accept and to undo them.

A proposal must be found in two discoveries in a row to be shown. One that is not found again is dropped, a
rejected one sleeps. Lists of memories are kept in pages beside the proposal, because a document is limited.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from vestige.cognition.graph.domains.names import slug
from vestige.cognition.graph.domains.proposals import SHOWN_AFTER, SLEEP, WAKING, DomainProposal
from vestige.core.documents import Document
from vestige.core.errors import NotFound
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import EVERYTHING
from vestige.engine.context import Call
from vestige.engine.domains.catalogue import documents_of
from vestige.engine.domains.moves import member_count
from vestige.engine.revise import find_document, put_document, save
from vestige.store.contract.changes import Change, Drop

PROPOSAL, MOVES, RUN = "domain_proposal", "domain_moves", "domain_run"
"""Kinds of documents: a proposal, lists of memories beside it, and the number of the last discovery."""
ROWS = 500
SAME = 0.5
"""The share of common members from which two new domains are the same proposal."""
MOST_RESOLVED = 50
"""Decided proposals that are kept, latest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalPart:
    """A domain as a proposal has it: its members, each with the domain it is in now ("" for none)."""

    label: str
    terms: tuple[str, ...]
    exemplars: tuple[str, ...]
    members: tuple[tuple[str, str], ...]


def pages(call: Call, name: str, rows: Sequence[Sequence[Any]]) -> list[Change]:
    """The changes that keep these rows under a name."""
    now = call.engine.now()
    cuts = [rows[begin : begin + ROWS] for begin in range(0, len(rows), ROWS)]
    held = {one.id: one for one in _held_pages(call, name)}
    changes: list[Change] = [
        put_document(MOVES, one, held.pop(one, None), now, body={"rows": [list(row) for row in cut]})
        for one, cut in ((f"{name}/{number:04}", cut) for number, cut in enumerate(cuts))
    ]
    return [*changes, *(Drop(kind=MOVES, id=one, at=now) for one in held)]


def rows_of(call: Call, name: str) -> list[list[Any]]:
    return [list(row) for page in _held_pages(call, name) for row in page.body["rows"]]


def _held_pages(call: Call, name: str) -> list[Document]:
    every = documents_of(call.engine.store, MOVES)
    return [one for one in every if one.id.rsplit("/", 1)[0] == name]


def all_proposals(call: Call) -> list[Document]:
    """Every proposal, the one changed last first."""
    found = documents_of(call.engine.store, PROPOSAL)
    return sorted(found, key=lambda one: (one.updated_at, one.id), reverse=True)


def is_shown(proposal: Document) -> bool:
    return bool(proposal.body["status"] == "pending" and proposal.body["seen"] >= SHOWN_AFTER)


def find_proposal(call: Call, name: str) -> Document:
    found = find_document(call, PROPOSAL, name, access=EVERYTHING)
    if found is None:
        raise NotFound(
            f"There is no proposal {name!r}.",
            hint="`domains proposals` lists those that wait for a decision.",
            details={"proposal": name},
        )
    return found


def keep_proposals(
    call: Call,
    proposals: Sequence[tuple[DomainProposal, Sequence[ProposalPart]]],
    before: Mapping[str, AbstractSet[str]],
) -> tuple[int, int]:
    """Keep what a discovery proposes: how many wait, and how many of them are shown."""
    held = all_proposals(call)
    last = find_document(call, RUN, RUN, access=EVERYTHING)
    run = 1 + (last.body["run"] if last else 0)
    left = {one.id: one for one in held}
    changes: list[Change] = [put_document(RUN, RUN, last, call.engine.now(), body={"run": run})]
    waiting = shown = 0
    for proposal, parts in proposals:
        known = next((one for one in left.values() if _same(call, one, proposal, parts)), None)
        if known is not None:
            del left[known.id]
        if known is not None and _asleep(known, proposal, run):
            continue
        pending = known if known is not None and known.body["status"] == "pending" else None
        seen = 1 + (pending.body["seen"] if pending and pending.body["run"] == run - 1 else 0)
        name = pending.id if pending else _name(proposal, parts, run)
        body = _body(call, proposal, parts, before, seen, run)
        changes.append(put_document(PROPOSAL, name, pending, call.engine.now(), body=body))
        changes += pages(call, name, _rows(proposal, parts))
        waiting += 1
        shown += seen >= SHOWN_AFTER
    pending_gone = [one for one in left.values() if one.body["status"] == "pending"]
    decided = [one for one in held if one.body["status"] != "pending"][MOST_RESOLVED:]
    for one in (*pending_gone, *decided):
        changes += dropped(call, one)
    save(call, changes)
    return waiting, shown


def dropped(call: Call, proposal: Document) -> list[Change]:
    now = call.engine.now()
    gone: list[Change] = [Drop(kind=PROPOSAL, id=proposal.id, at=now)]
    for name in (proposal.id, f"{proposal.id}/undo"):
        gone += [Drop(kind=MOVES, id=one.id, at=now) for one in _held_pages(call, name)]
    return gone


def _same(call: Call, held: Document, proposal: DomainProposal, parts: Sequence[ProposalPart]) -> bool:
    """Whether a proposal was made before and is pending, or was rejected."""
    body = held.body
    if body["status"] not in ("pending", "rejected") or body["kind"] != proposal.kind:
        return False
    if proposal.kind != "new":
        return sorted(body["targets"]) == sorted(proposal.targets)
    theirs = {row[0] for row in rows_of(call, held.id)}
    ours = {member for member, _ in parts[0].members}
    return len(ours & theirs) >= SAME * len(ours | theirs)


def _asleep(held: Document, proposal: DomainProposal, run: int) -> bool:
    rejected = held.body["status"] == "rejected"
    rise = proposal.confidence - held.body["confidence"]
    return bool(rejected and run <= held.body["run"] + SLEEP and rise < WAKING)


def _name(proposal: DomainProposal, parts: Sequence[ProposalPart], run: int) -> str:
    about = proposal.targets or (slug(parts[0].label),)
    return f"{proposal.kind}-{'-'.join(about)[:80]}-{run}"


def _body(
    call: Call,
    proposal: DomainProposal,
    parts: Sequence[ProposalPart],
    before: Mapping[str, AbstractSet[str]],
    seen: int,
    run: int,
) -> dict[str, Any]:
    return {
        "kind": proposal.kind,
        "targets": list(proposal.targets),
        "status": "pending",
        "parts": [
            {
                "label": part.label,
                "terms": list(part.terms),
                "size": len(part.members),
                "exemplars": list(part.exemplars),
            }
            for part in parts
        ],
        "before": {
            name: member_count(call, name) if proposal.kind == "retire" else len(before[name])
            for name in proposal.targets
        },
        "confidence": proposal.confidence,
        "seen": seen,
        "run": run,
    }


def _rows(proposal: DomainProposal, parts: Sequence[ProposalPart]) -> list[tuple[str, int, str]]:
    """Which memory would move to which part, from where. Of a split the first part stays."""
    moving = {"split": 1, "new": 0}.get(proposal.kind)
    if moving is None:
        return []
    return [
        (member, number, home)
        for number, part in enumerate(parts)
        if number >= moving
        for member, home in part.members
    ]
