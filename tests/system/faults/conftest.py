"""Folders with a store for the scenarios, and what kills them."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.world import HandClock, open_world
from tests.store.old.make import Story, live
from tests.system.faults.harness import Killer
from tests.system.faults.scenarios import reopened, run


@pytest.fixture(scope="package")
def killer() -> Iterator[Killer]:
    """Runs scenarios and kills them."""
    with Killer() as made:
        yield made


@pytest.fixture(scope="package")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with something in every table, and `other`, a copy of quite another one, in each form."""
    folder = tmp_path_factory.mktemp("lived")
    with open_world(folder / "data", clock=HandClock()) as world:
        live(Story(world))
        world.remember("The xylophone belongs to somebody who asked us to forget it.")
    with tempfile.TemporaryDirectory() as elsewhere, reopened(Path(elsewhere), 9, day=-600) as world:
        for number in range(5):
            world.remember(f"Another life: number {number}.")
        run(world, "backup", path=str(folder / "other.db"))
        run(world, "backup", path=str(folder / "other.tar.gz"))
        run(world, "export", path=str(folder / "other.jsonl"), format="portable")
    return folder
