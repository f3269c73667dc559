"""A copy of a store in a file, for a backup: carried, compared, and copied once more as files are."""

import tempfile
from collections.abc import Callable
from pathlib import Path

from vestige.core.errors import InvalidInput, StoreCorrupt
from vestige.store.transfer.ends import End
from vestige.store.transfer.move import move

_NAME = "vestige.db"


def copy_into_file(ends: Callable[[Path], tuple[End, End]], destination: Path) -> None:
    """Write everything a store held at one moment into a file that does not exist yet.

    `ends` names the store and a file to carry it to. That is made in a folder of its own, because an open
    store has files beside it; the backup of it is checked before it gets its name.
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
                "The copy is not what the store holds, so it was thrown away.",
                hint="`vestige doctor` looks for what is damaged. `vestige migrate --from postgres --to "
                "PATH` carries what can be read.",
                details={
                    "rows": [f"{one.table} {one.name}: {one.reason}" for one in moved.refused[:20]],
                    "differences": len(moved.comparison.differences),
                },
            )
        with file.destination() as side:
            side.store.backup(destination)
