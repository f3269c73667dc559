"""Importing memories from a file: `import`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field

from vestige.core.errors import InvalidInput, NotFound
from vestige.engine.care.backup import BACKUPS
from vestige.engine.care.filenames import check_file_name
from vestige.engine.context import Call
from vestige.engine.exchange.export import EXPORTS
from vestige.engine.exchange.import_batches import ImportNote, ImportOutcome, Tally
from vestige.engine.exchange.import_foreign import import_foreign
from vestige.engine.exchange.import_portable import (
    ImportedPortable,
    check_portable,
    fork_notes,
    import_portable,
)
from vestige.engine.exchange.import_secrets import Holding
from vestige.exchange.importers.recognition import ImportFormat, located, recognise
from vestige.operations.care.scan import HoldingsView, holdings_lines, view_holdings
from vestige.operations.registry.arguments import FilePath, Scope, Switch, Wire
from vestige.operations.registry.registry import registry
from vestige.operations.shared.text import count, styled, table, warning

SHOWN = 20
"""Limit of reasons and notes shown; the counts include all."""


class TallyView(Wire):
    """The outcome for records of a kind: imported + present + left = read."""

    read: int
    imported: int
    present: int
    left: int


class SaidView(Wire):
    """A reason or note for a number of records of a kind, and where the first one is."""

    kind: str
    what: str
    count: int
    place: str


class Imported(Wire):
    """The outcome of an import. `secrets` came in with a portable file, which is imported unchanged."""

    path: str
    format: str
    scope: str | None = None
    dry_run: bool
    memories_imported: int
    read: int
    imported: int
    present: int
    left: int
    by_kind: dict[str, TallyView]
    reasons: list[SaidView]
    examples: list[SaidView]
    notes: list[SaidView]
    secrets: HoldingsView | None = None
    embedded: int = 0
    note: str | None = None


def render_imported(done: Imported) -> str:
    rows = [(kind, one.read, one.imported, one.present, one.left) for kind, one in done.by_kind.items()]
    what = "would be imported" if done.dry_run else "imported"
    text = [
        f"{styled('link', done.path)}: {done.format}",
        table(("records", "read", what, "already here", "left"), rows),
    ]
    if done.embedded:
        text.append(f"{count(done.embedded, 'memory')} embedded.")
    for title, said in (("Left:", done.reasons), ("Changed during import:", done.notes)):
        if said:
            text += [title, *(f"  {one.count:,} × {one.kind}: {one.what} ({one.place})" for one in said)]
    text += holdings_lines(done.secrets)
    if done.note:
        text.append(warning(done.note))
    return "\n".join(text)


@registry.operation(
    "import",
    permission="admin",
    example={"path": "memories.jsonl", "dry_run": True},
    long=True,
    title="Import memories",
    render=render_imported,
)
def import_memories(
    call: Call,
    path: Annotated[
        FilePath,
        Field(
            min_length=1,
            max_length=4096,
            description="File in exports/ or backups/ (any file or folder on the command line).",
        ),
    ],
    from_: Annotated[
        ImportFormat | None, Field(description="Format. Default: recognised from the content.")
    ] = None,
    scope: Annotated[
        Scope | None,
        Field(
            description="Scope for the memories. Default: the current scope. Portable files have their own."
        ),
    ] = None,
    dry_run: Annotated[Switch, Field(description="Report what would happen without writing.")] = False,
) -> Imported:
    """Import the memories of a file: an export, another memory system's store, chats, or notes.

    Formats: portable (`vestige.portable.v1`), reference (a database of the original Vestige), the stores or
    exports of other memory systems, ChatGPT and Claude exports, json, jsonl (objects with `content` or
    `text`), notes. Every record is accounted for; importing a file again adds nothing.
    """
    file = import_file(call, path)
    form = from_ or recognised_format(file)
    if form is ImportFormat.PORTABLE:
        return import_portable_file(call, file, scope, dry_run=dry_run)
    where = scope or call.scope
    done = import_foreign(call, file, form, where, dry_run=dry_run)
    return imported_view(
        done.outcome, file, form, scope=where, dry_run=dry_run, embedded=done.embedded, note=done.note
    )


def import_file(call: Call, path: str) -> Path:
    """The file to import; a plain name may also be in the folders of exports and backups."""
    folders = [call.engine.settings.data_dir / name for name in (EXPORTS, BACKUPS)]
    allowed_folders = f"{EXPORTS}/ or {BACKUPS}/ of the data directory"
    if not call.local:
        check_file_name(path, place=f"the file must be in {allowed_folders}", example="memories.json")
    candidates = [folder / path for folder in folders if path == Path(path).name]
    if call.local:
        candidates.insert(0, _given(path))
    for candidate in candidates:
        if candidate.is_file() or (call.local and candidate.is_dir()):
            return located(candidate.absolute())
    raise NotFound(
        f"There is no file {path}.",
        hint=f"Give the path of a file or folder, or the name of a file in {allowed_folders}."
        if call.local
        else f"It must be in {allowed_folders}.",
        details={"argument": "path"},
    )


def _given(path: str) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError as exc:
        raise InvalidInput(f"The home directory in {path} cannot be determined.") from exc


def recognised_format(file: Path) -> ImportFormat:
    try:
        return recognise(file)
    except OSError as exc:
        raise InvalidInput(f"{file} cannot be read: {exc.strerror}.", details={"argument": "path"}) from exc


def import_portable_file(call: Call, file: Path, scope: str | None, *, dry_run: bool) -> Imported:
    if scope is not None:
        raise InvalidInput(
            "A portable file contains the scopes of its memories.",
            hint="Omit `scope`.",
            details={"argument": "scope"},
        )
    if dry_run:
        holds, holdings = check_portable(call, file)
        tallies = {
            kind: Tally(read=count, imported=count, present=0, left=0)
            for kind, count in (
                ("memory", holds.memories + holds.deleted),
                ("connection", holds.edges),
                ("document", holds.documents),
            )
        }
        note = "The file is valid. How much of it is already here is only known after importing it."
        return imported_view(
            ImportOutcome(tallies=tallies),
            file,
            ImportFormat.PORTABLE,
            dry_run=True,
            holdings=holdings,
            note=note,
        )
    done = import_portable(call, file)
    return imported_view(
        _merged_outcome(done),
        file,
        ImportFormat.PORTABLE,
        holdings=done.holdings,
        embedded=done.embedded,
        note=" ".join([*fork_notes(done.forks), *([done.note] if done.note else [])]) or None,
    )


def _merged_outcome(done: ImportedPortable) -> ImportOutcome:
    holds, waiting, dangling = done.contents, len(done.waiting), done.dangling
    memories = done.added + done.changed + done.ended
    # An imported memory also activates links from an earlier file; they do not count here.
    linked = min(done.edges, holds.edges - dangling)
    left = (
        ImportNote(kind="connection", place="", what="the memory at one end is not here", count=dangling),
        ImportNote(kind="document", place="", what="the memory it refers to is not here", count=waiting),
    )
    return ImportOutcome(
        tallies={
            "memory": Tally(
                read=memories + done.unchanged, imported=memories, present=done.unchanged, left=0
            ),
            "connection": Tally(
                read=holds.edges, imported=linked, present=holds.edges - dangling - linked, left=dangling
            ),
            "document": Tally(
                read=holds.documents,
                imported=done.documents,
                present=holds.documents - done.documents - waiting,
                left=waiting,
            ),
        },
        left=tuple(one for one in left if one.count),
    )


def imported_view(
    outcome: ImportOutcome,
    file: Path,
    form: ImportFormat,
    *,
    scope: str | None = None,
    dry_run: bool = False,
    holdings: Sequence[Holding] = (),
    embedded: int = 0,
    note: str | None = None,
) -> Imported:
    tallies = outcome.tallies.values()
    memories = outcome.tallies.get("memory")
    return Imported(
        path=str(file),
        format=form.value,
        scope=scope,
        dry_run=dry_run,
        memories_imported=memories.imported if memories else 0,
        **{name: sum(getattr(one, name) for one in tallies) for name in TallyView.model_fields},
        by_kind={kind: TallyView.of(one) for kind, one in outcome.tallies.items()},
        reasons=_said(outcome.left),
        examples=_said(outcome.examples),
        notes=_said(outcome.notes),
        secrets=view_holdings(holdings),
        embedded=embedded,
        note=note,
    )


def _said(said: Sequence[ImportNote]) -> list[SaidView]:
    return [SaidView.of(one) for one in said[:SHOWN]]
