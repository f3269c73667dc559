"""python -m benchmarks.silence [--data DIR] [--set NAME …] [--quick] [--out FILE]"""

import argparse
from pathlib import Path

from benchmarks.quality.corpus import DEFAULT_DATA
from benchmarks.report import publish
from benchmarks.silence.run import SETS, run


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.silence", description="Silent, unless it is sure."
    )
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA, help="where LoCoMo and LongMemEval are")
    parser.add_argument("--set", nargs="+", choices=SETS, default=list(SETS), help=f"of {', '.join(SETS)}")
    parser.add_argument("--quick", action="store_true", help="20 prompts of each kind and corpus")
    parser.add_argument("--out", type=Path, help="write the results here as JSON and Markdown")
    given = parser.parse_args()
    publish(run(data=given.data, only=given.set, quick=given.quick), given.out)


if __name__ == "__main__":
    main()
