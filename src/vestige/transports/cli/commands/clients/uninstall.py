"""`vestige uninstall`: removes what Vestige put outside its own program: client entries, models, on request
the memories. The program itself is removed by the installer that brought it."""

import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import click

from vestige.core.errors import Conflict, InvalidInput, StoreBusy
from vestige.core.lazy_dataclass import dataclass
from vestige.operations.shared.text import count, fields
from vestige.settings.settings import CONFIG_NAME, DATABASE_NAME, Settings, load_settings
from vestige.transports.arguments import invalid_argument
from vestige.transports.cli.commands.clients.connect import config_home_option, this_machine
from vestige.transports.cli.operation_commands import confirm
from vestige.transports.cli.options import path_option
from vestige.transports.cli.program import typed
from vestige.transports.cli.session import CliSession
from vestige.transports.cli.short_ids import LAST_LIST_NAME
from vestige.transports.connect import hooks, plans
from vestige.transports.connect.clients import (
    CLAUDE,
    CLAUDE_CODE,
    CLIENTS,
    AgentClient,
    Machine,
    Scope,
    claude_remove,
)
from vestige.transports.http.auth.cookies import SECRET_NAME

_PACKAGE = "vestige"
_OWN_FOLDERS = frozenset({"agent", "backups", "exports", "processes", f"{DATABASE_NAME}.index"})
_OWN_FILES = frozenset({CONFIG_NAME, ".gitignore", SECRET_NAME})
_MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnEntry:
    """An entry of a client that starts Vestige. `command` removes it where the client must do that itself."""

    client: AgentClient
    scope: Scope
    name: str
    file: Path
    command: str | None

    def view(self) -> dict[str, Any]:
        return {
            "client": self.client.name,
            "scope": self.scope,
            "name": self.name,
            "file": str(self.file),
            "command": self.command,
        }


def options() -> list[click.Parameter]:
    return [
        click.Option(["--yes", "-y"], is_flag=True, help="Do not ask."),
        path_option(
            "--delete-memories",
            "DIR",
            "Delete the memories too: all that Vestige keeps in DIR, which must be the data directory.",
            "dir",
        ),
        config_home_option(),
    ]


def uninstall(session: CliSession, yes: bool, delete_memories: str | None, config_home: str | None) -> None:
    """Remove what Vestige left on this machine: client entries and models; memories only on request.

    Shows the plan and asks. Without a terminal nothing is removed unless --yes is given. Memories, API keys
    and backups are in the data directory, which stays unless --delete-memories names it. The last line shows
    the command that removes the program.
    """
    settings, machine = session.settings(), this_machine(config_home)
    entries: list[OwnEntry] = []
    problems: list[str] = []
    for client in CLIENTS.values():
        for scope in get_args(Scope):
            try:
                entries += _entries(client, machine, scope)
            except InvalidInput as exc:
                problems.append(exc.message)
    problems += _hook_notes(machine)
    models = _models(session)
    doomed = _doomed(session, settings, delete_memories) if delete_memories is not None else []
    value: dict[str, Any] = {
        "removed": False,
        "clients": [entry.view() for entry in entries],
        "models": [str(path) for path in models],
        "modelBytes": sum(map(_size, models)),
        "dataDirectory": str(settings.data_dir),
        "memories": "delete" if doomed else "keep",
        "memoryFiles": [str(path) for path in doomed],
        "program": typed(own_removal(Path(sys.prefix), sys.executable)),
        "notes": problems,
    }
    asked = sys.stdin.isatty() and sys.stdout.isatty()
    if not yes and not asked:
        session.answer(value, lambda: _text(value))
        return
    if not yes:
        session.show_aside(lambda: f"{_text(value)}\n")
        confirm("Delete the memories and all the rest of it?" if doomed else "Remove all of it?")
    value["notes"] += _remove(entries, machine, models, doomed, settings.data_dir)
    value["removed"] = True
    session.answer(value, lambda: _text(value))


def _entries(client: AgentClient, machine: Machine, scope: Scope) -> Iterator[OwnEntry]:
    if not client.files(scope, machine.platform):
        return
    itself = client.name == CLAUDE_CODE and scope == "user" and machine.which(CLAUDE)
    for name in plans.own_names(client, machine, scope=scope):
        yield OwnEntry(
            client=client,
            scope=scope,
            name=name,
            file=plans.place(client, machine, scope),
            command=typed(claude_remove(name), machine.platform) if itself else None,
        )


def _hook_notes(machine: Machine) -> Iterator[str]:
    """Hooks that are still installed; their own undo restores the files of the clients."""
    for client in hooks.HOOK_CLIENTS.values():
        with suppress(InvalidInput):
            if hooks.has_hooks(client, machine, "user"):
                yield f"Hooks of {client.title} are left: `vestige connect {client.name} --hooks --undo`."


def _models(session: CliSession) -> list[Path]:
    """The folder of models, or what Vestige put there if the user chose a folder that others may share."""
    from vestige.embed.minilm.install import LOCK_NAME, model_dir

    folder = session.settings().model_cache
    usual = load_settings({**session.flags, "embeddings.cache_dir": ""}).model_cache
    found = [folder] if folder == usual else [model_dir(folder), folder / LOCK_NAME]
    return [path for path in found if path.exists()]


def _doomed(session: CliSession, settings: Settings, named: str) -> list[Path]:
    """The files of the data directory to delete. Files that Vestige does not write stay. Conflict while
    another process uses the store: it would go on with files that are gone."""
    if settings.storage.postgres.url.get_secret_value():
        raise Conflict(
            "The memories are in PostgreSQL, not in the data directory.",
            hint="Drop that database with the tools of PostgreSQL.",
        )
    data = settings.data_dir
    if Path(named).expanduser().absolute().resolve() != data.resolve():
        message = f"{named} is not the data directory, which is {data}."
        raise invalid_argument("delete_memories", message, "Name the data directory to delete its memories.")
    if not (data / DATABASE_NAME).is_file():
        raise invalid_argument("delete_memories", f"There are no memories in {data}.")
    try:
        with session.database().restorer().staging(settings.database):
            pass
    except StoreBusy as exc:
        hint = (
            "Stop what uses it (an agent's vestige-mcp, a server, a database browser), then uninstall again."
        )
        raise Conflict(exc.message, hint=hint, details=exc.details) from exc
    return sorted(path for path in data.iterdir() if _is_own(path))


def _is_own(path: Path) -> bool:
    if path.is_dir() and not path.is_symlink():
        return path.name in _OWN_FOLDERS
    if path.name in _OWN_FILES or path.name.startswith(DATABASE_NAME):
        return True
    return LAST_LIST_NAME.fullmatch(path.name) is not None


def _remove(
    entries: Sequence[OwnEntry], machine: Machine, models: Sequence[Path], doomed: Sequence[Path], data: Path
) -> list[str]:
    """Remove all of it; returns what the user still has to know."""
    notes = []
    for entry in entries:
        if entry.command:
            notes.append(f"{entry.client.title} manages its file itself. Run: {entry.command}")
            continue
        change = plans.undo(entry.client, machine, name=entry.name, scope=entry.scope)
        if backup := change.apply(datetime.now(UTC)):
            notes.append(f"The previous file of {entry.client.title} is kept as {backup}.")
    for path in (*models, *doomed):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    for path in models:
        _prune(path.parent)
    if doomed:
        if data.exists() and any(data.iterdir()):
            notes.append(f"{data} has files that Vestige did not write; they are still there.")
        _prune(data)
        _prune(data.parent)
    return notes


def _prune(folder: Path) -> None:
    """Remove a folder of ours if it is empty."""
    with suppress(OSError):
        folder.rmdir()


def own_removal(prefix: Path, python: str) -> list[str]:
    """The command that removes the program, by the installer that made its environment: uv keeps tools in
    `uv/tools`, pipx in `pipx/venvs`."""
    if prefix.parts[-3:-1] == ("uv", "tools"):
        return ["uv", "tool", "uninstall", _PACKAGE]
    if prefix.parts[-3:-1] == ("pipx", "venvs"):
        return ["pipx", "uninstall", _PACKAGE]
    return [python, "-m", "pip", "uninstall", _PACKAGE]


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in (path, *path.rglob("*")) if file.is_file())


def _text(value: dict[str, Any]) -> str:
    removed = value["removed"]
    clients = [
        f"{one['client']} ({one['scope']}): `{one['name']}` in {one['file']}" for one in value["clients"]
    ]
    models = (
        f"{', '.join(value['models'])} ({value['modelBytes'] // _MEGABYTE} MB)" if value["models"] else "none"
    )
    deleted = count(len(value["memoryFiles"]), "entry")
    rows = (
        ("client entries", "\n".join(clients) or "none"),
        ("models", models),
        (
            "memories",
            f"{deleted} in {value['dataDirectory']}"
            if value["memories"] == "delete"
            else f"stay in {value['dataDirectory']}, with API keys and backups",
        ),
    )
    head = "Removed:" if removed else "This would be removed:"
    last = f"Then remove the program:\n\n  {value['program']}"
    return "\n\n".join([head, fields(rows), *value["notes"], last])
