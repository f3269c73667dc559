"""A store that is filled once, closed, and copied for each run that may change it."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from testbed.world import HandClock, World, open_world


@dataclass(frozen=True, slots=True, kw_only=True)
class Planting:
    """A filled store in a folder, with the clock as it was when it was closed: all copies go on alike."""

    folder: Path
    clock: HandClock
    settings: Mapping[str, Any] = field(default_factory=dict)

    @contextmanager
    def copied(self, folder: Path, settings: Mapping[str, Any] | None = None) -> Iterator[World]:
        """A world on a copy in `folder`. `settings` name a store elsewhere that was filled in the same way;
        then only the other files are copied."""
        left_out = shutil.ignore_patterns("vestige.db*", "processes") if settings else None
        shutil.copytree(self.folder, folder, ignore=left_out)
        with open_world(folder, clock=self.clock.copy(), **{**self.settings, **(settings or {})}) as world:
            for index in folder.glob("*/.vestige/code-*.db"):  # the name is that of the place
                index.rename(world.app.engine.code_indexes.place(index.parent))
            yield world
