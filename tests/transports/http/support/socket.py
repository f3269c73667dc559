"""An ASGI application on a real socket, in a thread of this process."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from testbed.patience import PATIENCE_SECONDS


@contextmanager
def served(app: ASGIApp) -> Iterator[str]:
    """The address of a server of this application, without a slash at its end."""
    server = uvicorn.Server(
        uvicorn.Config(
            app, log_config=None, access_log=False, http="h11", ws="none", timeout_graceful_shutdown=2
        )
    )
    # With its protocol named, or the event loop would not know it for one whose packets must not wait.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as opened:
        opened.bind(("127.0.0.1", 0))
        opened.listen()
        thread = threading.Thread(target=server.run, kwargs={"sockets": [opened]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{opened.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(PATIENCE_SECONDS)
            assert not thread.is_alive()
