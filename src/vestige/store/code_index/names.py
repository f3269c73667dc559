"""The file of a project's index has a name that only this installation can know.

What is in the folder of a project may have come with it: a stranger can commit an index, or a log of SQLite
that is read with one. So the name is a keyed hash of the folder's path, and the key is in the user's own data
directory. A file of any other name was made elsewhere, and is never opened (ADR 0063).
"""

import os
from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

from vestige.core.errors import StoreError, StoreReadOnly
from vestige.store.code_index.schema import is_safe

KEY_NAME = "project-key"
KEY_BYTES = 32
_NAME_BYTES = 16
_BEGIN, _END = "code", ".db"
_BESIDE = ("-wal", "-shm", "-journal", ".lock", ".brief.lock")


class IndexNames:
    """The names of index files, by the key of an installation. The key is made with the first index."""

    def __init__(self, folder: Path, entropy: Callable[[int], bytes]) -> None:
        self._file = folder / KEY_NAME
        self._entropy = entropy

    def known(self, directory: Path) -> Path | None:
        """The index in the memory directory of a project, if this installation made one there."""
        key = self._read()
        file = None if key is None else directory / _name(directory, key)
        return file if file is not None and is_safe(file) else None

    def place(self, directory: Path) -> Path:
        """Where this installation has its index of a project, or will have it."""
        return directory / _name(directory, self._read() or self._made())

    def others(self, directory: Path) -> list[Path]:
        """The index files in a memory directory that this installation did not make for it."""
        key = self._read()
        own = "" if key is None else _name(directory, key)
        try:
            names = sorted(entry.name for entry in os.scandir(directory) if not entry.is_dir())
        except OSError:
            return []
        return [directory / name for name in names if _is_index(name) and name != own]

    def erase_others(self, directory: Path) -> int:
        """Delete what `others` finds, with the files beside each; how many there were."""
        found = self.others(directory)
        for file in found:
            for ending in ("", *_BESIDE):
                with suppress(OSError):
                    Path(f"{file}{ending}").unlink()
        return len(found)

    def _read(self) -> bytes | None:
        try:
            key = self._file.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as exc:
            raise StoreError(
                f"The key of your code indexes cannot be read: {exc.strerror}.",
                hint=f"See the permissions of {self._file}.",
            ) from exc
        # One that another process is writing right now, or that was cut off, names nothing.
        return key if len(key) == KEY_BYTES else None

    def _made(self) -> bytes:
        """The key, made now. It appears whole or not at all, and the first of two processes wins."""
        draft = self._file.with_name(f"{KEY_NAME}.{os.getpid()}")
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
                out.write(self._entropy(KEY_BYTES))
            self._put(draft)
        except OSError as exc:
            raise StoreReadOnly(
                f"The key of your code indexes cannot be written: {exc.strerror}.",
                hint=f"{self._file.parent} must be writable.",
            ) from exc
        finally:
            with suppress(OSError):
                draft.unlink()
        key = self._read()
        if key is None:
            raise StoreError(f"{self._file} is no key.", hint="Delete it; a new one is made.")
        return key

    def _put(self, draft: Path) -> None:
        try:
            os.link(draft, self._file)
        except FileExistsError:
            return
        except OSError:  # a file system without hard links
            if not self._file.exists():
                draft.replace(self._file)


def _name(directory: Path, key: bytes) -> str:
    mark = blake2b(os.fsencode(directory), key=key, digest_size=_NAME_BYTES).hexdigest()
    return f"{_BEGIN}-{mark}{_END}"


def _is_index(name: str) -> bool:
    return name.startswith(_BEGIN) and name.endswith(_END)
