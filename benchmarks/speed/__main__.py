"""python -m benchmarks.speed [--sizes N …] [--million] [--queries N] [--data DIR] [--out FILE]"""

import argparse
from pathlib import Path

from benchmarks.quality.corpus import DEFAULT_DATA
from benchmarks.report import publish
from benchmarks.speed.run import MILLION, QUERIES, SIZES, run


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description="Speed and size.")
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES), help="how many memories")
    parser.add_argument("--million", action="store_true", help="also a million (needs 10 GB and an hour)")
    parser.add_argument("--queries", type=int, default=QUERIES, help=f"queries (default {QUERIES})")
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA, help="folder with locomo.json, if any")
    parser.add_argument("--out", type=Path, help="write the results here as JSON, Markdown and SVG")
    given = parser.parse_args()
    sizes = [*given.sizes, MILLION] if given.million else given.sizes
    publish(run(sizes=sizes, queries=given.queries, data=given.data), given.out)


if __name__ == "__main__":
    main()
