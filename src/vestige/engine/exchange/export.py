"""Export: writes memories to a new file that appears complete or not at all.

An export holds memories as they are shown, or everything canonical in the portable format.
"""

import errno
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import BinaryIO, TypeVar

from vestige.core.errors import StoreError, StoreFull
from vestige.core.models import ANYTHING, Filter, Record
from vestige.engine.care.filenames import (
    absolute,
    check_file_name,
    ensure_folder,
    name_taken,
    publish,
    under_free_name,
)
from vestige.engine.context import Call
from vestige.engine.recall.as_known import as_known
from vestige.exchange.portable.file import PortableContents, Writer, packed
from vestige.store.merge.histories import MemoryHistory
from vestige.store.merge.portable_part import portable_parts

EXPORTS = "exports"
BATCH = 2_000
PACKED = ".gz"
FRAMES = {"json": (b"[\n", b",\n", b"\n]\n"), "jsonl": (b"", b"\n", b"\n")}
"""The bytes before the first memory, between two, and after the last, by format."""

Made = TypeVar("Made")


def export(
    call: Call, where: Filter, *, name: str | None, form: str, write: Callable[[Record], bytes]
) -> tuple[Path, int]:
    """Write every memory that matches as it is shown; returns the path of the new file, and how many."""
    total = call.engine.store.count(where, access=call.access)
    return _export(call, name, f".{form}", lambda file: _write_all(call, where, form, write, file, total))


def export_portable(
    call: Call,
    where: Filter | None,
    *,
    name: str | None,
    vectors: bool,
    folder: str = EXPORTS,
    stem: str = "memories",
    complete: bool = False,
) -> tuple[Path, PortableContents]:
    """Write everything canonical or, with a filter, what belongs to the matching memories: the path and the
    contents. A name that ends in .gz makes a packed file. Without a name, one that begins with `stem` is made
    in a `folder` of the data directory. `complete`: with found domains too, for this installation itself."""
    zipped = name is not None and name.lower().endswith(PACKED)

    def write(file: BinaryIO) -> PortableContents:
        return write_portable(call, file, where, vectors=vectors, zipped=zipped, complete=complete)

    return _export(call, name, ".vestige.jsonl", write, folder_name=folder, stem=stem)


def write_portable(
    call: Call,
    file: BinaryIO,
    where: Filter | None = None,
    *,
    vectors: bool = False,
    zipped: bool = False,
    complete: bool = False,
) -> PortableContents:
    """Write the portable form of a store, or of a part of it, to an open file; returns what is in it."""
    store, done = call.engine.store, 0
    total = store.count(where or ANYTHING, access=call.access)
    with packed(file) if zipped else nullcontext(file) as out:
        writer = Writer(out, store.signature() if vectors else None)
        for batch in store.histories(where, access=call.access, vectors=vectors):
            call.check()
            for history in batch if complete else portable_parts(batch):
                writer.add(history)
                done += isinstance(history, MemoryHistory) and bool(history.versions)
            call.progress(done, max(done, total), f"{done} of {max(done, total)} memories written")
        return writer.end()


def _export(
    call: Call,
    name: str | None,
    suffix: str,
    write: Callable[[BinaryIO], Made],
    *,
    folder_name: str = EXPORTS,
    stem: str = "memories",
) -> tuple[Path, Made]:
    """Write a new file: with a dated name in a folder of the data directory, or a given one. Only a local
    user may name a path; other callers name a file in that folder."""
    engine = call.engine
    folder = absolute(engine.settings.data_dir / folder_name)

    def make(path: Path) -> tuple[Path, Made]:
        with _new_file(path, own=folder) as file:
            return path, write(file)

    if name is None:
        return under_free_name(folder, stem, suffix, now=engine.now(), make=make)
    if call.local:
        return make(absolute(Path(name)))
    check_file_name(name, place=f"it goes into {folder_name}/", example="memories.json")
    return make(folder / name)


def _write_all(
    call: Call, where: Filter, form: str, write: Callable[[Record], bytes], file: BinaryIO, total: int
) -> int:
    before, between, after = FRAMES[form]
    done = 0
    file.write(before)
    for batch in call.engine.store.stream(where, access=call.access, batch=BATCH):
        call.check()
        for record in as_known(call, batch, where.known_at):
            file.write((between if done else b"") + write(record))
            done += 1
        call.progress(done, max(done, total), f"{done} of {max(done, total)} memories written")
    if done or form == "json":
        file.write(after)
    return done


@contextmanager
def _new_file(path: Path, *, own: Path) -> Iterator[BinaryIO]:
    """A file, private to its owner, that gets its name when the block succeeds. It overwrites nothing."""
    try:
        ensure_folder(path.parent, own=own)
        if path.exists():
            raise name_taken(path)
        handle, partial = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".partial")  # made with 0600
        try:
            with os.fdopen(handle, "wb") as file:
                yield file
                file.flush()
                os.fsync(handle)
            publish(Path(partial), path)
        finally:
            Path(partial).unlink(missing_ok=True)
    except OSError as exc:
        kind = StoreFull if exc.errno in (errno.ENOSPC, errno.EDQUOT) else StoreError
        raise kind(
            f"The export {path} cannot be written: {exc.strerror}.",
            hint="Check that the folder is writable and the disk has space.",
        ) from exc
