"""python -m benchmarks.contention [--kills N] [--writers N] [--readers N] [--quick] [--out FILE]"""

import argparse
from pathlib import Path

from benchmarks.contention.run import run
from benchmarks.report import publish


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.contention", description="Many processes on one store."
    )
    parser.add_argument("--writers", type=int, default=8, help="writer processes (default 8)")
    parser.add_argument("--readers", type=int, default=4, help="reader processes (default 4)")
    parser.add_argument(
        "--kills", type=int, default=200, help="writers killed, one every 500 ms (default 200)"
    )
    parser.add_argument("--quick", action="store_true", help="20 kills and 4 statements")
    parser.add_argument("--out", type=Path, help="write the results here as JSON, Markdown and SVG")
    given = parser.parse_args()
    kills, statements = (20, 4) if given.quick else (given.kills, None)
    publish(run(writers=given.writers, readers=given.readers, kills=kills, statements=statements), given.out)


if __name__ == "__main__":
    main()
