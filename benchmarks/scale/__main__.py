"""python -m benchmarks.scale [--sizes N …] [--million] [--queries N] [--stores …] [--data DIR] [--out F]"""

import argparse
from pathlib import Path

from benchmarks.report import publish
from benchmarks.scale.backends import NAMES
from benchmarks.scale.run import MILLION, QUERIES, SIZES, run


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description="How it all grows.")
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES), help="how many memories")
    parser.add_argument("--million", action="store_true", help="also a million (needs 40 GB and hours)")
    parser.add_argument("--queries", type=int, default=QUERIES, help=f"questions (default {QUERIES})")
    parser.add_argument("--stores", nargs="+", choices=NAMES, default=list(NAMES), help="which stores")
    parser.add_argument("--data", type=Path, help="folder with locomo.json and cranfield/, if any")
    parser.add_argument("--out", type=Path, help="write the results here as JSON, Markdown and SVG")
    given = parser.parse_args()
    sizes = [*given.sizes, MILLION] if given.million else given.sizes
    report = run(sizes=sizes, queries=given.queries, data=given.data, stores=tuple(given.stores))
    publish(report, given.out)


if __name__ == "__main__":
    main()
