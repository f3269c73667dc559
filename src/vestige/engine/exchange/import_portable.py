"""Import of portable files: a file is checked completely first, then merged batch by batch.

A batch is one transaction, and merging the same again changes nothing. So an interrupted import is completed
by running it again.
"""

import logging
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from datetime import datetime
from io import BufferedReader
from pathlib import Path

from vestige.core.errors import EmbedderError, Forbidden, InvalidInput
from vestige.core.events import StoreMerged
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import EVERYTHING
from vestige.embed.protocol import Signature
from vestige.engine.context import Call
from vestige.engine.domains.arrivals import catch_up
from vestige.engine.embedding import backfill, embedder_or_none, store_has_other_model
from vestige.engine.exchange.import_secrets import Holding, ImportedSecrets
from vestige.engine.memory.delete import RemoteDeletions
from vestige.exchange.portable.file import PortableContents, PortableReader, unpacked
from vestige.store.contract.store import MemoryStore
from vestige.store.merge.histories import Absorbed, EdgeHistory, EntityHistory, Fork, MemoryHistory
from vestige.store.merge.portable_part import portable_parts
from vestige.store.merge.union import edge

logger = logging.getLogger(__name__)


# -- Dangling links

BATCH = 500


class DanglingLinks:
    """Counts imported links whose memories are not here."""

    def __init__(self, call: Call) -> None:
        self._store = call.engine.store
        self._links: set[tuple[str, str, str]] = set()

    def watch(self, batch: Sequence[EntityHistory]) -> None:
        self._links.update(
            (history.source_id, history.target_id, history.kind)
            for history in batch
            if isinstance(history, EdgeHistory) and edge(history) is not None
        )

    def count(self) -> int:
        ends = sorted({end for link in self._links for end in link[:2]})
        here: set[str] = set()
        for start in range(0, len(ends), BATCH):
            records = self._store.get_many(ends[start : start + BATCH], access=EVERYTHING)
            here.update(record.memory.id for record in records)
        return sum(not here.issuperset(link[:2]) for link in self._links)


# -- The import

BATCH_BYTES = 16 * 1024 * 1024
"""A batch also ends at this size: long histories and vectors are large."""

Step = Callable[[int, int], None]
"""Called between batches with the bytes read and the total; may raise to stop."""
Shown = Callable[[Sequence[EntityHistory]], None]
"""Called with each batch before it is merged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedPortable:
    """The result of importing a portable file.

    - Of its memories some were `added`, some `changed` memories here, and the others were here already or
      stay deleted; its tombstones `ended` some that were here.
    - `waiting` are documents and `dangling` links that were left out because a memory of theirs is not here.
    - `holdings` are imported records that hold secrets.
    - `embedded` memories got vectors of this installation's model afterwards; `note` says why none did.
    - `forks` are node ids under which two installations wrote, found with this file.
    """

    contents: PortableContents
    added: int
    changed: int
    ended: int
    unchanged: int
    edges: int
    dangling: int
    documents: int
    waiting: tuple[str, ...]
    holdings: tuple[Holding, ...]
    embedded: int
    note: str | None = None
    forks: tuple[Fork, ...] = ()


def import_portable(call: Call, path: Path, *, embed: bool = True) -> ImportedPortable:
    """Merge a portable file into the store, once the whole file was checked. After a cancellation, between
    batches, the next run continues. A caller that imports several files may `embed` after the last one."""
    if call.access != EVERYTHING:
        raise Forbidden("Importing a portable file needs access to the whole store.")

    def step(done: int, total: int) -> None:
        call.check()
        call.progress(done, 2 * total, "checking" if done <= total else "importing")

    contents = inspect(path, call.engine.now(), step)
    dangling = DanglingLinks(call)
    done, holdings = _absorb(call, path, step, dangling)
    embedded, note = embed_missing(call) if embed else (0, None)
    if embed and (done.memories_added or done.memories_changed or done.documents):
        catch_up(call)
    return ImportedPortable(
        contents=contents,
        added=done.memories_added,
        changed=done.memories_changed,
        ended=done.memories_ended,
        unchanged=contents.memories - done.memories_added - done.memories_changed,
        edges=done.edges,
        dangling=dangling.count(),
        documents=done.documents,
        waiting=done.waiting,
        holdings=holdings,
        embedded=embedded,
        note=note,
        forks=tuple(dict.fromkeys(done.forks)),
    )


def fork_notes(forks: Iterable[Fork]) -> list[str]:
    """What happened to clones that were found in a merge, a sentence each."""
    return [
        f"Another store had the id of this one, {one.node}: it is a clone of its machine, volume or image, or"
        " this store was set back to an earlier state. All that both wrote was merged, and this store is now"
        f" {one.successor}."
        if one.successor is not None
        else f"Two stores wrote under the id {one.node}: one is a clone of the other. All that both wrote was"
        " merged. Each of them takes a new id at its next sync."
        for one in forks
    ]


def _absorb(
    call: Call, path: Path, step: Step, dangling: DanglingLinks
) -> tuple[Absorbed, tuple[Holding, ...]]:
    """Merge a file and emit an event: what changed, and which of it holds secrets."""
    deletions, secrets = RemoteDeletions(call), ImportedSecrets(call)

    def before(batch: Sequence[EntityHistory]) -> None:
        deletions.before_merge(batch)
        secrets.watch(batch)
        dangling.watch(batch)

    def importing(at: int, total: int) -> None:
        step(total + at, total)

    done = absorb_file(
        call.engine.store, path, vectors=_usable(call), step=importing, before=before, complete=False
    )
    deletions.after_merge()
    for note in fork_notes(dict.fromkeys(done.forks)):
        logger.warning("%s: %s", path.name, note)
    if done.memories_added or done.memories_changed or done.memories_ended:
        call.engine.events.emit(
            StoreMerged(
                timestamp=call.engine.now(),
                scopes=None,
                source=path.name,
                added=done.memories_added,
                changed=done.memories_changed,
                ended=done.memories_ended,
            )
        )
    return done, secrets.held()


def check_portable(call: Call, path: Path) -> tuple[PortableContents, tuple[Holding, ...]]:
    """What importing a file would merge, and which of that holds secrets. Nothing is written."""
    secrets = ImportedSecrets(call)
    return inspect(path, call.engine.now(), before=secrets.watch), secrets.expected()


def _usable(call: Call) -> Signature | None:
    """The model whose vectors can be imported. A store without vectors adopts the model of the first ones, so
    they must be of this installation's model."""
    embedder = embedder_or_none(call.engine)
    return call.engine.store.signature() or (embedder.signature if embedder else None)


def _ignore(*_: object) -> None:
    """Report nothing."""


def inspect(
    path: Path, now: datetime | None, step: Step = _ignore, before: Shown = _ignore
) -> PortableContents:
    """Read a portable file to its end and check it; returns what it holds. No clock in it may be ahead of
    `now` by more than a day."""
    with _reading(path, now) as (reader, file, size):
        for batch in _batches(reader):
            before(batch)
            step(file.tell(), size)
        step(size, size)
        return reader.contents


def read_histories(path: Path) -> Iterator[EntityHistory]:
    """Every history of a file that `inspect` has checked."""
    with _reading(path) as (reader, _file, _size):
        yield from reader.histories()


def absorb_file(
    store: MemoryStore,
    path: Path,
    *,
    vectors: Signature | None,
    step: Step = _ignore,
    before: Shown = _ignore,
    complete: bool = True,
) -> Absorbed:
    """Merge a file that `inspect` has checked into a store; only vectors of this signature are taken. Not
    `complete`: without found domains, because these belong to the installation that found them."""
    total = Absorbed()
    with _reading(path) as (reader, file, size):
        for batch in _batches(reader):
            kept = batch if reader.signature == vectors else [_without_vectors(one) for one in batch]
            if not complete:
                kept = list(portable_parts(kept))
            before(kept)
            total = _sum(total, store.absorb(kept, access=EVERYTHING))
            step(file.tell(), size)
    return total


def _batches(reader: PortableReader) -> Iterator[list[EntityHistory]]:
    batch: list[EntityHistory] = []
    begun = reader.bytes_read
    for history in reader.histories():
        batch.append(history)
        if len(batch) == BATCH or reader.bytes_read - begun > BATCH_BYTES:
            yield batch
            batch, begun = [], reader.bytes_read
    if batch:
        yield batch


def _without_vectors(history: EntityHistory) -> EntityHistory:
    return replace(history, embedded=None) if isinstance(history, MemoryHistory) else history


def _sum(one: Absorbed, other: Absorbed) -> Absorbed:
    names = [field.name for field in fields(Absorbed)]
    return Absorbed(**{name: getattr(one, name) + getattr(other, name) for name in names})


def embed_missing(call: Call) -> tuple[int, str | None]:
    """Embed what the files brought without vectors: how many, and why none. It can also be done later."""
    embedder = embedder_or_none(call.engine)
    if embedder is None:
        return 0, None
    if store_has_other_model(call.engine, embedder):
        name = embedder.signature.name
        return 0, f"No vectors were made: the store holds vectors of another model than {name}."
    try:
        return backfill(call, embedder), None
    except EmbedderError as exc:
        logger.warning("The model failed; imported memories have no vectors yet: %s", exc.message)
        return 0, f"No vectors were made: {exc.message}"


@contextmanager
def _reading(path: Path, now: datetime | None = None) -> Iterator[tuple[PortableReader, BufferedReader, int]]:
    """A reader of the file, the file itself, whose position shows the progress, and its size."""
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):  # a pipe could block, and cannot be read twice
            raise InvalidInput(f"{path} is not a file.", details={"argument": "path"})
        with path.open("rb") as file, unpacked(file) as lines:
            yield PortableReader(lines, about.st_size, now), file, about.st_size
    except OSError as exc:
        raise InvalidInput(f"{path} cannot be read: {exc.strerror}.", details={"argument": "path"}) from exc
