"""One file of vectors and token bits: how it is laid out, written, checked and mapped into memory.

    header ─ ids ─ keys ─ spans ─ tokens ─ scales ─ rests ─ codes ─ vectors ─ bits ─ asked

Files of an earlier version have no token bits and can still be read. Each part starts at a multiple of 64
bytes; all numbers are little-endian. A file is written once, under a temporary name, and never changes after
it has got its own, which holds a digest of its content.
"""

import mmap
import os
import tempfile
from hashlib import blake2b, file_digest
from pathlib import Path
from struct import Struct
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from vestige.core.lazy_dataclass import dataclass
from vestige.store.sql.search.vectors import width
from vestige.store.sqlite.search.int8 import Coded

Vectors = NDArray[np.float32]
Integers = NDArray[np.int64]

HEADER = Struct("<16sQQQQQQdQ")
COUNTED = Struct("<Q")
"""The number of tokens, behind the header."""
MAGIC = b"vestige vectors2"
WITHOUT_TOKENS = b"vestige vectors1"
ALIGNMENT = 64
SUFFIX = ".vectors"
PARTIAL = ".partial"
DIGEST_BYTES = 16


class Damaged(Exception):
    """The file is not what was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedSegment:
    """A file as the database lists it."""

    id: int
    profile: int
    first_id: int
    last_id: int
    rows: int
    file: str
    checksum: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FiledTokens:
    """The token bits of a file's memories: for each row the number of tokens of its memory, in the first row
    of each and LONGEST_TOKENS at most, then the tokens themselves. A memory without any has 0."""

    counts: NDArray[np.int32]
    bits: NDArray[np.uint8]
    asked: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """The content of a file: the vectors of a profile that were alive at the position `deaths` of the
    journal, in the order of ids. `spans` has a start and an end for each. `image` is the mapped file; None
    before it is written."""

    profile: int
    deaths: int
    ids: Integers
    keys: Integers
    spans: Integers
    coded: Coded
    vectors: Vectors
    tokens: FiledTokens | None
    image: mmap.mmap | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def intact(self) -> bool:
        """Whether the mapped file still has its size: reading beyond the end of a truncated one would kill
        the process. A file that was only removed stays readable until it is unmapped."""
        return self.image is None or self.image.size() == len(self.image)


def _layout(rows: int, dimension: int, tokens: int | None) -> dict[str, int]:
    """The offsets of the parts of a file, and of its end. `tokens` is their number; None without token
    bits."""
    sizes = {"ids": 8 * rows, "keys": 8 * rows, "spans": 16 * rows}
    if tokens is not None:
        sizes["tokens"] = 4 * rows
    sizes |= {
        "scales": 4 * rows,
        "rests": 4 * rows,
        "codes": dimension * rows,
        "vectors": 4 * dimension * rows,
    }
    if tokens is not None:
        sizes |= {"bits": width(dimension) * tokens, "asked": tokens}
    places, at = {}, HEADER.size if tokens is None else HEADER.size + COUNTED.size
    for name, size in sizes.items():
        places[name] = -(-at // ALIGNMENT) * ALIGNMENT
        at = places[name] + size
    return places | {"end": at}


def is_current(path: Path, listed: ListedSegment, dimension: int) -> bool:
    """Whether a file is there, whole, and of this version. Its content is not checked."""
    try:
        with path.open("rb") as file:
            start, size = file.read(HEADER.size + COUNTED.size), os.fstat(file.fileno()).st_size
    except FileNotFoundError:
        return False
    tokens = _tokens(start)
    return tokens is not None and size == _layout(listed.rows, dimension, tokens)["end"]


def _tokens(start: bytes | mmap.mmap) -> int | None:
    """The number of tokens, from the beginning of a file; None without token bits."""
    if len(start) < HEADER.size + COUNTED.size or start[: len(MAGIC)] != MAGIC:
        return None
    (tokens,) = COUNTED.unpack_from(start, HEADER.size)
    return int(tokens)


def write(folder: Path, content: Content) -> tuple[Path, str]:
    """Write a file under a temporary name; that name, and the digest of the content."""
    handle, name = tempfile.mkstemp(suffix=PARTIAL, dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            image = _image(content)
            file.write(image)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return Path(name), blake2b(image, digest_size=DIGEST_BYTES).hexdigest()


def name_of(content: Content, checksum: str) -> str:
    """The file's own name: the same content has the same name wherever and whenever it is written."""
    return f"{content.profile}-{content.ids[0]}-{content.ids[-1]}-{checksum}{SUFFIX}"


def read(path: Path, listed: ListedSegment, dimension: int) -> Content:
    """Map a file. Only its first parts are read and checked; OSError or Damaged when it cannot be used."""
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size < HEADER.size:
            raise Damaged("its size is wrong")
        image = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    magic, profile, wide, rows, first_id, last_id, deaths, longest, check = HEADER.unpack_from(image)
    tokens = _tokens(image)
    header = (magic if tokens is None else WITHOUT_TOKENS, profile, wide, rows, first_id, last_id)
    if header != (WITHOUT_TOKENS, listed.profile, dimension, listed.rows, listed.first_id, listed.last_id):
        raise Damaged("its header is wrong")
    layout = _layout(rows, dimension, tokens)
    if len(image) != layout["end"]:
        raise Damaged("its size is wrong")
    if crc32(memoryview(image)[layout["ids"] : layout["codes"]]) != check:
        raise Damaged("its ids are damaged")
    cells = rows * dimension
    return Content(
        profile=profile,
        deaths=deaths,
        ids=np.frombuffer(image, "<i8", rows, layout["ids"]),
        keys=np.frombuffer(image, "<i8", rows, layout["keys"]),
        spans=np.frombuffer(image, "<i8", 2 * rows, layout["spans"]).reshape(rows, 2),
        coded=Coded(
            codes=np.frombuffer(image, "i1", cells, layout["codes"]).reshape(rows, dimension),
            scales=np.frombuffer(image, "<f4", rows, layout["scales"]),
            rests=np.frombuffer(image, "<f4", rows, layout["rests"]),
            longest=longest,
        ),
        vectors=np.frombuffer(image, "<f4", cells, layout["vectors"]).reshape(rows, dimension),
        tokens=None if tokens is None else _mapped_tokens(image, layout, rows, tokens, width(dimension)),
        image=image,
    )


def _mapped_tokens(
    image: mmap.mmap, layout: dict[str, int], rows: int, tokens: int, size: int
) -> FiledTokens | None:
    counts = np.frombuffer(image, "<i4", rows, layout["tokens"])
    if int(counts.sum()) != tokens or (counts < 0).any():
        raise Damaged("its tokens are damaged")
    if not tokens:
        return None
    return FiledTokens(
        counts=counts,
        bits=np.frombuffer(image, np.uint8, tokens * size, layout["bits"]).reshape(tokens, size),
        asked=np.frombuffer(image, np.bool_, tokens, layout["asked"]),
    )


def holds(path: Path, listed: ListedSegment, dimension: int, keys: Integers) -> bool:
    """Whether a file has vectors of any of these memories, alive or not; True if it is unknown."""
    try:
        return bool(np.isin(keys, read(path, listed, dimension).keys).any())
    except (OSError, Damaged):
        return True


def verify(path: Path, listed: ListedSegment) -> None:
    """Read a file through; OSError or Damaged when it is not what was listed."""
    with path.open("rb") as file:
        digest = file_digest(file, lambda: blake2b(digest_size=DIGEST_BYTES))
    if digest.hexdigest() != listed.checksum:
        raise Damaged("its content is damaged")


def _image(content: Content) -> bytearray:
    rows, dimension = content.vectors.shape
    tokens = content.tokens
    count = 0 if tokens is None else len(tokens.asked)
    layout = _layout(rows, dimension, count)
    image = bytearray(layout["end"])
    parts: list[tuple[str, NDArray[np.generic], str]] = [
        ("ids", content.ids, "<i8"),
        ("keys", content.keys, "<i8"),
        ("spans", content.spans, "<i8"),
        ("scales", content.coded.scales, "<f4"),
        ("rests", content.coded.rests, "<f4"),
        ("codes", content.coded.codes, "i1"),
        ("vectors", content.vectors, "<f4"),
    ]
    if tokens is not None:
        parts += [("tokens", tokens.counts, "<i4"), ("bits", tokens.bits, "u1"), ("asked", tokens.asked, "?")]
    for name, part, kind in parts:
        np.frombuffer(image, dtype=kind, count=part.size, offset=layout[name])[:] = part.reshape(-1)
    check = crc32(memoryview(image)[layout["ids"] : layout["codes"]])
    HEADER.pack_into(
        image, 0, MAGIC, content.profile, dimension, rows, int(content.ids[0]), int(content.ids[-1]),
        content.deaths, content.coded.longest, check,
    )  # fmt: skip
    COUNTED.pack_into(image, HEADER.size, count)
    return image
