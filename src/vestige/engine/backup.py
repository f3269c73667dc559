"""A plain, verified copy of the store, taken while it is in use."""

from pathlib import Path

from vestige.engine.context import Call
from vestige.engine.filenames import check_file_name, under_free_name
from vestige.errors import InvalidInput, StoreError

BACKUPS = "backups"


def backup(call: Call, destination: Path | None) -> tuple[Path, int]:
    """Copy the store to `destination`, or to a dated file in the data directory; path and size.

    Who is not at the command line names a file in the backups folder only.
    """
    engine = call.engine
    folder = engine.settings.data_dir / BACKUPS

    def make(path: Path) -> tuple[Path, int]:
        _make_folder(path.parent)
        engine.store.backup(path)
        return path, path.stat().st_size

    if destination is None:
        return under_free_name(_absolute(folder), "vestige", ".db", now=engine.now(), make=make)
    if not call.local:
        check_file_name(str(destination), folder=BACKUPS, example="before.db")
        destination = folder / destination
    return make(_absolute(destination))


def _absolute(path: Path) -> Path:
    try:
        return path.expanduser().absolute()
    except RuntimeError as exc:
        raise InvalidInput(f"The home directory in {path} cannot be found.") from exc


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as exc:
        raise StoreError(
            f"The folder {folder} cannot be made: {exc.strerror}.",
            hint="Give another place for the backup.",
        ) from exc
