"""Keeps the index of sessions up to date in a running server: a thread that reads a little at a time.

It reads only the folders of coding agents on the machine of the server, and, unless the setting says `all`,
only after `vestige sessions index` was run once. Of several processes one reads at a time.
"""

import logging
import threading

from vestige.core.errors import Cancelled, VestigeError
from vestige.engine.context import Call, Engine

logger = logging.getLogger(__name__)

ROUND_BYTES = 8_000_000
"""What is read at a time: a few seconds of one core."""
FIRST_SECONDS, IDLE_SECONDS, BUSY_SECONDS = 20.0, 60.0, 5.0
"""How long the thread waits at first, when nothing is left to read, and when more is."""


class SessionIndexer:
    """The thread. Its owner stops it before the index is closed."""

    def __init__(
        self, engine: Engine, *, first_seconds: float = FIRST_SECONDS, idle_seconds: float = IDLE_SECONDS
    ) -> None:
        self._engine = engine
        self._first_seconds = first_seconds
        self._idle_seconds = idle_seconds
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def is_wanted(self) -> bool:
        return self._engine.settings.sessions.background != "off"

    def start(self) -> None:
        if self.is_wanted and self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="vestige-sessions", daemon=True)
            self._thread.start()

    def stop(self, timeout_seconds: float) -> bool:
        """End the thread after the part it is reading; False if it did not end in time."""
        self._stopping.set()
        if self._thread is None:
            return True
        self._thread.join(timeout_seconds)
        return not self._thread.is_alive()

    def read_some(self) -> bool:
        """Read a bounded amount of what is new, the newest files first; whether more is left. Nothing is read
        while another process reads, or before the first run if that is left to the user."""
        from vestige.engine.recall.sessions.refresh import refresh  # imported by the thread, not at the start

        index = self._engine.sessions()
        if not index.exists() and self._engine.settings.sessions.background != "all":
            return False
        with index.reading_alone() as alone:
            if not alone:
                return False
            call = Call(engine=self._engine, cancelled=self._stopping.is_set)
            made = refresh(call, index, most_bytes=ROUND_BYTES)
        # Files that only a run without a limit reads stay pending.
        return bool(made.bytes_read and made.pending_bytes)

    def _serve(self) -> None:
        seconds = self._first_seconds
        while not self._stopping.wait(seconds):
            try:
                more = self.read_some()
            except Cancelled:
                return
            except (
                VestigeError,
                OSError,
            ) as exc:  # trouble with the disk or the file must not end the thread
                logger.warning("Sessions were not indexed: %s", type(exc).__doc__ or type(exc).__name__)
                more = False
            except Exception:  # the outermost handler of the thread: the next round may go well
                logger.exception("Indexing sessions failed")
                more = False
            seconds = BUSY_SECONDS if more else self._idle_seconds
