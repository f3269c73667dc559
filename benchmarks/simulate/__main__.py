"""python -m benchmarks.simulate [--seeds 5] [--days 365] [--ablated 2] [--jobs 2] [--out FILE]"""

import argparse
from pathlib import Path

from benchmarks.report import publish
from benchmarks.simulate.run import run
from benchmarks.simulate.story import DAYS


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simulate", description="A year of use.")
    parser.add_argument("--seeds", type=int, default=5, help="stories (default 5)")
    parser.add_argument("--days", type=int, default=DAYS, help=f"days of a story (default {DAYS})")
    parser.add_argument(
        "--ablated", type=int, default=2, help="stories lived without each other mechanism (default 2)"
    )
    parser.add_argument("--jobs", type=int, default=2, help="stories at once (default 2)")
    parser.add_argument("--out", type=Path, help="write the results here as JSON, Markdown and SVG")
    given = parser.parse_args()
    report = run(seeds=given.seeds, days=given.days, ablated=given.ablated, jobs=given.jobs)
    publish(report, given.out)


if __name__ == "__main__":
    main()
