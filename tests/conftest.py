"""Fixtures every test may use."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.world import World, open_world
from vestige.embed.install import Presence, status

BACKENDS = ("sqlite", "memory")


@pytest.fixture(params=BACKENDS)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """A world on each store in turn, with the hashing embedder and a clock that stands still."""
    with open_world(tmp_path / "data", **{"storage.backend": request.param}) as opened:
        yield opened


@pytest.fixture(scope="session")
def real_model_dir() -> Path:
    """The installed default model; `make` installs it, and nothing is downloaded here."""
    override = os.environ.get("VESTIGE_MODEL_DIR")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    root = Path(override) if override else cache / "vestige" / "models"
    found = status(root)
    if found.presence is not Presence.READY:
        pytest.skip(f"THE REAL MODEL IS NOT TESTED: {found.presence} in {root}; run `vestige model install`")
    return found.path
