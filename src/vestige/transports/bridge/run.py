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
from vestige.transports.http.limits.connections import (
    ConnectionLimits,
    Connections,
    LimitedListener,
    affordable,
)

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


def serve(app: ASGIApp, settings: Settings, opened: LimitedListener, started: Callable[[], None]) -> None:
    """Serve until a signal ends it. `started` is called when requests are accepted."""
    connections = Connections(limits=ConnectionLimits(most=affordable(settings.server.max_connections)))
    end_seconds = math.ceil(settings.server.shutdown_seconds)
    config = run.server_config(app, settings, connections, ws="none", end_seconds=end_seconds)
    opened.connections = connections
    BridgeServer(config, started).run(sockets=[opened])


class BridgeServer(run.SignalledServer):
    """The server of the bridge, which says when it takes requests."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_start = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Take requests, and say so."""
        await super().startup(sockets)
        if self.started:
            self._on_start()
