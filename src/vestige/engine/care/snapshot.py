"""Snapshots: a whole data directory in one packed file, with the database, the settings and the exports.

The same files give the same bytes. A manifest at the end lists the files, so that a truncated or changed
snapshot is recognised. Only plain files are packed and unpacked. Derived files, files of running processes
and other backups are left out.
"""

import errno
import gzip
import os
import shutil
import stat
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, field
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO

import orjson

from vestige.core.errors import InvalidInput, StoreCorrupt, StoreError, StoreFull
from vestige.core.lazy_dataclass import dataclass
from vestige.settings.settings import DATABASE_NAME

FORMAT = "vestige.snapshot.v1"
MANIFEST = "manifest.json"
ENDINGS = (".tar.gz", ".tgz")
OTHERS = frozenset({"agent", "backups", "processes"})
"""Folders that are not part of a snapshot: state of hooks, other backups, and files of running processes."""

GZIP = b"\x1f\x8b"
BLOCK = tarfile.BLOCKSIZE
CHUNK = 1 << 20
LEVEL = 6
MAX_FILES = 100_000
MAX_MANIFEST_BYTES = 64 << 20
MOST_EXPANSION = 200
UNSUSPICIOUS_BYTES = 1 << 30
"""A packed file that grows beyond this, and to more than 200 times its size, was made to fill a disk."""
SPARE_BYTES = 1 << 20

Sink = Callable[[str], BinaryIO]
"""Opens the target of a packed file, by its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotFile:
    """A packed file; its name is a path with slashes, relative to the data directory."""

    name: str
    size: int
    blake2b: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotContents:
    """The files of a snapshot, and the names of files that could not be packed."""

    files: tuple[SnapshotFile, ...]
    left: tuple[str, ...] = ()


# -- Packing


def pack(folder: Path, database: Path, into: BinaryIO) -> SnapshotContents:
    """Write the files of a data directory, with a copy of its database in place of the database itself."""
    files, left = [], []
    with gzip.GzipFile(filename="", mode="wb", fileobj=into, compresslevel=LEVEL, mtime=0) as packed:
        for name, path in sorted({DATABASE_NAME: database, **dict(_files_to_pack(folder))}.items()):
            try:
                files.append(_add(packed, name, path))
            except (FileNotFoundError, tarfile.HeaderError, ValueError):  # deleted meanwhile, or a long name
                left.append(name)
        manifest = orjson.dumps(_manifest(files), option=orjson.OPT_SORT_KEYS)
        packed.write(_header(MANIFEST, len(manifest)) + manifest + bytes(-len(manifest) % BLOCK))
        packed.write(bytes(2 * BLOCK))
    return SnapshotContents(files=tuple(files), left=tuple(left))


def _files_to_pack(folder: Path) -> Iterator[tuple[str, Path]]:
    """The plain files of a data directory that belong in a snapshot; links are not followed."""
    for place, folders, names in os.walk(folder):
        here = Path(place).relative_to(folder)
        folders[:] = [name for name in folders if _belongs((*here.parts, name))]
        for name in names:
            path, relative = Path(place) / name, here / name
            own = _belongs(relative.parts) and relative != Path(DATABASE_NAME)
            if own and stat.S_ISREG(path.lstat().st_mode):
                yield relative.as_posix(), path


def _belongs(parts: tuple[str, ...]) -> bool:
    """Whether a path can be part of a snapshot: not hidden, derived, of a running process, or a backup."""
    first = parts[0].casefold()
    beside = first.startswith(DATABASE_NAME) and parts != (DATABASE_NAME,)
    hidden = any(part.startswith(".") for part in parts)
    return not (beside or hidden or first in OTHERS or first == MANIFEST)


def _add(packed: BinaryIO | gzip.GzipFile, name: str, path: Path) -> SnapshotFile:
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        packed.write(_header(name, size))
        digest, left = blake2b(digest_size=32), size
        while left and (chunk := file.read(min(CHUNK, left))):
            digest.update(chunk)
            packed.write(chunk)
            left -= len(chunk)
    if left:
        raise StoreError(f"{path} became shorter while it was read.", hint="Make the snapshot again.")
    packed.write(bytes(-size % BLOCK))
    return SnapshotFile(name=name, size=size, blake2b=digest.hexdigest())


def _header(name: str, size: int) -> bytes:
    """A header of exactly one block; tarfile refuses a name or size that would need another."""
    info = tarfile.TarInfo(name)
    info.size, info.mode = size, 0o600
    # Only GNU headers have room for a size of more than 8 GiB, and only USTAR headers for long names.
    small = size < 8**11
    block = info.tobuf(tarfile.USTAR_FORMAT if small else tarfile.GNU_FORMAT, "utf-8", "strict")
    if len(block) != BLOCK:
        raise ValueError(f"the name {name} is too long")
    return block


# -- Unpacking


def is_snapshot(path: Path) -> bool:
    """Whether a file begins like a snapshot: packed, and beginning with the header of a file."""
    try:
        with gzip.open(path) as packed:
            return packed.read(BLOCK)[257:262] == b"ustar"
    except (zlib.error, EOFError, gzip.BadGzipFile):
        return False


def check_packed(path: Path) -> None:
    """Raise StoreCorrupt for a packed file that is truncated or changed near its beginning."""
    with path.open("rb") as file:
        packed = file.read(len(GZIP)) == GZIP
    if packed:
        with _unpack_errors(path), gzip.open(path) as content:
            content.read(CHUNK)  # a small file is read to its end, where its checksum is


def check(path: Path) -> SnapshotContents:
    """Read a snapshot to the end without unpacking it; an error says what is wrong."""
    return _read(path, lambda _name: Path(os.devnull).open("wb"), lambda _size: None)


def unpack(path: Path, folder: Path) -> SnapshotContents:
    """Unpack a snapshot into an empty folder and check it. After an error, the folder must not be used."""

    def place(name: str) -> BinaryIO:
        target = folder.joinpath(*name.split("/"))
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")

    def room(size: int) -> None:
        total, _, free = shutil.disk_usage(folder)
        if total and free < size + SPARE_BYTES:  # some file systems do not say
            raise StoreFull(
                f"{path} holds a file of {size:,} bytes, and {folder} has {free:,} free.",
                hint="Free some disk space. Nothing was changed.",
                details={"path": str(path), "free": free, "needed": size + SPARE_BYTES},
            )

    return _read(path, place, room)


@dataclass(slots=True, kw_only=True)
class _UnpackState:
    """The files read so far; it refuses a file that may not follow them."""

    path: Path
    most: int
    total: int = 0
    files: dict[str, SnapshotFile] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    folders: set[str] = field(default_factory=set)

    def admit(self, name: str, size: int) -> None:
        """Accept the next file, or raise."""
        parts = tuple(name.split("/"))
        plain = name.isprintable() and not set(name) & set('\\:*?"<>|')
        if not plain or any(part in ("", ".", "..") for part in parts) or not _belongs(parts):
            raise self.refusal(f"it holds {name!r}, which is not a plain file of a data directory")
        # Some file systems do not distinguish upper and lower case.
        folded = [part.casefold() for part in parts]
        above = {"/".join(folded[:depth]) for depth in range(1, len(folded))}
        own = "/".join(folded)
        if own in self.names or own in self.folders or above & self.names:
            raise self.refusal(f"it holds {name!r} twice")
        self.names.add(own)
        self.folders |= above
        self.total += size
        if len(self.names) > MAX_FILES or self.total > self.most:
            raise self.refusal("it unpacks to far more than a snapshot of its size can hold")

    def refusal(self, why: str) -> InvalidInput:
        return InvalidInput(
            f"{self.path} cannot be unpacked as a snapshot: {why}.",
            hint="Give a file made by `vestige backup --snapshot`.",
            details={"path": str(self.path)},
        )


def _read(path: Path, sink: Sink, room: Callable[[int], None]) -> SnapshotContents:
    size = path.stat().st_size
    state = _UnpackState(path=path, most=max(UNSUSPICIOUS_BYTES, MOST_EXPANSION * size))
    with _unpack_errors(path), gzip.open(path) as packed:
        while True:
            info = _info(_read_exactly(packed, BLOCK), state)
            if info.name == MANIFEST:
                break
            state.admit(info.name, info.size)
            room(info.size)
            with sink(info.name) as target:
                state.files[info.name] = _extract(packed, info, target)
        if info.size > MAX_MANIFEST_BYTES:
            raise state.refusal("its manifest is too long")
        manifest = _read_exactly(packed, info.size)
        ended = _read_exactly(packed, -info.size % BLOCK + 2 * BLOCK)
        if any(ended) or packed.read(1):
            raise state.refusal("there is data after its end")
    files = tuple(state.files.values())
    if not _matches_manifest(manifest, files) or DATABASE_NAME not in state.files:
        raise _corrupt(path, "its manifest lists other files")
    return SnapshotContents(files=files)


def _info(block: bytes, state: _UnpackState) -> tarfile.TarInfo:
    """A header. Headers of links, devices and extended headers are refused, because we write none."""
    info = tarfile.TarInfo.frombuf(block, "utf-8", "strict")
    if info.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or info.size < 0:
        raise state.refusal(f"{info.name!r} is not a plain file")
    return info


def _extract(packed: gzip.GzipFile, info: tarfile.TarInfo, target: BinaryIO) -> SnapshotFile:
    digest, left = blake2b(digest_size=32), info.size
    while left:
        chunk = _read_exactly(packed, min(CHUNK, left))
        digest.update(chunk)
        target.write(chunk)
        left -= len(chunk)
    _read_exactly(packed, -info.size % BLOCK)
    return SnapshotFile(name=info.name, size=info.size, blake2b=digest.hexdigest())


def _manifest(files: Iterable[SnapshotFile]) -> dict[str, object]:
    return {"format": FORMAT, "files": [asdict(one) for one in files]}


def _matches_manifest(manifest: bytes, files: tuple[SnapshotFile, ...]) -> bool:
    try:
        return bool(orjson.loads(manifest) == _manifest(files))
    except orjson.JSONDecodeError:
        return False


def _read_exactly(packed: gzip.GzipFile, size: int) -> bytes:
    data = packed.read(size)
    if len(data) != size:
        raise EOFError("it ends too early")
    return data


@contextmanager
def _unpack_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (zlib.error, EOFError, gzip.BadGzipFile, tarfile.HeaderError, UnicodeDecodeError) as exc:
        raise _corrupt(path, str(exc)) from exc
    except OSError as exc:
        kind = StoreFull if exc.errno in (errno.ENOSPC, errno.EDQUOT) else StoreError
        raise kind(
            f"{path} cannot be unpacked: {exc.strerror or exc}.",
            hint="Check that the disk has space. Nothing was changed.",
            details={"path": str(path)},
        ) from exc


def _corrupt(path: Path, why: str) -> StoreCorrupt:
    return StoreCorrupt(
        f"{path} is damaged: {why}.", hint="Use an earlier backup.", details={"path": str(path), "cause": why}
    )
