"""python -m benchmarks.orders [--data DIR] [--quick] [--out FILE]"""

import argparse
from pathlib import Path

from benchmarks.orders.run import run
from benchmarks.report import publish


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.orders", description="Texts that command an agent, and ordinary ones."
    )
    parser.add_argument("--data", type=Path, help="where locomo.json is, to count false alarms in talks")
    parser.add_argument("--quick", action="store_true", help="20 texts of each set")
    parser.add_argument("--out", type=Path, help="write the results here as JSON and Markdown")
    given = parser.parse_args()
    publish(run(data=given.data, quick=given.quick), given.out)


if __name__ == "__main__":
    main()
