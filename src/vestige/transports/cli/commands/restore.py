"""`vestige restore FILE`: replaces the store by a database, a snapshot or an export."""

import stat
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from vestige.core.errors import InvalidInput
from vestige.core.lazy_dataclass import dataclass
from vestige.engine.care import snapshot
from vestige.engine.care.restore import RestoreKind, check_copy, kind_of, put_files
from vestige.engine.context import Call
from vestige.engine.exchange import import_portable
from vestige.operations.shared.text import count
from vestige.settings.settings import CONFIG_NAME, DATABASE_NAME
from vestige.transports.cli.openers import LocalApplication, Restorer
from vestige.transports.cli.operation_commands import confirm
from vestige.transports.cli.options import paths
from vestige.transports.cli.session import CliSession
from vestige.transports.cli.terminal import ProgressLine

DATABASE = "database"
_STORE, _UNPACKED = "store", "unpacked"
_HINT = (
    "Give a file made by `vestige backup` (by default in backups/ of the data directory) or by `vestige "
    "export --format portable`."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreFile:
    """The kind and contents of a file."""

    kind: str
    memories: int
    newest: str | None = None
    files: tuple[str, ...] = ()

    def as_data(self, source: Path) -> dict[str, Any]:
        return {
            "from": str(source),
            "kind": self.kind,
            "memories": self.memories,
            "newest": self.newest,
            "files": list(self.files),
        }

    def __str__(self) -> str:
        parts = [f"a {self.kind} with {count(self.memories, 'memory')}"]
        if self.newest:
            parts.append(f"the latest change of {self.newest}")
        if self.files:
            parts.append(f"and {count(len(self.files), 'other file')} ({', '.join(self.files[:5])})")
        return ", ".join(parts)


def options() -> list[click.Parameter]:
    return [
        click.Argument(["file"], metavar="FILE", required=False, shell_complete=paths("file")),
        click.Option(["--yes", "-y"], is_flag=True, help="Do not ask."),
        click.Option(
            ["--dry-run"], is_flag=True, help="Check the file and show its contents; change nothing."
        ),
        click.Option(
            ["--settings", "with_settings"],
            is_flag=True,
            help="Also restore the vestige.toml of a snapshot. It decides where memories are sent.",
        ),
    ]


def restore(session: CliSession, file: str | None, yes: bool, dry_run: bool, with_settings: bool) -> None:
    """Replace the store by a backup.

    FILE was made by `vestige backup` or `vestige export --format portable`, or is a copy of a vestige.db. It
    is checked first, and the current store is kept in backups/. Stop everything that uses the store before.
    The settings in a snapshot are ignored unless --settings is given: a settings file from someone else could
    send your memories elsewhere.
    """
    if file is None:
        raise InvalidInput("`restore` needs a FILE.", hint="For example: vestige restore backups/vestige.db")
    database, source = session.settings().database, Path(file).expanduser()
    restorer = session.database().restorer()
    kind = recognised(source, restorer)
    if database.exists() and database.samefile(source):
        raise InvalidInput("This file is the store itself, not a backup of it.")
    if dry_run:
        found = look(source, kind, restorer)
        session.answer(
            {"wouldRestore": str(database), **found.as_data(source)}, lambda: f"{source}: {found}."
        )
        return
    if not yes:
        confirm(f"{source} is {look(source, kind, restorer)}.\nReplace {database} by it?")
    with restorer.staging(database) as folder, ProgressLine(colour=session.colour) as progress:
        names = stage(session, source, folder, kind, progress)
        chosen = [name for name in names if with_settings or name != CONFIG_NAME]
        proof = _Proof(session=session, files=chosen, folder=folder / _UNPACKED, data_dir=database.parent)
        done = restorer.swap(folder / _STORE / DATABASE_NAME, database, prove=proof)
    value = {
        "restored": str(database),
        "from": str(source),
        "kind": kind,
        "memories": done.contents.memories,
        "events": done.contents.events,
        "node": proof.node,
        "kept": str(done.kept) if done.kept else None,
        "files": list(proof.put),
        "settingsLeft": CONFIG_NAME in names and not with_settings,
    }
    session.answer(value, lambda: _restored(value))


def recognised(source: Path, restorer: Restorer) -> str:
    """The kind of a file, from its content."""
    _check_file(source)
    kind = DATABASE if restorer.recognises(source) else kind_of(source)
    if kind is None:
        raise InvalidInput(
            f"{source} is not a backup: it is neither a database nor a snapshot nor an export of Vestige.",
            hint=_HINT,
            details={"path": str(source)},
        )
    return kind


def _check_file(source: Path) -> None:
    try:
        why = None if stat.S_ISREG(source.stat().st_mode) else f"{source} is not a file."
    except FileNotFoundError:
        why = f"There is no file {source}."
    except OSError as exc:
        why = f"{source} cannot be read: {exc.strerror}."
    if why:
        raise InvalidInput(why, hint=_HINT, details={"argument": "file", "path": str(source)})


def look(source: Path, kind: str, restorer: Restorer) -> RestoreFile:
    """Read the whole file and return its contents; an error states why it cannot be restored."""
    if kind == DATABASE:
        held = restorer.inspect(source)
        return RestoreFile(kind=kind, memories=held.memories, newest=held.newest)
    if kind == RestoreKind.EXPORT:
        return RestoreFile(kind=kind, memories=import_portable.inspect(source, datetime.now(UTC)).memories)
    with tempfile.TemporaryDirectory() as folder:
        packed = snapshot.unpack(source, Path(folder))
        held = restorer.inspect(Path(folder) / DATABASE_NAME)
    files = tuple(one.name for one in packed.files if one.name != DATABASE_NAME)
    return RestoreFile(kind=kind, memories=held.memories, newest=held.newest, files=files)


def stage(session: CliSession, source: Path, folder: Path, kind: str, progress: ProgressLine) -> list[str]:
    """Create a store from the file in a folder beside the one in use; returns the names of its other files.
    It is opened there once, so that an older version is upgraded before it replaces the store."""
    store, names = folder / _STORE, []
    store.mkdir(mode=0o700)
    if kind == DATABASE:
        session.database().restorer().stage(source, store, DATABASE_NAME)
    elif kind == RestoreKind.SNAPSHOT:
        (folder / _UNPACKED).mkdir(mode=0o700)
        packed = snapshot.unpack(source, folder / _UNPACKED)
        names = [one.name for one in packed.files if one.name != DATABASE_NAME]
        (folder / _UNPACKED / DATABASE_NAME).replace(store / DATABASE_NAME)
        session.database().restorer().inspect(store / DATABASE_NAME)
    with _opened(session, data_dir=str(store)) as app:
        if kind == RestoreKind.EXPORT:
            held = import_portable.inspect(source, app.engine.now())
            import_portable.absorb_file(
                app.engine.store,
                source,
                vectors=held.signature,
                step=lambda done, total: progress(done, total, "Restoring"),
            )
        else:
            check_copy(Call(engine=app.engine, local=True), source)
    return names


@dataclass(slots=True, kw_only=True)
class _Proof:
    """Opens the restored store, then puts the other files of a snapshot beside it."""

    session: CliSession
    files: list[str]
    folder: Path
    data_dir: Path
    node: str = ""
    put: tuple[str, ...] = ()

    def __call__(self) -> None:
        with _opened(self.session) as app:
            self.node = app.engine.store.node
        if self.files:
            # Invalid settings would lock the user out: they are checked before they stay.
            self.put = put_files(self.files, self.folder, self.data_dir, check=self.session.settings)


def _opened(session: CliSession, **flags: str) -> LocalApplication:
    # The model and the mechanisms are not needed here; the SQLite file counts, whatever the settings say.
    quiet = {"embeddings.provider": "off", "storage.backend": "sqlite", "mechanisms.autopilot": False}
    return session.open(**quiet, **flags)


def _restored(value: Mapping[str, Any]) -> str:
    lines = [f"{count(value['memories'], 'memory')} restored to {value['restored']}."]
    if value["kept"]:
        lines.append(f"The previous store is kept as {value['kept']}.")
    if value["files"]:
        lines.append(f"Restored beside it: {', '.join(value['files'])}.")
    if value["settingsLeft"]:
        lines.append(f"The {CONFIG_NAME} of the snapshot was not restored; pass --settings to restore it.")
    return "\n".join(lines)
