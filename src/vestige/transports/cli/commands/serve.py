"""`vestige serve`: the HTTP server for other programs and machines."""

import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import asdict, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import orjson

from vestige.core.errors import ConfigError, Conflict, InvalidInput, MissingExtra
from vestige.core.lazy_dataclass import dataclass
from vestige.engine.care import keys
from vestige.engine.context import Call
from vestige.settings.settings import Settings, load_settings
from vestige.transports.cli.commands.log_lines import write_for_people
from vestige.transports.cli.commands.server_address import is_vestige, url_for_others, warn_unencrypted
from vestige.transports.cli.openers import ServingApplication
from vestige.transports.cli.program import NAME, locations_of, own_command, typed
from vestige.transports.cli.session import CliSession
from vestige.transports.connect.clients import CLAUDE_CODE, CLIENTS, Http, InlineKey, claude_add
from vestige.transports.http.limits.malloc import small_heap
from vestige.transports.http.workers.count import usable_cores, usable_memory, worker_count

if TYPE_CHECKING:
    from vestige.transports.http.auth.addresses import Bind

logger = logging.getLogger(__name__)

NEEDED = ("starlette", "uvicorn", "websockets", "blake3")
FIRST_LABEL = "first key"
PLACEHOLDER = "vst_…"
ASK_SECONDS = 1.0
"""Seconds that the program on the port may take to identify itself."""


def options() -> list[click.Parameter]:
    return [
        click.Option(["--bind"], metavar="HOST:PORT", help="Address to listen on; port 0 picks a free one."),
        click.Option(
            ["--port"], type=click.IntRange(0, 65_535), metavar="N", help="Only the port, on the usual host."
        ),
        click.Option(["--no-auth"], is_flag=True, help="Require no key; on loopback addresses only."),
        click.Option(
            ["--workers"],
            type=click.IntRange(1, 64),
            metavar="N",
            help="Processes that serve requests (server.workers); by default one less than the cores.",
        ),
        click.Option(["--worker"], type=int, hidden=True),
    ]


def serve(
    session: CliSession,
    bind: str | None,
    port: int | None,
    no_auth: bool,
    workers: int | None,
    worker: int | None,
) -> None:
    """Serve the memory over HTTP: the dashboard at /, MCP at /mcp, REST at /api/v1, live events at /ws.

    By default it listens on this machine only and needs a key (`vestige keys create`). Ctrl-C stops it after
    running requests finish; a second one stops it at once.
    """
    check_extra("`vestige serve`")
    if worker is not None:
        _work(session, worker)
        return
    if port is not None:
        bind = _with_port(session, bind, port)
    given = {"server.bind": bind, "server.workers": workers, "auth.enabled": False if no_auth else None}
    session.flags.update({name: value for name, value in given.items() if value is not None})
    serve_until_stopped(session, lambda app, greeting: None)


def _with_port(session: CliSession, bind: str | None, port: int) -> str:
    """The address of the settings with another port."""
    from vestige.transports.http.auth.addresses import bind_of, bracketed

    if bind is not None:
        raise InvalidInput("`--port` cannot be combined with `--bind`, which has a port already.")
    return f"{bracketed(bind_of(session.settings().server.bind).host)}:{port}"


def check_extra(command: str) -> None:
    """MissingExtra if the packages of a server are not installed."""
    if any(find_spec(name) is None for name in NEEDED):
        raise MissingExtra.named("server", command)


def serve_until_stopped(
    session: CliSession, started: Callable[[ServingApplication, "Greeting"], None]
) -> None:
    """Serve with the settings of the session until a signal ends it. `started` is called when a server with
    one worker accepts requests."""
    from vestige.transports.http import run
    from vestige.transports.http.middleware.access_log import set_up_logs

    settings = session.settings()
    place = run.check_bind(settings)
    locations = locations_of(session)
    command, own = own_command(locations), not place.wildcard and _is_usual(locations, settings.server.bind)
    set_up_logs(settings)
    write_for_people()
    code = 0
    with ExitStack() as stack:
        try:
            opened = stack.enter_context(run.listening(place, only_loopback=not settings.auth.enabled))
        except Conflict as exc:
            raise occupied(place, command=command, own=own) from exc
        local = run.url_of(opened)
        warn_unencrypted(opened, settings)
        greeting = Greeting(
            url=url_for_others(opened, settings.server.allowed_hosts) or local,
            local=local,
            command=command,
            auth=settings.auth.enabled,
            own=own,
            name=_name_for_others(place, settings),
            fetching=fetches_model(settings),
        )
        count = worker_count(settings, cores=usable_cores(), memory_bytes=usable_memory())
        if count > 1:
            code = _supervise(session, settings, opened, greeting, count)
        else:
            stack.enter_context(small_heap())
            app = session.open_server(session.flags)
            stack.callback(app.close)
            greeting = greeting.with_key(_announce_keys(app, settings, command))

            def on_start() -> None:
                _started(session, greeting)
                started(app, greeting)

            run.serve(app, opened, on_start)
    if code:
        click.get_current_context().exit(code)
    if sys.stderr.isatty():
        click.echo("Vestige has stopped.", err=True)


# -- Several workers


def _supervise(
    session: CliSession, settings: Settings, opened: socket.socket, greeting: "Greeting", count: int
) -> int:
    """Run the parent of several workers; its exit code."""
    from vestige.transports.http.workers.channel import Assignment
    from vestige.transports.http.workers.supervisor import WorkerSupervisor, peer_folder
    from vestige.transports.http.workers.table import shared_table

    flags = {name: _plain(value) for name, value in session.flags.items()}

    def start(channel: socket.socket, table: int) -> "subprocess.Popen[bytes]":
        # -P: the working directory, which may be any project, must not be imported from.
        command = [sys.executable, "-P", "-m", "vestige", "serve", "--worker", str(channel.fileno())]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=(channel.fileno(), table))

    with shared_table(time.monotonic) as table, peer_folder() as folder:

        def assign(index: int, number: int, first: bool) -> Assignment:
            return Assignment(
                flags=flags,
                form=session.form,
                greeting=asdict(greeting) if first else None,
                parent=os.getpid(),
                index=index,
                number=number,
                workers=count,
                table=table.handle,
                folder=str(folder),
            )

        return WorkerSupervisor(
            opened=opened,
            table=table,
            folder=folder,
            count=count,
            most_connections=settings.server.max_connections,
            shutdown_seconds=settings.server.shutdown_seconds,
            start=start,
            assign=assign,
        ).run()


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value


def _work(session: CliSession, channel: int) -> None:
    """Serve as a worker, with the channel to the parent."""
    from vestige.transports.http import run
    from vestige.transports.http.middleware.access_log import set_up_logs
    from vestige.transports.http.workers.channel import Assignment, HandedListener
    from vestige.transports.http.workers.group import WorkerGroup
    from vestige.transports.http.workers.table import SharedTable

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent, too, which decides
    with ExitStack() as stack:
        opened = stack.enter_context(HandedListener(fileno=channel))
        told = Assignment.receive(opened)
        session.flags.update(told.flags)
        session.form = told.form
        settings = session.settings()
        set_up_logs(settings)
        write_for_people()
        stack.enter_context(small_heap())
        app = session.open_server(session.flags, parent=told.parent)
        stack.callback(app.close)
        if told.greeting is not None:
            greeting = Greeting(**told.greeting)
            greeting = greeting.with_key(_announce_keys(app, settings, greeting.command))
            opened.listening = lambda: _started(session, greeting)
        table = SharedTable(told.table, app.engine.monotonic)
        stack.callback(table.close)
        group = WorkerGroup(
            table=table,
            folder=Path(told.folder),
            index=told.index,
            number=told.number,
            workers=told.workers,
            monotonic=app.engine.monotonic,
        )
        run.serve(app, opened, lambda: None, group)


def _is_usual(locations: Mapping[str, str], bind: str) -> bool:
    """Whether a program with these locations finds the server without our environment variables."""
    try:
        found = load_settings(locations, environ={}).server.bind
    except ConfigError:  # a file that this process does not read
        return False
    return found == bind and not bind.endswith(":0")


def occupied(place: "Bind", *, command: str = "vestige", own: bool = False) -> Conflict:
    elsewhere = (
        "listen on another address with --bind HOST:PORT or VESTIGE_SERVER_BIND; port 0 picks a free one."
    )
    url = _url_at(place)
    if is_vestige(url, ASK_SECONDS):
        return Conflict(
            f"A Vestige server already listens on {place}.",
            hint=f"Use that one (`{_connecting(command, url, own)}`), stop it, or {elsewhere}",
            details={"bind": str(place)},
        )
    return Conflict(
        f"Another program already listens on {place}.",
        hint=f"Stop it, or {elsewhere}",
        details={"bind": str(place)},
    )


def _url_at(place: "Bind") -> str:
    """The URL for programs on this machine."""
    host = ("::1" if ":" in place.host else "127.0.0.1") if place.wildcard else place.host
    return f"http://{replace(place, host=host)}"


def _connecting(command: str, url: str, own: bool) -> str:
    """The command that connects a client, with the URL unless it is the default."""
    return f"{command} connect CLIENT --http" + ("" if own else f" {url}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Greeting:
    """What the user needs to know after starting a server.

    `command` is what to type for `vestige`, `key` a key that was just created, `own` whether `connect` finds
    the server without a URL, and `name` a host name for other machines, if they can connect. Clients use
    `url`; those on this machine can also use `local`. `fetching` is whether the model is being downloaded.
    """

    url: str
    local: str = ""
    command: str = "vestige"
    auth: bool = True
    key: str | None = None
    own: bool = True
    name: str = ""
    fetching: bool = False

    def with_key(self, key: str | None) -> "Greeting":
        """The greeting with a key that was just created, if people read it."""
        return replace(self, key=key if sys.stdout.isatty() else None)

    def lines(self) -> str:
        said = [f"Vestige listens on {self.url}; press Ctrl-C to stop."]
        if self.local not in ("", self.url):
            said.append(f"  On this machine:  {self.local}")
        if self.name:
            port = self.url.rpartition(":")[2]
            said.append(
                f"  By name:  http://{self.name}:{port}, if server.allowed_hosts contains the name "
                f"(VESTIGE_SERVER_ALLOWED_HOSTS={self.name})"
            )
        if self.auth and not self.key:
            said.append(f"  Create a key:  {self.command} keys create --label NAME")
        said += [
            f"  Clients:  {_connecting(self.command, self.url, self.own)}",
            *self._by_hand(),
            f"  Dashboard:  {self.url}/ (`{self.command} dashboard` logs you in)",
            f"  REST:  {self.url}/api/v1/docs",
        ]
        if self.fetching:
            said.insert(
                1, "  The model is being downloaded, which takes minutes; until then search uses words only."
            )
        return "\n".join(said)

    def _by_hand(self) -> list[str]:
        key = InlineKey(text=self.key or PLACEHOLDER) if self.auth else None
        server = Http(url=f"{self.url}/mcp", key=key)
        entry = CLIENTS[CLAUDE_CODE].entry(server)
        config = orjson.dumps({"mcpServers": {NAME: entry}}).decode()
        return [f"  Claude Code:  {typed(claude_add(server, NAME))}", f"  Other clients by hand:  {config}"]


def _started(session: CliSession, greeting: Greeting) -> None:
    url = greeting.url
    locations = {"url": url, "local": greeting.local, "mcp": f"{url}/mcp", "api": f"{url}/api/v1"}
    session.line({**locations, "auth": greeting.auth}, greeting.lines)


def _name_for_others(place: "Bind", settings: Settings) -> str:
    """The host name of this machine, if the server listens on all addresses without allowed host names."""
    return socket.gethostname() if place.wildcard and not settings.server.allowed_hosts else ""


def fetches_model(settings: Settings) -> bool:
    """Whether a server with these settings has to download its model first."""
    from vestige.embed.minilm.install import ModelPresence, status

    local = settings.embeddings.provider == "local" and not settings.offline
    return local and status(settings.model_cache).presence is ModelPresence.ABSENT


def _announce_keys(app: ServingApplication, settings: Settings, command: str) -> str | None:
    """Create the first key if a terminal shows it, and return it; otherwise print how. Keys never go into
    logs."""
    if not settings.auth.enabled:
        logger.warning("No key is needed: every program on this machine can read and change every memory.")
        return None
    store = app.engine.store
    if settings.auth.token.get_secret_value():
        logger.warning(
            "VESTIGE_AUTH_TOKEN is accepted by this server too, which is deprecated: it gives read and "
            "write access to everything. It belongs to the bridge: set it only where `vestige bridge` "
            "starts."
        )
    if store.list_keys():
        return None
    if store.read_only or not sys.stderr.isatty():
        click.echo(f"There is no key yet. Create one with `{command} keys create --label NAME`.", err=True)
        return None
    _, text = keys.mint(Call(engine=app.engine), FIRST_LABEL, ["admin"])
    click.echo(f"The first key, which has all permissions; it is shown only now:\n\n  {text}\n", err=True)
    return text
