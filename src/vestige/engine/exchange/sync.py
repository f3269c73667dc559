"""Sync through a shared folder: merges the files that other installations left there, then writes our own.

Each installation has one file, which only it writes. Merging a file again changes nothing, so all that is
stored about the others is the digest of their file (docs/adr/0017-sync-through-a-folder.md), or why it was
refused: a refused file is read again only when it has changed, and once a day. Our own names are stored too:
a restored store is a new installation, and removes the file of its former name.

A clone of this machine writes a file of our name. So the file of our name is merged like any other, unless it
is the one that we wrote last; the merge finds the clone, and gives this store a new name.
"""

import logging
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from hashlib import blake2b, file_digest
from pathlib import Path

from vestige.core.documents import Document
from vestige.core.errors import InvalidInput, StoreError
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import EVERYTHING, MAX_LABEL_CHARS
from vestige.engine.care.filenames import absolute
from vestige.engine.context import Call
from vestige.engine.domains.arrivals import catch_up
from vestige.engine.exchange.export import write_portable
from vestige.engine.exchange.import_portable import embed_missing, import_portable
from vestige.engine.exchange.import_secrets import Holding, merge_holdings
from vestige.engine.revise import find_document, put_document
from vestige.exchange.portable.file import PortableContents
from vestige.store.merge.histories import Fork

logger = logging.getLogger(__name__)

SUFFIX = ".vestige.jsonl.gz"
PEER = "peer"
SELF = "self"
"""The document with the names under which this installation has written files. No file has this name."""
LAST = "last"
"""The document with the folder and the time of the last sync. No file has this name either."""
MOST_PEERS = 1_000
DIGEST_BYTES = 16
REFUSED_FOR = timedelta(days=1)
"""How long a refusal is remembered: a newer version may read the file, and time catches up with a clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerFile:
    """A file of another installation, or an unusable one of our name: `new`, `known` (unchanged since the
    last sync) or `unusable` (why)."""

    file: str
    state: str
    added: int = 0
    changed: int = 0
    ended: int = 0
    reason: str | None = None
    holdings: tuple[Holding, ...] = ()
    digest: str | None = None
    """Of the file, if everything in it is here now."""
    forks: tuple[Fork, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncResult:
    """The files of other installations, what our own file holds, and whether it had to be written. `removed`
    are files of our former names, `holdings` imported records that hold secrets, `forks` node ids under which
    two installations wrote."""

    folder: Path
    file: Path
    peers: tuple[PeerFile, ...]
    contents: PortableContents
    written: bool
    removed: tuple[str, ...]
    holdings: tuple[Holding, ...]
    embedded: int
    forks: tuple[Fork, ...]
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownPeer:
    """Another installation whose file a sync has read: its node, when its file last brought something or was
    refused, and why it was refused."""

    node: str
    at: datetime
    refused: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownPeers:
    """The other installations, the last one heard of first, and the folder and time of the last sync."""

    peers: tuple[KnownPeer, ...]
    folder: str | None = None
    at: datetime | None = None


def known_peers(call: Call) -> KnownPeers:
    """What syncs have left in this store about other installations."""
    own, _ = _own_names(call)
    noted = call.engine.store.documents(PEER, access=EVERYTHING, limit=MOST_PEERS)
    peers = [
        KnownPeer(node=node, at=one.updated_at, refused=one.body.get("refused", {}).get("reason"))
        for one in noted
        if one.id.endswith(SUFFIX)
        if (node := one.id.removesuffix(SUFFIX)) not in own
    ]
    last = find_document(call, PEER, LAST, access=EVERYTHING)
    return KnownPeers(
        peers=tuple(sorted(peers, key=lambda one: (one.at, one.node), reverse=True)),
        folder=last.body["folder"] if last else None,
        at=datetime.fromisoformat(last.body["at"]) if last else None,
    )


def sync(call: Call, folder: Path) -> SyncResult:
    """Merge the files of every other installation in the folder, and write ours."""
    engine = call.engine
    folder = absolute(folder)
    with engine.store.alone("sync"), _file_errors(folder):
        _make_folder(folder)
        _note_own_name(call)
        written_before = _own_file(call, folder)
        files = sorted(path for path in folder.glob(f"*{SUFFIX}") if path.is_file())
        found = []
        for number, path in enumerate(files):
            call.check()
            call.progress(number, len(files) + 1, f"file {number + 1} of {len(files)}")
            found.append(_import_peer(call, path))
        forks = tuple(dict.fromkeys(fork for one in found for fork in one.forks))
        peers = [
            one for one in found if one.file != written_before.name or one.forks or one.state == "unusable"
        ]
        _note_own_name(call)  # a new one, if another store had ours
        own = _own_file(call, folder)
        embedded, note = embed_missing(call)
        if any(one.state == "new" for one in found):
            catch_up(call)
        call.progress(len(files), len(files) + 1, "our own memories")
        contents, written = _write_own(call, own)
        removed = _remove_former(call, folder, peers)
        _note(call, LAST, {"folder": str(folder), "at": engine.now().isoformat()})
    return SyncResult(
        folder=folder,
        file=own,
        peers=tuple(peers),
        contents=contents,
        written=written,
        removed=removed,
        holdings=merge_holdings([one.holdings for one in peers]),
        embedded=embedded,
        forks=forks,
        note=note,
    )


def _make_folder(folder: Path) -> None:
    """Create the folder, but none above it: that one was mistyped, or its disk is not mounted."""
    if folder.exists() and not folder.is_dir():
        raise InvalidInput(
            f"{folder} is not a folder.",
            hint="Give a folder that the other machines see too.",
            details={"argument": "folder"},
        )
    if not folder.parent.is_dir():
        raise InvalidInput(
            f"There is no folder {folder.parent}.",
            hint="Check the name, and that its disk or service is available.",
            details={"argument": "folder"},
        )
    folder.mkdir(mode=0o700, exist_ok=True)


def _import_peer(call: Call, path: Path) -> PeerFile:
    """Merge one file, unless it is known. A file that is incomplete or unreadable waits for the next sync."""
    if not path.name.isprintable():
        return _unusable(path, "Its name is not printable text.")
    try:
        about = path.stat()
        known = find_document(call, PEER, path.name, access=EVERYTHING)
        why = _refused_before(call, known, about)
        if why is not None:
            return _unusable(path, why)
        digest = _digest(path)
        if known is not None and known.body.get("digest") == digest:
            return PeerFile(file=path.name, state="known", digest=digest)
        done = import_portable(call, path, embed=False)
        whole = not done.waiting
        if whole:
            _note_digest(call, path.name, digest)
    except InvalidInput as exc:
        if "line" in exc.details:  # of the file itself, whatever is in our store
            note = {"reason": exc.message[:MAX_LABEL_CHARS], "size": about.st_size}
            _note(call, path.name, {"refused": {**note, "mtime_ns": about.st_mtime_ns}})
        return _unusable(path, exc.message)
    except OSError as exc:
        return _unusable(path, f"It cannot be read: {exc.strerror or exc}.")
    return PeerFile(
        file=path.name,
        state="new",
        added=done.added,
        changed=done.changed,
        ended=done.ended,
        holdings=done.holdings,
        digest=digest if whole else None,
        forks=done.forks,
    )


def _refused_before(call: Call, known: Document | None, about: os.stat_result) -> str | None:
    """Why this very file was refused lately, if it was."""
    refused = None if known is None else known.body.get("refused")
    if known is None or refused is None:
        return None
    same = (refused["size"], refused["mtime_ns"]) == (about.st_size, about.st_mtime_ns)
    lately = timedelta(0) <= call.engine.now() - known.updated_at < REFUSED_FOR
    return str(refused["reason"]) if same and lately else None


def _unusable(path: Path, reason: str) -> PeerFile:
    name = path.name if path.name.isprintable() else ascii(path.name)
    logger.warning("%s was skipped until the next sync: %s", name, reason)
    return PeerFile(file=name, state="unusable", reason=reason)


# -- File names of this node


def _own_file(call: Call, folder: Path) -> Path:
    return folder / f"{call.engine.store.node}{SUFFIX}"


def _note_own_name(call: Call) -> None:
    """Store our present name, before there is a file of that name."""
    names, removed = _own_names(call)
    if call.engine.store.node not in names:
        _note(call, SELF, {"names": [*names, call.engine.store.node], "removed": removed})


def _own_names(call: Call) -> tuple[list[str], list[str]]:
    """The names that this installation has had, and the digests of the files that it has removed."""
    noted = find_document(call, PEER, SELF, access=EVERYTHING)
    return (noted.body.get("names", []), noted.body.get("removed", [])) if noted else ([], [])


def _remove_former(call: Call, folder: Path, peers: Sequence[PeerFile]) -> tuple[str, ...]:
    """Remove the files of our former names, from which no installation would purge a deleted memory. Each is
    removed once: a file that comes back belongs to the store that ours is a copy of."""
    names, removed = _own_names(call)
    former = {f"{name}{SUFFIX}" for name in names if name != call.engine.store.node}
    gone = [
        one.file
        for one in peers
        if one.file in former
        and _path_digest(folder / one.file) not in removed
        and _remove_imported(folder, one)
    ]
    if gone:
        removed = [*removed, *(_path_digest(folder / name) for name in gone)]
        _note(call, SELF, {"names": names, "removed": removed})
    return tuple(gone)


def _path_digest(path: Path) -> str:
    """A digest of a path, because not every path is text."""
    return blake2b(os.fsencode(path), digest_size=DIGEST_BYTES).hexdigest()


def _remove_imported(folder: Path, peer: PeerFile) -> bool:
    """Remove a file if it is the one that was merged."""
    path = folder / peer.file
    try:
        if peer.digest is None or _digest(path) != peer.digest:
            return False
        path.unlink()
    except OSError as exc:
        logger.warning("%s, a file of our former name, was not removed: %s", path, exc.strerror)
        return False
    return True


def _note_digest(call: Call, name: str, digest: str) -> None:
    """Note a file whose content is all here."""
    known = find_document(call, PEER, name, access=EVERYTHING)
    if known is None or known.body.get("digest") != digest:
        _note(call, name, {"digest": digest})


def _note(call: Call, name: str, body: Mapping[str, object]) -> None:
    known = find_document(call, PEER, name, access=EVERYTHING)
    put = put_document(PEER, name, known, call.engine.now(), body=body)
    call.engine.store.commit([put], access=EVERYTHING)


# -- Files of a shared folder


def _write_own(call: Call, own: Path) -> tuple[PortableContents, bool]:
    """Write our file beside the present one, and replace that if they differ: a synchronising folder service
    would otherwise send it to every machine again."""
    handle, name = tempfile.mkstemp(prefix=".", suffix=".partial", dir=own.parent)  # made with 0600
    new = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            contents = write_portable(call, file, zipped=True)
            file.flush()
            os.fsync(handle)
        digest = _digest(new)
        written = not own.exists() or _digest(own) != digest
        if written:
            new.replace(own)
        # Not the digest of what is there now: that may be the file of a clone already.
        _note_digest(call, own.name, digest)
        return contents, written
    finally:
        new.unlink(missing_ok=True)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, partial(blake2b, digest_size=DIGEST_BYTES)).hexdigest()


@contextmanager
def _file_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise StoreError(
            f"{exc.filename or folder} cannot be used: {exc.strerror or exc}.",
            hint="Check that the folder exists and is writable, and that the disk has space.",
            details={"path": str(folder)},
        ) from exc
