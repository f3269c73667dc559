"""python -m benchmarks.soak [--hours N | --minutes N] [--store NAME] [--out FILE]"""

import argparse
import signal
import sys
from pathlib import Path

from benchmarks.report import publish
from benchmarks.soak.run import KEPT, SEED, run

HOURS = 12.0


def main() -> int:
    """Run the soak; 1 when something was lost, grew or broke."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.soak", description="Both stores under load and attack for hours."
    )
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--hours", type=float, default=HOURS, help=f"how long (default {HOURS:g})")
    length.add_argument("--minutes", type=float, help="how long, in minutes")
    parser.add_argument(
        "--store", action="append", choices=("sqlite", "postgres"), help="only this store (default: both)"
    )
    parser.add_argument("--kept", type=int, default=KEPT, help=f"memories in each store (default {KEPT:,})")
    parser.add_argument("--seed", type=int, default=SEED, help="of the attacks and texts")
    parser.add_argument("--out", type=Path, help="write the results here as JSON, Markdown and SVG")
    given = parser.parse_args()
    # A service manager's signal ends the servers too, and so does Ctrl-C where a shell had it ignored.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    minutes = given.minutes if given.minutes is not None else 60 * given.hours
    report = run(
        minutes=minutes, stores=given.store or ("sqlite", "postgres"), kept=given.kept, seed=given.seed
    )
    publish(report, given.out)
    return int(not all(target.met for target in report.targets))


if __name__ == "__main__":
    sys.exit(main())
