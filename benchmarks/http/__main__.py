"""python -m benchmarks.http [--data DIR] [--peer-python PATH] [--model] [--workers N]
[--quick] [--out FILE]"""

import argparse
from pathlib import Path

from benchmarks.http import listeners, soak
from benchmarks.http.run import CLIENTS, MEMORIES, REQUESTS, run
from benchmarks.quality.corpus import DEFAULT_DATA
from benchmarks.report import publish


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.http", description="The server under load.")
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA, help="folder with locomo.json, if any")
    parser.add_argument("--memories", type=int, default=MEMORIES, help=f"in the store (default {MEMORIES})")
    parser.add_argument(
        "--requests", type=int, default=REQUESTS, help=f"by each way and number of clients ({REQUESTS})"
    )
    parser.add_argument("--soak", type=int, default=soak.REQUESTS, help=f"requests ({soak.REQUESTS})")
    parser.add_argument("--listeners", type=int, default=listeners.LISTENERS, help="how many listen")
    parser.add_argument(
        "--peer-python", type=Path, metavar="PATH", help="an interpreter that has mcp-memory-service"
    )
    parser.add_argument("--model", action="store_true", help="the real model makes our vectors")
    parser.add_argument(
        "--workers", type=int, default=1, help="ask a server with so many workers as well (default: do not)"
    )
    parser.add_argument("--quick", action="store_true", help="300 memories, 32 requests, 1,000 in the soak")
    parser.add_argument("--out", type=Path, help="write the results here as JSON, Markdown and SVG")
    given = parser.parse_args()
    quick = given.quick
    publish(
        run(
            data=given.data,
            memories=300 if quick else given.memories,
            requests=32 if quick else given.requests,
            clients=CLIENTS,
            soak_requests=1_000 if quick else given.soak,
            kept=300 if quick else soak.KEPT,
            many=50 if quick else given.listeners,
            peer_python=given.peer_python,
            model=given.model,
            workers=given.workers,
        ),
        given.out,
    )


if __name__ == "__main__":
    main()
