"""Looking for secrets in what is stored: `scan`; and what to say of those that came in by a merge."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from vestige.engine.care.scan_secrets import Scanned, SecretFinding, scan
from vestige.engine.context import Call
from vestige.engine.exchange.import_secrets import Holding
from vestige.engine.memory.delete import file_copies
from vestige.operations.registry.arguments import Switch, Wire
from vestige.operations.registry.registry import registry
from vestige.operations.shared.text import count, table

MOST_COPIES = 50
"""How many backups and exports an answer names."""
MOST_HOLDINGS = 20
"""How many of the records that came in with secrets an answer names."""


class SecretFindingView(Wire):
    """A secret that is stored: what it is, where, and as much of it as may be shown.

    `entity` is `memory`, or the kind of another record. `revisions` are those of a memory that hold it;
    `present` is false where only its history does.
    """

    entity: str
    id: str
    secret: str
    field: str
    line: int
    column: int
    excerpt: str
    revisions: list[int] | None = None
    present: bool


class ScanResult(Wire):
    """What was looked through and found.

    `replaced` names for each memory that was blacked out the one that took its place. `copies` are backups
    and exports of your own that may hold the same secrets.
    """

    memories: int
    documents: int
    found: int
    findings: list[SecretFindingView]
    replaced: dict[str, str] | None = None
    redacted_documents: int | None = None
    copies: list[str] | None = None
    message: str

    @property
    def exit_code(self) -> int:
        """1 while secrets are stored, for scripts."""
        return 1 if self.findings and self.replaced is None else 0


def render_scan(result: ScanResult) -> str:
    """What was found, for a person."""
    if not result.findings:
        return result.message
    rows = ((one.id, one.entity, one.secret, _place(one), one.excerpt) for one in result.findings)
    return f"{table(('id', 'in', 'secret', 'place', 'excerpt'), rows)}\n\n{result.message}"


def _place(one: SecretFindingView) -> str:
    place = f"{one.field} {one.line}:{one.column}"
    if one.present:
        return place
    return f"{place}, revision {', '.join(map(str, one.revisions or ()))}"


class HoldingView(Wire):
    """A record that came in with secrets: `memory` or the kind of another record, and what they are."""

    entity: str
    id: str
    secrets: list[str]


class HoldingsView(Wire):
    """Secrets that came in with what another store told: how many records hold some, the first of them."""

    records: int
    first: list[HoldingView]
    message: str


def view_holdings(holdings: Sequence[Holding]) -> HoldingsView | None:
    """What to say of records that came in with secrets; None if there are none."""
    if not holdings:
        return None
    first = [
        HoldingView(entity=one.entity, id=one.id, secrets=list(one.secrets))
        for one in holdings[:MOST_HOLDINGS]
    ]
    message = (
        f"Secrets in {count(len(holdings), 'record')}: a merge takes in what the other side holds."
        " `vestige scan --redact` blacks them out, here and wherever you synchronise."
    )
    return HoldingsView(records=len(holdings), first=first, message=message)


def told_holdings(seen: HoldingsView | None) -> list[str]:
    """The same as lines for a person."""
    if seen is None:
        return []
    rows = ((one.id, one.entity, ", ".join(one.secrets)) for one in seen.first)
    return [table(("id", "in", "secret"), rows), f"! {seen.message}"]


@registry.operation(
    "scan",
    permission="admin",
    effect="write",
    example={},
    lane="long",
    command_only=True,
    title="Look for secrets",
    render=render_scan,
)
def scan_store(
    call: Call,
    redact: Annotated[
        Switch,
        Field(description="Black out what is found. The memory gets a new id and loses its history."),
    ] = False,
) -> ScanResult:
    """Look for keys, tokens and passwords in everything that is stored.

    Memories are looked through with their wordings, tags, sources, metadata and earlier revisions, and so is
    everything kept beside them. With `redact`, a memory that holds a secret is replaced by one that says
    `[redacted: …]` instead, with its strength and links; the old one is purged with its history, on every
    machine it is synchronised with. Backups and exports stay as they are (`copies`): a secret that was in
    them should be changed. On the command line the exit code is 1 while secrets are stored.
    """
    seen = scan(call, redact=redact)
    kept = file_copies(call) if seen.findings else []
    return ScanResult(
        memories=seen.memories,
        documents=seen.documents,
        found=len(seen.findings),
        findings=[_view(one) for one in seen.findings],
        replaced=seen.replaced if redact else None,
        redacted_documents=seen.redacted_documents if redact else None,
        copies=kept[:MOST_COPIES] or None,
        message=_message(seen, redact, len(kept)),
    )


def _view(one: SecretFinding) -> SecretFindingView:
    return SecretFindingView(
        entity=one.document or "memory",
        id=one.id,
        secret=one.sighting.kind,
        field=one.sighting.field,
        line=one.sighting.line,
        column=one.sighting.column,
        excerpt=one.sighting.excerpt,
        revisions=list(one.revisions) or None,
        present=one.present,
    )


def _message(seen: Scanned, redact: bool, kept: int) -> str:
    looked = f"{count(seen.memories, 'memory')} and {count(seen.documents, 'other record')} looked through"
    if not seen.findings:
        return f"{looked}: no secrets."
    sentences = [f"{looked}: {count(len(seen.findings), 'secret')}."]
    if redact:
        done = len(seen.replaced) + seen.redacted_documents
        sentences.append(f"Blacked out in {count(done, 'record')}.")
    else:
        sentences.append("`vestige scan --redact` blacks them out.")
    if kept:
        sentences.append(f"Not touched: {kept} of your backups and exports, which may hold them too.")
    sentences.append("Change every secret that was stored: others may have read it.")
    return " ".join(sentences)
