"""The composition root: settings → engine → transports. Clocks and randomness are created only here."""

import logging
import os
import platform
import random
import sys
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from vestige.app.databases import (
    Ends,
    PostgresDatabase,
    SessionsFile,
    SqliteDatabase,
    code_indexes,
    no_database,
    open_postgres,
    open_sqlite,
)
from vestige.app.project_scope import folder_of, record_scope, scope_of
from vestige.cognition.native import kernel
from vestige.core.caller import LOCAL_USER, Caller, Invocation, Progress
from vestige.core.clock import Clock as Clock
from vestige.core.clock import Uuid7
from vestige.core.errors import Cancelled, VestigeError
from vestige.core.events import Actor, EventBus, acting
from vestige.core.models import EVERYTHING, ROOT_SCOPE
from vestige.core.origin import Origin
from vestige.core.timezone import show_times_in
from vestige.embed.protocol import Embedder
from vestige.embed.providers import embedder_source, reranker_source
from vestige.engine.context import Call, Engine
from vestige.engine.reactions.autopilot import Autopilot
from vestige.engine.reactions.relay import Relay
from vestige.settings.settings import Settings, installation_directory, load_settings, unknown_variables
from vestige.store.contract.processes import Who, command_of
from vestige.store.contract.store import MemoryStore

if TYPE_CHECKING:
    from vestige.engine.recall.sessions.background import SessionIndexer
    from vestige.operations.registry.arguments import Wire
    from vestige.operations.registry.registry import Operation, Registry
    from vestige.store.transfer.ends import End
    from vestige.transports.cli.openers import MaintainedDatabase
    from vestige.transports.hooks.listener import HookListener

logger = logging.getLogger(__name__)

CLOSE_SECONDS = 10.0
"""Seconds that closing waits for background work: embedding, a reaction."""


def system_clock() -> Clock:
    """The clock, ids and randomness of the machine."""
    rng = random.SystemRandom()

    def now() -> datetime:
        return datetime.now(UTC)

    return Clock(now=now, monotonic=time.monotonic, sleep=time.sleep, new_id=Uuid7(now, rng), rng=rng)


class App:
    """A running Vestige: an engine with everything it owns. Close it, or use it as a context manager."""

    def __init__(
        self, engine: Engine, *, folder: Path | None = None, close_seconds: float = CLOSE_SECONDS
    ) -> None:
        self._home = engine.settings.memory.scope or (scope_of(folder) if folder else ROOT_SCOPE)
        self._folder = folder
        self._recorded: set[Path] = set()
        self._scopes: dict[tuple[str, ...], str] = {}
        self._close_seconds = close_seconds
        self._closing = threading.Event()
        self._background = threading.Lock()
        self._backfill: threading.Thread | None = None
        self._hooks: HookListener | None = None
        self._indexer: SessionIndexer | None = None
        self.autopilot = Autopilot(engine)
        self._relay = Relay(
            engine.store, engine.events, process=uuid.uuid4().hex, others=engine.store.has_peers
        )
        self.engine = replace(engine, background=self.autopilot.status, react=self.autopilot.react)

    def call_tool(self, invocation: Invocation) -> dict[str, Any]:
        """Run an MCP tool; returns JSON-able data."""
        operation, arguments = _registry_of(invocation.name).resolve(invocation.name, invocation.arguments)
        return self._answer(operation, arguments, invocation, in_context=True)

    def read_resource(self, invocation: Invocation) -> dict[str, Any]:
        """Read an MCP resource; returns JSON-able data."""
        operation, arguments = _registry().match_resource(invocation.name)
        return self._answer(operation, arguments, invocation, in_context=True)

    def call_operation(self, invocation: Invocation) -> dict[str, Any]:
        """Run an operation; returns JSON-able data."""
        return self._answer(_registry().operations[invocation.name], invocation.arguments, invocation)

    def run(self, operation: "Operation", arguments: Mapping[str, Any], progress: Progress) -> "Wire":
        """Run an operation for the local user; returns the typed answer."""
        invocation = Invocation(
            name=operation.name, progress=progress, cancelled=self._closing, local=True, origin=Origin.USER
        )
        call = operation.in_stated_zone(self._call(invocation), arguments)
        show_times_in(call.zone)  # the answer is rendered after this
        with acting(call.actor):
            answer = operation.answer(call, arguments)
        self._record_project(operation, invocation)
        return answer

    def settle(self) -> None:
        """Run the reactions to all events so far."""
        self.autopilot.settle()

    def exchange_events(self) -> None:
        """Exchange events with other processes that use the store."""
        self._relay.start()

    exchange_news = exchange_events  # its earlier name

    def answer_hooks(self) -> None:
        """Answer hooks of this user's agents at a socket, until it is closed."""
        from vestige.transports.hooks.listener import HookListener

        self._hooks = HookListener(self, self.engine.settings.data_dir)
        self._hooks.start()

    def index_sessions(self) -> None:
        """Keep the index of sessions up to date in the background, as `sessions.background` says; not one in
        memory, which is lost with the process."""
        if self.engine.settings.storage.backend == "memory":
            return
        from vestige.engine.recall.sessions.background import SessionIndexer

        self._indexer = SessionIndexer(self.engine)
        self._indexer.start()

    def embed_missing_when_ready(self, *, load: bool = True) -> threading.Event:
        """Load the model, then embed memories without vectors; the event is set when that is done. Without
        `load` that happens when something else needs the model."""
        done = threading.Event()

        def work(embedder: Embedder) -> None:
            try:
                self._embed_missing(embedder)
            finally:
                done.set()

        def begin(embedder: Embedder) -> None:
            # A separate thread: the loading thread must finish before others get the model.
            thread = threading.Thread(target=work, args=(embedder,), name="vestige-backfill", daemon=True)
            with self._background:
                if not self._closing.is_set():
                    self._backfill = thread
                    thread.start()

        if not self.engine.store.read_only:
            self.engine.embedders.on_ready(begin)
        if load:
            self.engine.embedders.start()
        return done

    def close(self) -> None:
        """Stop background work, then close the model and the store."""
        if self._hooks is not None:
            self._hooks.close()
        if self._indexer is not None and not self._indexer.stop(self._close_seconds):
            logger.warning("Closing without waiting longer for sessions that are being indexed")
        with self._background:
            self._closing.set()
            thread = self._backfill
        if thread is not None:
            thread.join(self._close_seconds)
            if thread.is_alive():
                logger.warning("Closing without waiting longer for texts that are being embedded")
        if not self.autopilot.close(self._close_seconds):
            logger.warning("Closing without waiting longer for a reaction that does not finish")
        self._relay.close(self._close_seconds)
        self.engine.reranker.close()
        self.engine.embedders.close()
        self.engine.sessions.close()
        self.engine.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _answer(
        self,
        operation: "Operation",
        arguments: Mapping[str, Any],
        invocation: Invocation,
        *,
        in_context: bool = False,
    ) -> dict[str, Any]:
        call = self._call(invocation, in_context=in_context)
        started = self.engine.monotonic()
        try:
            answer = operation.call(call, arguments)
            self._record_project(operation, invocation)
            return answer
        finally:
            milliseconds = 1000 * (self.engine.monotonic() - started)
            logger.debug("%s (request %s) took %.1f ms", operation.name, call.request_id, milliseconds)

    def _scope(self, roots: Sequence[str], caller: Caller = LOCAL_USER) -> str:
        """The default scope of a client: the setting, else its first root in a project, else that of the
        working directory, which does not matter for network clients."""
        otherwise = self._home if caller is LOCAL_USER else ROOT_SCOPE
        if self.engine.settings.memory.scope:
            return self._home
        known = tuple(roots)
        found = self._scopes.get(known)
        if found is None:
            folders = (folder_of(uri) for uri in known)
            scopes = (scope_of(folder) for folder in folders if folder is not None)
            found = next((scope for scope in scopes if scope != ROOT_SCOPE), ROOT_SCOPE)
            self._scopes = {known: found}
        return found if found != ROOT_SCOPE else otherwise

    def _working_folder(self, invocation: Invocation) -> Path | None:
        """Where a caller works: its first root that is in a project, else the working directory. A network
        client works where the server does, if it has access to everything."""
        caller = invocation.caller
        if caller is LOCAL_USER:
            folders = [folder for uri in invocation.roots if (folder := folder_of(uri)) is not None]
            in_project = (one for one in folders if scope_of(one) != ROOT_SCOPE)
            return next(in_project, folders[0] if folders else self._folder)
        return self._folder if caller.access == EVERYTHING else None

    def _record_project(self, operation: "Operation", invocation: Invocation) -> None:
        """Have the project keep its scope, now that something was stored in it."""
        if operation.effect != "write" or invocation.caller is not LOCAL_USER:
            return
        roots = [folder for uri in invocation.roots if (folder := folder_of(uri)) is not None]
        folder = roots[0] if roots else self._folder
        if folder is not None and folder not in self._recorded and not self.engine.settings.memory.scope:
            self._recorded.add(folder)
            record_scope(folder)

    def _zone(self, invocation: Invocation) -> tzinfo:
        """The zone of a caller: the one it states, else that of the user of this machine; for a network
        client that of the settings, else UTC."""
        caller, settings = invocation.caller, self.engine.settings
        if caller.zone is not None:
            return caller.zone
        return settings.zone if _is_here(invocation) or settings.timezone else UTC

    def _call(self, invocation: Invocation, *, in_context: bool = False) -> Call:
        self.autopilot.touch()
        caller = invocation.caller
        return Call(
            engine=self.engine,
            access=caller.access,
            scope=caller.home(self._scope(invocation.roots, caller)),
            folder=self._working_folder(invocation),
            local=invocation.local,
            on_this_machine=_is_here(invocation),
            zone=self._zone(invocation),
            origin=invocation.origin,
            in_context=in_context,
            permissions=caller.permissions,
            deadline=invocation.deadline,
            progress=invocation.progress,
            cancelled=invocation.cancelled.is_set,
            request_id=invocation.request_id,
            actor=Actor(by=caller.name, client=invocation.client),
        )

    def _embed_missing(self, embedder: Embedder) -> None:
        from vestige.engine.embedding import backfill

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


def _is_here(invocation: Invocation) -> bool:
    """Whether the user of this machine calls: at the command line, or by an agent over stdio or a socket of
    the data directory. A client of the network always has another caller, on this machine too."""
    return invocation.local or invocation.caller is LOCAL_USER


FIRST_TOOLS = {
    "search": "vestige.operations.memory.search",
    "session_context": "vestige.operations.reasoning.session",
    "smart_ingest": "vestige.operations.memory.ingest",
}
"""The tools that agents call first, with their modules: they do not wait for all others to be imported."""


def _registry_of(tool: str) -> "Registry":
    """The registry with this tool, and maybe no other."""
    module = FIRST_TOOLS.get(tool)
    if module is None:
        return _registry()
    from vestige.operations.registry.registry import registry

    import_module(module)
    return registry


def _registry() -> "Registry":
    """The registry with all operations. A command imports only its own, so it is loaded here."""
    from vestige.operations.registry.groups import registry

    return registry


def open_app(
    options: Mapping[str, Any] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    clock: Clock | None = None,
    folder: Path | None = None,
    server: bool = False,
    parent: int = 0,
) -> App:
    """Read the settings and open the store. The model is loaded when it is first needed.

    `folder` is the user's working directory; the project around it is the default scope. A `server` runs long
    enough to download a missing model, and `storage.exclusive` applies to it.
    """
    settings = load_settings(options, environ=environ)
    logging.basicConfig(
        stream=sys.stderr, level=settings.log_level.upper(), format="%(levelname)s %(name)s: %(message)s"
    )
    if sys.stderr is not None and sys.stderr.isatty():
        from vestige.transports.cli.commands.log_lines import write_for_people

        write_for_people()
    clock = clock or system_clock()
    engine = _engine(settings, environ, clock, server=server, allow_install=server, parent=parent)
    return App(engine, folder=folder)


def open_library(
    options: Mapping[str, Any], *, environ: Mapping[str, str] | None = None, clock: Clock | None = None
) -> App:
    """An app inside another program. The working directory does not matter, logging is left to the program,
    and the model is loaded when it is first needed."""
    settings = load_settings(options, environ=environ)
    app = App(_engine(settings, environ, clock or system_clock(), server=False, allow_install=True))
    app.embed_missing_when_ready(load=False)
    app.autopilot.start()
    app.exchange_events()
    return app


def _engine(
    settings: Settings,
    environ: Mapping[str, str] | None,
    clock: Clock,
    *,
    server: bool,
    allow_install: bool,
    parent: int = 0,
) -> Engine:
    for complaint in unknown_variables(environ):
        logger.warning(complaint)
    kernel.allow(settings.search.native)
    store: MemoryStore = open_store(settings, clock, server=server, parent=parent)
    return Engine(
        store=store,
        embedders=embedder_source(
            settings, monotonic=clock.monotonic, sleep=clock.sleep, allow_install=allow_install
        ),
        reranker=reranker_source(settings, monotonic=clock.monotonic),
        settings=settings,
        events=EventBus(),
        now=clock.now,
        monotonic=clock.monotonic,
        new_id=clock.new_id,
        entropy=clock.rng.randbytes,
        sessions=SessionsFile(None if settings.storage.backend == "memory" else settings.data_dir),
        code_indexes=code_indexes(
            clock,
            this_process(clock, server=server, parent=parent),
            installation_directory(settings.data_dir, environ),
        ),
        scope_of=lambda folder: settings.memory.scope or scope_of(folder),
    )


def open_here(options: Mapping[str, Any]) -> App:
    """An app for one command, with the project around the working directory as its default scope."""
    app = open_app(options, folder=_here())
    show_times_in(app.engine.settings.zone)
    return app


def open_server(options: Mapping[str, Any], *, parent: int = 0) -> App:
    """An app for a server: loads the model at once and embeds memories without vectors. `parent` is the
    process id that the workers of one server have in common."""
    app = open_app(options, folder=_here(), server=True, parent=parent)
    app.embed_missing_when_ready()
    app.engine.reranker.start()
    app.autopilot.start()
    app.exchange_events()
    app.answer_hooks()
    app.index_sessions()
    return app


def _here() -> Path | None:
    """The working directory, or None if it was deleted."""
    try:
        return Path.cwd()
    except OSError:
        return None


def open_store(settings: Settings, clock: Clock, *, server: bool = False, parent: int = 0) -> MemoryStore:
    exclusive = server and settings.storage.exclusive
    who = this_process(clock, server=server, exclusive=exclusive, parent=parent)
    match settings.storage.backend:
        case "memory":
            from vestige.store.inmemory import InMemoryStore

            return InMemoryStore(node=clock.new_id(), who=who, new_id=clock.new_id)
        case "postgres":
            ends = transfer_ends(clock, who)
            return open_postgres(
                settings, clock, who=who, backup=lambda file: ends.between(settings, "postgres", str(file))
            )
        case "sqlite":
            return open_sqlite(settings, clock, who=who, machine=machine())


def transfer_ends(clock: Clock, who: Who) -> Ends:
    return Ends(clock=clock, machine=machine(), who=who)


def this_process(clock: Clock, *, server: bool = False, exclusive: bool = False, parent: int = 0) -> Who:
    """This process as other processes see it."""
    command = command_of(sys.argv)
    return Who(
        pid=os.getpid(), command=command, since=clock.now(), server=server, exclusive=exclusive, parent=parent
    )


def machine() -> str:
    """An identifier of this machine, for the node id of its store."""
    given = machine_id(Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))
    return given or machine_without_id(platform.node(), uuid.getnode())


def machine_without_id(host: str, card: int) -> str:
    """A name by the host and the number of its network card. Without a card Python makes up another number in
    every process, and sets this bit in it."""
    return host if card >> 40 & 1 else f"{host}-{card:x}"


def machine_id(*files: Path) -> str | None:
    """The first id in these files that is of one machine only: images have an empty or constant one."""
    for path in files:
        try:
            found = path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            continue
        if found != "uninitialized" and len(set(found) - {"-"}) > 1:
            return found
    return None


def open_database(settings: Settings) -> "MaintainedDatabase":
    """The database of the settings, for maintenance without opening the store."""
    clock = system_clock()
    match settings.storage.backend:
        case "memory":
            raise no_database()
        case "postgres":
            return PostgresDatabase(settings=settings)
        case "sqlite":
            return SqliteDatabase(settings=settings, who=this_process(clock), now=clock.now)


def open_ends(settings: Settings, source: str, destination: str) -> "tuple[End, End]":
    """Both ends of a transfer between kinds of stores."""
    clock = system_clock()
    return transfer_ends(clock, this_process(clock)).between(settings, source, destination)
