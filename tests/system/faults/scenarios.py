"""What is killed: real operations on a real store in `folder/data`, with a clock that stands still."""

import os
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import timedelta
from io import FileIO
from pathlib import Path
from typing import Any

from testbed.world import START, HandClock, World, open_world
from tests.engine.recall.sessions.transcripts import world_at_home
from tests.store.support.index_files import SMALL
from vestige.app.app import open_app, open_database, open_ends, open_server
from vestige.core.models import ANYTHING, EVERYTHING
from vestige.core.origin import Origin
from vestige.embed.background import EmbedderSource
from vestige.embed.hashing import HashingEmbedder
from vestige.engine import embedding
from vestige.engine.care.quarantine import quarantine
from vestige.engine.care.rebuild import rebuild
from vestige.engine.care.reembed import drop_former, roll_back
from vestige.engine.context import Call
from vestige.engine.exchange import import_portable as portable
from vestige.engine.memory import bulk
from vestige.engine.project.memory.snapshot import restore_snapshot
from vestige.engine.project.place import Project
from vestige.exchange.transcripts import files
from vestige.operations.domains.domains import EXAMPLE_PROPOSAL
from vestige.operations.registry.groups import registry
from vestige.store.contract.changes import Revise
from vestige.store.sql.search import vectors
from vestige.store.sqlite.search import segments
from vestige.transports.cli.commands.restore import restore
from vestige.transports.cli.session import CliSession

SECRET = "xylophone"
OTHER_MODEL = HashingEmbedder(dimension=32)
FIRST, SECOND, LAST = 1, 2, 3
"""The processes that come to a store after the one that made it, a day after each other."""
IDS = 200
"""More than any of them gives."""


def reopened(folder: Path, process: int, *, day: int | None = None) -> AbstractContextManager[World]:
    """The store, opened by one of those processes, on its day or another one."""
    clock = HandClock(START + timedelta(days=600 + (process if day is None else day)))
    for _ in range(IDS * process):
        clock.new_id()
    return open_world(folder / "data", clock=clock)


def run(world: World, operation: str, **arguments: object) -> dict[str, Any]:
    """Run an operation as the local user does; its answer."""
    return world.app.run(registry.operations[operation], arguments, lambda *_: None).wire()


def opening(folder: Path) -> None:
    """Upgrade the store, if it is an old one."""
    with reopened(folder, FIRST):
        pass


def writing(folder: Path) -> None:
    """Remember and change, and tell outside what was acknowledged."""
    with (folder / "acknowledged").open("ab", buffering=0) as told, reopened(folder, FIRST) as world:
        for number in range(3):
            content = f"Shelf {number} holds {'granite basalt marble'.split()[number]}."
            memory_id = world.remember(content)
            told.write(f"{memory_id} {content}\n".encode())
            world.call("memory", action="edit", id=memory_id, content=f"{content} Really.")
            told.write(f"{memory_id} {content} Really.\n".encode())


def putting_back(folder: Path) -> None:
    """Write, put an earlier copy over the file in place, as `cp` does, and write again; tell outside which
    events there were."""
    database = folder / "data" / "vestige.db"
    with (folder / "events").open("ab", buffering=0) as told:
        _write_one(folder, FIRST, told)
        earlier = database.read_bytes()
        _write_one(folder, SECOND, told)
        database.write_bytes(earlier)
        _write_one(folder, LAST, told)


def _write_one(folder: Path, process: int, told: FileIO) -> None:
    with reopened(folder, process) as world:
        world.remember(f"Process {process} was here.", force_create=True)
        told.write(f"{' '.join(events_of(world))}\n".encode())


def events_of(world: World) -> set[str]:
    """The names of the events in a store, each with what happened."""
    log = world.app.engine.store.log(access=EVERYTHING)
    return {f"{event.node}:{event.seq}:{event.clock}" for event in log}


def purging(folder: Path) -> None:
    """Delete the memory that nobody should see again."""
    with reopened(folder, FIRST) as world:
        every = world.app.engine.store.find(ANYTHING, access=EVERYTHING, limit=99)
        [gone] = [record.memory.id for record in every if SECRET in record.memory.content]
        world.call("memory", action="delete", id=gone)


def publishing(folder: Path) -> None:
    """Write vectors into files, and some of the files again."""
    for name, size in SMALL.items():
        setattr(segments, name, size)
    with reopened(folder, FIRST) as world:
        store = world.app.engine.store
        store.settle()
        world.find("which stone is on shelf 7")
        memories = [one.memory for one in store.find(ANYTHING, access=EVERYTHING, limit=12)]
        moved = [replace(one, content=f"{one.content} Moved.", revision=one.revision + 1) for one in memories]
        store.commit([Revise(memory=one, reason="moved") for one in moved], access=EVERYTHING)
        store.rebuild_index()


def embedding_anew(folder: Path) -> None:
    """Change the model."""
    embedding.SLICE = vectors.LEAVING = 4
    with reopened(folder, FIRST) as world:
        engine = replace(world.app.engine, embedders=EmbedderSource.of(OTHER_MODEL))
        rebuild(Call(engine=engine), vectors=True)


def rolling_back(folder: Path) -> None:
    """Go back to the model before."""
    embedding.SLICE = vectors.LEAVING = 4
    with reopened(folder, FIRST) as world:
        roll_back(Call(engine=world.app.engine))


def dropping_former(folder: Path) -> None:
    """Remove the vectors of the model before."""
    vectors.LEAVING = 4
    with reopened(folder, FIRST) as world:
        drop_former(Call(engine=world.app.engine))


def consolidating(folder: Path) -> None:
    """Sleep."""
    with reopened(folder, FIRST) as world:
        run(world, "consolidate")


def consolidating_later(folder: Path) -> None:
    """Sleep when whoever slept before must be awake or dead."""
    with reopened(folder, SECOND) as world:
        run(world, "consolidate")


def backing_up(folder: Path) -> None:
    """Make a copy."""
    with reopened(folder, FIRST) as world:
        run(world, "backup")


def restoring_database(folder: Path) -> None:
    """Put a backup in the place of the store."""
    _restoring(folder, "other.db")


def restoring_snapshot(folder: Path) -> None:
    """Put a snapshot of a data directory in the place of the store."""
    _restoring(folder, "other.tar.gz")


def restoring_export(folder: Path) -> None:
    """Put what an export tells in the place of the store."""
    _restoring(folder, "other.jsonl")


def _restoring(folder: Path, name: str) -> None:
    session = CliSession(
        open_app=open_app,
        open_server=open_server,
        open_database=open_database,
        open_ends=open_ends,
        flags={"data_dir": str(folder / "data"), "embeddings.provider": "off"},
    )
    restore(session, str(folder / name), yes=True, dry_run=False, with_settings=False)


def importing(folder: Path) -> None:
    """Unite an export with the store."""
    portable.BATCH = 2
    with reopened(folder, FIRST) as world:
        run(world, "import", path=str(folder / "other.jsonl"))


def acknowledged(folder: Path) -> dict[str, str]:
    """What `writing` was told is stored: the last text of each memory."""
    told = folder / "acknowledged"
    lines = told.read_text(encoding="utf-8").splitlines() if told.exists() else []
    return dict(line.split(" ", 1) for line in lines)


def everything_in(folder: Path) -> bytes:
    """Every byte of every file there."""
    found = [Path(place) / name for place, _, names in os.walk(folder) for name in names]
    return b"\n".join(path.read_bytes() for path in sorted(found))


# -- Changes in several steps

SCOPE = "/project/harbour"


def local(world: World) -> Call:
    return Call(engine=world.app.engine, local=True, origin=Origin.USER)


def changing_many(folder: Path) -> None:
    """Tag everything, two memories at a time."""
    bulk.PORTION = 2
    with reopened(folder, FIRST) as world:
        asked = bulk.BulkRequest(change=bulk.BulkChange.TAG, add=("many",))
        bulk.run(local(world), asked, expected=None)


def changing_back(folder: Path) -> None:
    """Undo what `changing_many` did to its end."""
    with reopened(folder, SECOND) as world:
        for run_ in bulk.runs(local(world), limit=9):
            if "undoneAt" not in bulk.portions_of(local(world), run_)[-1].body:
                bulk.undo(local(world), run_.id)


def quarantining(folder: Path) -> None:
    """Put two memories into the review inbox."""
    with reopened(folder, FIRST) as world:
        every = world.app.engine.store.find(ANYTHING, access=EVERYTHING, limit=99)
        free = sorted(one.memory.id for one in every if not one.memory.pinned)
        quarantine(local(world), dict.fromkeys(free[:2], ("orders",)))


def accepting(folder: Path) -> None:
    """Accept that two domains become one."""
    with reopened(folder, FIRST) as world:
        run(world, "domains.accept", proposal=EXAMPLE_PROPOSAL)


def project(folder: Path) -> Project:
    return Project(root=folder, scope=SCOPE, index=folder / "code.db")


def restoring_project(folder: Path) -> None:
    """Bring the memories of a project back to a snapshot."""
    portable.BATCH = 2
    with reopened(folder, FIRST) as world:
        restore_snapshot(local(world), project(folder), folder / "project.jsonl", dry_run=False)


def reading_sessions(folder: Path) -> None:
    """Index the transcripts of a home directory, two entries at a time, and copy them."""
    files.BATCH_STEPS = 2
    with world_at_home(folder) as world:
        run(world, "sessions.index")
        run(world, "sessions.archive")
