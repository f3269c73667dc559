"""NDCG@10 of ranked sections against the files, or lines of files, that answer a question."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.code.repositories import Goal

DEPTH = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Lines of a file that an arm found."""

    path: str
    start_line: int = 0
    end_line: int = 0


def ndcg_of_sections(found: Sequence[Place], goals: Sequence[Goal]) -> float:
    """Of ten sections; a file may come several times."""
    return _ndcg(
        [next((n for n, one in enumerate(found[:DEPTH]) if hits(one, goal)), None) for goal in goals]
    )


def ndcg_of_files(found: Sequence[Place], goals: Sequence[Goal]) -> float:
    """Of ten distinct files, by their best section; lines do not count."""
    files = list(dict.fromkeys(one.path for one in found))[:DEPTH]
    return _ndcg(
        [next((n for n, one in enumerate(files) if same_file(one, goal.path)), None) for goal in goals]
    )


def _ndcg(ranks: Sequence[int | None]) -> float:
    gained = sum(1 / math.log2(rank + 2) for rank in ranks if rank is not None)
    return gained / sum(1 / math.log2(rank + 2) for rank in range(min(DEPTH, len(ranks))))


def hits(one: Place, goal: Goal) -> bool:
    if not same_file(one.path, goal.path):
        return False
    return not goal.start_line or (one.start_line <= goal.end_line and goal.start_line <= one.end_line)


def same_file(path: str, other: str) -> bool:
    """Whether one path ends with the other."""
    return path == other or path.endswith(f"/{other}") or other.endswith(f"/{path}")
