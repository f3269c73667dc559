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
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Self

from vestige.app.databases import (
    Ends,
    PostgresDatabase,
    SqliteDatabase,
    no_database,
    open_postgres,
    open_sqlite,
)
from vestige.app.project_scope import folder_of, scope_of
from vestige.core.caller import LOCAL_USER, Caller, Invocation, Progress
from vestige.core.clock import Clock as Clock
from vestige.core.clock import Uuid7
from vestige.core.errors import Cancelled, VestigeError
from vestige.core.events import EventBus
from vestige.core.models import ROOT_SCOPE
from vestige.embed.protocol import Embedder
from vestige.embed.providers import embedder_source, reranker_source
from vestige.engine.context import Call, Engine
from vestige.engine.embedding import backfill
from vestige.engine.reactions.autopilot import Autopilot
from vestige.engine.reactions.relay import Relay
from vestige.operations.registry.arguments import Wire
from vestige.operations.registry.groups import registry
from vestige.operations.registry.registry import Operation
from vestige.settings.settings import Settings, load_settings, unknown_variables
from vestige.store.contract.processes import Who, command_of
from vestige.store.contract.store import MemoryStore

if TYPE_CHECKING:
    from vestige.store.transfer.ends import End
    from vestige.transports.cli.session import MaintainedDatabase

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
        self._scopes: dict[tuple[str, ...], str] = {}
        self._close_seconds = close_seconds
        self._closing = threading.Event()
        self._background = threading.Lock()
        self._backfill: threading.Thread | None = None
        self.autopilot = Autopilot(engine)
        self._relay = Relay(
            engine.store, engine.events, process=uuid.uuid4().hex, others=engine.store.has_peers
        )
        self.engine = replace(engine, background=self.autopilot.status)

    def call_tool(self, invocation: Invocation) -> dict[str, Any]:
        """Run an MCP tool; returns JSON-able data."""
        return self._answer(*registry.resolve(invocation.name, invocation.arguments), invocation)

    def read_resource(self, invocation: Invocation) -> dict[str, Any]:
        """Read an MCP resource; returns JSON-able data."""
        return self._answer(*registry.match_resource(invocation.name), invocation)

    def call_operation(self, invocation: Invocation) -> dict[str, Any]:
        """Run an operation; returns JSON-able data."""
        return self._answer(registry.operations[invocation.name], invocation.arguments, invocation)

    def run(self, operation: Operation, arguments: Mapping[str, Any], progress: Progress) -> Wire:
        """Run an operation for the local user; returns the typed answer."""
        invocation = Invocation(name=operation.name, progress=progress, cancelled=self._closing)
        return operation.answer(replace(self._call(invocation), local=True), arguments)

    def settle(self) -> None:
        """Run the reactions to all events so far."""
        self.autopilot.settle()

    def exchange_events(self) -> None:
        """Exchange events with other processes that use the store."""
        self._relay.start()

    exchange_news = exchange_events  # its earlier name

    def embed_missing_when_ready(self) -> threading.Event:
        """Load the model, then embed memories without vectors; the event is set when that is done."""
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
        self.engine.embedders.start()
        return done

    def close(self) -> None:
        """Stop background work, then close the model and the store."""
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
        self.engine.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _answer(
        self, operation: Operation, arguments: Mapping[str, Any], invocation: Invocation
    ) -> dict[str, Any]:
        call = self._call(invocation)
        started = self.engine.monotonic()
        try:
            return operation.call(call, arguments)
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

    def _call(self, invocation: Invocation) -> Call:
        self.autopilot.touch()
        caller = invocation.caller
        return Call(
            engine=self.engine,
            access=caller.access,
            scope=caller.home(self._scope(invocation.roots, caller)),
            permissions=caller.permissions,
            deadline=invocation.deadline,
            progress=invocation.progress,
            cancelled=invocation.cancelled.is_set,
            request_id=invocation.request_id,
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

    `folder` is the user's working directory; the project around it is the default scope. A `server` runs long
    enough to download a missing model, and `storage.exclusive` applies to it.
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
        entropy=clock.rng.randbytes,
    )
    return App(engine, folder=folder)


def open_here(options: Mapping[str, Any]) -> App:
    """An app for one command, with the project around the working directory as its default scope."""
    return open_app(options, folder=_here())


def open_server(options: Mapping[str, Any]) -> App:
    """An app for a server: loads the model at once and embeds memories without vectors."""
    app = open_app(options, folder=_here(), server=True)
    app.embed_missing_when_ready()
    app.engine.reranker.start()
    app.autopilot.start()
    app.exchange_events()
    return app


def _here() -> Path | None:
    """The working directory, or None if it was deleted."""
    try:
        return Path.cwd()
    except OSError:
        return None


def open_store(settings: Settings, clock: Clock, *, server: bool = False) -> MemoryStore:
    who = this_process(clock, server=server, exclusive=server and settings.storage.exclusive)
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


def this_process(clock: Clock, *, server: bool = False, exclusive: bool = False) -> Who:
    """This process as other processes see it."""
    command = command_of(sys.argv)
    return Who(pid=os.getpid(), command=command, since=clock.now(), server=server, exclusive=exclusive)


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


def main(argv: Sequence[str] | None = None, *, alone: str | None = None) -> NoReturn:
    """The command `vestige`, or a program that runs one of its commands."""
    from vestige.transports.cli import run

    sys.exit(run(open_here, open_server, open_database, open_ends, argv, alone=alone))


def restore_main() -> NoReturn:
    """The command `vestige-restore FILE`."""
    main(alone="restore")
