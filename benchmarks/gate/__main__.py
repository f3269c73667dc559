"""python -m benchmarks.gate [--data DIR] [--only SET …] [--most N] [--out FILE]"""

import argparse
from pathlib import Path

from benchmarks.gate.pairs import SETS
from benchmarks.gate.run import MOST, run
from benchmarks.quality.corpus import DEFAULT_DATA
from benchmarks.report import publish


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gate", description="The decisions on entry.")
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA, help="folder with pairs/")
    parser.add_argument(
        "--only", nargs="+", metavar="SET", choices=SETS, default=list(SETS), help=f"of {', '.join(SETS)}"
    )
    parser.add_argument("--most", type=int, default=MOST, help=f"pairs of a kind (default {MOST}; 0: all)")
    parser.add_argument("--out", type=Path, help="write the results here as JSON, Markdown and SVG")
    given = parser.parse_args()
    publish(run(data=given.data, only=given.only, most=given.most), given.out)


if __name__ == "__main__":
    main()
