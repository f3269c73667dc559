"""What happens to the stores during the soak: kills, steps of the clock, a full disk, a database restart."""

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import psycopg

from benchmarks.soak.load import Load
from testbed.postgres_server import Server

STEPS_SECONDS = (-315_360_000.0, -86_400.0, -3_600.0, 0.0, 60.0, 3_600.0, 43_200.0)
"""Where the clock may step to, from ten years back to half a day ahead of the real one."""
FULL_SECONDS = 3.0
"""How long a disk stays full."""
SESSIONS = (
    "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
    " AND application_name LIKE 'vestige%'"
)
BETWEEN_SECONDS = 1.0


@dataclass(kw_only=True)
class Attacker:
    """Attacks one store, one attack after the other, and counts them."""

    load: Load
    database: Server | None
    rng: random.Random
    done: Counter[str] = field(default_factory=Counter)
    _turn: list[str] = field(default_factory=list)

    def attacks(self) -> dict[str, Callable[[], None]]:
        """The attacks that this store can suffer."""
        every: dict[str, Callable[[], None]] = {
            "SIGKILL of a server": self.load.victim.kill_and_restart,
            "SIGKILL of a stdio server": self._kill_stdio,
            "step of the clock": self._step,
        }
        if self.load.arm.disk is not None:
            every["full disk"] = self._fill
        if self.database is not None:
            every["terminated backend"] = self._terminate
            every["SIGKILL of a backend"] = self._kill_backend
            every["restart of the database"] = self._restart
        return every

    def run(self, until: float) -> None:
        """Attack until that moment of the monotonic clock: by turns through all attacks, each in another
        order."""
        attacks = self.attacks()
        while time.monotonic() + BETWEEN_SECONDS < until:
            time.sleep(BETWEEN_SECONDS)
            if not self._turn:
                self._turn = self.rng.sample(list(attacks), len(attacks))
            name = self._turn.pop()
            attacks[name]()
            self.done[name] += 1

    def end(self) -> None:
        """Set the clock right."""
        self.load.arm.offset.write_text("0", encoding="ascii")

    def _kill_stdio(self) -> None:
        server = self.load.stdio
        if server is not None:
            server.kill()

    def _step(self) -> None:
        # Written elsewhere and renamed: a server must not read half a number.
        file = self.load.arm.offset
        fresh = file.with_suffix(".new")
        fresh.write_text(str(self.rng.choice(STEPS_SECONDS)), encoding="ascii")
        fresh.replace(file)

    def _fill(self) -> None:
        disk = self.load.arm.disk
        assert disk is not None
        disk.fill()
        try:
            time.sleep(FULL_SECONDS)
        finally:
            disk.free()

    def _sessions(self) -> list[int]:
        assert self.database is not None
        with psycopg.connect(self.database.url(), autocommit=True) as db:
            return [row[0] for row in db.execute(SESSIONS)]

    def _terminate(self) -> None:
        found = self._sessions()
        if found:
            with suppress(ProcessLookupError):
                os.kill(self.rng.choice(found), signal.SIGTERM)

    def _kill_backend(self) -> None:
        """The database server ends every session and recovers, as after a crash."""
        found = self._sessions()
        if found:
            with suppress(ProcessLookupError):
                os.kill(self.rng.choice(found), signal.SIGKILL)
            self._wait()

    def _restart(self) -> None:
        assert self.database is not None
        self.database.stop("immediate")
        self.database.start()

    def _wait(self) -> None:
        """Wait until the database server takes connections again: an attack on none of them is no attack."""
        assert self.database is not None
        while True:
            time.sleep(0.1)
            with suppress(psycopg.OperationalError), psycopg.connect(self.database.url()):
                return
