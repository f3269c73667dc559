"""Two machines, one memory: `sync`."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from vestige.engine.context import Call
from vestige.engine.exchange.sync import sync
from vestige.operations.care.scan import HoldingsView, told_holdings, view_holdings
from vestige.operations.registry.arguments import Wire
from vestige.operations.registry.registry import registry
from vestige.operations.shared.text import count, table


class MetView(Wire):
    """A file of another installation, and what it changed here."""

    file: str
    state: str
    added: int
    changed: int
    ended: int
    reason: str | None = None


class SyncedView(Wire):
    """Whom we met in the folder, and what we left there.

    `removed` are files that this installation had left under a former name, before it was restored or copied.
    `secrets` came in with what others left.
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
    note: str | None = None


def render_synced(done: SyncedView) -> str:
    """The meeting for a person."""
    lines = []
    if done.met:
        rows = ((m.file, m.state, m.added, m.changed, m.ended, m.reason or "") for m in done.met)
        lines += [table(("file", "state", "added", "changed", "ended", ""), rows), ""]
    else:
        lines.append("Nobody else has left anything here yet.")
    own = f"{done.file}: {count(done.memories, 'memory')}"
    lines.append(own if done.written else f"{own}, unchanged")
    lines += [f"{name}: our own former file, removed" for name in done.removed]
    lines += told_holdings(done.secrets)
    return "\n".join([*lines, f"! {done.note}"] if done.note else lines)


@registry.operation(
    "sync",
    permission="admin",
    effect="write",
    example={"folder": "meeting"},
    positional=("folder",),
    lane="long",
    command_only=True,
    render=render_synced,
)
def sync_stores(
    call: Call,
    folder: Annotated[str, Field(min_length=1, description="A folder that the other machines see too.")],
) -> SyncedView:
    """Share memories with other machines through a folder.

    Takes in what each other installation has left there, then leaves everything of this one. Both may have
    changed the same memory: different fields are united, of the same one the later change holds and the
    other stays in its history, and what either deleted is deleted. The order of meetings does not matter.
    Any folder will do that others can see: a synchronised one, a network share, a stick.
    """
    done = sync(call, Path(folder))
    return SyncedView(
        folder=str(done.folder),
        file=done.file.name,
        met=[
            MetView(
                file=one.file,
                state=one.state,
                added=one.added,
                changed=one.changed,
                ended=one.ended,
                reason=one.reason,
            )
            for one in done.peers
        ],
        memories=done.contents.memories,
        written=done.written,
        removed=list(done.removed),
        secrets=view_holdings(done.holdings),
        embedded=done.embedded,
        note=done.note,
    )
