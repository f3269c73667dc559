"""Worlds on every store in which a few dozen memories are enough for a discovery."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.world import World, open_world
from tests.conftest import BACKENDS, POSTGRES, store_of
from tests.engine.domains.corpus import IN_MEMORY, LIMITS


@pytest.fixture(params=[*BACKENDS, POSTGRES])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    with store_of(request) as settings, open_world(tmp_path / "data", **settings, **LIMITS) as opened:
        yield opened


@pytest.fixture
def quick(tmp_path: Path) -> Iterator[World]:
    """A world in memory, for rules that no store can change."""
    with open_world(tmp_path / "data", **IN_MEMORY) as opened:
        yield opened
