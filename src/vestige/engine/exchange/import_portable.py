"""Taking in a portable file: read through and checked as a whole first, then united batch by batch.

A batch is one transaction, and uniting again what is here already changes nothing. So an import that was
stopped, however, is completed by running it again.
"""

import logging
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import BufferedReader
from pathlib import Path

from vestige.core.errors import EmbedderError, Forbidden, InvalidInput
from vestige.core.events import StoreMerged
from vestige.core.models import EVERYTHING
from vestige.embed.protocol import Signature
from vestige.engine.context import Call
from vestige.engine.embedding import backfill, embedder_or_none, is_foreign
from vestige.engine.exchange.import_secrets import Arrivals, Holding
from vestige.engine.memory.delete import Partings
from vestige.exchange.portable.file import PortableContents, PortableReader, unpacked
from vestige.store.contract.store import MemoryStore
from vestige.store.merge.histories import Absorbed, EdgeHistory, EntityHistory, MemoryHistory
from vestige.store.merge.union import edge

logger = logging.getLogger(__name__)


# -- Links that another store tells of and that come to nothing here: a memory at their end is not here.

BATCH = 500


class Dangling:
    """Notes the links of lives that are taken in, to say afterwards how many of them are without an end."""

    def __init__(self, call: Call) -> None:
        self._store = call.engine.store
        self._links: set[tuple[str, str, str]] = set()

    def watch(self, batch: Sequence[EntityHistory]) -> None:
        """Note the links of a batch that stand."""
        self._links.update(
            (life.source_id, life.target_id, life.kind)
            for life in batch
            if isinstance(life, EdgeHistory) and edge(life) is not None
        )

    def count(self) -> int:
        """How many of them have an end that is not here."""
        ends = sorted({end for link in self._links for end in link[:2]})
        here: set[str] = set()
        for start in range(0, len(ends), BATCH):
            records = self._store.get_many(ends[start : start + BATCH], access=EVERYTHING)
            here.update(record.memory.id for record in records)
        return sum(not here.issuperset(link[:2]) for link in self._links)


# -- importing

BATCH_BYTES = 16 * 1024 * 1024
"""A batch ends with either: long histories and vectors make lives large."""

Step = Callable[[int, int], None]
"""Told between batches how many bytes of how many are read; may raise to stop there."""
Shown = Callable[[Sequence[EntityHistory]], None]
"""Is shown each batch before it is taken in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedPortable:
    """What came of a portable file.

    Of its memories some were `added`, some `changed` what was here, the others are here as they were or stay
    deleted; its tombstones `ended` some that were here. `waiting` are documents left out because a memory
    that they cite is not here, `dangling` so many links because one at their end is not. `holdings` came in
    with secrets in them. `embedded` memories got vectors of this installation's model afterwards; `note` says
    why none did.
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


def import_portable(call: Call, path: Path, *, embed: bool = True) -> ImportedPortable:
    """Unite a portable file with what is here. Nothing is written before all of it was found right.

    Cancelling takes effect between batches; what is in by then stays, and the next run goes on from it. Who
    imports several files may `embed` after the last one.
    """
    if call.access != EVERYTHING:
        raise Forbidden("Only a caller who reaches the whole store may import into it.")

    def step(done: int, total: int) -> None:
        call.check()
        call.progress(done, 2 * total, "checking" if done <= total else "importing")

    contents = inspect(path, step)
    dangling = Dangling(call)
    done, holdings = _absorb(call, path, step, dangling)
    embedded, note = embed_missing(call) if embed else (0, None)
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
    )


def _absorb(call: Call, path: Path, step: Step, dangling: Dangling) -> tuple[Absorbed, tuple[Holding, ...]]:
    """Take a file in: what came of it, and what of that holds secrets. Who listens hears of it."""
    partings, arrivals = Partings(call), Arrivals(call)

    def before(batch: Sequence[EntityHistory]) -> None:
        partings.meet(batch)
        arrivals.watch(batch)
        dangling.watch(batch)

    done = absorb_file(
        call.engine.store,
        path,
        vectors=_usable(call),
        step=lambda at, total: step(total + at, total),
        before=before,
    )
    partings.part()
    if done.memories_added or done.memories_changed or done.memories_ended:
        call.engine.events.emit(
            StoreMerged(
                timestamp=call.engine.now(),
                places=None,
                source=path.name,
                added=done.memories_added,
                changed=done.memories_changed,
                ended=done.memories_ended,
            )
        )
    return done, arrivals.held()


def check_portable(call: Call, path: Path) -> tuple[PortableContents, tuple[Holding, ...]]:
    """What importing a file would take in, and what of that holds secrets. Nothing is written."""
    arrivals = Arrivals(call)
    return inspect(path, before=arrivals.watch), arrivals.expected()


def _usable(call: Call) -> Signature | None:
    """Whose vectors can be used here. A store without any would be bound to the model of the first ones it
    takes, so they must be of the model that is here."""
    embedder = embedder_or_none(call.engine)
    return call.engine.store.signature() or (embedder.signature if embedder else None)


def _unwatched(done: int, total: int) -> None:
    """Nobody wants to know."""


def _unseen(batch: Sequence[EntityHistory]) -> None:
    """Nobody looks."""


def inspect(path: Path, step: Step = _unwatched, before: Shown = _unseen) -> PortableContents:
    """Read a portable file to its end and check all of it; what it holds."""
    with _reading(path) as (reader, file, size):
        for batch in _batches(reader):
            before(batch)
            step(file.tell(), size)
        step(size, size)
        return reader.contents


def absorb_file(
    store: MemoryStore,
    path: Path,
    *,
    vectors: Signature | None,
    step: Step = _unwatched,
    before: Shown = _unseen,
) -> Absorbed:
    """Unite a file that `inspect` found right with a store; only vectors of this signature are taken."""
    total = Absorbed()
    with _reading(path) as (reader, file, size):
        for batch in _batches(reader):
            kept = batch if reader.signature == vectors else [_without_vectors(life) for life in batch]
            before(kept)
            total = _sum(total, store.absorb(kept, access=EVERYTHING))
            step(file.tell(), size)
    return total


def _batches(reader: PortableReader) -> Iterator[list[EntityHistory]]:
    batch: list[EntityHistory] = []
    begun = reader.bytes_read
    for life in reader.histories():
        batch.append(life)
        if len(batch) == BATCH or reader.bytes_read - begun > BATCH_BYTES:
            yield batch
            batch, begun = [], reader.bytes_read
    if batch:
        yield batch


def _without_vectors(life: EntityHistory) -> EntityHistory:
    return replace(life, embedded=None) if isinstance(life, MemoryHistory) else life


def _sum(one: Absorbed, other: Absorbed) -> Absorbed:
    return Absorbed(
        events=one.events + other.events,
        memories_added=one.memories_added + other.memories_added,
        memories_changed=one.memories_changed + other.memories_changed,
        memories_ended=one.memories_ended + other.memories_ended,
        edges=one.edges + other.edges,
        documents=one.documents + other.documents,
        waiting=one.waiting + other.waiting,
    )


def embed_missing(call: Call) -> tuple[int, str | None]:
    """Make the vectors that files did not bring: how many, and why none. They can as well be made later."""
    embedder = embedder_or_none(call.engine)
    if embedder is None:
        return 0, None
    if is_foreign(call.engine, embedder):
        return (
            0,
            f"No vectors were made: the store holds those of another model than {embedder.signature.name}.",
        )
    try:
        return backfill(call, embedder), None
    except EmbedderError as exc:
        logger.warning("What was imported has no vectors yet: %s", exc.message)
        return 0, f"No vectors were made: {exc.message}"


@contextmanager
def _reading(path: Path) -> Iterator[tuple[PortableReader, BufferedReader, int]]:
    """A reader of the file, the file itself, by whose position one sees how far it is, and its size."""
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):  # a pipe would keep us waiting, and cannot be read twice
            raise InvalidInput(f"{path} is not a file.", details={"argument": "path"})
        with path.open("rb") as file, unpacked(file) as lines:
            yield PortableReader(lines, about.st_size), file, about.st_size
    except OSError as exc:
        raise InvalidInput(f"{path} cannot be read: {exc.strerror}.", details={"argument": "path"}) from exc
