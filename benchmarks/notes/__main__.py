"""python -m benchmarks.notes [--half HALF …] [--out FILE]"""

import argparse
from pathlib import Path

from benchmarks.notes.cases import SETS
from benchmarks.notes.run import run
from benchmarks.report import publish


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.notes", description="Right about notes.")
    parser.add_argument(
        "--half", nargs="+", choices=list(SETS), default=list(SETS), help=f"of {', '.join(SETS)}"
    )
    parser.add_argument("--out", type=Path, help="write the results here as JSON and Markdown")
    given = parser.parse_args()
    publish(run(given.half), given.out, page=True)


if __name__ == "__main__":
    main()
