"""Restoring: what kind of file a backup is, its check, and putting the files of a snapshot into a data
directory."""

import filecmp
import gzip
import os
import zlib
from collections.abc import Callable, Iterable
from enum import StrEnum
from itertools import count
from pathlib import Path

from vestige.core.errors import InvalidInput, StoreCorrupt
from vestige.engine.care import snapshot
from vestige.engine.care.backup import BACKUPS
from vestige.engine.care.doctor import doctor
from vestige.engine.context import Call
from vestige.exchange.portable.file import FAMILY, unpacked

FIRST_BYTES = 1_024


class RestoreKind(StrEnum):
    """What can be restored besides a database."""

    SNAPSHOT = "snapshot"
    EXPORT = "export"


def kind_of(path: Path) -> RestoreKind | None:
    """The kind of a file by its content; None for anything else. Raises StoreCorrupt for a packed file that
    cannot be unpacked, because its kind is unknown."""
    if snapshot.is_snapshot(path):
        return RestoreKind.SNAPSHOT
    if is_export(path):
        return RestoreKind.EXPORT
    snapshot.check_packed(path)
    return None


def is_export(path: Path) -> bool:
    """Whether a file begins like a portable export, packed or not."""
    try:
        with path.open("rb") as file, unpacked(file) as lines:
            return f'"{FAMILY}'.encode() in lines.read(FIRST_BYTES).split(b"\n", 1)[0]
    except (zlib.error, EOFError, gzip.BadGzipFile):  # packed, but damaged from the beginning
        return False


def check_copy(call: Call, source: Path) -> None:
    """Check the copy of a backup before it becomes the store, as if it came from a stranger. Derived data
    and invalid fields are repaired; StoreCorrupt where something else is wrong. Damaged texts were refused
    before; what is left of the check `texts` are those that another program has changed, which is allowed."""
    found = [one for one in doctor(call, repair=True).findings if one.trouble.check != "texts"]
    wrong = [one.trouble for one in found if one.trouble.severity == "broken" and not one.repaired]
    if wrong:
        raise StoreCorrupt(
            f"{source} cannot be restored: {wrong[0].message}",
            hint="Use an earlier backup. Nothing was changed.",
            details={"path": str(source), "check": [one.message for one in wrong[:5]]},
        )


def put_files(
    names: Iterable[str], source: Path, data_dir: Path, *, check: Callable[[], object]
) -> tuple[str, ...]:
    """Move files into a data directory, all or none; returns the names of those that were new or different.
    Files that they replace are kept in a folder in backups/. `check` raises if the files are not usable."""
    aside = next(
        place
        for number in count(1)
        if not (place := data_dir / BACKUPS / f"files-replaced-{number}").exists()
    )
    done: list[tuple[Path, Path | None]] = []
    put: list[str] = []
    try:
        for name in names:
            target, kept = data_dir / name, aside / name
            if target.is_file() and filecmp.cmp(source / name, target, shallow=False):
                continue
            _make_room(target, data_dir)
            there = os.path.lexists(target)
            if there:
                kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                target.replace(kept)
            done.append((target, kept if there else None))
            (source / name).replace(target)
            put.append(name)
        check()
    except BaseException:
        for target, old in reversed(done):
            target.unlink(missing_ok=True)
            if old is not None:
                old.replace(target)
        raise
    return tuple(put)


def _make_room(target: Path, data_dir: Path) -> None:
    """Create the folder of a file. A link in the data directory must not lead the file elsewhere."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not target.parent.resolve().is_relative_to(data_dir.resolve()):
        raise InvalidInput(
            f"{target.parent} is a link to a folder outside the data directory.",
            hint="Remove the link, or restore into another --data-dir.",
            details={"path": str(target)},
        )
