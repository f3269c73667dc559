"""Brings the index of sessions up to date with the files of the clients.

A file that did not change costs one look at it; one that grew costs what was appended. Each part of a file is
stored with its checkpoint, so that a run can be stopped at any point. A large amount is read by several
processes, one part of a file at a time.
"""

import hashlib
import json
import os
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import asdict, field, replace
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any, TypeVar

from vestige.core.errors import VestigeError
from vestige.core.lazy_dataclass import dataclass
from vestige.core.transcripts import (
    Action,
    Entry,
    Restarted,
    Result,
    Rewound,
    RolledBack,
    SessionFacts,
    Step,
    Titled,
)
from vestige.engine.context import Call
from vestige.engine.recall.sessions.folders import client_folders
from vestige.exchange.transcripts.clean import storable, without_secrets
from vestige.exchange.transcripts.files import (
    Checkpoint,
    StepBatch,
    about,
    batches,
    is_readable_on,
    is_unchanged,
    next_batch,
)
from vestige.exchange.transcripts.folders import open_regular
from vestige.exchange.transcripts.sources import CLIENTS, Source, sources
from vestige.store.contract.sessions import ArchivedFile, FileMark, SessionIndex, StepsOfFile

PARALLEL_BYTES = 32_000_000
"""From this amount on several processes read."""
MOST_PROCESSES = 4
PART_BYTES = 1_000_000
"""The size of the parts in which a limited run reads: it ends after one."""
MOST_STATUS = 2**32
MOST_TURNS = 1_000_000
MOST_WHOLE_BYTES = 16_000_000
"""A larger file that can be read only as a whole, such as a database, waits for a run without a limit."""
CATALOGUE = "catalogue.jsonl"
"""One line for each copy in the archive, in its folder. Copies are named by their contents, so that without
this a new index could not tell whose they are."""


@dataclass(slots=True, kw_only=True)
class SessionRefresh:
    """What a run found and did. `unread` are files that could not be read, with the reason."""

    files: int = 0
    changed: int = 0
    bytes_read: int = 0
    entries: int = 0
    broken_lines: int = 0
    pending_bytes: int = 0
    unread: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingFile:
    """A file that changed, with the checkpoint that it was read up to."""

    source: Source
    before: Checkpoint | None
    bytes: int
    modified_ns: int


def refresh(
    call: Call,
    index: SessionIndex,
    *,
    clients: tuple[str, ...] = CLIENTS,
    most_bytes: int | None = None,
    most_seconds: float | None = None,
) -> SessionRefresh:
    """Store what is new, the newest files first. It ends after `most_bytes` or `most_seconds`, when the part
    that it reads is stored, and reports how much is left."""
    made = SessionRefresh()
    pending = list(_pending(call, index, clients, made))
    total = sum(one.bytes for one in pending)
    pending.sort(key=lambda one: one.modified_ns, reverse=True)  # the newest sessions can be found first
    limited = most_bytes is not None or most_seconds is not None
    together = call.local and not limited and total >= PARALLEL_BYTES and (os.cpu_count() or 1) > 1
    readable_on = [one for one in pending if together and is_readable_on(one.source)]
    alone = [one for one in pending if one not in readable_on] if readable_on else pending
    until = call.engine.monotonic() + most_seconds if most_seconds is not None else None
    run = _IndexRun(call=call, index=index, made=made, total=total, most_bytes=most_bytes, until=until)
    if readable_on:
        _read_by_processes(run, readable_on)
    for one in alone:
        # Something is read each time, however little time there is; but a large database takes too long.
        slow = limited and one.bytes > MOST_WHOLE_BYTES and not is_readable_on(one.source)
        if slow or (run.done and run.is_over):
            made.pending_bytes += one.bytes
        else:
            _read_alone(run, one, part_bytes=PART_BYTES if limited else None)
    if not limited:
        _read_copies(run, clients)
    return made


def _pending(
    call: Call, index: SessionIndex, clients: tuple[str, ...], made: SessionRefresh
) -> Iterator[PendingFile]:
    marks = index.marks()
    here: set[str] = set()
    for source in sources(client_folders(call.engine.settings), clients):
        call.check()
        here.add(str(source.path))
        made.files += 1
        yield from _changed(
            source, marks[str(source.path)].checkpoint if str(source.path) in marks else None, made
        )
    for archived in held_copies(call, index):  # of files that are gone
        if archived.client in clients and archived.path not in here:
            yield from _changed_copy(call, archived, marks, made)


def _changed_copy(
    call: Call, archived: ArchivedFile, marks: Mapping[str, FileMark], made: SessionRefresh
) -> Iterator[PendingFile]:
    """The copy, if it has not been read and its content was not indexed when it was made."""
    source = archived_source(archive_folder(call), archived)
    mark = marks.get(str(source.path))
    for one in _changed(source, mark.checkpoint if mark else None, made):
        made.files += 1
        yield one


def _read_copies(run: "_IndexRun", clients: tuple[str, ...]) -> None:
    """Read the copies of files that are there with another content. What a file still begins with was read
    with it."""
    marks, folder = run.index.marks(), archive_folder(run.call)
    for archived in held_copies(run.call, run.index):
        if archived.client not in clients or not Path(archived.path).is_file():
            continue
        for one in _changed_copy(run.call, archived, marks, run.made):
            run.call.check()
            if not _begins_with(Path(archived.path), archived):
                _read_alone(run, one, part_bytes=None)
                continue
            run.made.files -= 1
            mark = marks.get(archived.path)
            if mark and mark.checkpoint["modified_ns"] and mark.checkpoint["size"] >= archived.size:
                mark_as_read(run.index, archived, folder)


def _begins_with(path: Path, archived: ArchivedFile) -> bool:
    """Whether a file still begins with the content of its copy."""
    digest, left = hashlib.sha256(), archived.size
    try:
        with open_regular(path) as file:
            while left and (data := file.read(min(left, 1 << 20))):
                digest.update(data)
                left -= len(data)
    except OSError:
        return False
    return not left and digest.hexdigest() == archived.sha256


def mark_as_read(index: SessionIndex, archived: ArchivedFile, folder: Path) -> None:
    """Note that what a copy holds is indexed."""
    path = folder / archived.name
    index.store(
        StepsOfFile(client=archived.client, path=str(path), before=None, after=asdict(about(path)), steps=())
    )


def archive_folder(call: Call) -> Path:
    return call.engine.settings.data_dir / "session-archive"


def held_copies(call: Call, index: SessionIndex) -> list[ArchivedFile]:
    """The copies in the archive. An index that was lost learns of them from the catalogue beside them."""
    held = index.archived()
    if not held:
        held = catalogued(archive_folder(call))
        if held:
            index.archive(held)
    return held


def catalogued(folder: Path) -> list[ArchivedFile]:
    """The copies that the catalogue names and that are there, each as it was named last."""
    found: dict[tuple[str, str], ArchivedFile] = {}
    try:
        lines = (folder / CATALOGUE).read_bytes().split(b"\n")
    except OSError:
        return []
    for line in lines:
        try:
            one = ArchivedFile(**json.loads(line))
            if one.is_copy and (folder / one.name).is_file():
                found[one.path, one.sha256] = one
        except (ValueError, TypeError):
            continue  # a line that was not written to its end
    return list(found.values())


def archived_source(folder: Path, archived: ArchivedFile) -> Source:
    state = dict(archived.state)
    form = state.pop("form", "lines")
    return Source(client=archived.client, path=folder / archived.name, form=form, state=state)


def _changed(source: Source, held: dict[str, object] | None, made: SessionRefresh) -> Iterator[PendingFile]:
    before = Checkpoint(**held) if held is not None else None  # type: ignore[arg-type]  # as it was stored
    try:
        now = about(source.path)
    except OSError as exc:
        made.unread[str(source.path)] = exc.strerror or type(exc).__name__
        return
    if not is_unchanged(now, before):
        grown = now.size - before.offset if before is not None and is_readable_on(source) else now.size
        size = grown if grown > 0 else now.size
        yield PendingFile(source=source, before=before, bytes=size, modified_ns=now.modified_ns)


@dataclass(slots=True, kw_only=True)
class _IndexRun:
    """One run: what it stores, and how far it is."""

    call: Call
    index: SessionIndex
    made: SessionRefresh
    total: int
    done: int = 0
    most_bytes: int | None = None
    until: float | None = None
    """A time of the engine's monotonic clock."""

    @property
    def is_over(self) -> bool:
        """Whether as much was read, or as much time passed, as the caller allows."""
        if self.most_bytes is not None and self.done >= self.most_bytes:
            return True
        return self.until is not None and self.call.engine.monotonic() >= self.until

    def store(self, source: Source, before: Checkpoint | None, batch: StepBatch) -> bool:
        """Store a prepared batch; False if another process stored this part of the file."""
        self.call.check()
        stored = self.index.store(
            StepsOfFile(
                client=source.client,
                path=str(source.path),
                before=asdict(before) if before is not None else None,
                after=asdict(batch.checkpoint),
                steps=batch.steps,
            )
        )
        self.done += batch.bytes_read
        self.made.bytes_read += batch.bytes_read
        self.made.broken_lines += batch.broken_lines
        if batch.damage is not None:
            self.made.unread[str(source.path)] = batch.damage
        self.made.entries += sum(isinstance(step, Entry) for step in batch.steps)
        self.call.progress(min(self.done, self.total), self.total or None, source.path.name)
        return stored

    def fail(self, source: Source, error: VestigeError | OSError) -> None:
        if isinstance(error, VestigeError):
            self.made.unread[str(source.path)] = error.message
        else:
            self.made.unread[str(source.path)] = error.strerror or type(error).__name__


def _read_alone(run: _IndexRun, one: PendingFile, *, part_bytes: int | None) -> None:
    before, begun = one.before, run.done
    run.made.changed += 1
    try:
        for batch in batches(one.source, before, part_bytes=part_bytes):
            ready = replace(batch, steps=prepared(batch.steps))
            if not run.store(one.source, before, ready):
                return
            before = batch.checkpoint
            if run.is_over and is_readable_on(one.source) and not before.modified_ns:
                run.made.pending_bytes += max(1, one.bytes - (run.done - begun))
                return
    except (_Unreadable, OSError) as exc:
        run.fail(one.source, exc)


def _read_by_processes(run: _IndexRun, files: list[PendingFile]) -> None:
    waiting = deque(files)
    run.made.changed += len(files)
    running: dict[Future[tuple[StepBatch | None, bool]], tuple[Source, Checkpoint | None]] = {}
    processes = min(MOST_PROCESSES, os.cpu_count() or 1)
    pool = ProcessPoolExecutor(processes, mp_context=get_context("spawn"), initializer=end_with_parent)
    try:
        while waiting or running:
            while waiting and len(running) < 2 * processes:
                one = waiting.popleft()
                running[pool.submit(read_part, one.source, one.before)] = (one.source, one.before)
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                source, before = running.pop(future)
                try:
                    batch, last = future.result()
                except (_Unreadable, OSError) as exc:
                    run.fail(source, exc)
                    continue
                if batch is not None and run.store(source, before, batch) and not last:
                    after = batch.checkpoint
                    running[pool.submit(read_part, source, after)] = (source, after)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def end_with_parent() -> None:
    """Have this process end when the one that started it does: one that is killed cannot stop its workers,
    which would wait for work for ever."""
    parent = parent_process()
    if parent is not None:

        def watch() -> None:
            parent.join()
            os._exit(1)

        threading.Thread(target=watch, name="vestige-parent", daemon=True).start()


_Unreadable = VestigeError
"""A damaged database of a client, or a part of Vestige that is not installed: the file is named, and the
rest goes on."""


def read_part(source: Source, before: Checkpoint | None) -> tuple[StepBatch | None, bool]:
    """The next part of a file, prepared; runs in a process of its own."""
    batch, last = next_batch(source, before)
    return (replace(batch, steps=prepared(batch.steps)) if batch is not None else None), last


# -- Preparing steps for the index


_Named = TypeVar("_Named", Entry, SessionFacts, Titled, Rewound, RolledBack, Restarted, Action, Result)


def prepared(steps: Iterable[Step]) -> list[Step]:
    """The steps without secrets, with the repository of each folder, in text that can be stored."""
    folders: dict[str, str | None] = {}
    made: list[Step] = []
    for step in steps:
        match step:
            case Entry():
                made.append(_clean_entry(step))
            case SessionFacts():
                if step.cwd and not step.repository:
                    if step.cwd not in folders:
                        folders[step.cwd] = repository_of(step.cwd)
                    step = replace(step, repository=folders[step.cwd])
                made.append(_clean_facts(step))
            case Titled():
                made.append(replace(_named(step, "session", "leaf"), title=_clean(step.title)))
            case RolledBack():
                made.append(replace(_named(step, "session"), turns=max(0, min(step.turns, MOST_TURNS))))
            case Rewound():
                made.append(_named(step, "session", "uid"))
            case Restarted():
                made.append(_named(step, "session"))
    return made


def _clean_entry(step: Entry) -> Entry:
    return replace(
        _named(step, "session", "uid", "parent", "group"),
        text=_clean(step.text),
        thought=_clean(step.thought),
        output=_clean(step.output),
        actions=tuple(map(_clean_action, step.actions)),
        results=tuple(replace(_named(one, "id"), status=_status(one.status)) for one in step.results),
    )


def _clean_facts(step: SessionFacts) -> SessionFacts:
    made = _named(step, "id", "cwd", "repository", "branch", "parent", "resume")
    return replace(made, title=_clean(made.title)) if made.title else made


def _named(step: _Named, *names: str) -> _Named:
    """The value with these names in text that can be stored. Few have to be changed."""
    held = {name: getattr(step, name) for name in names}
    # The caller names fields of text.
    odd: dict[str, Any] = {
        name: storable(value) for name, value in held.items() if value and not value.isascii()
    }
    return replace(step, **odd) if odd else step


def _status(status: int | None) -> int | None:
    """An exit status; none for a number that no process ends with."""
    return status if status is None or abs(status) <= MOST_STATUS else None


def _clean_action(one: Action) -> Action:
    command = _clean(one.command) if one.command is not None else None
    same = command is not None and one.detail == (one.command or "")
    detail = (command or "") if same else _clean(one.detail)
    return replace(
        _named(one, "id", "name"),
        command=command,
        detail=detail,
        files=tuple(map(storable, one.files)),
        status=_status(one.status),
    )


def _clean(text: str) -> str:
    return without_secrets(storable(text)) if text else text


def repository_of(cwd: str) -> str | None:
    """The folder of the repository around a folder, if it is still there."""
    folder = Path(cwd)
    if not folder.is_absolute():
        return None
    try:
        return next((str(one) for one in (folder, *folder.parents) if (one / ".git").exists()), None)
    except (OSError, ValueError):
        return None
