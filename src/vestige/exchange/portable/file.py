"""A portable file: a first line that identifies it, a line for each history, a last line that seals them.

The seal comes last, so a reader must have read all of it before trusting any of it.
"""

import gzip
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from hashlib import blake2b
from io import BufferedReader
from itertools import islice
from typing import BinaryIO, Protocol

import orjson

from vestige.core.errors import InvalidInput, TooLarge, VestigeError
from vestige.core.lazy_dataclass import dataclass
from vestige.embed.protocol import Signature
from vestige.exchange.portable.lines import Place, decode_history, encode_history, line, place
from vestige.exchange.portable.values import ObjectFields, optional, text
from vestige.exchange.portable.vectors import decode_signature, encode_signature
from vestige.store.merge.absorb import check
from vestige.store.merge.histories import DocumentHistory, EdgeHistory, EntityHistory, MemoryHistory
from vestige.store.merge.union import edge

FORMAT = "vestige.portable.v1"
FAMILY = "vestige.portable."
MAX_LINE_BYTES = 128 * 1024 * 1024
"""The longest line. A memory with its whole history is one line: more than 125 rewritings of the longest
text. In memory a line takes up to five times its size, where its texts have characters of four bytes."""

MOST_EXPANSION = 50
UNSUSPICIOUS_BYTES = 32 * 1024 * 1024
"""A packed file that grows beyond this, and to more than 50 times its size, is a decompression bomb."""

MAX_VALUES = 2_000_000
"""The most JSON values of a line. In memory a value takes up to 80 bytes, so that a line of empty lists would
take 30 times its size. A memory has them after about 150,000 events."""
_QUOTE = ord('"')
_SIGNS = (b",", b"[", b"{")
_STRING_OR_SIGN = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[,\[{]', re.DOTALL)

GZIP = b"\x1f\x8b"
UNREADABLE = (OSError, EOFError, zlib.error)
"""The errors of reading: those of the disk, and of a truncated or damaged packed file."""

DIGEST_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class PortableContents:
    """The contents of a portable file: its memories, edges and documents, the deleted memories, and the
    `lines` between the first and the last.

    `signature` is that of its vectors. Files with the same contents have the same `digest`.
    """

    signature: Signature | None
    lines: int
    memories: int
    deleted: int
    edges: int
    documents: int
    digest: str


class Readable(Protocol):
    """A file that is read line by line."""

    def readline(self, size: int, /) -> bytes:
        """A line with its end, or its first `size` bytes."""

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes."""


class Writable(Protocol):
    def write(self, data: bytes, /) -> int:
        """Write these bytes."""


class Seal:
    """Counts the lines of a file and computes its last line."""

    def __init__(self, signature: Signature | None) -> None:
        self._signature = signature
        self._hash = blake2b(digest_size=DIGEST_BYTES)
        self._lines = 0
        self._counts: Counter[type[EntityHistory]] = Counter()
        self._deleted: set[str] = set()

    def take(self, raw: bytes, life: EntityHistory | None = None) -> None:
        """Count a line; the first one has no history."""
        self._hash.update(raw)
        if life is not None:
            self._lines += 1
            self._counts[type(life)] += self._is_there(life)

    def _is_there(self, life: EntityHistory) -> bool:
        match life:
            case MemoryHistory(versions=()):
                self._deleted.add(life.memory_id)
                return False
            case EdgeHistory():  # memories came before
                return edge(life) is not None and self._deleted.isdisjoint((life.source_id, life.target_id))
            case DocumentHistory():
                return life.document is not None
            case _:
                return True

    @property
    def contents(self) -> PortableContents:
        """The contents so far."""
        return PortableContents(
            signature=self._signature,
            lines=self._lines,
            memories=self._counts[MemoryHistory],
            deleted=len(self._deleted),
            edges=self._counts[EdgeHistory],
            documents=self._counts[DocumentHistory],
            digest=self._hash.hexdigest(),
        )

    def last_line(self) -> bytes:
        """The line that ends the file."""
        seen = self.contents
        return line({"type": "end", "lines": seen.lines, "digest": seen.digest})


class Writer:
    """Writes a portable file: histories in their order, then `end`."""

    def __init__(self, file: Writable, signature: Signature | None) -> None:
        """Write the first line; with a signature, vectors of it are written too."""
        self._file = file
        self._signature = signature
        self._seal = Seal(signature)
        first = line({"format": FORMAT, "vectors": encode_signature(signature) if signature else None})
        self._seal.take(first)
        file.write(first)

    def add(self, life: EntityHistory) -> None:
        """Write one history."""
        raw = line(encode_history(life, self._signature))
        if len(raw) > MAX_LINE_BYTES:
            raise TooLarge(
                f"The history of {' '.join(place(life)[1:]).strip()} takes {len(raw):,} bytes;"
                f" at most {MAX_LINE_BYTES:,} can be written.",
                hint="Use `vestige backup`, or leave this memory out.",
            )
        if has_too_many_values(raw):
            raise TooLarge(
                f"The history of {' '.join(place(life)[1:]).strip()} holds more than {MAX_VALUES:,} values.",
                hint="Use `vestige backup`, or leave this memory out.",
            )
        self._seal.take(raw, life)
        self._file.write(raw)

    def end(self) -> PortableContents:
        """Write the last line; returns the contents of the file."""
        self._file.write(self._seal.last_line())
        return self._seal.contents


class PortableReader:
    """Reads a portable file once, front to back. A defect is an InvalidInput that names the line.

    `signature` is that of the vectors in it, `bytes_read` the number of bytes read and unpacked so far.
    `histories` may only be trusted when it has come to its end.
    """

    def __init__(self, file: Readable, size: int, now: datetime | None = None) -> None:
        """Read the first line of a file that was opened by `unpacked`; `size` is that of the file on disk.
        With `now`, events of a clock that is more than a day ahead are refused."""
        self._file = file
        self._now = now
        self._most = max(UNSUSPICIOUS_BYTES, MOST_EXPANSION * size)
        self._number = 0
        self.bytes_read = 0
        with self._naming_the_line():
            first = self._next_line()
            self.signature = _signature(first)
        self._seal = Seal(self.signature)
        self._seal.take(first)

    @property
    def contents(self) -> PortableContents:
        """The contents so far."""
        return self._seal.contents

    def histories(self) -> Iterator[EntityHistory]:
        """Every history, and then the check of the seal."""
        before: Place | None = None
        while True:
            with self._naming_the_line():
                raw = self._next_line()
                given = _fields(raw)
                kind = given.take("type", text)
                if kind == "end":
                    self._check_end(raw)
                    return
                life = decode_history(kind, given, self.signature)
                given.end()
                check(life, self._now)
                before = _after(before, life)
            self._seal.take(raw, life)
            yield life

    def _next_line(self) -> bytes:
        self._number += 1
        try:
            # One byte more than may be read, so that a bomb is not unpacked to its end.
            raw = self._file.readline(min(MAX_LINE_BYTES, self._most - self.bytes_read) + 1)
        except UNREADABLE as exc:
            raise InvalidInput(f"the file is damaged or cut off here: {exc}.") from exc
        self.bytes_read += len(raw)
        if len(raw) > MAX_LINE_BYTES:
            raise TooLarge(f"it is longer than {MAX_LINE_BYTES:,} bytes.")
        if self.bytes_read > self._most:
            raise TooLarge(f"the packed file unpacks to more than {self._most:,} bytes.")
        if not raw.endswith(b"\n"):
            raise InvalidInput("the file ends here, before its last line: it was cut off.")
        if has_too_many_values(raw):
            raise TooLarge(f"it holds more than {MAX_VALUES:,} values.")
        return raw

    def _check_end(self, raw: bytes) -> None:
        if raw != self._seal.last_line():
            raise InvalidInput("the lines before are not those that were written: the digest differs.")
        try:
            more = self._file.read(1)
        except UNREADABLE as exc:
            raise InvalidInput(f"the file is damaged at its end: {exc}.") from exc
        if more:
            raise InvalidInput("something follows after the last line.")

    @contextmanager
    def _naming_the_line(self) -> Iterator[None]:
        try:
            yield
        except VestigeError as exc:
            raise InvalidInput(
                f"Line {self._number} of the file is invalid: {exc.message}",
                hint="Get the file again from where it was exported. A newer format needs a newer Vestige.",
                details={"line": self._number},
            ) from exc


@contextmanager
def unpacked(file: BufferedReader) -> Iterator[Readable]:
    """The file itself, or its content if it is packed by gzip, which its first bytes show."""
    if file.peek(2)[:2] != GZIP:
        yield file
        return
    with gzip.GzipFile(fileobj=file, mode="rb") as inner:
        yield inner


def packed(file: BinaryIO) -> gzip.GzipFile:
    """A packing writer without a name or a time, so the same lines give the same bytes."""
    return gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0)


def _signature(first: bytes) -> Signature | None:
    """The vector signature in the first line, which must be that of such a file."""
    try:
        given = _fields(first)
        said = given.take("format", text)
    except VestigeError as exc:
        raise InvalidInput(f"the file does not begin like one of {FORMAT}.") from exc
    if said != FORMAT and said.startswith(FAMILY):
        raise InvalidInput(f"the file has the format {said[:40]}; this Vestige reads {FORMAT}.")
    if said != FORMAT:
        raise InvalidInput(f"the file has the format {said[:40]!r}, not {FORMAT}.")
    signature = given.take("vectors", optional(decode_signature))
    given.end()
    return signature


def has_too_many_values(raw: bytes, most: int | None = None) -> bool:
    """Whether the values of a JSON text would take too much memory. Signs in texts are no values."""
    most = MAX_VALUES if most is None else most
    if sum(raw.count(sign) for sign in _SIGNS) <= most:
        return False
    signs = (found for found in _STRING_OR_SIGN.finditer(raw) if raw[found.start()] != _QUOTE)
    return next(islice(signs, most, None), None) is not None


def _fields(raw: bytes) -> ObjectFields:
    try:
        return ObjectFields("line", orjson.loads(raw))
    except orjson.JSONDecodeError as exc:
        raise InvalidInput(f"it is not JSON in UTF-8: {exc}.") from exc


def _after(before: Place | None, life: EntityHistory) -> Place:
    here = place(life)
    if before is not None and here <= before:
        what = "comes a second time" if here == before else "is out of order"
        raise InvalidInput(f"{' '.join(here[1:]).strip() or 'the curve'} {what}.")
    return here
