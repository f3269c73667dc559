"""python -m benchmarks.tail [--half HALF …] [--store KIND] [--out FILE]"""

import argparse
from pathlib import Path

from benchmarks.notes.cases import HALVES
from benchmarks.report import publish
from benchmarks.tail.run import run


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tail", description="Silent on other topics.")
    parser.add_argument(
        "--half", nargs="+", choices=list(HALVES), default=list(HALVES), help=f"of {', '.join(HALVES)}"
    )
    parser.add_argument(
        "--store", choices=("sqlite", "postgres", "memory"), default="sqlite", help="where memories are kept"
    )
    parser.add_argument("--out", type=Path, help="write the results here as JSON and Markdown")
    given = parser.parse_args()
    publish(run(given.half, given.store), given.out, page=True)


if __name__ == "__main__":
    main()
