"""python -m benchmarks.quality [--data DIR] [--only SET …] [--quick] [--keep DIR] [--store KIND] [--out F]"""

import argparse
from pathlib import Path

from benchmarks.quality.corpus import DEFAULT_DATA
from benchmarks.quality.run import SETS, run
from benchmarks.report import publish


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality", description="Retrieval quality.")
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA, help="folder with the sets of data")
    parser.add_argument(
        "--only", nargs="+", metavar="SET", choices=SETS, default=SETS, help=f"of {', '.join(SETS)}"
    )
    parser.add_argument("--quick", action="store_true", help="100 questions of LoCoMo: a first impression")
    parser.add_argument("--keep", type=Path, help="keep filled stores here, and use them again")
    parser.add_argument("--out", type=Path, help="write the results here as JSON, Markdown and SVG")
    parser.add_argument(
        "--min-confidence", type=float, help="refuse below this confidence only; 0 measures ranking alone"
    )
    parser.add_argument(
        "--store", choices=("sqlite", "postgres"), default="sqlite", help="where memories are kept"
    )
    given = parser.parse_args()
    if given.keep and given.store != "sqlite":
        parser.error("a database server ends with the run: --keep is for sqlite")
    report = run(
        data=given.data,
        only=given.only,
        quick=given.quick,
        keep=given.keep,
        min_confidence=given.min_confidence,
        store=given.store,
    )
    publish(report, given.out)


if __name__ == "__main__":
    main()
