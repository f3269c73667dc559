"""The archive of transcripts: checked, compressed copies of files before their client deletes them; and what
will vanish when."""

import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, field
from pathlib import Path
from typing import IO

from vestige.core.errors import StoreCorrupt
from vestige.core.lazy_dataclass import dataclass
from vestige.engine.care.filenames import private
from vestige.engine.context import Call
from vestige.engine.recall.sessions.folders import client_folders
from vestige.engine.recall.sessions.refresh import CATALOGUE, archive_folder, held_copies, mark_as_read
from vestige.exchange.transcripts.files import expiry
from vestige.exchange.transcripts.folders import FileListing, open_regular
from vestige.exchange.transcripts.sources import CLIENTS, Source, sources
from vestige.store.contract.sessions import ArchivedFile, FileMark, SessionIndex

CHUNK = 1 << 20
LEVEL = 6
DAY = 86_400.0
MARK = "mark"
"""What of a copy's state names the file as it was: its size and the time of its change."""


@dataclass(slots=True, kw_only=True)
class TranscriptCopies:
    """What a run copied. `same`: the content is in the archive already, under this path or another."""

    files: int = 0
    copied: int = 0
    same: int = 0
    bytes: int = 0
    stored_bytes: int = 0
    unread: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiringFile:
    """A file that its client will delete, and whether the archive has it as it is now."""

    path: str
    client: str
    expires: float
    archived: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionDiagnosis:
    """The state of index and archive. `gone` are indexed files that vanished without a copy, `skipped` those
    that are never read, with the reason."""

    files: int
    unindexed: int
    expiring: list[ExpiringFile]
    gone_archived: list[str]
    gone: list[str]
    damaged: list[str]
    copies: int
    copy_bytes: int
    skipped: dict[str, str]


def archive(call: Call, index: SessionIndex, *, every_client: bool = False) -> TranscriptCopies:
    """Copy the files that clients will delete, or those of every client that keeps sessions in files."""
    with index.reading_alone() as alone:
        if alone:
            _remove_parts(archive_folder(call))
        return _copied(call, index, every_client=every_client)


def _remove_parts(folder: Path) -> None:
    """Remove what a run that was killed had begun to copy. No other process copies now."""
    for part in folder.glob(".*.part"):
        part.unlink(missing_ok=True)


def _copied(call: Call, index: SessionIndex, *, every_client: bool) -> TranscriptCopies:
    run = TranscriptCopies()
    held, marks = held_copies(call, index), index.marks()
    by_path: dict[str, list[ArchivedFile]] = {}
    for one in held:
        by_path.setdefault(one.path, []).append(one)
    wanted = [
        source
        for source in sources(client_folders(call.engine.settings), CLIENTS)
        if source.form != "database" and (every_client or source.expires_days is not None)
    ]
    for number, source in enumerate(wanted):
        call.check()
        call.progress(number, len(wanted), source.path.name)
        run.files += 1
        try:
            _copy(call, index, source, by_path.get(str(source.path), []), marks, run)
        except OSError as exc:
            run.unread[str(source.path)] = exc.strerror or type(exc).__name__
    call.progress(len(wanted), len(wanted) or None, None)
    return run


def _mark(path: Path) -> list[int]:
    status = path.stat()
    return [status.st_size, status.st_mtime_ns]


def _copy(
    call: Call,
    index: SessionIndex,
    source: Source,
    held: Sequence[ArchivedFile],
    marks: Mapping[str, FileMark],
    run: TranscriptCopies,
) -> None:
    mark = _mark(source.path)
    if any(one.state.get(MARK) == mark for one in held):
        run.same += 1
        return
    folder = archive_folder(call)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    part = folder / f".{os.getpid()}-{hashlib.sha256(str(source.path).encode()).hexdigest()[:16]}.part"
    try:
        digest, size, prefixes = _compress(source.path, part, [one.size for one in held])
        name = f"{digest[:2]}/{digest}.gz"
        target = folder / name
        if target.exists():
            run.same += 1
        else:
            _check(part, digest)
            target.parent.mkdir(exist_ok=True, mode=0o700)
            part.replace(target)
            run.copied += 1
            run.stored_bytes += target.stat().st_size
    finally:
        part.unlink(missing_ok=True)
    run.bytes += size
    state = {**source.state, "form": source.form, MARK: mark}
    made = ArchivedFile(
        path=str(source.path), client=source.client, name=name, sha256=digest, size=size,
        archived=call.engine.now().timestamp(), state=state,
    )  # fmt: skip
    # A copy whose content the new one begins with is no longer needed; one of another content stays.
    covered = [one for one in held if one.sha256 != digest and prefixes.get(one.size) == one.sha256]
    _catalogue(folder, made)
    index.archive([made], replaced=covered)
    read = marks.get(str(source.path))
    if read is not None and [read.checkpoint["size"], read.checkpoint["modified_ns"]] == mark == [
        size,
        mark[1],
    ]:
        mark_as_read(index, made, folder)
    kept = {one.name for one in index.archived()}
    for one in covered:
        if one.name not in kept:
            (folder / one.name).unlink(missing_ok=True)


def _catalogue(folder: Path, made: ArchivedFile) -> None:
    """Add a line for a copy, in one write after a line break: a torn line before it spoils only itself."""
    line = f"\n{json.dumps(asdict(made), sort_keys=True)}\n".encode()
    with open(folder / CATALOGUE, "ab", buffering=0, opener=private) as file:
        file.write(line)
        os.fsync(file.fileno())


def _compress(path: Path, part: Path, sizes: Sequence[int]) -> tuple[str, int, dict[int, str]]:
    """Copy a file compressed. Returns the hash and size of what was read, and the hash of what it begins
    with up to each of these sizes."""
    whole, size, prefixes = hashlib.sha256(), 0, {}
    ends = sorted(set(sizes))
    with open_regular(path) as source, open(part, "wb", opener=private) as raw:
        with gzip.GzipFile(filename="", mode="wb", compresslevel=LEVEL, fileobj=raw, mtime=0) as packed:
            while data := source.read(CHUNK):
                while ends and size + len(data) >= ends[0]:
                    before = whole.copy()
                    before.update(data[: ends[0] - size])
                    prefixes[ends.pop(0)] = before.hexdigest()
                whole.update(data)
                packed.write(data)
                size += len(data)
        raw.flush()
        os.fsync(raw.fileno())
    return whole.hexdigest(), size, prefixes


def _check(path: Path, digest: str) -> None:
    """Read a copy back; StoreCorrupt if it does not hold what was copied."""
    if copy_hash(path) != digest:
        raise StoreCorrupt(
            f"The copy {path.name} does not hold what was written to it.", hint="Check the disk."
        )


def copy_hash(path: Path) -> str:
    """The hash of what a copy holds; empty if it cannot be read."""
    whole = hashlib.sha256()
    try:
        file: IO[bytes]
        with gzip.open(path, "rb") as file:  # type: ignore[assignment]  # a file of bytes, though not typed as one
            while data := file.read(CHUNK):
                whole.update(data)
    except (OSError, EOFError, ValueError, zlib.error):
        return ""
    return whole.hexdigest()


def diagnose(call: Call, index: SessionIndex, *, check: bool = False) -> SessionDiagnosis:
    """What is indexed and archived, and what will vanish when. `check` reads every copy through."""
    listing = FileListing()
    found = list(sources(client_folders(call.engine.settings), CLIENTS, listing))
    marks, held = index.marks(), index.archived()
    current = {(one.path, *one.state.get(MARK, ())) for one in held}
    expiring = []
    for source in found:
        try:
            when = expiry(source)
            if when is not None:
                archived = (str(source.path), *_mark(source.path)) in current
                expiring.append(
                    ExpiringFile(path=str(source.path), client=source.client, expires=when, archived=archived)
                )
        except OSError:
            continue  # it vanished just now
    here = {str(source.path) for source in found}
    copied = {one.path for one in held}
    folder = archive_folder(call)
    vanished = sorted(path for path in marks if path not in here and not Path(path).is_relative_to(folder))
    names = {one.name: one.sha256 for one in held}
    return SessionDiagnosis(
        files=len(found),
        unindexed=len(here - marks.keys()),
        expiring=sorted(expiring, key=lambda one: one.expires),
        gone_archived=[path for path in vanished if path in copied],
        gone=[path for path in vanished if path not in copied],
        damaged=sorted(name for name, digest in names.items() if _is_damaged(folder / name, digest, check)),
        copies=len(names),
        copy_bytes=sum(path.stat().st_size for name in names if (path := folder / name).exists()),
        skipped=listing.skipped,
    )


def _is_damaged(path: Path, digest: str, check: bool) -> bool:
    return not path.exists() or (check and copy_hash(path) != digest)
