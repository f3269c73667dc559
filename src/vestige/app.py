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
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, Self

from vestige.embed.background import EmbedderSource
from vestige.embed.progress import Progress as ModelProgress
from vestige.embed.protocol import Embedder
from vestige.engine.context import Call, Engine, Progress
from vestige.engine.embedding import backfill
from vestige.errors import Cancelled, StoreError, VestigeError
from vestige.events import EventBus
from vestige.identity import Uuid7
from vestige.operations.all import registry
from vestige.operations.registry import Operation, Wire
from vestige.settings import Settings, is_project_directory, load_settings, unknown_variables
from vestige.store.protocol import MemoryStore

if TYPE_CHECKING:
    from vestige.transports.cli.session import Restorer

logger = logging.getLogger(__name__)

MOST_THREADS = 4
"""Threads of the model when the settings leave the choice to us."""

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

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._closing = threading.Event()
        self._backfill: threading.Thread | None = None

    def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        request_id: str,
        progress: Progress,
        cancelled: Signal,
    ) -> dict[str, Any]:
        """Run an MCP tool by name; the answer as JSON-able data."""
        operation, given = registry.resolve(name, arguments)
        return operation.call(self._call(request_id, progress, cancelled), given)

    def read_resource(
        self, uri: str, *, request_id: str, progress: Progress, cancelled: Signal
    ) -> dict[str, Any]:
        """Read an MCP resource; its content as JSON-able data."""
        operation, given = registry.match_resource(uri)
        return operation.call(self._call(request_id, progress, cancelled), given)

    def run(self, operation: Operation, arguments: Mapping[str, Any], progress: Progress) -> Wire:
        """Run an operation for the local user; the typed answer."""
        return operation.answer(self._call("", progress, self._closing), arguments)

    def embed_missing_when_ready(self) -> threading.Event:
        """Once the model is there, embed what was written without it; the event is set when done."""
        done = threading.Event()

        def work(embedder: Embedder) -> None:
            try:
                self._embed_missing(embedder)
            finally:
                done.set()

        def begin(embedder: Embedder) -> None:
            # Its own thread: the loading thread has to finish for others to get the model.
            thread = threading.Thread(target=work, args=(embedder,), name="vestige-backfill", daemon=True)
            thread.start()
            self._backfill = thread

        if not self.engine.store.read_only:
            self.engine.embedders.on_ready(begin)
        return done

    def close(self) -> None:
        """Stop what runs in the background, then let go of the model and the store."""
        self._closing.set()
        if self._backfill is not None:
            self._backfill.join()
        self.engine.embedders.close()
        self.engine.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _call(self, request_id: str, progress: Progress, cancelled: Signal) -> Call:
        return Call(
            engine=self.engine,
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
) -> App:
    """Read the settings, open the store, start loading the model."""
    settings = load_settings(options, environ=environ)
    logging.basicConfig(
        stream=sys.stderr, level=settings.log_level.upper(), format="%(levelname)s %(name)s: %(message)s"
    )
    for complaint in unknown_variables(environ):
        logger.warning(complaint)
    clock = clock or system_clock()
    store: MemoryStore = open_store(settings, clock)
    embedders = embedder_source(settings, clock)
    engine = Engine(
        store=store,
        embedders=embedders,
        settings=settings,
        events=EventBus(),
        now=clock.now,
        monotonic=clock.monotonic,
        new_id=clock.new_id,
        rng=clock.rng,
    )
    embedders.start()
    return App(engine)


def open_server(options: Mapping[str, Any]) -> App:
    """An app that stays: it also embeds what was written while no model was there."""
    app = open_app(options)
    app.embed_missing_when_ready()
    return app


def open_store(settings: Settings, clock: Clock) -> MemoryStore:
    """The store the settings name."""
    if settings.storage.backend == "memory":
        from vestige.store.inmemory import InMemoryStore

        return InMemoryStore(node=clock.new_id())
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
        busy_seconds=settings.storage.busy_seconds,
    )


def embedder_source(settings: Settings, clock: Clock) -> EmbedderSource:
    """Where the embedding model comes from; nothing heavy is imported before it is started."""
    chosen = settings.embeddings
    threads = chosen.threads or min(MOST_THREADS, os.cpu_count() or 1)

    def local(progress: ModelProgress) -> Embedder:
        from vestige.embed.install import load_local

        return load_local(
            settings.model_cache,
            threads=threads,
            offline=settings.offline,
            allow_install=not settings.offline,
            progress=progress,
        )

    def fastembed(progress: ModelProgress) -> Embedder:
        from vestige.embed.fastembed import FastembedEmbedder

        folder = Path(chosen.model_path).expanduser() if chosen.model_path else None
        return FastembedEmbedder(
            chosen.model, settings.model_cache, threads=threads, offline=settings.offline, model_path=folder
        )

    def openai(progress: ModelProgress) -> Embedder:
        from vestige.embed.openai import OpenAIEmbedder

        return OpenAIEmbedder(
            chosen.url, chosen.model, chosen.api_key or None, chosen.dimension or None, sleep=clock.sleep
        )

    def hashing(progress: ModelProgress) -> Embedder:
        from vestige.embed.hashing import HashingEmbedder

        return HashingEmbedder()

    if chosen.provider == "off":
        return EmbedderSource.off("The setting embeddings.provider is off.")
    loaders = {"local": local, "fastembed": fastembed, "openai": openai, "hashing": hashing}
    return EmbedderSource(loaders[chosen.provider])


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
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        ignore = data_dir / ".gitignore"
        if is_project_directory(data_dir) and not ignore.exists():
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
    from vestige.store.sqlite import restore

    return restore


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """The command `vestige`."""
    from vestige.transports.cli import run

    sys.exit(run(open_app, sqlite_restorer, argv))


def restore_main() -> NoReturn:
    """The command `vestige-restore FILE`."""
    main(["restore", *sys.argv[1:]])
