"""Backs up a store of any backend into a SQLite file."""

import tempfile
from collections.abc import Callable
from pathlib import Path

from vestige.core.errors import InvalidInput, StoreCorrupt
from vestige.store.transfer.ends import End
from vestige.store.transfer.move import move

_NAME = "vestige.db"


def copy_into_file(ends: Callable[[Path], tuple[End, End]], destination: Path) -> None:
    """Write the state of a store at one moment into a new file.

    `ends` names the store and a file to copy it to. The copy is made in a folder of its own, because an open
    store has files beside it; its backup is verified before it gets its name.
    """
    if destination.exists():
        raise InvalidInput(
            f"{destination} exists already.", hint="Give the backup a new name; nothing is overwritten."
        )
    if not destination.parent.is_dir():
        raise InvalidInput(f"The directory {destination.parent} does not exist.")
    with tempfile.TemporaryDirectory(
        prefix=f".{destination.name}.", suffix=".partial", dir=destination.parent
    ) as folder:
        origin, file = ends(Path(folder) / _NAME)
        moved = move(origin, file, lambda done, total, what: None)
        if moved.refused or moved.comparison.differences:
            raise StoreCorrupt(
                "The copy differs from the store, so it was discarded.",
                hint="`vestige doctor` finds the damage. `vestige migrate --from postgres --to "
                "PATH` copies what can be read.",
                details={
                    "rows": [f"{one.table} {one.name}: {one.reason}" for one in moved.refused[:20]],
                    "differences": len(moved.comparison.differences),
                },
            )
        with file.destination() as side:
            side.store.backup(destination)
