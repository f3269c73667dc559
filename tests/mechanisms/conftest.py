"""A world on SQLite that can be closed and opened again: what a mechanism did must still be there."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.world import HandClock, World, open_world


class Living:
    """A store on disk with one clock, whoever has it open."""

    def __init__(self, folder: Path) -> None:
        self.clock = HandClock()
        self._folder = folder
        self._open = ExitStack()
        self.world = self._enter({})

    def restart(self, **settings: Any) -> World:
        """Close the store and open it again, with these settings (`__` for the dot in their names)."""
        self._open.close()
        self.world = self._enter({name.replace("__", "."): value for name, value in settings.items()})
        return self.world

    def close(self) -> None:
        """Close the store."""
        self._open.close()

    def _enter(self, settings: dict[str, Any]) -> World:
        return self._open.enter_context(open_world(self._folder, clock=self.clock, **settings))


@pytest.fixture
def living(tmp_path: Path) -> Iterator[Living]:
    """A world that survives being closed."""
    opened = Living(tmp_path / "data")
    yield opened
    opened.close()
