"""A world that can be closed and opened again: what a mechanism did must still be there."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from psycopg import sql

from testbed.world import HandClock, World, open_world
from tests.conftest import POSTGRES, store_of


class Living:
    """A store that lasts, with one clock, whoever has it open."""

    def __init__(self, folder: Path, store: dict[str, Any]) -> None:
        self.clock = HandClock()
        self._folder = folder
        self._store = store
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

    def held(self) -> dict[str, bytes]:
        """Every file and table of the store, in small letters; not the files that are the user's own."""
        found = {
            path.relative_to(self._folder).as_posix(): path.read_bytes().lower()
            for path in self._folder.rglob("*")
            if path.is_file() and not {"backups", "exports"} & set(path.relative_to(self._folder).parts)
        }
        url = self._store.get("storage.postgres.url")
        return {**found, **(_tables(url) if url else {})}

    def _enter(self, settings: dict[str, Any]) -> World:
        return self._open.enter_context(open_world(self._folder, clock=self.clock, **self._store, **settings))


def _tables(url: str) -> dict[str, bytes]:
    """What anybody with a SQL client sees; vectors as the bytes that files hold."""
    found = {}
    with psycopg.connect(url) as db:
        names = [name for (name,) in db.execute("SELECT relname FROM pg_class WHERE relkind = 'r'"
                                                " AND relnamespace = 'public'::regnamespace")]  # fmt: skip
        for name in names:
            with db.cursor().copy(sql.SQL("COPY {} TO STDOUT").format(sql.Identifier(name))) as copied:
                found[name] = b"".join(bytes(part) for part in copied).lower()
        vectors = [np.array(one, dtype="<f4") for (one,) in db.execute("SELECT vector::real[] FROM vectors")]
    return {**found, "vectors": b"".join(one.tobytes() for one in vectors).lower()}


ON_A_FILE = pytest.mark.parametrize("living", ["sqlite"], indirect=True)
"""For what is about files, or takes so long that once is enough."""


@pytest.fixture(params=["sqlite", POSTGRES])
def living(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Living]:
    """A world that survives being closed, on each store that lasts."""
    with store_of(request) as settings:
        opened = Living(tmp_path / "data", settings)
        yield opened
        opened.close()
