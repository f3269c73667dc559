"""Reading a file of a project: never through a link, never from a pipe, never more than the limit.

A file that changes while it is read is read again; if it changes on, the last text counts, and its stamp is
the one from before, so that the next refresh reads it once more.
"""

import os
import stat
from hashlib import blake2b
from pathlib import Path

from vestige.core.lazy_dataclass import dataclass
from vestige.engine.project.files.fail_safe import MAX_FILE_BYTES, MAX_LINE_CHARS, NEVER, Skip, file_reason
from vestige.engine.project.files.secrets import without_secrets

HASH_BYTES = 16
TRIES = 3
_SNIFFED = 8_192
_LONG_LINES = (".md", ".mdx", ".txt", ".rst", ".ipynb", ".csv", ".json", ".jsonl", ".svg", ".xml", ".html")
"""Ends of names of files that people write, or keep, with long lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """A file that was read: its text without secrets, or why it has none."""

    path: str
    size: int
    mtime_ns: int
    hash: str
    text: str = ""
    skip: Skip | None = None
    redacted: int = 0


def read_source(root: Path, path: str) -> SourceFile | None:
    """Read one file below `root`. None if it is gone, or is no file any more."""
    for _ in range(TRIES):
        found = _read_once(root, path)
        if found is None:
            return None
        before, data, settled = found
        if settled:
            break
    return _decoded(path, before, data)


def read_text(root: Path, path: str, *, most_bytes: int) -> str | None:
    """The text of a small file below `root`, in any folder, with its secrets. None if it is gone, is a link
    or no plain file, or has more bytes or bytes that are not text."""
    found = _read_once(root, path)
    if found is None or len(found[1]) > most_bytes:
        return None
    try:
        return found[1].decode("utf-8-sig")
    except UnicodeDecodeError:
        return None


def content_hash(data: bytes) -> str:
    return blake2b(data, digest_size=HASH_BYTES).hexdigest()


def current_hash(root: Path, path: str) -> str | None:
    """The hash of a file as it is now. None if it is gone, or is no file any more."""
    found = _read_once(root, path)
    return None if found is None else content_hash(found[1])


def _read_once(root: Path, path: str) -> tuple[os.stat_result, bytes, bool] | None:
    try:
        handle = _opened(root, path)
    except (OSError, ValueError):
        return None
    try:
        before = os.fstat(handle)
        if not stat.S_ISREG(before.st_mode):
            return None
        with os.fdopen(os.dup(handle), "rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
        after = os.fstat(handle)
    except OSError:
        return None
    finally:
        os.close(handle)
    same = (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns)
    return before, data, same and len(data) == before.st_size


def _opened(root: Path, path: str) -> int:
    """Open a file, following no link on the way to it, and no way out of the project: an index can have come
    with a repository, so its paths are not trusted."""
    if not {"", ".", ".."}.isdisjoint(path.split("/")):
        raise OSError("not a path of a project")
    if os.open not in os.supports_dir_fd:  # Windows
        full = root / path
        if full.resolve() != root.resolve() / path:
            raise OSError("a link")
        return os.open(full, os.O_RDONLY)
    *folders, name = path.split("/")
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    at = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for folder in folders:
            inner = os.open(folder, flags | os.O_DIRECTORY, dir_fd=at)
            os.close(at)
            at = inner
        return os.open(name, flags, dir_fd=at)
    finally:
        os.close(at)


def _decoded(path: str, seen: os.stat_result, data: bytes) -> SourceFile:
    made = SourceFile(path=path, size=seen.st_size, mtime_ns=seen.st_mtime_ns, hash=content_hash(data))
    reason = _content_reason(path, data)
    if reason is not None:
        return _skipped(made, reason)
    text, redacted = without_secrets(data.decode("utf-8-sig", "replace"), path)
    return SourceFile(
        path=path, size=made.size, mtime_ns=made.mtime_ns, hash=made.hash, text=text, redacted=redacted
    )


def _skipped(made: SourceFile, reason: Skip) -> SourceFile:
    return SourceFile(path=made.path, size=made.size, mtime_ns=made.mtime_ns, hash=made.hash, skip=reason)


def _content_reason(path: str, data: bytes) -> Skip | None:
    if _is_never_read(path):
        return Skip.SECRET
    if len(data) > MAX_FILE_BYTES:
        return Skip.LARGE
    if b"\0" in data[:_SNIFFED]:
        return Skip.BINARY
    if not path.lower().endswith(_LONG_LINES) and _longest_line(data) > MAX_LINE_CHARS:
        return Skip.MINIFIED
    return None


def _is_never_read(path: str) -> bool:
    """Whether a walk would never have named this file: an index that did was not made by one."""
    *folders, name = path.lower().split("/")
    return not NEVER.isdisjoint(folders) or file_reason(name) is Skip.SECRET


def _longest_line(data: bytes) -> int:
    if len(data) <= MAX_LINE_CHARS:
        return 0
    return max(map(len, data.split(b"\n")))
