"""The whole benchmark: a store of each size, searched in this process and through MCP."""

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.client import Client, console_script
from benchmarks.conversation import Turn, generated, load_turns
from benchmarks.engine import InProcess
from benchmarks.plot import bars
from benchmarks.process import own_memory
from benchmarks.progress import track
from benchmarks.quality.corpus import Missing
from benchmarks.quality.locomo import conversations
from benchmarks.report import Cell, Report, Target
from benchmarks.speed import parts
from benchmarks.speed.disk import bytes_by_part, token_bytes
from benchmarks.speed.stores import Filled, fill
from vestige.cognition.native.kernel import description

SIZES = (1_000, 10_000, 100_000)
MILLION = 1_000_000
QUERIES = 200
QUERY_SEED = 9
QUERY_WORDS = 12
MOST_OF_LIMIT = 1.5
MEDIAN_MS = {1_000: 10.0, 10_000: 13.0, 100_000: 22.0, MILLION: 60.0}
"""Of a search with its trace and the reactions to it; the slowest in twenty may take twice that."""
STARTED_MS = {100_000: 20.0, MILLION: 60.0}
FIRST_SECONDS = {1_000: 0.5, MILLION: 1.2}
ANONYMOUS_MB = {10_000: 250.0}
TOKEN_BITS_BYTES = 2_000.0
MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What a `vestige-mcp` process on the store needed: for its first answer, and for each one after."""

    first_wall: float
    first_cpu: float
    took: parts.Took
    memory_kind: str
    megabytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Everything about one size."""

    memories: int
    model: str
    filled: Filled
    took: dict[str, parts.Took]
    served: Served
    disk: dict[str, int]
    token_bytes: int


def run(*, sizes: Sequence[int] = SIZES, queries: int = QUERIES, data: Path) -> Report:
    """Measure every size."""
    asked, origin = _queries(data, queries)
    measured = [_measure(load_turns(data, size)[0], asked) for size in sizes]
    return Report(
        benchmark="speed",
        settings={
            "queries": f"{len(asked)} {origin}",
            "model": measured[0].model,
            "inner loops": description(),
        },
        tables=_tables(measured),
        targets=_targets(measured),
        notes=NOTES,
        plots=_plots(measured),
    )


NOTES = (
    "The limit is the sum of the parts a search cannot do without, each timed alone on the same queries: the "
    "model on the query, a float32 matrix product with a partition over as many vectors in memory, the "
    "store's lexical arm, and MaxSim over the very pool of the query. Stores above 10,000 hold different "
    "texts with synthetic vectors and borrowed token bits, written straight to the store. All memories are "
    "in one project, and all searches are in it. The trace of a search and the reactions to it, which a "
    "server leaves to its worker, run here before the next search.",
)


def _measure(turns: Sequence[Turn], asked: Sequence[str]) -> Measured:
    size = len(turns)
    with tempfile.TemporaryDirectory(prefix="vestige-speed-") as folder:
        data_dir = Path(folder) / "data"
        with InProcess(data_dir) as opened:
            filled, model = fill(opened, turns), opened.embedder.signature.name
        with InProcess(data_dir) as opened:
            took = parts.measure(opened, asked, size)
        served = _serve(data_dir, asked)
        return Measured(
            memories=size,
            model=model,
            filled=filled,
            took=took,
            served=served,
            disk=bytes_by_part(data_dir),
            token_bytes=token_bytes(data_dir),
        )


def _serve(data_dir: Path, asked: Sequence[str]) -> Served:
    first, *others = asked
    with Client([console_script(), "--data-dir", str(data_dir)], timeout_seconds=3600) as client:
        client.initialize()
        _search(client, first)
        first_wall, first_cpu = client.wall_seconds(), client.cpu_seconds()
        wall, cpu = [], []
        for query in track(others, "search through MCP"):
            began, used = time.perf_counter(), client.cpu_seconds()
            _search(client, query)
            wall.append(time.perf_counter() - began)
            cpu.append(client.cpu_seconds() - used)
        memory = own_memory(client.pid)
        return Served(
            first_wall=first_wall,
            first_cpu=first_cpu,
            took=parts.Took(wall=np.array(wall), cpu=np.array(cpu)),
            memory_kind=memory.kind,
            megabytes=memory.megabytes,
        )


def _search(client: Client, query: str) -> None:
    client.tool("search", parts.request(query, record=False))


def _queries(data: Path, count: int) -> tuple[list[str], str]:
    """Beginnings of turns that the grammar might have made, whose words are common in the store, and in turn
    with them questions of LoCoMo where they are at hand."""
    made = [" ".join(turn.text.split()[:QUERY_WORDS]) for turn in generated(count, seed=QUERY_SEED)]
    try:
        talks = conversations(data)
    except Missing:
        return made, "generated queries"
    asked = [question.text for corpus, _ in talks for question in corpus.questions]
    step = max(1, 2 * len(asked) // count)
    mixed = [query for pair in zip(asked[::step], made, strict=False) for query in pair]
    return mixed[:count], "queries, half of LoCoMo and half generated"


def _tables(measured: Sequence[Measured]) -> dict[str, list[dict[str, Cell]]]:
    tables: dict[str, list[dict[str, Cell]]] = {
        "Storing": [
            {
                "memories": one.memories,
                "way": one.filled.way,
                "per s": one.filled.wall_rate,
                "per CPU s": one.filled.cpu_rate,
            }
            for one in measured
        ]
    }
    for one in measured:
        rows = [took.row(name) for name, took in one.took.items()]
        rows.append(one.served.took.row("search without trace, MCP server"))
        tables[f"Search among {one.memories:,}, ms"] = rows
    tables["Search beside its limit"] = [_beside(one) for one in measured]
    tables["The server"] = [_server_row(one) for one in measured]
    if all(one.disk for one in measured):
        kinds = list(dict.fromkeys(kind for one in measured for kind in one.disk))
        tables["Disk, bytes per memory"] = [
            {
                "memories": one.memories,
                **{kind: one.disk.get(kind, 0) / one.memories for kind in kinds},
                "all": sum(one.disk.values()) / one.memories,
            }
            for one in measured
        ]
    return tables


def _beside(one: Measured) -> dict[str, Cell]:
    limit, search = parts.limit_of(one.took), float(np.median(one.took[parts.SEARCH].cpu))
    added = np.median(one.served.took.cpu) - np.median(one.took[parts.UNRECORDED].cpu)
    return {
        "memories": one.memories,
        "limit, CPU ms": 1000 * limit,
        "search, CPU ms": 1000 * search,
        "ratio": search / limit,
        "MCP adds, CPU ms": 1000 * float(added),
    }


def _server_row(one: Measured) -> dict[str, Cell]:
    return {
        "memories": one.memories,
        "start to first answer, s": one.served.first_wall,
        "of CPU, s": one.served.first_cpu,
        f"{one.served.memory_kind} MB after all queries": one.served.megabytes,
    }


def _targets(measured: Sequence[Measured]) -> list[Target]:
    made = []
    for one in measured:
        size = f"{one.memories:,}"
        if one.memories == min(SIZES):
            ratio = float(np.median(one.took[parts.SEARCH].cpu)) / parts.limit_of(one.took)
            made.append(_most(f"{size}: search ÷ limit, CPU", ratio, MOST_OF_LIMIT))
        made += _waits(one, size)
        if one.memories in ANONYMOUS_MB:
            name = f"{size}: {one.served.memory_kind} MB"
            made.append(_most(name, one.served.megabytes, ANONYMOUS_MB[one.memories]))
        each = one.token_bytes / one.memories
        made.append(_most(f"{size}: token bits, bytes per turn", each, TOKEN_BITS_BYTES))
    return made


def _waits(one: Measured, size: str) -> list[Target]:
    """What agents wait for: searches, the start of a session, the first search of a process."""
    made = []
    if one.memories in MEDIAN_MS:
        search, most = 1000 * one.took[parts.SEARCH].cpu, MEDIAN_MS[one.memories]
        made.append(_most(f"{size}: search CPU p50, ms", float(np.median(search)), most))
        made.append(_most(f"{size}: search CPU p95, ms", float(np.percentile(search, 95)), 2 * most))
    if one.memories in STARTED_MS:
        started = 1000 * float(np.median(one.took[parts.STARTED].cpu))
        made.append(_most(f"{size}: session_context CPU p50, ms", started, STARTED_MS[one.memories]))
    if one.memories in FIRST_SECONDS:
        first = one.served.first_cpu
        made.append(_most(f"{size}: start to first search, CPU s", first, FIRST_SECONDS[one.memories]))
    return made


def _most(name: str, value: float, limit: float) -> Target:
    return Target(name=name, value=value, limit=limit, at_least=False)


def _plots(measured: Sequence[Measured]) -> dict[str, str]:
    groups = [f"{one.memories:,}" for one in measured]
    shown = (*parts.LIMIT_PARTS, parts.SEARCH)
    series = {name: [1000 * float(np.median(one.took[name].cpu)) for one in measured] for name in shown}
    return {"search": bars("CPU per search, median ms, by number of memories", groups, series, unit=" ms")}
