"""The socket of a running server: answers hooks of this user's agents with its store and its model."""

import json
import logging
import os
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

from vestige.core.caller import Invocation
from vestige.core.errors import VestigeError
from vestige.transports.hooks.socket_path import AVAILABLE, ENDING, SocketFolder, receive, state_folder

logger = logging.getLogger(__name__)

MOST_AT_ONCE = 4
REQUEST_SECONDS = 10.0


class ToolService(Protocol):
    """What answers: the application."""

    def call_tool(self, invocation: Invocation) -> dict[str, Any]: ...


class HookListener:
    """Listens at the socket of this process until it is closed."""

    def __init__(self, service: ToolService, data_dir: Path) -> None:
        self._service = service
        self._state = Path(state_folder(str(data_dir)))
        self._path = self._state / f"{os.getpid()}{ENDING}"
        self._slots = threading.BoundedSemaphore(MOST_AT_ONCE)
        self._listener: socket.socket | None = None
        self._folder: SocketFolder | None = None

    def start(self) -> bool:
        """Begin to listen; False where that is not possible, which is no error: hooks open the store then."""
        if not AVAILABLE:
            return False
        try:
            self._state.mkdir(mode=0o700, parents=True, exist_ok=True)
            remove_dead(self._state)
            self._path.unlink(missing_ok=True)
            self._folder = SocketFolder(str(self._state))
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            listener.bind(self._folder.address(self._path.name))
            self._path.chmod(0o600)
            listener.listen(16)
        except OSError as exc:
            logger.debug("Hooks cannot ask this server: %s", exc)
            self.close()
            return False
        self._listener = listener
        threading.Thread(target=self._accept, args=(listener,), name="vestige-hooks", daemon=True).start()
        return True

    def close(self) -> None:
        """Stop listening. Requests that are being answered are finished by their threads."""
        listener, self._listener = self._listener, None
        if listener is not None:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        with suppress(OSError):
            self._path.unlink(missing_ok=True)
        if self._folder is not None:
            self._folder.close()

    def _accept(self, listener: socket.socket) -> None:
        while self._listener is listener:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            if not self._slots.acquire(blocking=False):
                connection.close()  # the hook opens the store itself
                continue
            threading.Thread(target=self._serve, args=(connection,), name="vestige-hook", daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection:
                connection.settimeout(REQUEST_SECONDS)
                request = json.loads(receive(connection))
                connection.sendall(json.dumps(self._answer(request)).encode())
        except (OSError, ValueError) as exc:
            logger.debug("A hook went away: %s", exc)
        finally:
            self._slots.release()

    def _answer(self, request: object) -> Mapping[str, Any]:
        if not isinstance(request, dict) or not isinstance(request.get("arguments"), dict):
            return {"error": "not a request"}
        folder = request.get("cwd")
        roots = [f"file://{quote(folder)}"] if isinstance(folder, str) and folder.startswith("/") else []
        invocation = Invocation(
            name=str(request.get("tool")), arguments=request["arguments"], roots=roots, request_id="hook"
        )
        try:
            return {"answer": self._service.call_tool(invocation)}
        except VestigeError as exc:
            return {"error": exc.code}


def remove_dead(state: Path) -> None:
    """Remove the sockets of processes that were killed."""
    for path in state.glob(f"*{ENDING}"):
        with suppress(OSError, ValueError):
            try:
                os.kill(int(path.stem), 0)
            except ProcessLookupError:
                path.unlink()
