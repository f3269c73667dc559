"""The state of the agent's files and hooks, for `agent doctor`: what is there, what is broken, what is not in
the store, and what hooks could not do. `setup.md` and `credentials.md` are never opened."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import field
from datetime import datetime, tzinfo
from pathlib import Path

from vestige.core.errors import VestigeError
from vestige.core.lazy_dataclass import dataclass
from vestige.engine.agent.files import AgentFiles, agent_files, read_text
from vestige.engine.agent.hook_events import CLIENTS
from vestige.engine.agent.hook_log import NAME as HOOK_LOG
from vestige.engine.agent.layers import LAYERS, SCOPE, FilesRead, records_of
from vestige.engine.agent.session_state import last_runs
from vestige.engine.context import Call
from vestige.engine.exchange.import_foreign import import_target
from vestige.exchange.importers.records import CONNECTION, BroughtMemory, UnreadRecords

HOOK_FILES = {
    "claude-code": "~/.claude/settings.json",
    "codex": "~/.codex/hooks.json",
    "cursor": "~/.cursor/hooks.json",
    "gemini-cli": "~/.gemini/settings.json",
    "copilot-cli": "~/.copilot/hooks/vestige.json",
    "opencode": "~/.config/opencode/plugins/vestige.js",
}
"""The files of the user that `vestige connect CLIENT --hooks` writes to."""
HOOK_PROGRAMS = ("vestige-hook", "vestige.transports.hooks.command")
SHOWN_LINES = 10
SHOWN_LINKS = 20
ADVICE = {"codex": ": open `/hooks` in Codex and trust each of them once."}
OTHERS = 0o077


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerState:
    """A layer: its file or folder, and how many of its records the store has."""

    name: str
    path: Path
    exists: bool
    records: int = 0
    stored: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientHooks:
    """The hooks of a client: whether the user's file of the client has them, and when one last ran, as far
    as the sessions that are kept say it."""

    client: str
    path: Path | None
    installed: bool
    last_run: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCheckup:
    """The state of the agent. `future` are names of notes that others link to and that do not exist yet."""

    layers: tuple[LayerState, ...]
    problems: tuple[str, ...]
    future: tuple[str, ...]
    hooks: tuple[ClientHooks, ...]
    hook_log: tuple[str, ...]
    servers: int
    sessions: int


@dataclass(slots=True, kw_only=True)
class _Count:
    ids: dict[str, list[str]] = field(default_factory=dict)
    future: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)


def check_agent(call: Call) -> AgentCheckup:
    files = agent_files(call.engine.settings)
    found = FilesRead(broken={}, problems={}, sections={})
    count = _counted(call, files, call.zone, found)
    problems = [*_damage(found), *count.unread, *_files_problems(files, call.engine.settings.shown_path)]
    try:
        layers = tuple(_layers(call, files, count))
    except VestigeError as exc:
        layers, problems = (), [*problems, f"The store cannot be read: {exc.message}"]
    missing = sum(one.records - one.stored for one in layers)
    if missing:
        problems.append(f"{missing} records of the files are not in the store; `agent rebuild` brings them.")
    hooks = tuple(client_hooks(call, files))
    problems += [
        f"The hooks of {one.client} are installed but none has run{ADVICE.get(one.client, '.')}"
        for one in hooks
        if one.installed and one.last_run is None
    ]
    return AgentCheckup(
        layers=layers,
        problems=tuple(problems),
        future=tuple(dict.fromkeys(count.future))[:SHOWN_LINKS],
        hooks=hooks,
        hook_log=tuple((read_text(files.state / HOOK_LOG) or "").splitlines()[-SHOWN_LINES:]),
        servers=sum(1 for _ in _named(files.state, ".sock")),
        sessions=sum(1 for _ in _named(files.state / "sessions", ".json")),
    )


def client_hooks(call: Call, files: AgentFiles) -> Iterator[ClientHooks]:
    """The clients that have hooks of ours, or had."""
    runs = last_runs(files.state)
    for client in sorted({*HOOK_FILES, *runs} & {*CLIENTS}):
        name = HOOK_FILES.get(client)
        path = None if name is None else call.engine.settings.in_home("", name)
        text = (read_text(path) or "") if path is not None else ""
        installed = any(one in text for one in HOOK_PROGRAMS)
        if installed or client in runs:
            yield ClientHooks(client=client, path=path, installed=installed, last_run=runs.get(client))


def _counted(call: Call, files: AgentFiles, zone: tzinfo, found: FilesRead) -> _Count:
    count = _Count()
    for one in records_of(files, import_target(call, SCOPE), zone, found):
        if isinstance(one, BroughtMemory):
            layer = next((tag for tag in one.memory.tags if tag in LAYERS), LAYERS[0])
            count.ids.setdefault(layer, []).append(one.memory.id)
        elif isinstance(one, UnreadRecords) and one.kind == CONNECTION:
            count.future.append(one.place.rpartition("→ ")[2])
        elif isinstance(one, UnreadRecords) and one.reason != "the note has no text":
            count.unread.append(f"{one.place}: {one.reason}.")
    return count


def _layers(call: Call, files: AgentFiles, count: _Count) -> Iterator[LayerState]:
    paths = (files.memory, files.sessions, files.reflections, files.knowledge)
    for name, path in zip(LAYERS, paths, strict=True):
        ids = count.ids.get(name, [])
        stored = len(call.engine.store.get_many(ids, access=call.access)) if ids else 0
        yield LayerState(name=name, path=path, exists=path.exists(), records=len(ids), stored=stored)
    for path in (files.setup, files.credentials):
        yield LayerState(name=path.stem, path=path, exists=path.exists())


def _damage(found: FilesRead) -> Iterator[str]:
    for name, lines in found.broken.items():
        shown = ", ".join(map(str, lines[:10])) + (" …" if len(lines) > 10 else "")
        yield f"{name}: {len(lines)} lines are not JSON objects and are left out (lines {shown})."
    for name, problem in found.problems.items():
        yield f"{name}: {problem}."


def _files_problems(files: AgentFiles, shown: Callable[[Path], str]) -> Iterator[str]:
    if not files.folder.is_dir():
        yield f"{shown(files.folder)} does not exist; `agent init` creates it."
    if os.name == "posix":
        with suppress(OSError):
            if files.credentials.stat().st_mode & OTHERS:
                yield f"Others may read {shown(files.credentials)}. Run chmod 600 on it."


def _named(folder: Path, ending: str) -> Iterator[Path]:
    with suppress(OSError):
        yield from (one for one in folder.iterdir() if one.name.endswith(ending))


def forget_state(files: AgentFiles) -> bool:
    """Remove what is derived: packs of sessions, receipts, the log of hooks. The agent's files stay."""
    if not files.state.is_dir():
        return False
    shutil.rmtree(files.state, ignore_errors=True)
    return True
