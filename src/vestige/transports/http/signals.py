"""How a server takes signals: the first asks it to end, the second does not ask."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn


class Server(uvicorn.Server):
    """uvicorn's server. The first signal lets what runs finish; the second ends the process at once."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first signal asks the server to end; the second does not ask."""
        if self.should_exit:
            os._exit(128 + sig)
        self.should_exit = True

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Listen to signals while it serves. They were obeyed then, and are not raised again."""
        watched = (signal.SIGINT, signal.SIGTERM)
        before = {one: signal.signal(one, self.handle_exit) for one in watched}
        try:
            yield
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)
