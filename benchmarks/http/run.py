"""All three parts: what a request costs, a soak, many listeners. Each on a server of its own."""

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.conversation import generated, load_turns
from benchmarks.engine import ALL_TEXTS, MODEL_SECONDS, InProcess, items_of
from benchmarks.http import listeners, peer, soak
from benchmarks.http.load import ARGUMENTS, Inside, Remote, Took, Way, measure
from benchmarks.http.serving import TEST_EMBEDDER, Serving, serve
from benchmarks.http.ways import mcp, rest
from benchmarks.peers.process import Unavailable
from benchmarks.plot import bars
from benchmarks.progress import say, track
from benchmarks.report import Cell, Report, Target
from vestige.app.app import App, open_server

MEMORIES = 5_000
CLIENTS = (1, 16, 64)
REQUESTS = 640
"""Of each operation, by each way, for each number of clients."""
ROUNDS = 4
"""Portions in which the ways take turns: what else the machine does falls on all alike."""
FILL_BATCH = 100
QUERY_WORDS = 12
SEED = 11
TEST = {"embeddings.provider": "hashing"}
SEARCH_OVERHEAD_MS = 3.0
"""Most CPU that a server may add to a search."""
PAIR, SCALES_BY = 2, 1.7
"""How much more two workers answer than one, at least."""
SHOWN = {"search": "search", "smart_ingest": "ingest"}

Key = tuple[str, int, str]
"""Operation, number of clients, way."""


def run(
    *,
    data: Path | None,
    memories: int = MEMORIES,
    requests: int = REQUESTS,
    clients: Sequence[int] = CLIENTS,
    soak_requests: int = soak.REQUESTS,
    kept: int = soak.KEPT,
    many: int = listeners.LISTENERS,
    peer_python: Path | None = None,
    model: bool = False,
    workers: int = 1,
) -> Report:
    """Measure everything. With `model` the real one makes the vectors, else the test embedder. With several
    `workers` a second server has so many, on a copy of the store."""
    with tempfile.TemporaryDirectory(prefix="vestige-http-") as root:
        folder = Path(root)
        took, origin, skipped = _load(folder, data, memories, requests, clients, peer_python, model, workers)
        say(f"soak: {soak_requests:,} requests")
        with serve(folder / "soak", settings=TEST_EMBEDDER) as server:
            soaked = soak.run(server, requests=soak_requests, kept=kept)
        say(f"{many} listeners")
        with serve(folder / "listeners", settings=TEST_EMBEDDER) as server:
            listened = listeners.run(server, listeners=many)
    return Report(
        benchmark="http",
        settings={
            "memories": f"{memories:,} ({origin})",
            "vectors by": "the real model" if model else "the test embedder",
            "requests of each kind": f"{requests:,}",
            "requests of the soak": f"{soaked.count:,}",
            "listeners": many,
        },
        tables={**_tables(took, soaked, listened), **_scaling(took, workers)},
        targets=[*_targets(took), *_scaling_targets(took, workers), *soaked.targets(), *listened.targets()],
        notes=NOTES,
        skipped=skipped,
        plots=_plots(took, clients),
    )


NOTES = (
    "How to read it. All ways take turns in portions, so that what else the machine does falls on all alike. "
    "In process, the engine is called by as many threads as there are clients, on a copy of the store; REST "
    "and MCP are requests to `vestige serve`, with a key. Clients and server share the machine's cores, so "
    "answers per second are those of both together. CPU is that of the process that answers, for one answer, "
    "with what comes of it in the background until the process is idle again.",
    "Overhead is the median of a request less that of the call in process, and the difference in CPU. With "
    "many clients the medians are mostly waiting: there the CPU tells.",
    "mcp-memory-service is asked over its own REST API, with a key. Its vectors are made by its own hash, "
    "which costs next to nothing, in place of a model that would be downloaded. It searches by the vector "
    "alone; Vestige searches by words, vectors and single tokens, ranks, and records what was shown.",
)


def _load(
    folder: Path,
    data: Path | None,
    memories: int,
    requests: int,
    clients: Sequence[int],
    peer_python: Path | None,
    model: bool,
    workers: int,
) -> tuple[dict[Key, Took], str, dict[str, str]]:
    turns, origin = load_turns(data, memories)
    with InProcess(folder / "served", settings={} if model else TEST) as opened:
        batches = [turns[at : at + FILL_BATCH] for at in range(0, len(turns), FILL_BATCH)]
        for batch in track(batches, f"remembering {len(turns):,}"):
            opened.ingest(items_of(batch, threaded=True))
    shutil.copytree(folder / "served", folder / "inside")
    if workers > 1:
        shutil.copytree(folder / "served", folder / "several")
    skipped: dict[str, str] = {}
    with ExitStack() as stack:
        app = stack.enter_context(_inside(folder / "inside", model=model))
        server = stack.enter_context(serve(folder / "served", settings={} if model else TEST_EMBEDDER))
        ways: list[Way] = [Inside(app), *_ours(server)]
        if workers > 1:
            several = serve(folder / "several", settings={} if model else TEST_EMBEDDER, workers=workers)
            ways += _ours(stack.enter_context(several), f", {workers} workers")
        try:
            ways.append(_peer(stack, peer_python, folder / "peer", [turn.content for turn in turns]))
        except Unavailable as why:
            skipped[peer.NAME] = str(why)
        took = _take_turns(ways, [turn.text for turn in turns], requests, clients)
    return took, origin, skipped


@contextmanager
def _inside(data_dir: Path, *, model: bool) -> Iterator[App]:
    """An app as the server has one, its model loaded."""
    with open_server({"data_dir": str(data_dir), **ALL_TEXTS, **({} if model else TEST)}) as app:
        app.engine.embedders.get(MODEL_SECONDS)
        yield app


def _ours(server: Serving, how: str = "") -> list[Way]:
    headers = dict(server.headers)
    return [
        Remote(f"REST{how}", server.url, server.pid, headers, rest),
        Remote(f"MCP{how}", server.url, server.pid, headers, mcp),
    ]


def _scaling(took: dict[Key, Took], workers: int) -> dict[str, list[dict[str, Cell]]]:
    """What several workers give against one: answers per second, and answers per second of CPU."""
    rows: list[dict[str, Cell]] = []
    for (operation, many, name), one in took.items():
        several = took.get((operation, many, f"{name}, {workers} workers"))
        if several is not None:
            rows.append(
                {
                    "operation": SHOWN[operation],
                    "clients": many,
                    "way": name,
                    "per s, 1 worker": one.per_second,
                    f"per s, {workers}": several.per_second,
                    "ratio": several.per_second / one.per_second,
                    "ratio per CPU second": one.cpu_ms / several.cpu_ms,
                }
            )
    return {f"One worker and {workers}": rows} if rows else {}


def _scaling_targets(took: dict[Key, Took], workers: int) -> list[Target]:
    return [
        Target(
            name=f"Searches per second by REST with {workers} workers against one, {_counted(many)}",
            value=several.per_second / took["search", many, "REST"].per_second,
            limit=SCALES_BY,
            at_least=True,
        )
        for (operation, many, name), several in took.items()
        if operation == "search" and many > 1 and name == f"REST, {workers} workers" and workers == PAIR
    ]


def _peer(stack: ExitStack, python: Path | None, folder: Path, texts: Sequence[str]) -> Way:
    if python is None:
        raise Unavailable("no interpreter that has it was given by --peer-python")
    theirs = stack.enter_context(peer.serving(python, folder))
    say(f"the peer is remembering {len(texts):,}")
    theirs.ask("smart_ingest", texts, 1)
    return theirs


def _take_turns(
    ways: Sequence[Way], known: Sequence[str], requests: int, clients: Sequence[int]
) -> dict[Key, Took]:
    queries = [" ".join(text.split()[:QUERY_WORDS]) for text in known]
    fresh = iter([turn.content for turn in generated(requests * len(clients) * len(ways), seed=SEED)])
    portion = max(1, requests // ROUNDS)
    for way in ways:  # what is only done once is not measured
        way.ask("search", queries[: max(clients)], max(clients))
    took: dict[Key, Took] = {}
    for many in clients:
        for operation in ARGUMENTS:
            say(f"{SHOWN[operation]}, {_counted(many)}")
            for number in range(ROUNDS):
                asked = [queries[(number * portion + at) % len(queries)] for at in range(portion)]
                for at in range(len(ways)):
                    way = ways[(at + number) % len(ways)]
                    texts = asked if operation == "search" else [next(fresh) for _ in range(portion)]
                    measure(way, operation, texts, many, took.setdefault((operation, many, way.name), Took()))
    return took


def _tables(
    took: dict[Key, Took], soaked: soak.Soaked, listened: listeners.Listened
) -> dict[str, list[dict[str, Cell]]]:
    tables: dict[str, list[dict[str, Cell]]] = {}
    for operation, shown in SHOWN.items():
        rows: list[dict[str, Cell]] = [
            {"clients": many, "way": name, **one.row()}
            for (done, many, name), one in sorted(took.items(), key=lambda item: item[0][1])
            if done == operation
        ]
        tables[shown.capitalize()] = rows
    tables["Overhead of a request, ms"] = _overheads(took)
    tables["Soak: what the server holds"] = soaked.rows()
    tables["Soak: growth in the second half"] = soaked.growth()
    tables["Soak: requests"] = [
        {
            "in all": soaked.count,
            **{name: soaked.requests[name] for name in soak.MIX},
            "per s": soaked.count / soaked.seconds,
            "CPU ms": 1000 * soaked.cpu_seconds / soaked.count,
            "listeners that came and went": soaked.listeners,
        }
    ]
    tables["Listeners: time until each is told of a write"] = listened.rows()
    tables["Listeners: the one that did not read"] = [listened.stalled_row()]
    return tables


def _overheads(took: dict[Key, Took]) -> list[dict[str, Cell]]:
    rows: list[dict[str, Cell]] = []
    for (operation, many, name), one in took.items():
        inside = took[operation, many, "in process"]
        if name in ("REST", "MCP"):
            rows.append(
                {
                    "operation": SHOWN[operation],
                    "clients": many,
                    "way": name,
                    "p50": one.percentile_ms(50) - inside.percentile_ms(50),
                    "CPU": one.cpu_ms - inside.cpu_ms,
                }
            )
    return rows


def _targets(took: dict[Key, Took]) -> list[Target]:
    fewest = min(many for _, many, _ in took)
    inside = took["search", fewest, "in process"]
    return [
        Target(
            name=f"{name} adds to a search, CPU ms",
            value=took["search", fewest, name].cpu_ms - inside.cpu_ms,
            limit=SEARCH_OVERHEAD_MS,
            at_least=False,
        )
        for name in ("REST", "MCP")
    ]


def _counted(clients: int) -> str:
    return f"{clients} client{'s' if clients > 1 else ''}"


def _plots(took: dict[Key, Took], clients: Sequence[int]) -> dict[str, str]:
    names = list(dict.fromkeys(name for _, _, name in took))
    groups = [_counted(many) for many in clients]
    drawn: dict[str, str] = {}
    for operation, shown in SHOWN.items():
        series = {name: [took[operation, many, name].percentile_ms(95) for many in clients] for name in names}
        drawn[shown] = bars(f"{shown.capitalize()}: p95 of an answer, ms", groups, series)
    return drawn
