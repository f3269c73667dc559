"""Fixtures every test may use."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.world import World, open_world

BACKENDS = ("sqlite", "memory")


@pytest.fixture(params=BACKENDS)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """A world on each store in turn, with the hashing embedder and a clock that stands still."""
    with open_world(tmp_path / "data", **{"storage.backend": request.param}) as opened:
        yield opened
