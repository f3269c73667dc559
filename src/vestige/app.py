"""The composition root: settings → engine → transports. Clocks and randomness enter here only."""

import logging
import os
import platform
import random
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, Self

from vestige.embed.protocol import Embedder
from vestige.embed.sources import embedder_source, reranker_source
from vestige.engine.autopilot import Autopilot
from vestige.engine.context import Call, Engine, Progress
from vestige.engine.embedding import backfill
from vestige.engine.relay import Relay
from vestige.errors import Cancelled, ConfigError, StoreError, VestigeError
from vestige.events import EventBus
from vestige.identity import Uuid7
from vestige.models import ROOT_SCOPE
from vestige.operations.all import registry
from vestige.operations.registry import Operation, Wire
from vestige.place import folder_of, scope_of
from vestige.settings import (
    DATABASE_NAME,
    PROJECT_DIRECTORY,
    Settings,
    is_project_directory,
    is_repository,
    load_settings,
    unknown_variables,
)
from vestige.store.processes import Who, command_of
from vestige.store.protocol import MemoryStore
from vestige.store.trouble import Trouble

if TYPE_CHECKING:
    from vestige.transports.cli.session import Restorer, Upgrade

logger = logging.getLogger(__name__)

CLOSE_SECONDS = 10.0
"""How long closing waits for what runs in the background: texts being embedded, a reaction."""

LOCAL_USER = frozenset({"read", "write", "admin"})


class Signal(Protocol):
    """Tells that a request was taken back, such as a threading.Event."""

    def is_set(self) -> bool:
        """Whether it was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """Time, sleep, ids and randomness; tests bring their own."""

    now: Callable[[], datetime]
    monotonic: Callable[[], float]
    sleep: Callable[[float], None]
    new_id: Callable[[], str]
    rng: random.Random


def system_clock() -> Clock:
    """The machine's own."""
    rng = random.SystemRandom()

    def now() -> datetime:
        return datetime.now(UTC)

    return Clock(now=now, monotonic=time.monotonic, sleep=time.sleep, new_id=Uuid7(now, rng), rng=rng)


class App:
    """A running Vestige: an engine with everything it owns. Close it, or use it as a context."""

    def __init__(
        self, engine: Engine, *, folder: Path | None = None, close_seconds: float = CLOSE_SECONDS
    ) -> None:
        self._home = engine.settings.memory.scope or (scope_of(folder) if folder else ROOT_SCOPE)
        self._scopes: dict[tuple[str, ...], str] = {}
        self._close_seconds = close_seconds
        self._closing = threading.Event()
        self._background = threading.Lock()
        self._backfill: threading.Thread | None = None
        self.autopilot = Autopilot(engine)
        self._relay = Relay(
            engine.store,
            engine.events,
            process=uuid.uuid4().hex,
            others=lambda: len(engine.store.processes()) > 1,
        )
        self.engine = replace(engine, background=self.autopilot.status)

    def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        request_id: str,
        progress: Progress,
        cancelled: Signal,
        roots: Sequence[str] = (),
    ) -> dict[str, Any]:
        """Run an MCP tool by name for a client with these root folders; the answer as JSON-able data."""
        operation, given = registry.resolve(name, arguments)
        return self._answer(operation, given, self._call(request_id, progress, cancelled, roots))

    def read_resource(
        self,
        uri: str,
        *,
        request_id: str,
        progress: Progress,
        cancelled: Signal,
        roots: Sequence[str] = (),
    ) -> dict[str, Any]:
        """Read an MCP resource; its content as JSON-able data."""
        operation, given = registry.match_resource(uri)
        return self._answer(operation, given, self._call(request_id, progress, cancelled, roots))

    def run(self, operation: Operation, arguments: Mapping[str, Any], progress: Progress) -> Wire:
        """Run an operation for the local user; the typed answer."""
        call = replace(self._call("", progress, self._closing), local=True)
        return operation.answer(call, arguments)

    def settle(self) -> None:
        """Have the mechanisms react to everything that has happened so far."""
        self.autopilot.settle()

    def exchange_news(self) -> None:
        """Tell other processes what happens here, and those who listen everywhere what happens there."""
        self._relay.start()

    def embed_missing_when_ready(self) -> threading.Event:
        """Load the model, then embed what was written without it; the event is set when that is done."""
        done = threading.Event()

        def work(embedder: Embedder) -> None:
            try:
                self._embed_missing(embedder)
            finally:
                done.set()

        def begin(embedder: Embedder) -> None:
            # Its own thread: the loading thread has to finish for others to get the model.
            thread = threading.Thread(target=work, args=(embedder,), name="vestige-backfill", daemon=True)
            with self._background:
                if not self._closing.is_set():
                    self._backfill = thread
                    thread.start()

        if not self.engine.store.read_only:
            self.engine.embedders.on_ready(begin)
        self.engine.embedders.start()
        return done

    def close(self) -> None:
        """Stop what runs in the background, then let go of the model and the store."""
        with self._background:
            self._closing.set()
            thread = self._backfill
        if thread is not None:
            thread.join(self._close_seconds)
            if thread.is_alive():
                logger.warning("Closing without waiting any longer for texts that are being embedded")
        if not self.autopilot.close(self._close_seconds):
            logger.warning("Closing without waiting any longer for a reaction that does not end")
        self._relay.close(self._close_seconds)
        self.engine.reranker.close()
        self.engine.embedders.close()
        self.engine.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _answer(self, operation: Operation, given: Mapping[str, Any], call: Call) -> dict[str, Any]:
        started = self.engine.monotonic()
        try:
            return operation.call(call, given)
        finally:
            milliseconds = 1000 * (self.engine.monotonic() - started)
            logger.debug("%s (request %s) took %.1f ms", operation.name, call.request_id, milliseconds)

    def _scope(self, roots: Sequence[str]) -> str:
        """Where a client is at home: what is set, else its first root in a project, else where we run."""
        if self.engine.settings.memory.scope:
            return self._home
        known = tuple(roots)
        home = self._scopes.get(known)
        if home is None:
            folders = (folder_of(uri) for uri in known)
            scopes = (scope_of(folder) for folder in folders if folder is not None)
            home = next((scope for scope in scopes if scope != ROOT_SCOPE), self._home)
            self._scopes = {known: home}
        return home

    def _call(
        self, request_id: str, progress: Progress, cancelled: Signal, roots: Sequence[str] = ()
    ) -> Call:
        self.autopilot.touch()
        return Call(
            engine=self.engine,
            scope=self._scope(roots),
            permissions=LOCAL_USER,
            progress=progress,
            cancelled=cancelled.is_set,
            request_id=request_id,
        )

    def _embed_missing(self, embedder: Embedder) -> None:
        call = Call(engine=self.engine, cancelled=self._closing.is_set)
        try:
            done = backfill(call, embedder)
        except Cancelled:
            return
        except VestigeError as exc:
            logger.warning("Memories without vectors could not be embedded: %s", exc.message)
            return
        if done:
            logger.info("Embedded %d memories that were written without a model", done)


def open_app(
    options: Mapping[str, Any] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    clock: Clock | None = None,
    folder: Path | None = None,
    server: bool = False,
) -> App:
    """Read the settings and open the store. The model is loaded when it is first needed.

    `folder` is where the user is; the project around it is the scope of what he does. A `server`
    stays: long enough to fetch a model that is absent, and as one of those that `storage.exclusive` is about.
    """
    settings = load_settings(options, environ=environ)
    logging.basicConfig(
        stream=sys.stderr, level=settings.log_level.upper(), format="%(levelname)s %(name)s: %(message)s"
    )
    for complaint in unknown_variables(environ):
        logger.warning(complaint)
    clock = clock or system_clock()
    store: MemoryStore = open_store(settings, clock, server=server)
    engine = Engine(
        store=store,
        embedders=embedder_source(
            settings, monotonic=clock.monotonic, sleep=clock.sleep, allow_install=server
        ),
        reranker=reranker_source(settings, monotonic=clock.monotonic),
        settings=settings,
        events=EventBus(),
        now=clock.now,
        monotonic=clock.monotonic,
        new_id=clock.new_id,
    )
    return App(engine, folder=folder)


def open_here(options: Mapping[str, Any]) -> App:
    """An app for one command, at home in the project around the working directory."""
    return open_app(options, folder=_here())


def open_server(options: Mapping[str, Any]) -> App:
    """An app that stays: it brings the model at once, and embeds what was written while there was none."""
    app = open_app(options, folder=_here(), server=True)
    app.embed_missing_when_ready()
    app.engine.reranker.start()
    app.autopilot.start()
    app.exchange_news()
    return app


def _here() -> Path | None:
    """The working directory, unless it is gone."""
    try:
        return Path.cwd()
    except OSError:
        return None


def open_store(settings: Settings, clock: Clock, *, server: bool = False) -> MemoryStore:
    """The store the settings name."""
    who = this_process(clock, server=server, exclusive=server and settings.storage.exclusive)
    if settings.storage.backend == "memory":
        from vestige.store.inmemory import InMemoryStore

        return InMemoryStore(node=clock.new_id(), who=who)
    from vestige.store.sqlite.store import SqliteStore

    _prepare(settings.data_dir)
    return SqliteStore.open(
        settings.database,
        rng=clock.rng,
        sleep=clock.sleep,
        monotonic=clock.monotonic,
        new_id=clock.new_id,
        now=clock.now,
        machine=machine(),
        who=who,
        synchronous=settings.storage.synchronous,
        busy_seconds=settings.storage.busy_seconds,
    )


def this_process(clock: Clock, *, server: bool = False, exclusive: bool = False) -> Who:
    """What other processes are told about this one."""
    told = command_of(sys.argv)
    return Who(pid=os.getpid(), command=told, since=clock.now(), server=server, exclusive=exclusive)


def machine() -> str:
    """What tells this machine from another, for the node id of its store."""
    for path in (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id")):
        try:
            return path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            continue
    return f"{platform.node()}-{uuid.getnode():x}"


def _prepare(data_dir: Path) -> None:
    """Make the data directory, private to the user; inside a project also invisible to git."""
    if is_repository(data_dir):
        raise ConfigError(
            f"{data_dir} is the root of a repository.",
            hint="Give a directory inside it, such as --data-dir ./.vestige.",
        )
    if is_project_directory(data_dir) and (data_dir / DATABASE_NAME).is_symlink():
        raise ConfigError(
            f"{data_dir / DATABASE_NAME} is a link to another place.",
            hint="A project must not say where your memories go. Remove the link, or use another --data-dir.",
        )
    fresh = not data_dir.exists()
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        ignore = data_dir / ".gitignore"
        ours = fresh or data_dir.name == PROJECT_DIRECTORY
        if ours and is_project_directory(data_dir) and not ignore.exists():
            ignore.write_text("*\n", encoding="utf-8")
    except OSError as exc:
        if data_dir.is_dir():
            return  # read-only media: the store decides what it can do
        raise StoreError(
            f"The data directory {data_dir} cannot be made: {exc.strerror}.",
            hint="Give another one with --data-dir or VESTIGE_DATA_DIR.",
        ) from exc


def sqlite_restorer() -> "Restorer":
    """What replaces a SQLite store by a backup of it."""
    from vestige.store.sqlite.restore import Restorer

    return Restorer(who=this_process(system_clock()))


def sqlite_upgrade(database: Path) -> "Upgrade":
    """What opening a SQLite store would do to its schema."""
    from vestige.store.sqlite.upgrades import plan

    return plan(database)


def sqlite_wreck(database: Path) -> list[Trouble]:
    """What can be seen of a SQLite store that cannot be opened."""
    from vestige.store.sqlite.wreck import examine_file

    return examine_file(database, system_clock().now())


def main(argv: Sequence[str] | None = None, *, alone: str | None = None) -> NoReturn:
    """The command `vestige`, or a program that is one of its commands alone."""
    from vestige.transports.cli import run

    sys.exit(run(open_here, open_server, sqlite_restorer, sqlite_upgrade, sqlite_wreck, argv, alone=alone))


def restore_main() -> NoReturn:
    """The command `vestige-restore FILE`."""
    main(alone="restore")
