"""The sockets of running servers, in the folder of the agent's state: one per process, named by its number.

Only the user may open them, like the store itself. Everything here is imported by `vestige-hook`, which must
start within milliseconds.
"""

import os
import socket
import sys

STATE_FOLDER = "agent"
ENDING = ".sock"
MAX_MESSAGE_BYTES = 8_000_000
AVAILABLE = hasattr(socket, "AF_UNIX")

TYPE_CHECKING = False  # like typing.TYPE_CHECKING, without importing typing
if TYPE_CHECKING:
    from collections.abc import Iterator


def state_folder(data_dir: str) -> str:
    return os.path.join(data_dir, STATE_FOLDER)  # noqa: PTH118 - pathlib takes 5 ms to import


def socket_names(state: str) -> list[str]:
    """The names of the sockets, the newest server first."""
    try:
        with os.scandir(state) as found:
            named = [(one.stat().st_mtime, one.name) for one in found if one.name.endswith(ENDING)]
    except OSError:
        return []
    return [name for _, name in sorted(named, reverse=True)]


class SocketFolder:
    """Names sockets in a folder, however long its path is: the address of a socket has 107 bytes at most, and
    Linux takes a name below an open folder."""

    def __init__(self, state: str) -> None:
        self._state = state
        self._handle = os.open(state, os.O_RDONLY) if sys.platform == "linux" else None

    def address(self, name: str) -> str:
        folder = self._state if self._handle is None else f"/proc/self/fd/{self._handle}"
        return f"{folder}/{name}"

    def close(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def __enter__(self) -> "SocketFolder":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def receive(connection: socket.socket) -> bytes:
    """Everything that the other side sends until it ends its part; ValueError for too much."""
    parts, size = [], 0
    for part in _parts(connection):
        size += len(part)
        if size > MAX_MESSAGE_BYTES:
            raise ValueError("the message is too long")
        parts.append(part)
    return b"".join(parts)


def _parts(connection: socket.socket) -> "Iterator[bytes]":
    while part := connection.recv(1 << 16):
        yield part
