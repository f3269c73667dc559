"""Two ways to carry a whole store: rows (`store.transfer`) against histories (`histories` and `absorb`).

    python -m benchmarks.carry [--memories 10000] [--postgres]

Both carry the same SQLite store into an empty one. `rows` is the carrying alone; `rows+proof` adds the index
and the comparison of every row, as `vestige migrate` does. `histories` passes them in memory; `file` writes
and reads the portable file, as `vestige export` and `import` do. Then all rows are compared with those of the
source (ADR 0026): byte for byte, and without the numbers that each store gives for itself (keys of rows,
positions in the log).
"""

import argparse
import os
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import chain, count
from math import inf
from pathlib import Path

import numpy as np

from benchmarks.conversation import generated
from testbed.postgres_server import server
from vestige.cognition.text.analyser import text_hash
from vestige.core.api_key import ApiKey
from vestige.core.documents import Document
from vestige.core.models import EVERYTHING, Edge, Evidence, Memory
from vestige.embed.protocol import Signature
from vestige.exchange.portable.file import PortableReader, Writer
from vestige.store.contract.changes import (
    Add,
    Change,
    Claim,
    Embedded,
    Forget,
    Link,
    Piece,
    Put,
    RecordEvidence,
    Revise,
    Tokens,
)
from vestige.store.contract.processes import Who
from vestige.store.contract.store import MemoryStore
from vestige.store.postgres.opening import PostgresDependencies
from vestige.store.postgres.server.address import ServerAddress
from vestige.store.postgres.transfer import PostgresEnd
from vestige.store.sql.database import Database, Row
from vestige.store.sqlite.connection import WriterWait
from vestige.store.sqlite.opening import SqliteDependencies
from vestige.store.sqlite.transfer import SqliteEnd
from vestige.store.transfer import receipts
from vestige.store.transfer.ends import End
from vestige.store.transfer.move import move
from vestige.store.transfer.rows import Carrier
from vestige.store.transfer.tables import COMPARED, TableSpec

T0 = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
SIGNATURE = Signature(name="bench", revision="1", dimension=384)
TOKENS = 24
BATCH = 500
_NODES = count(1)
WHO = Who(pid=os.getpid(), command="bench", since=T0)


def quiet(done: float, total: float | None, what: str | None) -> None:
    """Ignore progress."""


def in_file(path: Path) -> SqliteEnd:
    rng = random.Random(7)
    around = SqliteDependencies(
        waiting=WriterWait(rng=rng, sleep=time.sleep, monotonic=time.monotonic),
        new_id=lambda: f"carried-{next(_NODES)}",
        now=lambda: T0 + 90 * DAY,
        machine="here",
        who=WHO,
    )
    return SqliteEnd(
        path=path, around=around, prepare=lambda folder: folder.mkdir(parents=True, exist_ok=True)
    )


def on_server(url: str) -> PostgresEnd:
    around = PostgresDependencies(
        sleep=time.sleep,
        monotonic=time.monotonic,
        new_id=lambda: f"carried-{next(_NODES)}",
        now=lambda: T0 + 90 * DAY,
        wait_seconds=60.0,
        statement_seconds=600.0,
        most_connections=4,
    )
    return PostgresEnd(place=ServerAddress(url=url), around=around, who=WHO)


def fill(store: MemoryStore, number: int) -> None:
    """Memories with vectors and token bits, revisions, a review and an edge; some of everything else."""
    rng = np.random.default_rng(1)
    turns = generated(number + number // 2)
    made = []
    for at in range(number):
        turn, when = turns[at], T0 + at * timedelta(minutes=1)
        made.append(
            Memory(id=f"m{at:06}", content=turn.content, thread=turn.thread, position=turn.position,
                   tags=("talk",), created_at=when, updated_at=when)
        )  # fmt: skip
    for start in range(0, number, BATCH):
        added: list[Change] = [
            Add(memory=one, embedded=vectors(one, rng)) for one in made[start : start + BATCH]
        ]
        claim = Claim(key=f"claim {start}", digest="d", answer="{}", at=T0)
        store.commit(added, access=EVERYTHING, claim=claim)
    for start in range(0, number, BATCH):
        later: list[Change] = []
        for at in range(start, min(start + BATCH, number)):
            one = made[at]
            if at % 2:
                new = replace(
                    one, content=turns[number + at // 2].content, revision=2, updated_at=T0 + 30 * DAY
                )
                later.append(Revise(memory=new, reason="edited", embedded=vectors(new, rng)))
            later.append(RecordEvidence(memory_id=one.id, evidence=Evidence.GOOD, at=T0 + 31 * DAY))
            if at:
                edge = Edge(
                    source_id=one.id, target_id=made[at - 1].id, kind="related", weight=0.5, created_at=T0
                )
                later.append(Link(edge=edge))
            if at % 50 == 0:
                note = Document(kind="note", id=one.id, cites=(one.id,), created_at=T0, updated_at=T0)
                later.append(Put(document=note))
        store.commit(later, access=EVERYTHING)
    gone: list[Change] = [
        Forget(memory_id=one.id, at=T0 + 40 * DAY, reason="asked to") for one in made[::100]
    ]
    store.commit(gone, access=EVERYTHING)
    local = Document(kind="peer", id="p", created_at=T0, updated_at=T0)
    store.commit([Put(document=local)], access=EVERYTHING)
    store.put_key(ApiKey(id="k", hash="0" * 64, label="Ada", permissions=("read",), created_at=T0))
    store.end_login("login", T0 + 400 * DAY, forgetting=T0)


def vectors(memory: Memory, rng: np.random.Generator) -> Embedded:
    vector = rng.normal(size=SIGNATURE.dimension)
    unit = np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)
    tokens = Tokens(
        bits=rng.integers(0, 256, (TOKENS, SIGNATURE.dimension // 8), dtype=np.uint8),
        asked=np.zeros(TOKENS, dtype=np.bool_),
    )
    piece = Piece(start=0, end=len(memory.content), vector=unit, tokens=tokens)
    return Embedded(signature=SIGNATURE, text_hash=text_hash(memory), pieces=(piece,))


def by_rows(origin: End, goal: End, folder: Path) -> None:
    with origin.source() as source, goal.destination() as taken, source.reading() as there:
        carrier = Carrier(there=there, into=taken, name=goal.name, now=goal.now, progress=quiet)
        carrier.carry(receipts.state(there))


def by_rows_with_proof(origin: End, goal: End, folder: Path) -> None:
    assert move(origin, goal, quiet).is_whole


def by_histories(origin: End, goal: End, folder: Path) -> None:
    with origin.source() as source, goal.destination() as taken:
        for batch in source.store.histories(access=EVERYTHING, vectors=True, batch=BATCH):
            taken.store.absorb(batch, access=EVERYTHING)


def by_file(origin: End, goal: End, folder: Path) -> None:
    path = folder / "portable.jsonl"
    with origin.source() as source, path.open("wb") as file:
        writer = Writer(file, source.store.signature())
        for batch in source.store.histories(access=EVERYTHING, vectors=True, batch=BATCH):
            for one in batch:
                writer.add(one)
        writer.end()
    for absorbing in (False, True):  # an import reads the file through before it writes anything
        with goal.destination() as taken, path.open("rb") as file:
            waiting = []
            for one in PortableReader(file, path.stat().st_size).histories():
                waiting.append(one)
                if len(waiting) == BATCH:
                    if absorbing:
                        taken.store.absorb(waiting, access=EVERYTHING)
                    waiting = []
            if absorbing:
                taken.store.absorb(waiting, access=EVERYTHING)


WAYS: dict[str, Callable[[End, End, Path], None]] = {
    "rows": by_rows,
    "rows+proof": by_rows_with_proof,
    "histories": by_histories,
    "file": by_file,
}


OWN_NUMBERS = {"memories": ("key",), "events": ("position",), "vectors": ("id",), "documents": ("key",)}
"""Columns that each store numbers for itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How long it took, and for each table how many rows of the source are there: exactly, and apart from
    numbers of the store's own."""

    seconds: float
    cpu_seconds: float
    rows: dict[str, tuple[int, int, int]]


def carried(way: str, origin: End, goal: End, folder: Path) -> Outcome:
    start, cpu = time.perf_counter(), time.process_time()
    WAYS[way](origin, goal, folder)
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu
    found = {}
    with origin.source() as a, goal.source() as b, a.reading() as there, b.reading() as here:
        names = [
            (ids(db, "memories", "id"), ids(db, "documents", "kind || ' ' || id")) for db in (there, here)
        ]
        for part in COMPARED:
            ours, theirs = (list(chain.from_iterable(part.batches(db, None, BATCH))) for db in (there, here))
            exact = Counter(ours) & Counter(theirs)
            natural = Counter(named(part, ours, *names[0])) & Counter(named(part, theirs, *names[1]))
            found[part.table] = (len(ours), exact.total(), natural.total())
    return Outcome(seconds=seconds, cpu_seconds=cpu_seconds, rows=found)


def ids(db: Database, table: str, name: str) -> dict[int, str]:
    return {row[0]: row[1] for row in db.execute(f"SELECT key, {name} FROM {table}")}


def named(
    part: TableSpec, rows: list[Row], memories: dict[int, str], documents: dict[int, str]
) -> Iterator[Row]:
    """Rows that name memories and documents by their ids."""
    columns = [one.name for one in part.columns]
    own = OWN_NUMBERS.get(part.table, ())
    for row in rows:
        values = []
        for name, value in zip(columns, row, strict=True):
            if name not in own:
                known = memories if name in part.of_memories else documents if name == "document" else {}
                values.append(known.get(value, value))
        yield tuple(values)


@contextmanager
def goals(folder: Path, *, postgres: bool) -> Iterator[Callable[[str], End]]:
    if not postgres:
        yield lambda way: in_file(folder / way / "vestige.db")
        return
    with server() as started:
        yield lambda way: on_server(started.new_database())


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    asked.add_argument("--memories", type=int, default=10_000)
    asked.add_argument("--postgres", action="store_true")
    asked.add_argument("--rounds", type=int, default=2)
    options = asked.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        origin = in_file(folder / "source" / "vestige.db")
        with origin.destination() as side, closing(side.store):
            fill(side.store, options.memories)
        best: dict[str, float] = {}
        for turn in range(options.rounds):
            with goals(folder / str(turn), postgres=options.postgres) as goal:
                for way in WAYS:
                    done = carried(way, origin, goal(way), folder)
                    best[way] = min(best.get(way, inf), done.seconds)
                    print(
                        f"{way:11} {done.seconds:7.1f} s, {done.cpu_seconds:7.1f} s of CPU here", flush=True
                    )
                    if turn == 0:
                        for table, numbers in done.rows.items():
                            total, exact, natural = numbers
                            if exact < total:
                                print(f"    {table:15} {total:6} rows, {exact:6} exact, {natural:6} by name")
        for way, seconds in best.items():
            print(f"{way:11} best {seconds:7.1f} s  {seconds / best['rows']:5.2f} x")


if __name__ == "__main__":
    main()
