"""A plain, verified copy of the store, taken while it is in use."""

from pathlib import Path

from vestige.engine.context import Call
from vestige.errors import InvalidInput, StoreError

BACKUPS = "backups"


def backup(call: Call, destination: Path | None) -> tuple[Path, int]:
    """Copy the store to `destination`, or to a dated file in the data directory; path and size."""
    engine = call.engine
    if destination is None:
        stamp = engine.now().strftime("%Y%m%d-%H%M%S")
        destination = engine.settings.data_dir / BACKUPS / f"vestige-{stamp}.db"
    try:
        destination = destination.expanduser().absolute()
    except RuntimeError as exc:
        raise InvalidInput(f"The home directory in {destination} cannot be found.") from exc
    try:
        destination.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as exc:
        raise StoreError(
            f"The folder {destination.parent} cannot be made: {exc.strerror}.",
            hint="Give another place for the backup.",
        ) from exc
    engine.store.backup(destination)
    return destination, destination.stat().st_size
