"""When keys were last used, written down off the path of requests, many at a time."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime

import anyio

from vestige.engine import keys
from vestige.errors import VestigeError
from vestige.transports.http.desk import Desk, run

logger = logging.getLogger(__name__)

EVERY_SECONDS = 10.0


class Usage:
    """Collects uses of keys; a task of the server writes them down. Used by the event loop alone."""

    def __init__(self, desk: Desk, *, every_seconds: float = EVERY_SECONDS) -> None:
        self._desk, self._every = desk, every_seconds
        self._used: dict[str, datetime] = {}

    def note(self, key_id: str, now: datetime) -> None:
        """Remember that a key was used."""
        self._used[key_id] = now

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        """Write them down from time to time as long as this is open, and what is left at the end."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._write_on)
            try:
                yield
            finally:
                tasks.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            await self.write()

    async def write(self) -> None:
        """Write down what was noted so far. What could not be written is tried again the next time."""
        used, self._used = self._used, {}
        if not used:
            return
        try:
            await run(self._desk, keys.note_used, self._desk.app.engine, used)
        except VestigeError as error:
            self._used = {**used, **self._used}
            logger.warning("When keys were used could not be written: %s", error.message)

    async def _write_on(self) -> None:
        while True:
            await anyio.sleep(self._every)
            await self.write()
