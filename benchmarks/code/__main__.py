"""Code search on pinned repositories, compared with BM25, vectors, ripgrep and chance.

    python -m benchmarks.code --data DIR --repos DIR [--no-vectors] [--mcp] [--tune N] [--out FILE]

`--data` has `code/` (annotations_dev.json, repos_dev.json) and, for issues, `swebench_lite.json`. `--repos`
has the git directories of the repositories, named OWNER+NAME (a clone, a bare clone, or one in `repo/`). A
repository that is not there is left out; where the pinned commit is missing, its newest one is read, and
the lines of targets do not count.
"""

import argparse
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.code.arms import Embed
from benchmarks.code.run import run
from benchmarks.code.server import ProjectServer
from benchmarks.quality.corpus import DEFAULT_DATA
from benchmarks.report import publish
from benchmarks.simulate.embedding import local_model


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.code", description=__doc__)
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA, help="folder with code/")
    parser.add_argument("--repos", type=Path, required=True, help="folder of git directories")
    parser.add_argument("--no-vectors", action="store_true", help="words only: no model is needed")
    parser.add_argument("--mcp", action="store_true", help="also ask the server, on real indexes")
    parser.add_argument("--tune", type=int, default=0, metavar="N", help="try N weights")
    parser.add_argument("--out", type=Path, help="write the results here as JSON and Markdown")
    given = parser.parse_args()
    embed = None if given.no_vectors else _embedder()
    with ProjectServer() if given.mcp else nullcontext() as server:
        publish(run(given.data, given.repos, embed, given.tune, server), given.out)


def _embedder() -> Embed:
    model = local_model()
    known: dict[str, NDArray[np.float32]] = {}

    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        new = [text for text in dict.fromkeys(texts) if text not in known]
        for text, one in zip(new, model.encode_documents(new) if new else (), strict=True):
            known[text] = np.array(one.vector, dtype=np.float32)
        return np.array([known[text] for text in texts])

    return embed


if __name__ == "__main__":
    main()
