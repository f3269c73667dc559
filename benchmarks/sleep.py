"""Whether a search has to wait while the memory sleeps.

    python -m benchmarks.sleep [--data DIR] [--memories N] [--out FILE]

A store is filled and a month passes. One thread searches all the time, as an agent would that never pauses,
first alone, then while another thread of the same process dreams of 500 memories, then while it consolidates.
Both write: searches leave their traces.
"""

import argparse
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import numpy as np

from benchmarks.client import Json
from benchmarks.conversation import load_turns
from benchmarks.engine import InProcess
from benchmarks.plot import bars
from benchmarks.progress import say
from benchmarks.quality.corpus import DEFAULT_DATA
from benchmarks.report import Cell, Report, Target, publish
from benchmarks.speed.stores import MOST_EMBEDDED, fill
from vestige.app.app import Clock, system_clock

MEMORIES = MOST_EMBEDDED + 1
"""One more than are embedded one by one: such a store is filled in a minute, with synthetic vectors."""
DREAMT = 500
SEARCHES = 200
"""At least so many in each part."""
SLOWER = 2.0
MONTH = timedelta(days=30)


class ShiftedClock:
    """The machine's clock, some time ahead."""

    def __init__(self) -> None:
        self.ahead = timedelta(0)

    def parts(self) -> Clock:
        """It as the app takes it."""
        real = system_clock()
        return replace(real, now=lambda: real.now() + self.ahead)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Searches during something, in milliseconds each, and how long that took in seconds, each time."""

    name: str
    searches: Sequence[float]
    runs: Sequence[float] = ()

    @property
    def p50(self) -> float:
        return float(np.percentile(self.searches, 50))

    @property
    def p95(self) -> float:
        return float(np.percentile(self.searches, 95))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sleep", description="Searching during sleep.")
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA, help="folder with locomo.json")
    parser.add_argument("--memories", type=int, default=MEMORIES, help=f"default {MEMORIES}")
    parser.add_argument("--out", type=Path, help="write the results here as JSON, Markdown and SVG")
    given = parser.parse_args()
    publish(run(data=given.data, memories=given.memories), given.out)


def run(*, data: Path, memories: int = MEMORIES, searches: int = SEARCHES) -> Report:
    """Measure all three parts on one store."""
    turns, origin = load_turns(data, memories)
    clock = ShiftedClock()
    with (
        tempfile.TemporaryDirectory(prefix="vestige-sleep-") as folder,
        InProcess(Path(folder), clock=clock.parts()) as engine,
    ):
        fill(engine, turns)
        clock.ahead = MONTH
        asked = [turn.text for turn in turns[:: max(1, len(turns) // searches)]]
        _alone(engine, asked, searches // 4)  # warm
        before = Part(name="before", searches=_alone(engine, asked, searches))
        dream = _during(engine, "dream", {"memory_count": min(DREAMT, memories)}, asked, searches)
        rest = _during(engine, "consolidate", {}, asked, searches)
        after = Part(name="after", searches=_alone(engine, asked, searches))
    parts = [before, dream, rest, after]
    return Report(
        benchmark="sleep",
        settings={"memories": memories, "turns": origin, "dreamt": min(DREAMT, memories)},
        tables={"Searches": [_row(part, before) for part in parts]},
        targets=[
            Target(
                name=f"p95 during {part.name} / before",
                value=part.p95 / before.p95,
                limit=SLOWER,
                at_least=False,
            )
            for part in (dream, rest)
        ],
        notes=(
            "One process, two threads, SQLite. Before and after are the same searches with nothing else "
            "going on; a part that ends before enough searches were made is begun again.",
        ),
        plots={
            "searches": bars(
                "Milliseconds of a search",
                [part.name for part in parts],
                {"p50": [part.p50 for part in parts], "p95": [part.p95 for part in parts]},
            )
        },
    )


def _alone(engine: InProcess, asked: Sequence[str], count: int) -> list[float]:
    return [_search(engine, asked[at % len(asked)]) for at in range(count)]


def _search(engine: InProcess, query: str) -> float:
    started = time.perf_counter()
    engine.call("search", {"query": query})
    return 1000 * (time.perf_counter() - started)


def _during(engine: InProcess, tool: str, arguments: Json, asked: Sequence[str], count: int) -> Part:
    taken: list[float] = []
    runs: list[float] = []
    while len(taken) < count:
        done, ended = _apart(lambda: engine.call(tool, arguments))
        while not done.is_set():
            taken.append(_search(engine, asked[len(taken) % len(asked)]))
        runs.append(ended())
        say(f"{tool}: {runs[-1]:.1f} s, {len(taken)} searches")
    return Part(name=tool, searches=taken, runs=runs)


def _apart(work: Callable[[], object]) -> tuple[threading.Event, Callable[[], float]]:
    """Do some work in a thread; whether it is done, and how long it took (or what went wrong)."""
    done = threading.Event()
    seconds: list[float] = []
    errors: list[Exception] = []

    def target() -> None:
        started = time.perf_counter()
        try:
            work()
        except Exception as error:  # told to the thread that waits
            errors.append(error)
        finally:
            seconds.append(time.perf_counter() - started)
            done.set()

    thread = threading.Thread(target=target, name="sleeper")
    thread.start()

    def ended() -> float:
        thread.join()
        if errors:
            raise errors[0]
        return seconds[0]

    return done, ended


def _row(part: Part, before: Part) -> dict[str, Cell]:
    return {
        "part": part.name,
        "runs": len(part.runs) or None,
        "seconds each": float(np.mean(part.runs)) if part.runs else None,
        "searches": len(part.searches),
        "p50 ms": part.p50,
        "p95 ms": part.p95,
        "p95 / before": part.p95 / before.p95,
        "slowest ms": max(part.searches),
    }


if __name__ == "__main__":
    main()
