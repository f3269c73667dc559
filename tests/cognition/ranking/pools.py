"""Small pools for tests: everything at rest unless said otherwise."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from vestige.cognition.fsrs.formulas import W20
from vestige.cognition.text.form import Form
from vestige.core.candidates import CandidatePool, Traits

NOW = 1_800_000_000.0


def traits(count: int, **given: Sequence[Any]) -> Traits:
    """The traits of memories made just now, never judged, outside any thread."""
    floats = {
        "created": NOW, "happened": np.nan, "decay_from": NOW,
        "stability": 1.0, "retrieval": 1.0, "storage": 1.0, "curve": W20,
    }  # fmt: skip
    integers = {
        "suppressions": 0, "retrieved": 0, "useful": 0, "thread": -1, "form": int(Form.NOTE), "speaker": 0,
    }  # fmt: skip
    arrays: dict[str, Any] = {name: np.full(count, value) for name, value in floats.items()}
    arrays |= {name: np.full(count, value, dtype=np.int64) for name, value in integers.items()}
    for name in ("first_person", "asks", "timed"):
        arrays[name] = np.zeros(count, dtype=np.bool_)
    arrays["scope"] = np.full(count, "/", dtype=np.object_)
    arrays |= {name: np.array(values, dtype=arrays[name].dtype) for name, values in given.items()}
    return Traits(**arrays)


def pool(
    count: int, *, about: Traits | None = None, memories: int = 100, **given: Sequence[Any]
) -> CandidatePool:
    """A pool that no arm found anything in, but for what is given."""
    arrays: dict[str, Any] = {
        "own": np.zeros(count), "window": np.zeros(count), "thread": np.zeros(count),
        "cosine": np.full(count, np.nan),
        "starts": np.zeros(count, dtype=np.int64), "ends": np.zeros(count, dtype=np.int64),
        "literals": np.zeros(count, dtype=np.int64),
        "covered": np.zeros(count), "dated": np.zeros(count), "present": np.zeros(count, dtype=np.bool_),
        "by_words": np.zeros(count, dtype=np.bool_), "by_meaning": np.zeros(count, dtype=np.bool_),
        "by_literal": np.zeros(count, dtype=np.bool_),
    }  # fmt: skip
    arrays["vectors"] = np.zeros((count, 0), dtype=np.float32)
    arrays |= {name: np.array(values, dtype=arrays[name].dtype) for name, values in given.items()}
    return CandidatePool(
        ids=tuple(f"m{number:03}" for number in range(count)),
        traits=about or traits(count),
        sketch=None,
        frequencies={},
        memories=memories,
        **arrays,
    )
