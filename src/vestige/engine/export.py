"""Writing memories to a file, a batch at a time, that appears whole or not at all."""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from vestige.engine.context import Call
from vestige.engine.filenames import check_file_name, under_free_name
from vestige.engine.history import as_known
from vestige.errors import InvalidInput, StoreError
from vestige.models import Filter, Record

EXPORTS = "exports"
BATCH = 2_000
FRAMES = {"json": (b"[\n", b",\n", b"\n]\n"), "jsonl": (b"", b"\n", b"\n")}
"""What stands before the first memory, between two, and after the last, by format."""


def export(
    call: Call, where: Filter, *, name: str | None, form: str, write: Callable[[Record], bytes]
) -> tuple[Path, int]:
    """Write every memory that matches to a new file in the folder of exports; its path, and how many.

    Without a name it gets a dated one.
    """
    engine = call.engine
    folder = engine.settings.data_dir / EXPORTS

    def make(path: Path) -> tuple[Path, int]:
        total = engine.store.count(where, access=call.access)
        with _new_file(path) as file:
            return path, _write_all(call, where, form, write, file, total)

    if name is None:
        return under_free_name(folder, "memories", f".{form}", now=engine.now(), make=make)
    check_file_name(name, folder=EXPORTS, example="memories.json")
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
def _new_file(path: Path) -> Iterator[BinaryIO]:
    """A file that gets its name when the block ends well, readable by its owner only, never over another."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if path.exists():
            raise _exists(path)
        handle, partial = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".partial")  # made with 0600
        try:
            with os.fdopen(handle, "wb") as file:
                yield file
                file.flush()
                os.fsync(handle)
            _publish(Path(partial), path)
        finally:
            Path(partial).unlink(missing_ok=True)
    except OSError as exc:
        raise StoreError(
            f"The export {path} cannot be written: {exc.strerror}.",
            hint="Check that the folder can be written and has room.",
        ) from exc


def _publish(partial: Path, path: Path) -> None:
    try:
        os.link(partial, path)
    except FileExistsError as exc:
        raise _exists(path) from exc
    except OSError:  # a file system without hard links
        if path.exists():
            raise _exists(path) from None
        partial.rename(path)


def _exists(path: Path) -> InvalidInput:
    return InvalidInput(
        f"{path} exists already.",
        hint="Give another name; nothing is overwritten.",
        details={"argument": "path"},
    )
