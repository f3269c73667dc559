"""What the engine does, it does on every store: its worlds are on a server too."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.world import World, open_world
from tests.conftest import BACKENDS, POSTGRES, store_of


@pytest.fixture(params=[*BACKENDS, POSTGRES])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """A world on each store in turn, with the hashing embedder and a clock that stands still."""
    with store_of(request) as settings, open_world(tmp_path / "data", **settings) as opened:
        yield opened
