"""The workers of one server, as one of them sees the others: their limits, their state, their sockets."""

import os
import re
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import Any

from vestige.core.lazy_dataclass import dataclass
from vestige.settings.settings import Settings
from vestige.transports.http.workers.table import (
    CountRows,
    HeldElsewhere,
    NothingElsewhere,
    Seat,
    SharedTable,
    WorkerState,
)

STALE_SECONDS = 5.0
"""A worker that has not updated its row for this time stands still."""
BEAT_SECONDS = 1.0
_NUMBER = re.compile(r"w(\d{1,15})-")


def socket_of(folder: Path, number: int) -> Path:
    """The Unix socket of a worker, or a link to that of the worker that took over from it."""
    return folder / f"{number}.sock"


@dataclass(slots=True, kw_only=True)
class WorkerGroup:
    """A worker among others. `has_session` says whether an MCP session is in this process; `take_over` opens
    sessions of another worker here, and `hand_over` returns those to pass on. The MCP endpoint sets them."""

    table: SharedTable
    folder: Path
    index: int
    number: int
    workers: int
    monotonic: Callable[[], float]
    has_session: Callable[[str], bool] = field(default=lambda session_id: False)
    hand_over: Callable[[], list[dict[str, Any]]] = field(default=list)
    take_over: Callable[[list[dict[str, Any]]], None] = field(default=lambda sessions: None)

    # -- Limits

    def share_of(self, settings: Settings) -> Settings:
        """The settings of one worker: of what is counted in its process, its share."""
        server = settings.server
        share = {
            "max_concurrent": max(1, server.max_concurrent // self.workers),
            "max_connections": max(1, server.max_connections // self.workers),
        }
        return settings.model_copy(update={"server": server.model_copy(update=share)})

    # -- Other workers

    def listen(self) -> socket.socket:
        """A socket for requests that other workers pass on."""
        opened = socket.socket(socket.AF_UNIX)
        opened.bind(str(socket_of(self.folder, self.number)))
        return opened

    @property
    def own_socket(self) -> Path:
        return socket_of(self.folder, self.number)

    def leave(self) -> None:
        """Remove the socket of this worker, unless another one has taken over, links to workers that have
        ended, and then the folder if it is empty: the parent may have been killed."""
        with suppress(OSError):
            if not self.own_socket.is_symlink():
                self.own_socket.unlink()
            for link in self.folder.glob("*.sock"):
                if link.is_symlink() and not link.exists():
                    link.unlink()
            os.rmdir(self.folder)  # noqa: PTH106  the same as Path.rmdir, beside unlink of os

    def point_to(self, heir: Seat) -> None:
        """Let requests for sessions of this worker go to the one that took them over."""
        beside = self.folder / f"{self.number}.link"
        beside.symlink_to(socket_of(self.folder, heir.number).name)
        beside.replace(socket_of(self.folder, self.number))

    def named(self, session_id: str) -> int | None:
        """The number of the worker that a session id names; None for ids that no worker made."""
        found = _NUMBER.match(session_id)
        return int(found[1]) if found else None

    def others(self) -> list[Seat]:
        return [seat for seat in self.table.seats() if seat.index != self.index]

    def states(self) -> dict[str, str]:
        """The state of each worker, by index, for health checks."""
        now = self.monotonic()
        return {str(seat.index): state_of(seat, now) for seat in self.table.seats()}

    def beat(self, state: WorkerState) -> None:
        self.table.set_state(self.index, state)


def state_of(seat: Seat, now: float) -> str:
    if seat.state is not WorkerState.STARTING and now - seat.beaten_at > STALE_SECONDS:
        return "stands still"
    return seat.state.name.lower()


def rows_of(group: WorkerGroup | None, kind: str) -> CountRows | None:
    """Rows of counts that all workers share; None in a server of one process."""
    return None if group is None else group.table.rows(kind)


def held_elsewhere(group: WorkerGroup | None, kind: str) -> HeldElsewhere:
    """What other workers hold."""
    return NothingElsewhere() if group is None else group.table.held(kind, group.index)
