"""Reads a file of transcripts on from a checkpoint: what was appended costs what was appended.

A checkpoint names the file (device, inode), how far it was read, and the hash of the end of what was read. If
the file is another one, or that end differs, or it is shorter, then it is read from its beginning; what is
known by its id is not taken twice.

A record in a shape that no client writes costs itself. A packed file that is damaged is read as far as it
goes, and again only when it changes.
"""

import gzip
import hashlib
import importlib
import io
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import field, replace
from pathlib import Path
from typing import IO, TypeVar

from vestige.core.errors import InvalidInput, MissingExtra
from vestige.core.lazy_dataclass import dataclass
from vestige.core.transcripts import Step
from vestige.exchange.transcripts import databases
from vestige.exchange.transcripts.folders import open_regular
from vestige.exchange.transcripts.shape import Json, State, parsed
from vestige.exchange.transcripts.sources import COMPRESSED, READERS, WHOLE_READERS, Source

MAX_LINE_BYTES = 32_000_000
"""A longer line holds a picture or a file, not talk: it is passed over."""
MAX_WHOLE_BYTES = 256_000_000
TAIL_BYTES = 4_096
BATCH_BYTES = 4_000_000
BATCH_STEPS = 2_000
ARCHIVED = ".gz"
"""The end of the names of copies in the archive."""
PACKED = (COMPRESSED, ARCHIVED)
MOST_UNPACKED_BYTES, MOST_EXPANSION = 256_000_000, 200
"""A packed file that grows beyond both is a decompression bomb: only so much of it is read."""
UNFIT = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What a reader may raise for a record whose values have other types than any client writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """How far a file was read."""

    device: int = 0
    inode: int = 0
    size: int = 0
    modified_ns: int = 0
    offset: int = 0
    tail: str = ""
    state: State = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepBatch:
    """Steps of a part of a file, and the checkpoint after it."""

    steps: list[Step]
    checkpoint: Checkpoint
    bytes_read: int
    broken_lines: int = 0
    damage: str | None = None
    """Why the rest of the file cannot be read."""


def about(path: Path) -> Checkpoint:
    """What identifies a file now; nothing of it is read. A database changes in its log too."""
    status = path.stat()
    size, modified = status.st_size, status.st_mtime_ns
    log = Path(f"{path}-wal")
    if log.exists():
        beside = log.stat()
        size, modified = size + beside.st_size, max(modified, beside.st_mtime_ns)
    return Checkpoint(device=status.st_dev, inode=status.st_ino, size=size, modified_ns=modified)


def is_unchanged(now: Checkpoint, before: Checkpoint | None) -> bool:
    return before is not None and (now.device, now.inode, now.size, now.modified_ns) == (
        before.device, before.inode, before.size, before.modified_ns,
    )  # fmt: skip


def batches(
    source: Source, before: Checkpoint | None, *, part_bytes: int | None = None
) -> Iterator[StepBatch]:
    """What is new in a file since `before`, in parts that fit into memory."""
    now = about(source.path)
    if is_unchanged(now, before):
        return
    part_bytes = part_bytes or BATCH_BYTES
    if source.form == "database":
        yield from _database(source, now, before)
    elif source.form == "whole" or _is_one_object(source):
        yield from _whole(source, now)
    elif source.path.name.endswith(PACKED):
        yield from _lines(source, now, Checkpoint(state=dict(source.state)), part_bytes)
    else:
        start = before if before is not None and _continues(source.path, now, before) else None
        yield from _lines(source, now, start or Checkpoint(state=dict(source.state)), part_bytes)


def _continues(path: Path, now: Checkpoint, before: Checkpoint) -> bool:
    """Whether the file is the one that was read, grown at its end."""
    same = (now.device, now.inode) == (before.device, before.inode) and now.size >= before.offset
    return same and tail_hash(path, before.offset) == before.tail


def tail_hash(path: Path, offset: int) -> str:
    """The hash of the last bytes before an offset: most often the last line, or the end of it."""
    with open_regular(path) as file:
        begin = max(0, offset - TAIL_BYTES)
        file.seek(begin)
        return hashlib.blake2b(file.read(offset - begin), digest_size=16).hexdigest()


def _database(source: Source, now: Checkpoint, before: Checkpoint | None) -> Iterator[StepBatch]:
    # A whole copy: the index compares the old checkpoint with the one that it has.
    state: State = deepcopy(before.state) if before is not None else {}
    steps: list[Step] = []
    found = databases.steps(source.client, source.path, state)
    while (step := _next_of_database(found, source.path)) is not None:
        steps.append(step)
        if len(steps) >= BATCH_STEPS:
            # Until the end the checkpoint stays the old one: an interrupted run reads these rows again.
            yield StepBatch(steps=steps, checkpoint=before or Checkpoint(), bytes_read=0)
            steps = []
    yield StepBatch(steps=steps, checkpoint=replace(now, offset=now.size, state=state), bytes_read=now.size)


def _next_of_database(found: Iterator[Step], path: Path) -> Step | None:
    try:
        return next(found, None)
    except UNFIT as exc:
        raise InvalidInput(f"{path} has values that no client writes.") from exc


def _whole(source: Source, now: Checkpoint) -> Iterator[StepBatch]:
    document, damage = None, list[str]()
    if now.size <= MAX_WHOLE_BYTES:
        document = next(_undamaged(_document(source.path), damage), None)
    read = WHOLE_READERS.get(source.client)
    steps = None
    if document is not None and read is not None:
        steps = _steps_of(read, document, dict(source.state))
    checkpoint = replace(now, offset=now.size, state=dict(source.state))
    yield StepBatch(
        steps=steps or [],
        checkpoint=checkpoint,
        bytes_read=now.size,
        broken_lines=int(steps is None),
        damage=next(iter(damage), None),
    )


def _steps_of(read: Callable[[Json, State], Iterator[Step]], record: Json, state: State) -> list[Step] | None:
    """The steps of a record; None for one that cannot be read."""
    try:
        return list(read(record, state))
    except UNFIT:
        return None


def _document(path: Path) -> Iterator[Json | None]:
    with _opened(path) as file:
        yield parsed(file.read(MAX_WHOLE_BYTES))


def _is_one_object(source: Source) -> bool:
    """Whether a file that should have lines is one object over many lines, as Gemini CLI wrote before."""
    if source.client not in WHOLE_READERS:
        return False
    return next(_undamaged(_first_line(source.path), []), b"").strip() == b"{"


def _first_line(path: Path) -> Iterator[bytes]:
    with _opened(path) as file:
        yield file.readline(TAIL_BYTES)


def _lines(source: Source, now: Checkpoint, start: Checkpoint, part_bytes: int) -> Iterator[StepBatch]:
    read, state = READERS[source.client], dict(start.state)
    steps: list[Step] = []
    offset, batch_start, broken = start.offset, start.offset, 0
    packed = source.path.name.endswith(PACKED)
    damage: list[str] = []
    with _opened(source.path) as file:
        if offset:
            file.seek(offset)
        for line, size in _undamaged(_raw_lines(file, _most_bytes(source.path, now)), damage):
            record = parsed(line) if line is not None else None
            made = _steps_of(read, record, state) if record is not None else None
            if made is not None:
                steps += made
            elif record is None and line is not None and not line.endswith(b"\n"):
                break  # the client is writing it
            elif line is None or line.strip():
                broken += 1
            offset += size
            if offset - batch_start >= part_bytes or len(steps) >= BATCH_STEPS:
                yield _batch(
                    source.path, now, offset, dict(state), steps, offset - batch_start, broken, packed
                )
                steps, batch_start, broken = [], offset, 0
    yield replace(
        _batch(
            source.path, now, offset, dict(state), steps, offset - batch_start, broken, packed, final=True
        ),
        damage=next(iter(damage), None),
    )


def _batch(
    path: Path, now: Checkpoint, offset: int, state: State, steps: list[Step], read: int, broken: int,
    packed: bool, *, final: bool = False,
) -> StepBatch:  # fmt: skip
    """A batch with its checkpoint. One before the end has no time of change, so that the rest is read; one of
    a compressed file has no offset either, because it cannot be read on."""
    if packed:
        checkpoint = replace(now, state=state) if final else Checkpoint()
    else:
        checkpoint = replace(
            now,
            offset=offset,
            state=state,
            tail=tail_hash(path, offset),
            modified_ns=now.modified_ns if final else 0,
        )
    return StepBatch(steps=steps, checkpoint=checkpoint, bytes_read=read, broken_lines=broken)


RawLine = tuple[bytes | None, int]
_Part = TypeVar("_Part")


def _raw_lines(file: IO[bytes], most_bytes: int | None) -> Iterator[RawLine]:
    """Each line and its size; None for one that is too long."""
    read = 0
    while line := file.readline(MAX_LINE_BYTES):
        size, ended = len(line), line.endswith(b"\n")
        read += size
        while not ended and size >= MAX_LINE_BYTES and (more := file.readline(MAX_LINE_BYTES)):
            line, ended = b"", more.endswith(b"\n")
            size, read = size + len(more), read + len(more)
            if most_bytes is not None and read > most_bytes:
                break
        yield (line or None), size
        if most_bytes is not None and read > most_bytes:
            raise EOFError(f"it unpacks to more than {MOST_EXPANSION} times its size")


def _most_bytes(path: Path, now: Checkpoint) -> int | None:
    """How much is read of a packed file: of a client, or in the archive, which may come from a snapshot."""
    if not path.name.endswith(PACKED):
        return None
    return max(MOST_UNPACKED_BYTES, MOST_EXPANSION * now.size)


def _undamaged(parts: Iterator[_Part], damage: list[str]) -> Iterator[_Part]:
    """The parts up to the first that cannot be unpacked; then `damage` has the reason."""
    try:
        yield from parts
    except Exception as exc:
        if not isinstance(exc, (EOFError, zlib.error, gzip.BadGzipFile, *_zstd_errors())):
            raise
        damage.append(f"damaged: {exc}")


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    with open_regular(path) as raw:
        if path.name.endswith(ARCHIVED):
            with gzip.open(raw, "rb") as file:
                yield file  # type: ignore[misc]  # a file of bytes, though not typed as one
        elif path.name.endswith(COMPRESSED):
            with _decompressor(raw) as unpacked:
                yield unpacked
        else:
            yield raw


def _zstd_errors() -> list[type[Exception]]:
    """What the installed readers of zstd raise for a damaged file."""
    found = (sys.modules.get(name) for name in ("compression.zstd", "zstandard"))
    return [module.ZstdError for module in found if module is not None]


def _decompressor(raw: IO[bytes]) -> IO[bytes]:
    """A reader of zstd: Python's own from 3.14 on, else that of the package `zstandard`."""
    try:
        own = importlib.import_module("compression.zstd")
    except ImportError:
        pass
    else:
        opened: IO[bytes] = own.ZstdFile(raw)
        return opened
    try:
        package = importlib.import_module("zstandard")
    except ImportError as exc:
        raise MissingExtra.named("zstd", "A compressed transcript (.jsonl.zst)") from exc
    return io.BufferedReader(package.ZstdDecompressor().stream_reader(raw, read_across_frames=True))


def expiry(source: Source) -> float | None:
    """When the client will delete the file, in seconds since 1970."""
    if source.expires_days is None:
        return None
    return source.path.stat().st_mtime + 86_400 * source.expires_days


def next_batch(source: Source, before: Checkpoint | None) -> tuple[StepBatch | None, bool]:
    """The next part of a file, and whether it is the last. Only a file that can be read on has several."""
    batch = next(batches(source, before), None)
    return batch, batch is None or batch.checkpoint.modified_ns != 0


def is_readable_on(source: Source) -> bool:
    """Whether a part of the file can be read after an earlier one, by another process too."""
    return source.form == "lines" and not source.path.name.endswith(PACKED)
