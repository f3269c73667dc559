"""Counts the modules that one `smart_ingest` and one `search` visit: `python -m benchmarks.walk`.

A module counts when one of its functions is called on the thread of the call, except those that stand for
what is not compiled yet: patterns, and constructors of dataclasses. The store is SQLite with a few memories,
the model the default one. Fewer modules mean a shorter walk for whoever reads the code of a call.
"""

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import vestige
from benchmarks.engine import InProcess
from benchmarks.report import Report, Target, publish

SOURCE = Path(vestige.__file__).parent
ONCE = ("core/patterns.py", "core/lazy_dataclass.py")
"""Compile a pattern when it is first used, and the constructor of a class after some objects: a later call
does not visit them."""
MOST_INGEST = 60
MOST_SEARCH = 70
KNOWN = (
    "Harbour runs on PostgreSQL 14.",
    "Ada prefers TypeScript over JavaScript.",
    "Deployments need two approvals.",
    "The office is in Berlin.",
)
NEW = "Harbour now runs on PostgreSQL 16."
QUESTION = "Which database does Harbour use?"


def visited(work: Callable[[], object]) -> Counter[str]:
    """The modules that a piece of work visits on this thread, with the number of calls in each."""
    calls: Counter[str] = Counter()
    before = f"{SOURCE}/"

    def profile(frame: FrameType, event: str, argument: Any) -> None:  # Any: whatever the interpreter hands
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(before) and not path.endswith(ONCE):
            calls[path[len(before) :]] += 1

    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


def measure(folder: Path, settings: dict[str, object] | None = None) -> tuple[Counter[str], Counter[str]]:
    """The walks of one `smart_ingest` and of one `search`, both after a first call of their kind."""
    # Texts are screened for secrets, as they are by default.
    with InProcess(
        folder, settings={"memory.secrets": "refuse", "review.policy": "low_trust", **(settings or {})}
    ) as service:
        for text in KNOWN:
            service.call("smart_ingest", {"content": text})
        service.call("search", {"query": QUESTION})
        stored = visited(lambda: service.call("smart_ingest", {"content": NEW}))
        found = visited(lambda: service.call("search", {"query": QUESTION}))
    return stored, found


def report(stored: Counter[str], found: Counter[str]) -> Report:
    """Both walks, module by module."""
    return Report(
        benchmark="walk",
        settings={"store": "sqlite", "memories": len(KNOWN)},
        tables={
            name: [{"module": module, "calls": calls[module]} for module in sorted(calls)]
            for name, calls in (("smart_ingest", stored), ("search", found))
        },
        targets=[
            Target(name="modules, smart_ingest", value=len(stored), limit=MOST_INGEST, at_least=False),
            Target(name="modules, search", value=len(found), limit=MOST_SEARCH, at_least=False),
        ],
    )


def main() -> None:
    """Measure, and print what was found."""
    parser = argparse.ArgumentParser(prog="benchmarks.walk", description=__doc__)
    parser.add_argument("--out", type=Path, help="write the report there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        stored, found = measure(Path(folder))
    publish(report(stored, found), options.out)


if __name__ == "__main__":
    main()
