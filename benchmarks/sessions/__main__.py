"""python -m benchmarks.sessions [--data DIR] [--megabytes N] [--only quality speed] [--out FILE]"""

import argparse
from pathlib import Path

from benchmarks.report import publish
from benchmarks.sessions.run import PARTS, run

DATA = Path("../shared/bench")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sessions", description="Recall of sessions.")
    parser.add_argument(
        "--data", type=Path, default=DATA, help=f"folder of claude_sessions (default: {DATA})"
    )
    parser.add_argument(
        "--only", nargs="+", choices=PARTS, default=list(PARTS), help=f"of {', '.join(PARTS)}"
    )
    parser.add_argument("--megabytes", type=int, default=500, help="size of the transcripts for the speed")
    parser.add_argument("--out", type=Path, help="write the results here as JSON and Markdown")
    given = parser.parse_args()
    publish(run(given.data, given.only, megabytes=given.megabytes), given.out)


if __name__ == "__main__":
    main()
