"""python -m training.pair_model.fold --runs DIR --out FILE: one delta from those of several runs.

The runs start from the same initial values, so their weights can be averaged (a model soup, Wortsman et al.
2022). The mean of the low-rank products has a higher rank. A singular value decomposition reduces it to
`rank` of runs.toml, with the factors scaled alike. Everything is stored in float16.
"""

import argparse
import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from training.pair_model.runs import Arrays, fold_rank, runs

TEMPERATURE = 1.0

_Matrix = NDArray[np.float32]


def fold(deltas: Sequence[Arrays], rank: int) -> Arrays:
    """The mean of deltas with the same arrays, each low-rank product reduced to `rank`."""
    folded: Arrays = {}
    low_rank = list(_low_rank(deltas[0]))
    factors = {f"{name}.{factor}" for name in low_rank for factor in "AB"}
    for key in (key for key in deltas[0] if key not in factors):
        folded[key] = np.mean([_exact(delta[key]) for delta in deltas], 0).astype(np.float16)
    for name in low_rank:
        down, up = _reduced(_mean_product(deltas, name), rank)
        folded[f"{name}.A"], folded[f"{name}.B"] = down.astype(np.float16), up.astype(np.float16)
    folded["T"] = np.array(TEMPERATURE, np.float32)
    return folded


def _low_rank(delta: Arrays) -> Iterator[str]:
    """The names of the low-rank products: A maps down to the rank, B up from it."""
    return (key.removesuffix(".A") for key in delta if key.endswith(".A"))


def _mean_product(deltas: Sequence[Arrays], name: str) -> _Matrix:
    """The mean of B @ A, as one product of the factors side by side."""
    down = np.concatenate([_exact(delta[f"{name}.A"]) for delta in deltas], 0)
    up = np.concatenate([_exact(delta[f"{name}.B"]) / len(deltas) for delta in deltas], 1)
    product: _Matrix = up @ down
    return product


def _reduced(product: _Matrix, rank: int) -> tuple[_Matrix, _Matrix]:
    left, values, right = np.linalg.svd(product, full_matrices=False)
    roots = np.sqrt(values[:rank])
    return roots[:, None] * right[:rank], left[:, :rank] * roots


def _exact(array: NDArray[np.generic]) -> _Matrix:
    return array.astype(np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m training.pair_model.fold", description="Average the runs."
    )
    parser.add_argument("--runs", type=Path, required=True, help="the folder with RUN.npz of each run")
    parser.add_argument("--out", type=Path, required=True, help="the file to write")
    parser.add_argument("--also", type=Path, help="a file of an earlier training, averaged with the result")
    given = parser.parse_args()
    folded = fold([dict(np.load(given.runs / f"{name}.npz")) for name in runs()], fold_rank())
    if given.also is not None:
        both = (dict(np.load(given.also)), folded)
        folded = fold([{key: one[key] for key in one if key != "T"} for one in both], fold_rank())
    np.savez(given.out, **folded)
    print(hashlib.sha256(given.out.read_bytes()).hexdigest())


if __name__ == "__main__":
    main()
