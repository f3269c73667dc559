"""Synchronising stores through a shared folder: `sync`."""

from datetime import datetime
from pathlib import Path
from typing import Annotated

from pydantic import Field

from vestige.engine.context import Call
from vestige.engine.exchange.import_portable import fork_notes
from vestige.engine.exchange.sync import known_peers, sync
from vestige.operations.care.scan import HoldingsView, holdings_lines, view_holdings
from vestige.operations.registry.arguments import FilePath, Wire
from vestige.operations.registry.registry import registry
from vestige.operations.shared.text import count, day, table, warning
from vestige.store.merge.histories import Fork


class MetView(Wire):
    """A file of another installation, and what it changed here."""

    file: str
    state: str
    added: int
    changed: int
    ended: int
    reason: str | None = None


class ForkView(Wire):
    """An id under which two stores wrote."""

    node: str
    successor: str | None = None


class SyncedView(Wire):
    """The files merged from the folder, and the file written to it.

    `removed` are files that this installation wrote under a former name, before it was restored or copied.
    `secrets` came in with files of others. `forks` are ids under which two stores wrote, because one is a
    clone of the other; if it was the id of this store, its new one is the `successor`.
    """

    success: bool = True
    folder: str
    file: str
    met: list[MetView]
    memories: int
    written: bool
    removed: list[str]
    secrets: HoldingsView | None = None
    embedded: int
    forks: list[ForkView] = Field([])
    note: str | None = None


def render_synced(done: SyncedView) -> str:
    lines = []
    if done.met:
        rows = ((m.file, m.state, m.added, m.changed, m.ended, m.reason or "") for m in done.met)
        lines += [table(("file", "state", "added", "changed", "ended", ""), rows), ""]
    else:
        lines.append("No other installation has written a file here yet.")
    own = f"{done.file}: {count(done.memories, 'memory')}"
    lines.append(own if done.written else f"{own}, unchanged")
    lines += [f"{name}: a former file of this installation, removed" for name in done.removed]
    lines += [warning(note) for note in fork_notes(Fork(**one.model_dump()) for one in done.forks)]
    lines += holdings_lines(done.secrets)
    return "\n".join([*lines, warning(done.note)] if done.note else lines)


@registry.operation(
    "sync",
    permission="admin",
    example={"folder": "~/shared"},
    long=True,
    command_only=True,
    render=render_synced,
)
def sync_stores(
    call: Call,
    folder: Annotated[
        FilePath, Field(min_length=1, description="Folder that the other machines can access too.")
    ],
) -> SyncedView:
    """Synchronise memories with other machines through a shared folder.

    Merges the file that each other installation wrote there, then writes its own. If both changed a memory,
    changes to different fields are merged; for the same field the later change wins and the other stays in
    the history; a deletion on either side deletes. The order does not matter. Any shared folder works: a
    synchronised one, a network share, a USB stick.
    """
    done = sync(call, Path(folder))
    return SyncedView.of(
        done,
        success=True,
        folder=str(done.folder),
        file=done.file.name,
        met=[MetView.of(one) for one in done.peers],
        memories=done.contents.memories,
        secrets=view_holdings(done.holdings),
        forks=[ForkView.of(one) for one in done.forks],
    )


class PeerView(Wire):
    """Another installation, and when its file last brought something. `refused` says why its file was not
    merged then."""

    node: str
    at: datetime
    refused: str | None = None


class PeersView(Wire):
    """The folder and the time of the last sync, and the installations met so far, latest first."""

    action: str = "peers"
    folder: str | None = None
    at: datetime | None = None
    total: int
    peers: list[PeerView]


def render_peers(found: PeersView) -> str:
    if found.at is None and not found.peers:
        return "This store was never synchronised: `vestige sync FOLDER`"
    rows = ((one.node, day(one.at), one.refused or "") for one in found.peers)
    listed = table(("installation", "news", "refused"), rows) if found.peers else "No other installation yet."
    last = f"\n\nLast sync: {day(found.at)}, in {found.folder}." if found.at else ""
    return f"{listed}{last}"


@registry.operation(
    "installation.peers",
    permission="admin",
    effect="none",
    example={},
    command="peers",
    title="List sync peers",
    render=render_peers,
)
def list_peers(call: Call) -> PeersView:
    """List the installations that this store synchronises with, and when it last did."""
    found = known_peers(call)
    return PeersView(
        folder=found.folder,
        at=found.at,
        total=len(found.peers),
        peers=[PeerView.of(one) for one in found.peers],
    )
