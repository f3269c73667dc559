"""python -m benchmarks.peers --peers-python PATH … [--only PEER …] [--talks N] [--questions N] [--out F]"""

import argparse
from pathlib import Path

from benchmarks.peers.run import PEERS, run
from benchmarks.quality.corpus import DEFAULT_DATA, Missing
from benchmarks.report import publish


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description="Other memories.")
    parser.add_argument(
        "--peers-python",
        nargs="+",
        type=Path,
        default=[],
        metavar="PATH",
        help="interpreters of environments that hold the peers; the first that has a peer runs it",
    )
    parser.add_argument("--only", nargs="+", choices=PEERS, default=list(PEERS), help="which peers")
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA, help="folder with locomo.json")
    parser.add_argument("--talks", type=int, help="only the first N conversations of LoCoMo")
    parser.add_argument("--questions", type=int, help="only the first N questions of each")
    parser.add_argument(
        "--development", action="store_true", help="only conversations that were used in tuning"
    )
    parser.add_argument("--out", type=Path, help="write the results here as JSON, Markdown and SVG")
    given = parser.parse_args()
    try:
        report = run(
            data=given.data,
            pythons=given.peers_python,
            only=given.only,
            talks=given.talks,
            questions=given.questions,
            development=given.development,
        )
    except Missing as missing:
        raise SystemExit(f"There is {missing} in {given.data}: say where it is with --data.") from missing
    publish(report, given.out)


if __name__ == "__main__":
    main()
