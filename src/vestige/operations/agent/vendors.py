"""Memories that clients keep themselves, and rules for clients: `agent import` and `agent rules`."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from vestige.core.models import Filter, Order
from vestige.engine.agent.vendors import import_vendors, rules_change, vendor_files
from vestige.engine.context import Call
from vestige.operations.registry.arguments import FilePath, MemoryId, Switch, Wire
from vestige.operations.registry.registry import registry
from vestige.operations.shared.text import count, table

MAX_RULES = 50


class VendorView(Wire):
    """Files of a vendor: how many sections are new, known and no longer there."""

    vendor: str
    paths: list[str]
    imported: int
    present: int
    left: int
    retired: int


class VendorsImported(Wire):
    vendors: list[VendorView]
    message: str


def _render_vendors(done: VendorsImported) -> str:
    rows = [
        (one.vendor, one.imported, one.present, one.retired, ", ".join(one.paths)) for one in done.vendors
    ]
    if not rows:
        return done.message
    return f"{table(('files of', 'new', 'known', 'ended', 'where'), rows)}\n\n{done.message}"


@registry.operation(
    "agent.import",
    permission="admin",
    example={"folder": "."},
    positional=("folder",),
    title="Import memories of clients",
    command_only=True,
    render=_render_vendors,
)
def import_from_vendors(
    call: Call,
    folder: Annotated[
        FilePath, Field(min_length=1, max_length=4096, description="Folder of the project.")
    ] = ".",
) -> VendorsImported:
    """Import what clients remember themselves: the memory folder of Claude Code, memories of Codex, AGENTS.md
    and CLAUDE.md, and the notes of Serena.

    Files of the user go to /user, those of the project to its scope. A second run adds nothing, and a section
    that left its file ends in the store.
    """
    settings = call.engine.settings
    found = list(vendor_files(settings.in_home("", ""), Path(folder).resolve(), call.scope))
    done = import_vendors(call, found)
    views = [
        VendorView(
            vendor=one.vendor,
            paths=list(map(settings.shown_path, one.paths)),
            imported=one.memories.imported,
            present=one.memories.present,
            left=one.memories.left,
            retired=one.retired,
        )
        for one in done
    ]
    new = sum(one.imported for one in views)
    message = f"{count(new, 'memory')} imported." if views else "There are no memories of other clients here."
    return VendorsImported(vendors=views, message=message)


class RulesWritten(Wire):
    """A block of rules in a file; `changed` says whether the file was written."""

    path: str
    diff: str
    rules: int
    changed: bool
    message: str


@registry.operation(
    "agent.rules",
    permission="admin",
    example={"file": "AGENTS.md"},
    positional=("file",),
    title="Write rules for clients",
    command_only=True,
    render=lambda answer: f"{answer.diff}\n\n{answer.message}" if answer.diff else answer.message,
)
def rules(
    call: Call,
    file: Annotated[FilePath, Field(min_length=1, max_length=4096, description="AGENTS.md or another file.")],
    ids: Annotated[
        list[MemoryId] | None, Field(description="Memories to write. Default: pinned ones.")
    ] = None,
    write: Annotated[
        Switch, Field(description="Write the file; without it only the difference is shown.")
    ] = False,
    remove: Annotated[Switch, Field(description="Remove the block instead.")] = False,
) -> RulesWritten:
    """Write durable rules into a fenced block of a file that agents read, such as AGENTS.md.

    They are the pinned memories of the current scope, or those named by `ids`. Nothing outside the block is
    changed. Without `write` only the difference is shown.
    """
    store, now = call.engine.store, call.engine.now()
    if remove:
        records = []
    elif ids:
        records = store.get_many(ids, access=call.access)
    else:
        pinned = Filter(scope=call.scope, pinned=True, valid_at=now, include_suppressed=False)
        records = store.find(pinned, access=call.access, order=Order.OLDEST, limit=MAX_RULES)
    path = Path(file)
    change = rules_change(path, [one.memory for one in records])
    changed = write and change.after != change.before
    if changed:
        change.apply()
    what = "written" if changed else "not written: pass --write" if change.diff else "up to date"
    return RulesWritten(
        path=str(path),
        diff=change.diff,
        rules=len(records),
        changed=changed,
        message=f"{count(len(records), 'rule')} for {path.name}; {what}.",
    )
