"""The settings of the training runs (runs.toml), and the type of the arrays that the steps hand on."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent / "runs.toml"

Arrays = dict[str, Any]
"""Numpy arrays by name, as they are in a file. Any, because np.savez takes its own options by name too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """What one run is trained with; runs.toml explains each setting."""

    rank: int
    seed: int
    batch: int
    shares: dict[str, float]
    learning_rate: float
    dropout: float
    label_smoothing: float
    token_mask: float
    consistency: float
    steps: int


def runs() -> dict[str, RunSettings]:
    """The runs by name, in the order of averaging."""
    content = tomllib.loads(FILE.read_text("utf-8"))
    return {name: RunSettings(**{**content["defaults"], **own}) for name, own in content["runs"].items()}


def fold_rank() -> int:
    """The rank that the averaged delta is reduced to."""
    rank: int = tomllib.loads(FILE.read_text("utf-8"))["fold"]["rank"]
    return rank
