"""Scanning the store for secrets and orders to agents: `scan`; and reports of secrets that an import or sync
brought in."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from vestige.core.errors import InvalidInput
from vestige.engine.care.scan_injections import ScannedMemories, scan_injections
from vestige.engine.care.scan_secrets import Scanned, SecretFinding, scan
from vestige.engine.context import Call
from vestige.engine.exchange.import_secrets import Holding
from vestige.engine.memory.delete import file_copies
from vestige.operations.registry.arguments import Switch, Wire
from vestige.operations.registry.registry import registry
from vestige.operations.shared.text import count, short_id, table

MOST_COPIES = 50
"""Maximum number of backups and exports that an answer names."""
MOST_HOLDINGS = 20
"""Maximum number of records with secrets that an answer names."""


class SecretFindingView(Wire):
    """A stored secret: its kind, where it is, and a masked excerpt.

    `entity` is `memory`, or the kind of another record. `revisions` are those of a memory that contain it;
    `present` is false if only its history does.
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


class InjectionFindingView(Wire):
    """A memory that may give orders to an agent or hide something: what it tries, and its origin."""

    id: str
    kinds: list[str]
    origin: str | None = None
    scope: str
    pinned: bool = False


class ScanResult(Wire):
    """The result of a scan.

    `replaced` maps each redacted memory to the one that replaced it. `copies` are your own backups and
    exports that may contain the same secrets. `quarantined` are memories that wait in the review inbox now.
    """

    memories: int
    documents: int
    found: int
    findings: list[SecretFindingView]
    replaced: dict[str, str] | None = None
    redacted_documents: int | None = None
    copies: list[str] | None = None
    injections: list[InjectionFindingView] | None = None
    quarantined: list[str] | None = None
    message: str

    @property
    def exit_code(self) -> int:
        """1 while secrets or orders to agents are stored, for scripts."""
        left = len(self.injections or ()) - len(self.quarantined or ())
        return 1 if left or (self.findings and self.replaced is None) else 0


def render_scan(result: ScanResult) -> str:
    if result.injections:
        found = ((short_id(one.id), ", ".join(one.kinds), one.origin, one.scope) for one in result.injections)
        return f"{table(('id', 'found', 'origin', 'scope'), found)}\n\n{result.message}"
    if not result.findings:
        return result.message
    rows = (
        (short_id(one.id), one.entity, one.secret, _location(one), one.excerpt) for one in result.findings
    )
    return f"{table(('id', 'in', 'secret', 'place', 'excerpt'), rows)}\n\n{result.message}"


def _location(one: SecretFindingView) -> str:
    place = f"{one.field} {one.line}:{one.column}"
    if one.present:
        return place
    return f"{place}, revision {', '.join(map(str, one.revisions or ()))}"


class HoldingView(Wire):
    """A record that came in with secrets: `memory` or the kind of another record, and their kinds."""

    entity: str
    id: str
    secrets: list[str]


class HoldingsView(Wire):
    """Secrets in records from another store: the number of records, and the first of them."""

    records: int
    first: list[HoldingView]
    message: str


def view_holdings(holdings: Sequence[Holding]) -> HoldingsView | None:
    """A report of records that came in with secrets; None without any."""
    if not holdings:
        return None
    first = [HoldingView.of(one) for one in holdings[:MOST_HOLDINGS]]
    message = (
        f"Secrets in {count(len(holdings), 'record')}: a merge keeps what the other side contains. `vestige "
        "scan --redact` redacts them, here and on every machine you synchronise with."
    )
    return HoldingsView(records=len(holdings), first=first, message=message)


def holdings_lines(seen: HoldingsView | None) -> list[str]:
    """The report as lines of text."""
    if seen is None:
        return []
    rows = ((short_id(one.id), one.entity, ", ".join(one.secrets)) for one in seen.first)
    return [table(("id", "in", "secret"), rows), f"! {seen.message}"]


@registry.operation(
    "scan",
    permission="admin",
    example={},
    long=True,
    command_only=True,
    title="Scan for secrets",
    render=render_scan,
)
def scan_store(
    call: Call,
    redact: Annotated[
        Switch, Field(description="Redact secrets. An affected memory gets a new id and loses its history.")
    ] = False,
    injection: Annotated[
        Switch, Field(description="Scan memories for orders to agents and hidden text instead of secrets.")
    ] = False,
    quarantine: Annotated[
        Switch, Field(description="With `injection`: move what is found to the review inbox.")
    ] = False,
) -> ScanResult:
    """Scan everything in the store for keys, tokens and passwords.

    Scans memories with their wordings, tags, sources, metadata and earlier revisions, the labels of API keys,
    and all other records.
    With `redact`, a memory with a secret is replaced by one with `[redacted: …]` in its place, with the same
    strength and links; the old one is purged with its history, on every synchronised machine. Backups and
    exports stay unchanged (`copies`): change a secret that was in them. On the command line the exit code is
    1 while secrets are stored.
    With `injection`, it lists memories that may give orders to an agent or hide something, unless the user
    wrote or approved them, with the kind of each finding. With `quarantine` as well, they wait in the review
    inbox and nothing else finds them; pinned ones stay. `review approve` brings one back with its strength
    and its links, under a new id.
    """
    if quarantine and not injection:
        raise InvalidInput("`quarantine` is for orders to agents.", hint="Give `injection` as well.")
    if injection:
        return _scan_injections(call, redact, quarantine)
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


def _scan_injections(call: Call, redact: bool, quarantine: bool) -> ScanResult:
    if redact:
        raise InvalidInput("`redact` is for secrets.", hint="Give only one of `redact` and `injection`.")
    seen = scan_injections(call, into_inbox=quarantine)
    found = [InjectionFindingView.of(one, kinds=list(one.kinds)) for one in seen.findings]
    looked = f"{count(seen.memories, 'memory')} scanned"
    return ScanResult(
        memories=seen.memories,
        documents=0,
        found=len(found),
        findings=[],
        injections=found,
        quarantined=seen.moved if quarantine else None,
        message=f"{looked}: {_advice(seen, quarantine)}" if found else f"{looked}: no findings.",
    )


def _advice(seen: ScannedMemories, quarantine: bool) -> str:
    found = f"{count(len(seen.findings), 'finding')}."
    if not quarantine:
        return (
            f"{found} Read each with `vestige show ID`; `vestige rm ID` deletes it. With `--quarantine`, the "
            "scan moves them all to the review inbox."
        )
    left = len(seen.findings) - len(seen.moved)
    stay = f" {left} stayed: pinned ones are only named." if left else ""
    return f"{found} {count(len(seen.moved), 'memory')} moved to the inbox: `vestige review list`.{stay}"


def _view(one: SecretFinding) -> SecretFindingView:
    return SecretFindingView.of(
        one.sighting,
        entity=one.document or "memory",
        id=one.id,
        secret=one.sighting.kind,
        revisions=list(one.revisions) or None,
        present=one.present,
    )


def _message(seen: Scanned, redact: bool, kept: int) -> str:
    looked = f"{count(seen.memories, 'memory')} and {count(seen.documents, 'other record')} scanned"
    if not seen.findings:
        return f"{looked}: no secrets."
    sentences = [f"{looked}: {count(len(seen.findings), 'secret')}."]
    if redact:
        done = len(seen.replaced) + seen.redacted_documents
        sentences.append(f"Redacted in {count(done, 'record')}.")
    else:
        sentences.append("`vestige scan --redact` redacts them.")
    if kept:
        sentences.append(f"Not touched: {kept} of your backups and exports, which may contain them too.")
    sentences.append("Change every secret that was stored: someone may have read it.")
    return " ".join(sentences)
