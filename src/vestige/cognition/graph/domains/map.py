"""A map of memories: domains as islands, and their members on them. Pure and deterministic.

The centres of islands are a classical scaling of the domains' centroids. The place of a memory follows from
its own scores for the domains and from the islands, not from other memories: it stays when others come and go
(ADR 0061).
"""

from collections.abc import Sequence
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from vestige.core.lazy_dataclass import dataclass

Floats = NDArray[np.float64]

SPACING = 1.15
"""Least distance of two islands, as a multiple of their radii."""
PASSES = 300
NEAREST, FARTHEST = 0.1, 0.92
"""Where the most and the least typical members are, as shares of the radius."""
SHARPNESS = 8.0
"""How strongly a memory is drawn towards the domains that it resembles most."""
SPREAD = 4.4
"""Radians over which memories that resemble the same domains are spread, by their ids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Islands:
    """Centres and radii of islands, in the order of their domains."""

    centres: Floats
    radii: Floats


def islands(vectors: Floats, sizes: Sequence[int]) -> Islands:
    """Islands whose distances follow those of the centroids; the area of one follows its size."""
    radii = np.sqrt(np.maximum(np.asarray(sizes, dtype=np.float64), 1.0))
    flat = _scaling(vectors)
    far = np.linalg.norm(flat, axis=1).max(initial=0.0)
    if far > 0:
        flat = flat * (1.2 * np.sqrt(float((radii**2).sum())) / far)
    return Islands(centres=_apart(flat, radii), radii=radii)


def _scaling(vectors: Floats) -> Floats:
    """Classical multidimensional scaling of cosine distances in two dimensions, with fixed signs."""
    count = len(vectors)
    if count < 2:
        return np.zeros((count, 2))
    rows = np.asarray(vectors, dtype=np.float64)
    rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    squares = np.maximum(2.0 - 2.0 * rows @ rows.T, 0.0)
    centring = np.eye(count) - 1.0 / count
    values, found = np.linalg.eigh(-0.5 * centring @ squares @ centring)
    axes = found[:, ::-1][:, :2] * np.sqrt(np.maximum(values[::-1][:2], 0.0))
    return _signed(axes)


def _signed(axes: Floats) -> Floats:
    """The axes with the largest coordinate of each positive: a scaling has no direction of its own."""
    largest = axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])]
    return np.asarray(axes * np.where(largest < 0, -1.0, 1.0))


def _apart(centres: Floats, radii: Floats) -> Floats:
    """The centres, pushed apart until no two islands overlap."""
    placed = centres.copy()
    if len(placed) < 2:
        return placed
    wanted = SPACING * (radii[:, None] + radii[None, :])
    np.fill_diagonal(wanted, 0.0)
    angles = 2.4 * np.arange(len(placed))
    for _ in range(PASSES):
        between = placed[:, None, :] - placed[None, :, :]
        far = np.linalg.norm(between, axis=2)
        same = (far < 1e-9) & (wanted > 0)
        if same.any():  # two in one place have no direction
            placed += 1e-3 * np.stack((np.cos(angles), np.sin(angles)), axis=1)
            continue
        push = np.maximum(wanted - far, 0.0)
        if push.max(initial=0.0) < 1e-6:
            break
        placed += 0.5 * (between * (push / np.maximum(far, 1e-9))[:, :, None]).sum(axis=1)
    return np.asarray(placed)


def member_place(
    memory_id: str,
    scores: Floats,
    home: int | None,
    found: Islands,
    range_of_home: tuple[float, float] | None,
) -> tuple[float, float]:
    """The place of a memory from its scores for the domains, in the order of the islands; NaN for none.

    On its island, a typical member is near the centre, and the others towards the islands that they resemble,
    too. A memory without a domain is off the coast of the one that it resembles most.
    """
    first, second = _chances(memory_id)
    known = np.nan_to_num(scores, nan=-1.0)
    at = home if home is not None else int(known.argmax()) if len(known) else None
    if at is None:
        return (0.0, 0.0)
    angle = _direction(known, at, found) + SPREAD * (first - 0.5)
    if len(found.radii) < 3:
        angle = 2 * np.pi * first
    if home is None:
        share = 1.08 + 0.3 * second
    else:
        low, high = range_of_home or (0.0, 1.0)
        untypical = float(np.clip((high - known[at]) / max(high - low, 1e-9), 0.0, 1.0))
        share = NEAREST + (FARTHEST - NEAREST) * float(
            np.clip(np.sqrt(untypical) + 0.3 * (second - 0.5), 0, 1)
        )
    centre, radius = found.centres[at], float(found.radii[at])
    return (
        float(centre[0]) + share * radius * float(np.cos(angle)),
        float(centre[1]) + share * radius * float(np.sin(angle)),
    )


def _direction(scores: Floats, at: int, found: Islands) -> float:
    """The direction from an island to those that a memory resembles."""
    towards = found.centres - found.centres[at]
    far = np.linalg.norm(towards, axis=1)
    weights = np.exp(SHARPNESS * scores)
    weights[far < 1e-9] = 0.0
    pull = (towards / np.maximum(far, 1e-9)[:, None] * weights[:, None]).sum(axis=0)
    return float(np.arctan2(pull[1], pull[0]))


def _chances(memory_id: str) -> tuple[float, float]:
    """Two numbers from 0 to 1 that belong to an id."""
    digest = sha256(memory_id.encode("utf-8", "surrogatepass")).digest()
    return (
        int.from_bytes(digest[:6], "big") / float(1 << 48),
        int.from_bytes(digest[6:12], "big") / float(1 << 48),
    )


def plane(vectors: Floats) -> Floats:
    """Places of memories in a store without domains: the two main directions of their vectors, within the
    radius of one island."""
    count = len(vectors)
    if count < 3:
        angles = np.pi * np.arange(count)
        return np.stack((np.cos(angles), np.sin(angles)), axis=1) * 0.5
    rows = np.asarray(vectors, dtype=np.float64)
    rows = rows - rows.mean(axis=0)
    left, lengths, _ = np.linalg.svd(rows, full_matrices=False)
    axes = _signed(left[:, :2] * lengths[:2])
    if axes.shape[1] < 2:
        axes = np.column_stack((axes, np.zeros(count)))
    far = np.linalg.norm(axes, axis=1).max(initial=0.0)
    return np.asarray(axes * (0.92 * np.sqrt(count) / far)) if far > 0 else np.asarray(axes)
