"""Meeting other installations in a folder: take in what they left there, then leave our own.

A file per installation, which only it writes. Taking one in again changes nothing, so all that is remembered
of the others is which file has been seen (docs/adr/0017-sync-through-a-folder.md). Our own names are
remembered too: a store that was restored is a new installation, and removes what it left under its former
name.
"""

import logging
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from vestige.core.documents import Document
from vestige.core.errors import InvalidInput, StoreError, VestigeError
from vestige.core.models import EVERYTHING
from vestige.engine.care.filenames import absolute
from vestige.engine.context import Call
from vestige.engine.exchange.export import write_portable
from vestige.engine.exchange.import_portable import embed_missing, import_portable
from vestige.engine.exchange.import_secrets import Holding, united
from vestige.exchange.portable.file import PortableContents
from vestige.store.contract.changes import Put

logger = logging.getLogger(__name__)

SUFFIX = ".vestige.jsonl.gz"
PEER = "peer"
SELF = "self"
"""The document that says under which names this installation has left files. No file is called so."""
DIGEST_BYTES = 16
CHUNK_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Met:
    """A file of another installation: `new`, `known` (nothing has changed in it) or `unusable` (why)."""

    file: str
    state: str
    added: int = 0
    changed: int = 0
    ended: int = 0
    reason: str | None = None
    holdings: tuple[Holding, ...] = ()
    digest: str | None = None
    """Of the file, if all that is in it is here now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Synced:
    """Whom we met, what our own file holds, and whether it had to be written.

    `removed` are files that we had left under a former name, `holdings` records that came in with secrets.
    """

    folder: Path
    file: Path
    met: tuple[Met, ...]
    contents: PortableContents
    written: bool
    removed: tuple[str, ...]
    holdings: tuple[Holding, ...]
    embedded: int
    note: str | None = None


def sync(call: Call, folder: Path) -> Synced:
    """Unite with every other installation that has left a file in the folder, and leave ours."""
    engine = call.engine
    folder = absolute(folder)
    own = folder / f"{engine.store.node}{SUFFIX}"
    with engine.store.alone("sync"), _file_errors(folder):
        _make_folder(folder)
        _introduce(call)
        files = sorted(path for path in folder.glob(f"*{SUFFIX}") if path != own and path.is_file())
        met = []
        for number, path in enumerate(files):
            call.check()
            call.progress(number, len(files) + 1, f"file {number + 1} of {len(files)}")
            met.append(_meet(call, path))
        embedded, note = embed_missing(call)
        call.progress(len(files), len(files) + 1, "our own memories")
        contents, written = _leave(call, own)
        removed = _clear(call, folder, met)
    return Synced(
        folder=folder,
        file=own,
        met=tuple(met),
        contents=contents,
        written=written,
        removed=removed,
        holdings=united([one.holdings for one in met]),
        embedded=embedded,
        note=note,
    )


def _make_folder(folder: Path) -> None:
    """Make the folder itself, but none above it: those are missing when a name is mistyped, or a disk is not
    there."""
    if folder.exists() and not folder.is_dir():
        raise InvalidInput(
            f"{folder} is not a folder.",
            hint="Give a folder that the other machines see too.",
            details={"argument": "folder"},
        )
    if not folder.parent.is_dir():
        raise InvalidInput(
            f"There is no folder {folder.parent}.",
            hint="Check the name, and that the disk or service it is on is there.",
            details={"argument": "folder"},
        )
    folder.mkdir(mode=0o700, exist_ok=True)


def _meet(call: Call, path: Path) -> Met:
    """Take one file in, unless it is one that we have seen. A file that is not whole yet, or cannot be read,
    waits for the next time; the others are not held up by it."""
    if not path.name.isprintable():
        return _unusable(path, "Its name is not text.")
    try:
        digest = _digest(path)
        known = _noted(call, path.name)
        if known is not None and known.body.get("digest") == digest:
            return Met(file=path.name, state="known", digest=digest)
        done = import_portable(call, path, embed=False)
        whole = not done.waiting
        if whole:
            _note(call, path.name, {"digest": digest})
    except InvalidInput as exc:
        return _unusable(path, exc.message)
    except OSError as exc:
        return _unusable(path, f"It cannot be read: {exc.strerror or exc}.")
    return Met(
        file=path.name,
        state="new",
        added=done.added,
        changed=done.changed,
        ended=done.ended,
        holdings=done.holdings,
        digest=digest if whole else None,
    )


def _unusable(path: Path, reason: str) -> Met:
    name = path.name if path.name.isprintable() else ascii(path.name)
    logger.warning("%s was left for the next time: %s", name, reason)
    return Met(file=name, state="unusable", reason=reason)


# -- our own names -------------------------------------------------------------------------------------


def _introduce(call: Call) -> None:
    """Note the name that we go by, before there is a file of that name."""
    names, removed = _ourselves(call)
    if call.engine.store.node not in names:
        _note(call, SELF, {"names": [*names, call.engine.store.node], "removed": removed})


def _ourselves(call: Call) -> tuple[list[str], list[str]]:
    """The names that we have gone by, and the files under them that we have removed."""
    noted = _noted(call, SELF)
    return (noted.body["names"], noted.body["removed"]) if noted else ([], [])


def _clear(call: Call, folder: Path, met: Sequence[Met]) -> tuple[str, ...]:
    """Remove what we left under former names, now that all of it is in our file: nobody would ever take out
    of it what is purged. Only once: a file that comes back is that of a store that ours is a copy of."""
    names, removed = _ourselves(call)
    former = {f"{name}{SUFFIX}" for name in names if name != call.engine.store.node}
    gone = [
        one.file
        for one in met
        if one.file in former and _place(folder / one.file) not in removed and _removed(folder, one)
    ]
    if gone:
        _note(call, SELF, {"names": names, "removed": [*removed, *(_place(folder / name) for name in gone)]})
    return tuple(gone)


def _place(path: Path) -> str:
    """A path as it can be noted: not every one is text."""
    return blake2b(os.fsencode(path), digest_size=DIGEST_BYTES).hexdigest()


def _removed(folder: Path, met: Met) -> bool:
    """Remove a file if it is the one that was taken in."""
    path = folder / met.file
    try:
        if met.digest is None or _digest(path) != met.digest:
            return False
        path.unlink()
    except OSError as exc:
        logger.warning("%s, which we left under a former name, was not removed: %s", path, exc.strerror)
        return False
    return True


def _noted(call: Call, name: str) -> Document | None:
    found = call.engine.store.documents(PEER, access=EVERYTHING, ids=[name], limit=1)
    return next(iter(found), None)


def _note(call: Call, name: str, body: Mapping[str, str | list[str]]) -> None:
    now, known = call.engine.now(), _noted(call, name)
    document = Document(
        kind=PEER,
        id=name,
        body=body,
        version=1 if known is None else known.version + 1,
        created_at=now,
        updated_at=now,
    )
    call.engine.store.commit([Put(document=document, logged=False)], access=EVERYTHING)


# -- files ---------------------------------------------------------------------------------------------


def _leave(call: Call, own: Path) -> tuple[PortableContents, bool]:
    """Write our file beside the present one and put it in its place, unless they are the same: a folder
    service would send it around again."""
    handle, name = tempfile.mkstemp(prefix=".", suffix=".partial", dir=own.parent)  # made with 0600
    partial = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            contents = write_portable(call, file, zipped=True)
            file.flush()
            os.fsync(handle)
        written = not own.exists() or _digest(own) != _digest(partial)
        if written:
            partial.replace(own)
        return contents, written
    finally:
        with suppress(FileNotFoundError):
            partial.unlink()


def _digest(path: Path) -> str:
    seen = blake2b(digest_size=DIGEST_BYTES)
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            seen.update(chunk)
    return seen.hexdigest()


@contextmanager
def _file_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except VestigeError:
        raise
    except OSError as exc:
        raise StoreError(
            f"{exc.filename or folder} cannot be used: {exc.strerror or exc}.",
            hint="Check that the folder is there, can be written and has room.",
            details={"path": str(folder)},
        ) from exc
