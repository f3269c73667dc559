"""The process of the bridge: how it starts and how it ends."""

import math
import shutil
import socket
import sys
from collections.abc import Callable, Sequence

import uvicorn
from starlette.types import ASGIApp

from vestige.core.errors import ConfigError
from vestige.settings.settings import Settings
from vestige.transports.http import run
from vestige.transports.http.limits.connections import Patience, affordable, http_protocol, waiting

KEEP_ALIVE_SECONDS = 30
OWN_PROGRAM = ("-P", "-m", "vestige.transports.mcp.stdio")
"""Our `vestige-mcp`, for the interpreter that runs this. What lies in the working directory stays out."""


def child_command(settings: Settings, options: Sequence[str]) -> list[str]:
    """How `vestige-mcp` is started, with further options; ConfigError if it is not there."""
    binary = settings.bridge.binary
    words = ["--data-dir", str(settings.data_dir), *options]
    if not binary:
        return [sys.executable, *OWN_PROGRAM, *words]
    found = shutil.which(binary)
    if found is None:
        raise ConfigError(
            f"There is no program {binary}.",
            hint="VESTIGE_BINARY names the `vestige-mcp` to use; without it, this installation's is.",
            details={"setting": "bridge.binary"},
        )
    return [found, *words]


def serve(app: ASGIApp, settings: Settings, opened: socket.socket, started: Callable[[], None]) -> None:
    """Serve until a signal ends it. `started` is called when requests are taken."""
    proxies = list(settings.server.trusted_proxies)
    most = affordable(settings.server.max_connections)
    config = uvicorn.Config(
        app,
        http=http_protocol(Patience(most=most)),
        ws="none",
        backlog=waiting(most),
        loop="asyncio",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        # Said even when there are none, or the environment would be asked.
        proxy_headers=bool(proxies),
        forwarded_allow_ips=proxies,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=math.ceil(settings.server.shutdown_seconds),
    )
    BridgeServer(config, started).run(sockets=[opened])


class BridgeServer(run.SignalledServer):
    """The server of the bridge, which says when it takes requests."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._tell_started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Take requests, and say so."""
        await super().startup(sockets)
        if self.started:
            self._tell_started()
