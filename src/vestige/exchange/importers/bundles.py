"""Exports of several files: a zip archive, or the folder that it was unpacked into. Nothing is written."""

import errno
import json
import os
import stat
import struct
import zipfile
import zlib
from codecs import getincrementaldecoder
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import orjson

from vestige.core.errors import InvalidInput, TooLarge
from vestige.exchange.portable.file import MAX_VALUES, has_too_many_values

ZIP = b"PK\x03\x04"
MAX_FILES = 200_000
MAX_FILE_BYTES = 4_000_000_000
MOST_EXPANSION = 100
UNSUSPICIOUS_BYTES = 32_000_000
"""A packed file that grows beyond this, and to more than 100 times its size, is a decompression bomb. So is
an archive of such files: those of a hostile one may share their packed bytes."""
BROKEN: tuple[type[Exception], ...] = (
    zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError,
)  # fmt: skip
"""The errors of a damaged or encrypted archive, or of one that is packed by an unknown method."""
MALFORMED: tuple[type[Exception], ...] = (*BROKEN, ValueError, IndexError, OverflowError, struct.error)
"""The errors of a list of files, or of the head of one, that does not hold what it should."""
with suppress(
    ImportError
):  # a Python built without it cannot unpack such a file, and says so by RuntimeError
    from lzma import LZMAError

    BROKEN += (LZMAError,)


class Bundle:
    """The files of an export, by their names below its root. Links and special files are not files of it."""

    def __init__(self, root: Path, archive: zipfile.ZipFile | None) -> None:
        self.root, self._archive = root, archive
        self._sizes = dict(_in_archive(root, archive) if archive else _in_folder(root))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._sizes)

    def named(self, *names: str) -> str | None:
        """The first file with one of these names, in whatever folder."""
        wanted = (one for name in names for one in self._sizes if one.rpartition("/")[2] == name)
        return next(wanted, None)

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """A file for reading; InvalidInput if the archive is damaged, TooLarge for a decompression bomb."""
        self._check_size(name, MAX_FILE_BYTES)
        try:
            if self._archive is None:
                with (self.root / name).open("rb") as file:
                    yield file
            else:
                with self._unpacked(name) as packed:
                    yield packed
        except BROKEN as exc:
            raise self._not_unpacked(name, exc) from exc
        except OSError as exc:
            # bz2 reports damage by an OSError without a number; an error of the system has one.
            if self._archive is None or exc.errno is not None:
                raise
            raise self._not_unpacked(name, exc) from exc

    def _unpacked(self, name: str) -> IO[bytes]:
        assert self._archive is not None
        try:
            return self._archive.open(name)
        except MALFORMED as exc:
            raise self._not_unpacked(name, exc) from exc
        except OSError as exc:
            if exc.errno != errno.EINVAL:  # a place before the beginning of the file
                raise
            raise self._not_unpacked(name, exc) from exc

    def _not_unpacked(self, name: str, why: Exception) -> InvalidInput:
        return InvalidInput(f"{name} in {self.root} cannot be unpacked: {why}.")

    def _check_size(self, name: str, most_bytes: int) -> None:
        if name not in self._sizes:
            raise InvalidInput(f"{self.root} has no file {name}.")
        if self._sizes[name] > most_bytes:
            raise TooLarge(
                f"{name} in {self.root} has {self._sizes[name]:,} bytes; {most_bytes:,} is the most."
            )

    def load(self, name: str, most_bytes: int) -> object:
        """The JSON value of a whole file, which may have at most `most_bytes`."""
        self._check_size(name, most_bytes)
        with self.open(name) as file:
            raw = file.read(most_bytes)
            if has_too_many_values(raw):
                raise TooLarge(f"{name} in {self.root} holds more than {MAX_VALUES:,} values.")
            try:
                return orjson.loads(raw)
            except orjson.JSONDecodeError as exc:
                raise InvalidInput(f"{name} in {self.root} is not JSON: {exc}.") from exc

    def elements(self, name: str) -> Iterator[object]:
        """The elements of a JSON array, one by one."""
        with self.open(name) as file:
            yield from array_elements(file, f"{name} in {self.root}")


@contextmanager
def bundle(path: Path) -> Iterator[Bundle]:
    """The files of a zip archive or a folder."""
    if path.is_dir():
        yield Bundle(path, None)
        return
    try:
        archive = zipfile.ZipFile(path)
    except MALFORMED as exc:
        raise InvalidInput(f"{path} is not a zip archive that can be read: {exc}.") from exc
    with archive:
        yield Bundle(path, archive)


def is_archive(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(ZIP)) == ZIP


def _in_archive(path: Path, archive: zipfile.ZipFile) -> Iterator[tuple[str, int]]:
    # A name of no characters is that of a damaged list, and is no file.
    infos = [info for info in archive.infolist() if info.filename]
    if len(infos) > MAX_FILES:
        raise TooLarge(f"{path} has {len(infos):,} files; {MAX_FILES:,} is the most.")
    whole = sum(info.file_size for info in infos)
    if whole > max(UNSUSPICIOUS_BYTES, MOST_EXPANSION * path.stat().st_size):
        raise _bomb(str(path), whole)
    for info in infos:
        if info.file_size > max(UNSUSPICIOUS_BYTES, MOST_EXPANSION * info.compress_size):
            raise _bomb(f"{info.filename} in {path}", info.file_size)
        if not info.is_dir():
            yield info.filename, info.file_size


def _bomb(name: str, size: int) -> TooLarge:
    return TooLarge(
        f"{name} would unpack to {size:,} bytes, more than {MOST_EXPANSION} times its size.",
        hint="This may be a decompression bomb. If you trust it, unpack it and import the folder.",
    )


def _in_folder(folder: Path) -> Iterator[tuple[str, int]]:
    """The plain files below a folder; what is hidden is left out."""
    number = 0
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            about = (path := Path(parent, name)).lstat()
            if stat.S_ISREG(about.st_mode) and not name.startswith("."):
                number += 1
                yield path.relative_to(folder).as_posix(), about.st_size
        if number > MAX_FILES:
            raise TooLarge(f"{folder} has more than {MAX_FILES:,} files.")


# -- Long arrays

CHUNK_BYTES = 1_000_000
MAX_ELEMENT_CHARS = 128_000_000
_SPACE = " \t\r\n"
_CUT_OFF = ("", ".", "e", "E", "e+", "e-", "E+", "E-")
"""All the text that is left after a value whose rest, if it is a number, may be in the next chunk."""
_CUT_OFF_CHARS = 2


def array_elements(file: IO[bytes], name: str) -> Iterator[object]:
    """The elements of a JSON array of any length, one by one: only the current one is in memory."""
    text = _JsonText(file, name)
    if text.take() != "[":
        raise InvalidInput(f"{name} is not a JSON array.")
    if text.peek() == "]":
        return
    while True:
        yield text.value()
        sign = text.take()
        if sign == "]":
            return
        if sign != ",":
            raise InvalidInput(f"{name} is not JSON: its array is cut off, or a comma is missing.")


class _JsonText:
    """A JSON text while it is read."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._file, self._name = file, name
        self._decoder = getincrementaldecoder("utf-8-sig")()
        self._parser = json.JSONDecoder()
        self._text, self._at, self._ended = "", 0, False

    def _more(self, at_least: int = 0) -> bool:
        """Read on; False at the end of the file."""
        if self._ended:
            return False
        chunk = self._file.read(max(CHUNK_BYTES, at_least))
        self._ended = not chunk
        try:
            self._text = self._text[self._at :] + self._decoder.decode(chunk, final=self._ended)
        except UnicodeDecodeError as exc:
            raise InvalidInput(f"{self._name} is not UTF-8.") from exc
        self._at = 0
        return True

    def peek(self) -> str:
        """The next character that is not a space; "" at the end."""
        while True:
            while self._at < len(self._text) and self._text[self._at] in _SPACE:
                self._at += 1
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def take(self) -> str:
        """The same, and it is read."""
        sign = self.peek()
        self._at += len(sign)
        return sign

    def value(self) -> object:
        """The next value. What is incomplete is tried again with twice as much text."""
        self.peek()
        while True:
            self._check_values()
            try:
                found, end = self._parser.raw_decode(self._text, self._at)
            except (ValueError, RecursionError) as exc:
                left = len(self._text) - self._at
                if isinstance(exc, RecursionError) or left > MAX_ELEMENT_CHARS:
                    raise TooLarge(f"A record of {self._name} is too large or too deep.") from exc
                if not self._more(left):
                    raise InvalidInput(f"{self._name} is not JSON: {exc}.") from exc
            else:
                left_over = self._text[end : end + _CUT_OFF_CHARS + 1]  # one more tells that it is not all
                if left_over not in _CUT_OFF or not self._more():
                    self._at = end
                    return found

    def _check_values(self) -> None:
        if len(self._text) - self._at <= MAX_VALUES:  # fewer characters hold fewer values
            return
        if has_too_many_values(self._text[self._at :].encode("utf-8", "surrogatepass")):
            raise TooLarge(f"A record of {self._name} holds more than {MAX_VALUES:,} values.")
