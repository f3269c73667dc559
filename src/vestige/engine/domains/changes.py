"""Changes of domains that a person or an agent asks for: each is one transaction, and names what it moved."""

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from vestige.cognition.graph.domains.names import slug
from vestige.core.documents import Document
from vestige.core.errors import Conflict, InvalidInput
from vestige.core.events import DomainsChanged
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import EVERYTHING, Memory, check_label
from vestige.engine.context import Call
from vestige.engine.domains.catalogue import (
    HAND,
    DomainRecord,
    active_domains,
    all_domains,
    centre_changes,
    centres,
    domain_change,
    domain_put,
    find_domain,
    found_id,
    free_id,
    refresh_centres,
    require_free_label,
)
from vestige.engine.domains.moves import exchanged, member_count, members_of, memories_of, revisions, without
from vestige.engine.domains.proposals import PROPOSAL, dropped, find_proposal, pages, rows_of
from vestige.engine.revise import documents_by_id, load, put_document, retry_on_conflict, with_body
from vestige.store.contract.changes import Change, Drop, Revise
from vestige.store.contract.memberships import is_found

MOST_LABEL_CHARS = 100
ACCEPTED, UNDONE = "domain proposal accepted", "domain proposal undone"
MERGED, REMOVED, BY_HAND = "domains merged", "domain removed", "domain by hand"
"""The reasons of revisions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainChange:
    """What a change did: the domains it is about now, and the number of memories it moved."""

    domains: tuple[str, ...]
    moved: int
    undo: str | None = None
    skipped: int = 0


@dataclass(slots=True, kw_only=True)
class _Work:
    """A change while it is put together: documents, and the memories that move."""

    documents: list[Change] = field(default_factory=list)
    before: dict[str, Memory] = field(default_factory=dict)
    after: dict[str, Memory] = field(default_factory=dict)
    domains: list[str] = field(default_factory=list)
    created: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    removed: dict[str, dict[str, Any]] = field(default_factory=dict)
    terms: dict[str, list[str]] = field(default_factory=dict)

    def move(self, memory: Memory, old: str, new: str | None) -> None:
        """Move a memory from a domain to another, or out of it. One that moved before moves on."""
        present = self.after.get(memory.id, memory)
        self.before.setdefault(memory.id, memory)
        self.after[memory.id] = without(present, old) if new is None else exchanged(present, old, new)

    def moves(self, call: Call, reason: str) -> list[Revise]:
        before = list(self.before.values())
        return revisions(call, before, lambda memory: self.after[memory.id], reason=reason)


def _label(label: str) -> str:
    clean = " ".join(label.split())
    check_label("label", clean)
    if len(clean) > MOST_LABEL_CHARS:
        raise InvalidInput(
            f"A label has at most {MOST_LABEL_CHARS} characters.", details={"argument": "label"}
        )
    return clean


def create(call: Call, label: str) -> str:
    """Make a domain by hand; its id. Memories that carry this name already are its members."""
    call.require_everything()
    clean = _label(label)

    def attempt() -> str:
        known = all_domains(call.engine.store)
        require_free_label(known, clean)
        # The id of a found domain would keep it in this installation.
        name = free_id(known, f"my {clean}" if is_found(slug(clean)) else clean)
        body = {"label": clean, "origin": "hand", "terms": []}
        call.engine.store.commit([domain_put(call, name, body)], access=EVERYTHING)
        return name

    name = retry_on_conflict(call, attempt)
    refresh_centres(call)
    _announce(call, "create", (name,), 0)
    return name


def rename(call: Call, which: str, label: str) -> DomainRecord:
    """Give a domain another label; its id stays."""
    call.require_everything()
    clean = _label(label)

    def attempt() -> str:
        domain = find_domain(call, which)
        require_free_label(all_domains(call.engine.store), clean, besides=domain.id)
        if domain.label != clean:
            held = centres(call.engine.store)
            renamed = {
                name: replace(one, label=clean) if name == domain.id else one for name, one in held.items()
            }
            changes = [domain_change(call, domain, label=clean), *centre_changes(call, renamed.values())]
            call.engine.store.commit(changes, access=EVERYTHING)
        return domain.id

    name = retry_on_conflict(call, attempt)
    _announce(call, "rename", (name,), 0)
    return find_domain(call, name)


def merge(call: Call, one: str, other: str, into: str | None = None) -> DomainChange:
    """Merge two domains into the first one, or `into` one of them. The other id leads to it from then on."""
    call.require_everything()
    left, right = find_domain(call, one), find_domain(call, other)
    if left.id == right.id:
        raise InvalidInput("A domain cannot be merged with itself.", hint="Name two domains.")
    kept = left if into is None else find_domain(call, into)
    if kept.id not in (left.id, right.id):
        raise InvalidInput("`into` must be one of the two domains.", details={"argument": "into"})
    gone = right if kept.id == left.id else left
    return _recorded(call, "merge", [kept.id, gone.id], "merge")


def remove(call: Call, which: str) -> DomainChange:
    """Remove a domain: its members stay, without it."""
    call.require_everything()
    return _recorded(call, "retire", [find_domain(call, which).id], "remove")


def _recorded(call: Call, kind: str, targets: list[str], action: str) -> DomainChange:
    """Do what a proposal would, and keep a record of it, by which it can be undone."""
    name = f"{action}-{call.engine.new_id()}"

    def attempt() -> DomainChange:
        body = {
            "kind": kind,
            "targets": targets,
            "status": "pending",
            "parts": [],
            "confidence": 1.0,
            "seen": 0,
            "run": 0,
        }
        now = call.engine.now()
        record = put_document(PROPOSAL, name, None, now, body=body).document
        return _commit(call, record, None, _work_of(call, record), MERGED if kind == "merge" else REMOVED)

    return _finished(call, action, retry_on_conflict(call, attempt))


# -- Membership by hand


def assign(call: Call, which: str, memory_ids: Sequence[str], *, member: bool) -> DomainChange:
    """Put memories into a domain by hand, or take them out of it. No automatic change touches it again."""
    call.require_everything()

    def attempt() -> DomainChange:
        domain = find_domain(call, which)
        memories = [load(call, name).memory for name in dict.fromkeys(memory_ids)]

        def change(memory: Memory) -> Memory:
            if not member:
                return without(memory, domain.id)
            return replace(memory, domains=tuple(dict.fromkeys((*memory.domains, domain.id))))

        moves = revisions(call, memories, change, reason=BY_HAND)
        changes: list[Change] = [*moves, *_hand_changes(call, memories, domain.id, member)]
        call.engine.store.commit(changes, access=EVERYTHING)
        return DomainChange(domains=(domain.id,), moved=len(moves))

    return _finished(call, "assign" if member else "unassign", retry_on_conflict(call, attempt))


def _hand_changes(call: Call, memories: Sequence[Memory], domain: str, member: bool) -> list[Change]:
    held = documents_by_id(call, HAND, [one.id for one in memories])
    changes: list[Change] = []
    for memory in memories:
        before = held.get(memory.id)
        lists = {
            name: [one for one in (before.body[name] if before else ()) if one != domain]
            for name in ("assigned", "unassigned")
        }
        lists["assigned" if member else "unassigned"].append(domain)
        changes.append(
            put_document(
                HAND,
                memory.id,
                before,
                call.engine.now(),
                body=lists,
                scope=memory.scope,
                cites=(memory.id,),
                logged=True,
            )
        )
    return changes


# -- Decisions about proposals


def accept(call: Call, name: str) -> DomainChange:
    """Do what a proposal says, in one transaction. If its memories have changed since, it is brought up to
    date instead, and a Conflict says so."""
    call.require_everything()

    def attempt() -> DomainChange:
        proposal = _pending(call, name)
        _check_current(call, proposal)
        return _commit(call, proposal, proposal, _work_of(call, proposal), ACCEPTED)

    return _finished(call, "accept", retry_on_conflict(call, attempt))


def reject(call: Call, name: str) -> None:
    """Reject a proposal: nothing changes, and it sleeps."""
    call.require_everything()

    def attempt() -> None:
        proposal = _pending(call, name)
        body = {**proposal.body, "status": "rejected", "resolved": call.engine.now().isoformat()}
        change = with_body(proposal, body, call.engine.now(), logged=False)
        call.engine.store.commit([change], access=EVERYTHING)

    retry_on_conflict(call, attempt)


def undo(call: Call, name: str) -> DomainChange:
    """Undo an accepted proposal, a merge or a removal: every memory that was not moved since goes back."""
    call.require_everything()
    return _finished(call, "undo", retry_on_conflict(call, lambda: _undo(call, name)))


def _undo(call: Call, name: str) -> DomainChange:
    proposal = find_proposal(call, name)
    if proposal.body["status"] != "accepted":
        raise InvalidInput(
            f"The proposal {name} is {proposal.body['status']}, so there is nothing to undo.",
            details={"proposal": name, "status": proposal.body["status"]},
        )
    known = all_domains(call.engine.store)
    rows = [row for row in rows_of(call, f"{name}/undo") if not isinstance(row[1], int)]
    moved = {row[0]: (tuple(row[1]), tuple(row[2])) for row in rows}
    present = list(memories_of(call, sorted(moved)))
    back = [one for one in present if one.domains == moved[one.id][1]]
    changes: list[Change] = list(
        revisions(call, back, lambda one: replace(one, domains=moved[one.id][0]), reason=UNDONE)
    )
    targets = proposal.body["targets"]
    for target in targets:
        if target in known and known[target].into == (targets[0],):  # else it was merged elsewhere since
            label = _label_for(known, target, known[target].label)
            changes.append(domain_change(call, known[target], into=None, label=label))
        elif target in known and target in proposal.body.get("terms", {}):
            changes.append(domain_change(call, known[target], terms=proposal.body["terms"][target]))
    removed: Mapping[str, Mapping[str, Any]] = proposal.body.get("removed", {})
    changes += [
        domain_put(call, one, {**body, "label": _label_for(known, one, body["label"])})
        for one, body in removed.items()
        if one not in known
    ]
    now = call.engine.now()
    returned = {one.id for one in back}
    for created in proposal.body.get("created", ()):
        if created in known and all(one.id in returned for one in members_of(call, created)):
            changes.append(Drop(kind="domain", id=created, at=now))
    body = {**proposal.body, "status": "undone", "resolved": now.isoformat()}
    changes.append(with_body(proposal, body, now, logged=False))
    held = centres(call.engine.store)
    touched = {*proposal.body["targets"], *proposal.body.get("created", ())}
    changes += centre_changes(call, [one for key, one in held.items() if key not in touched])
    call.engine.store.commit(changes, access=EVERYTHING)
    return DomainChange(
        domains=tuple(proposal.body["targets"]), moved=len(back), skipped=len(moved) - len(back)
    )


def _label_for(known: Mapping[str, DomainRecord], name: str, label: str) -> str:
    """The label of a domain that comes back; its id, if another one has the label now."""
    taken = {one.label.casefold() for one in known.values() if not one.into}
    return name if label.casefold() in taken else label


def _pending(call: Call, name: str) -> Document:
    proposal = find_proposal(call, name)
    status = proposal.body["status"]
    if status != "pending":
        raise InvalidInput(
            f"The proposal {name} was {status} already.",
            hint="`domains undo` reverts an accepted one." if status == "accepted" else None,
            details={"proposal": name, "status": status},
        )
    return proposal


def _check_current(call: Call, proposal: Document) -> None:
    """Raise Conflict if the domains or memories of a proposal have changed, and bring it up to date."""
    active = active_domains(call.engine.store)
    missing = [one for one in proposal.body["targets"] if one not in active]
    if missing:
        raise Conflict(
            f"The domain {missing[0]} no longer exists, so this proposal no longer holds.",
            hint="Run `domains discover` to look again.",
            details={"proposal": proposal.id, "domain": missing[0]},
        )
    if proposal.body["kind"] == "retire":
        _check_not_grown(call, proposal)
    rows = rows_of(call, proposal.id)
    held = {one.id: one for one in memories_of(call, [row[0] for row in rows])}
    holding = [row for row in rows if row[0] in held and _is_at(held[row[0]], row[2], active)]
    gone = len(rows) - len(holding)
    if not gone:
        return
    if not holding:
        call.engine.store.commit(dropped(call, proposal), access=EVERYTHING)
        raise InvalidInput(
            "All memories of this proposal were moved or deleted since, so it is dropped.",
            hint="Run `domains discover` to look again.",
            details={"proposal": proposal.id, "changed": gone, "left": 0},
        )
    first = 1 if proposal.body["kind"] == "split" else 0
    parts = [
        {**part, "size": sum(row[1] == number for row in holding)} if number >= first else part
        for number, part in enumerate(proposal.body["parts"])
    ]
    now = call.engine.now()
    changes = [
        with_body(proposal, {**proposal.body, "parts": parts}, now, logged=False),
        *pages(call, proposal.id, holding),
    ]
    call.engine.store.commit(changes, access=EVERYTHING)
    raise InvalidInput(
        f"{gone} of the {len(rows)} memories of this proposal were moved or deleted since. It is brought up "
        f"to date and now moves {len(holding)}.",
        hint="Look at it again with `domains proposals`, then accept it.",
        details={"proposal": proposal.id, "changed": gone, "left": len(holding)},
    )


def _check_not_grown(call: Call, proposal: Document) -> None:
    (name,) = proposal.body["targets"]
    before, present = proposal.body["before"][name], member_count(call, name)
    if present <= before:
        return
    body = {**proposal.body, "before": {name: present}}
    change = with_body(proposal, body, call.engine.now(), logged=False)
    call.engine.store.commit([change], access=EVERYTHING)
    raise InvalidInput(
        f"The domain {name} has {present} memories now, {before} when its removal was proposed. The proposal "
        "is brought up to date.",
        hint="Look at it again with `domains proposals`, then accept or reject it.",
        details={"proposal": proposal.id, "before": before, "memories": present},
    )


def _is_at(memory: Memory, home: str, active: Mapping[str, Any]) -> bool:
    first = next((one for one in memory.domains if one in active), "")
    return first == home


def _work_of(call: Call, proposal: Document) -> _Work:
    """The changes that a proposal stands for."""
    work, known = _Work(), all_domains(call.engine.store)
    body, targets = proposal.body, list(proposal.body["targets"])
    match body["kind"]:
        case "merge":
            kept, *others = targets
            for other in others:
                for memory in members_of(call, other):
                    work.move(memory, other, kept)
                work.documents.append(domain_change(call, known[other], into=[kept]))
            terms = dict.fromkeys(term for one in targets for term in known[one].terms)
            most = call.engine.settings.domains.top_terms_k
            work.documents.append(domain_change(call, known[kept], terms=list(terms)[:most]))
            work.terms = {kept: list(known[kept].terms)}
            work.domains, work.gone = [kept], others
        case "retire":
            (name,) = targets
            for memory in members_of(call, name):
                work.move(memory, name, None)
            work.documents.append(Drop(kind="domain", id=name, at=call.engine.now()))
            work.gone, work.removed = [name], {name: dict(known[name].document.body)}
        case "split" | "new":
            _moved_parts(call, work, proposal, known)
    return work


def _moved_parts(call: Call, work: _Work, proposal: Document, known: Mapping[str, DomainRecord]) -> None:
    """The new domains of a split or of a new group. The first part of a split keeps the old domain."""
    rows, parts = rows_of(call, proposal.id), proposal.body["parts"]
    first = 1 if proposal.body["kind"] == "split" else 0
    labels = {one.label.casefold() for one in known.values() if not one.into}
    for number, part in list(enumerate(parts))[first:]:
        homes = {row[0]: row[2] for row in rows if row[1] == number}
        if not homes:
            continue  # all of them were moved since
        name = found_id({*known, *work.created}, homes)
        label = part["label"] if part["label"].casefold() not in labels else name
        labels.add(label.casefold())
        work.created.append(name)
        body = {"label": label, "origin": "found", "terms": list(part["terms"])}
        if first:
            body["split_from"] = proposal.body["targets"][0]
        work.documents.append(domain_put(call, name, body))
        for memory in memories_of(call, sorted(homes)):
            work.move(memory, homes[memory.id], name)
    if first:
        (parent,) = proposal.body["targets"]
        work.documents.append(domain_change(call, known[parent], terms=list(parts[0]["terms"])))
        work.terms = {parent: list(known[parent].terms)}
        work.gone = [parent]
    work.domains = [*proposal.body["targets"], *work.created]


def _commit(call: Call, proposal: Document, held: Document | None, work: _Work, reason: str) -> DomainChange:
    """Write a change with what is needed to undo it. Centroids of the domains it is about are dropped in the
    same transaction, so that nothing is assigned by an outdated one."""
    now = call.engine.now()
    body = {**proposal.body, "status": "accepted", "resolved": now.isoformat(), "created": work.created}
    body |= {"removed": work.removed, "terms": work.terms}
    moves = work.moves(call, reason)
    rows = [
        (one.memory.id, list(work.before[one.memory.id].domains), list(one.memory.domains)) for one in moves
    ]
    record = put_document(PROPOSAL, proposal.id, held, now, body=body)
    kept = [
        one for name, one in centres(call.engine.store).items() if name not in (*work.gone, *work.domains)
    ]
    changes: list[Change] = [
        *work.documents,
        *moves,
        record,
        *pages(call, f"{proposal.id}/undo", rows),
        *centre_changes(call, kept),
    ]
    call.check()
    call.engine.store.commit(changes, access=EVERYTHING)
    return DomainChange(domains=tuple(work.domains or work.gone), moved=len(moves), undo=proposal.id)


def _finished(call: Call, action: str, change: DomainChange) -> DomainChange:
    refresh_centres(call)
    _announce(call, action, change.domains, change.moved)
    return change


def _announce(call: Call, action: str, domains: tuple[str, ...], moved: int) -> None:
    call.engine.events.emit(
        DomainsChanged(timestamp=call.engine.now(), scopes=None, action=action, domains=domains, moved=moved)
    )
