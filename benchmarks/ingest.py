"""How much of the raw embedder's throughput remembering keeps.

    python -m benchmarks.ingest [--turns 2000] [--stored 10000] [--data DIR] [--quick] [--out FILE]

The same turns go through the raw embedder and through `smart_ingest`, in requests of 100 and one at a
time, into an empty store and into one that holds many, as turns of threads and as plain notes (for which
the gate looks for rivals). Everything is in the scope of one project. Short notes that are alike ("User
prefers X over Y for Z") go into the full store too: each has rivals which the gate and the pair model read,
so they are judged by their CPU time, not by the time of the raw embedder. All ways take the first 100 turns,
then all the next 100, …, each time another one first, so that what else the machine does falls on all alike.
Ratios are of the medians over these rounds; 1.0 would mean that the engine costs nothing. Raw means
`embed_documents` on the same texts, in the same portions. The way through `vestige-mcp` is there for
information: its CPU time is the server's.
"""

import argparse
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.conversation import Turn, alike_notes, generated, load_turns
from benchmarks.engine import Ingester, InProcess, OverStdio, fill, items_of
from benchmarks.quality.corpus import DEFAULT_DATA
from benchmarks.report import Cell, Report, Target, publish

BATCH = 100
WANTED = {BATCH: 0.9, 1: 0.65}
ALIKE_MS = 8.0
"""The CPU time that a short note among alike ones may take."""
SCOPE = "/projects/bench"
STORED_SEED = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A way for texts to go: what takes one portion, and whose CPU time counts."""

    name: str
    portion: int
    take: Callable[[Sequence[Turn]], object]
    cpu_seconds: Callable[[], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What one way needed per turn in one round."""

    wall: float
    cpu: float


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ingest", description="Ingest throughput.")
    parser.add_argument("--turns", type=int, default=2000, help="turns to remember (default 2000)")
    parser.add_argument("--stored", type=int, default=10_000, help="size of the full store (default 10000)")
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA, help="folder with locomo.json, if any")
    parser.add_argument("--quick", action="store_true", help="300 turns and 500 stored: a first impression")
    parser.add_argument("--out", type=Path, help="write the results here as JSON")
    given = parser.parse_args()
    turns, stored = (300, 500) if given.quick else (given.turns, given.stored)
    publish(run(turns=turns, stored=stored, data=given.data), given.out)


def run(*, turns: int, stored: int, data: Path | None, portion: int = BATCH) -> Report:
    """Measure every store and form."""
    told, origin = load_turns(data, turns)
    rows: list[dict[str, Cell]] = []
    targets: list[Target] = []
    with tempfile.TemporaryDirectory(prefix="vestige-ingest-") as folder:
        full = Path(folder) / "full"
        model = fill(full, generated(stored, seed=STORED_SEED), scope=SCOPE)
        for base, held in ((None, 0), (full, stored)):
            for threaded in (True, False):
                measured = _measure(told, threaded, base, portion)
                case = f"{'turns' if threaded else 'notes'} into {held:,}"
                rows += [_row(case, way, measured) for way in measured.rounds]
                targets += _targets(case, measured, portion)
        measured = _measure(alike_notes(turns), False, full, portion)
        case = f"alike notes into {stored:,}"
        rows += [_row(case, way, measured) for way in measured.rounds]
        targets.append(_alike_target(case, measured))
    return Report(
        benchmark="ingest",
        settings={"turns": turns, "stored": stored, "texts": origin, "model": model, "scope": SCOPE},
        tables={"Throughput": rows},
        targets=targets,
        notes=(
            "A ratio is throughput ÷ that of the raw embedder in the same portions; a target takes the "
            "worse of wall and CPU.",
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The rounds of every way, and what the engine decided on the way."""

    rounds: dict[Way, list[Round]]
    decisions: dict[str, Counter[str]]

    def ratio(self, way: Way, to: str, value: Callable[[Round], float]) -> float:
        """The throughput of `way` as a share of that of the way called `to`."""
        reference = next(rounds for other, rounds in self.rounds.items() if other.name == to)
        return median(map(value, reference)) / median(map(value, self.rounds[way]))


def _measure(turns: Sequence[Turn], threaded: bool, base: Path | None, portion: int) -> Measured:
    """Send all turns all ways, each engine with its own copy of the store."""
    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="vestige-ingest-")))
        engines: dict[str, Ingester] = {}
        ways: list[Way] = []
        for size in (portion, 1):
            here = opened.enter_context(InProcess(_copy(base, folder / f"engine-{size}")))
            there = opened.enter_context(OverStdio(_copy(base, folder / f"stdio-{size}")))
            engines |= {f"engine by {size}": here, f"stdio by {size}": there}
            ways.append(_raw(here, size))
        for name, engine in engines.items():
            size = int(name.rpartition(" ")[2])
            ways.append(_through(name, engine, size, threaded))
        rounds = measure(ways, turns, portion)
        return Measured(rounds=rounds, decisions={name: it.decisions for name, it in engines.items()})


def measure(ways: Sequence[Way], turns: Sequence[Turn], block: int) -> dict[Way, list[Round]]:
    """Let every way take every block, each time another one first."""
    rounds: dict[Way, list[Round]] = {way: [] for way in ways}
    for number, at in enumerate(range(0, len(turns), block)):
        first = number % len(ways)
        for way in (*ways[first:], *ways[:first]):
            rounds[way].append(_take(way, turns[at : at + block]))
    return rounds


def _take(way: Way, block: Sequence[Turn]) -> Round:
    wall, cpu = time.perf_counter(), way.cpu_seconds()
    for at in range(0, len(block), way.portion):
        way.take(block[at : at + way.portion])
    used = way.cpu_seconds() - cpu
    return Round(wall=(time.perf_counter() - wall) / len(block), cpu=used / len(block))


def _raw(engine: InProcess, size: int) -> Way:
    def embed(turns: Sequence[Turn]) -> object:
        return engine.embedder.embed_documents([turn.content for turn in turns])

    return Way(name=f"raw by {size}", portion=size, take=embed, cpu_seconds=engine.cpu_seconds)


def _through(name: str, engine: Ingester, size: int, threaded: bool) -> Way:
    def remember(turns: Sequence[Turn]) -> None:
        engine.ingest(items_of(turns, threaded=threaded, scope=SCOPE))

    return Way(name=name, portion=size, take=remember, cpu_seconds=engine.cpu_seconds)


def _copy(base: Path | None, to: Path) -> Path:
    if base is not None:
        shutil.copytree(base, to)
    return to


def _row(case: str, way: Way, measured: Measured) -> dict[str, Cell]:
    rounds = measured.rounds[way]
    batched = max(other.portion for other in measured.rounds)
    wall = median(took.wall for took in rounds)
    decided = measured.decisions.get(way.name, Counter[str]())
    return {
        "case": case,
        "way": way.name,
        "turns/s": 1 / wall,
        "wall ms": 1000 * wall,
        "CPU ms": 1000 * median(took.cpu for took in rounds),
        "ratio wall": measured.ratio(way, f"raw by {way.portion}", lambda took: took.wall),
        "ratio CPU": measured.ratio(way, f"raw by {way.portion}", lambda took: took.cpu),
        f"CPU to raw by {batched}": measured.ratio(way, f"raw by {batched}", lambda took: took.cpu),
        "decisions": ", ".join(f"{count} {name}" for name, count in decided.most_common()) or None,
    }


def _targets(case: str, measured: Measured, portion: int) -> list[Target]:
    judged = []
    for way in measured.rounds:
        if not way.name.startswith("engine"):
            continue
        raw = f"raw by {way.portion}"
        ratios = (
            measured.ratio(way, raw, lambda took: took.wall),
            measured.ratio(way, raw, lambda took: took.cpu),
        )
        wanted = WANTED[BATCH if way.portion == portion else 1]
        judged.append(
            Target(name=f"{case}, {way.name}: share of raw", value=min(ratios), limit=wanted, at_least=True)
        )
    return judged


def _alike_target(case: str, measured: Measured) -> Target:
    rounds = next(rounds for way, rounds in measured.rounds.items() if way.name == "engine by 1")
    cpu = 1000 * median(took.cpu for took in rounds)
    return Target(name=f"{case}, engine by 1: CPU ms", value=cpu, limit=ALIKE_MS, at_least=False)


if __name__ == "__main__":
    main()
