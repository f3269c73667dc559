"""Runs the soak on both stores at once, in rounds, and judges what is left."""

import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.client import Json
from benchmarks.contention.servers import Died, Refused
from benchmarks.plot import lines
from benchmarks.progress import say
from benchmarks.report import Cell, Report, Target
from benchmarks.soak.arms import HELD, Arm, HttpServer, small_disk
from benchmarks.soak.attacks import Attacker
from benchmarks.soak.load import HttpClient, Ledger, Load
from testbed.postgres_server import Server, server
from vestige.transports.http.limits import malloc

KEPT = 1_000
"""Memories that each store holds, so that memory has no reason to grow."""
ROUNDS = 24
LONGEST_ROUND_SECONDS = 300.0
SHORTEST_ROUND_SECONDS = 8.0
SETTLE_SECONDS = 120.0
"""How long background work may take until a server is looked at."""
REST_SECONDS = malloc.EVERY_SECONDS + 1.0
"""How long a server has to give memory back before it is looked at."""
MOST_GROWTH = {"memory MB": 24.0, "descriptors": 8.0, "threads": 8.0}
"""How much what the server that is never killed holds may grow in the second half of the run, however long,
by the line that fits its samples best. The first half fills pools and caches."""
JUDGED = 6
"""Samples from which a line is fitted; a shorter run is not judged by growth."""
SEED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What a server held at a moment of the run."""

    minutes: float
    held: dict[str, float]


@dataclass(kw_only=True)
class Soaked:
    """What came of one store."""

    name: str
    ledger: Ledger
    samples: list[Sample] = field(default_factory=list)
    attacks: dict[str, int] = field(default_factory=dict)
    restarts: int = 0
    ended_by_itself: int = 0
    exit_codes: list[int] = field(default_factory=list)
    doctor: Json = field(default_factory=dict)

    @property
    def broken(self) -> list[str]:
        """What doctor found broken."""
        return [str(one["message"]) for one in self._findings("broken")]

    def rows(self) -> list[dict[str, Cell]]:
        """What the server that is never killed held."""
        return [self._row(name) for name in HELD]

    def growth(self, name: str) -> float:
        """By how much something grew in the second half, by the line that fits best."""
        later = self.later
        if len(later) < 2:
            return 0.0
        at = [one.minutes for one in later]
        slope = float(np.polyfit(at, [one.held[name] for one in later], 1)[0])
        return round(slope * (at[-1] - at[0]), 3) + 0.0

    @property
    def later(self) -> list[Sample]:
        """The samples of the second half."""
        return [one for one in self.samples if one.minutes >= self.samples[-1].minutes / 2]

    def summary(self) -> dict[str, Cell]:
        ledger = self.ledger
        return {
            "store": self.name,
            "acknowledged writes": ledger.writes,
            "lost": len(ledger.lost),
            "acknowledged deletions": ledger.deletes,
            "reappeared": len(ledger.reappeared),
            "reads": ledger.reads,
            "calls without an answer": ledger.unanswered,
            "calls refused": ledger.refusals.total(),
            "restarts": self.restarts + max(0, ledger.starts - 1),
            "doctor": "clean" if not self.broken else f"{len(self.broken)} broken",
        }

    def targets(self) -> list[Target]:
        counts: dict[str, float] = {
            "acknowledged writes lost": len(self.ledger.lost),
            "deleted memories that came back": len(self.ledger.reappeared),
            "findings of doctor": len(self.broken),
            "errors that no attack explains": self.ledger.unexplained,
            "servers that ended by themselves": self.ended_by_itself,
            "servers that did not end in order": sum(code != 0 for code in self.exit_codes),
        }
        found = [
            Target(name=f"{self.name}: {name}", value=value, limit=0, at_least=False)
            for name, value in counts.items()
        ]
        found.append(
            Target(name=f"{self.name}: acknowledged writes", value=self.ledger.writes, limit=1, at_least=True)
        )
        if len(self.samples) >= JUDGED:
            found += [
                Target(
                    name=f"{self.name}: growth of {name} in the second half",
                    value=self.growth(name),
                    limit=most,
                    at_least=False,
                )
                for name, most in MOST_GROWTH.items()
            ]
        return found

    def _row(self, name: str) -> dict[str, Cell]:
        later = self.later
        hours = (later[-1].minutes - later[0].minutes) / 60
        return {
            "store": self.name,
            "held": name,
            "start": self.samples[0].held[name],
            "middle": later[0].held[name],
            "end": self.samples[-1].held[name],
            "growth in the second half": self.growth(name),
            "per hour": self.growth(name) / hours if hours else None,
            "at most": MOST_GROWTH[name],
        }

    def _findings(self, severity: str) -> list[Json]:
        return [one for one in self.doctor.get("findings", ()) if one["severity"] == severity]


def run(
    *, minutes: float, stores: Sequence[str] = ("sqlite", "postgres"), kept: int = KEPT, seed: int = SEED
) -> Report:
    """Soak the stores for so long, and report."""
    skipped: dict[str, str] = {}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="vestige-soak-")))
        folder.chmod(0o755)
        database = stack.enter_context(server(durable=True)) if "postgres" in stores else None
        if database is not None and database.cluster is None:
            raise SystemExit("The soak kills its PostgreSQL server: unset VESTIGE_TEST_POSTGRES.")
        soaks = [stack.enter_context(_soak(folder, name, database, kept, seed)) for name in stores]
        if any(one.arm.disk is None and one.arm.name == "sqlite" for one in soaks):
            skipped["full disk"] = "this system lets nobody mount a disk"
        began = time.monotonic()
        round_seconds = min(LONGEST_ROUND_SECONDS, max(SHORTEST_ROUND_SECONDS, 60 * minutes / ROUNDS))
        number = 0
        while time.monotonic() - began < 60 * minutes:
            number += 1
            seconds = min(round_seconds, began + 60 * minutes - time.monotonic())
            _together(soaks, partial(_Soak.round, seconds=seconds))
            _together(soaks, partial(_Soak.look, began=began))
            for one in soaks:
                say(f"round {number}, {one.progress()}")
        lasted = (time.monotonic() - began) / 60
        soaked = [one.finish() for one in soaks]
    return _report(soaked, lasted, kept, number, skipped)


@dataclass(kw_only=True)
class _Soak:
    """One store while it is soaked."""

    arm: Arm
    load: Load
    attacker: Attacker
    soaked: Soaked

    def round(self, seconds: float) -> None:
        self.load.go.set()
        self.attacker.run(time.monotonic() + seconds)
        self.attacker.end()
        self.soaked.ended_by_itself += self.load.steady.restart_if_ended()
        self.soaked.ended_by_itself += self.load.victim.restart_if_ended()

    def look(self, began: float) -> None:
        """Wait until the servers are at rest, then look at them and for what was acknowledged."""
        self.load.pause()
        self._settle()
        time.sleep(REST_SECONDS)
        minutes = (time.monotonic() - began) / 60
        self.soaked.samples.append(Sample(minutes=minutes, held=self.load.steady.held()))
        self.load.check()

    def progress(self) -> str:
        held = ", ".join(f"{value:.0f} {name}" for name, value in self.soaked.samples[-1].held.items())
        ledger = self.load.ledger
        return f"{self.arm.name}: {ledger.writes:,} writes, {len(ledger.lost)} lost; {held}"

    def finish(self) -> Soaked:
        self.load.close()
        soaked = self.soaked
        soaked.attacks = dict(self.attacker.done)
        soaked.restarts = self.load.victim.restarts
        soaked.exit_codes = [self.load.steady.close(), self.load.victim.close()]
        _, soaked.doctor = self.arm.answer("doctor", "--deep", "--json")
        return soaked

    def _settle(self) -> None:
        client = HttpClient(self.load.steady, self.load.key)
        latest = time.monotonic() + SETTLE_SECONDS
        while time.monotonic() < latest:
            try:
                if not client.ask("GET", "/stats")["autopilot"]["waiting"]:
                    break
            except (Died, Refused):  # a database that is coming back
                pass
            time.sleep(0.1)
        client.close()


def _together(soaks: Sequence[_Soak], work: Callable[[_Soak], None]) -> None:
    """Do something with all stores at once; the first error, if there was one."""
    with ThreadPoolExecutor(len(soaks)) as pool:
        for done in [pool.submit(work, one) for one in soaks]:
            done.result()


@contextmanager
def _soak(folder: Path, name: str, database: Server | None, kept: int, seed: int) -> Iterator[_Soak]:
    offset = folder / f"{name}.clock"
    offset.write_text("0", encoding="ascii")
    with ExitStack() as stack:
        disk = stack.enter_context(small_disk(folder / name)) if name == "sqlite" else None
        mine = database if name == "postgres" else None
        environ = {} if mine is None else {"VESTIGE_DATABASE_URL": mine.new_database()}
        arm = Arm(
            name=name,
            data_dir=folder / name / "data",
            offset=offset,
            log=folder / f"{name}.log",
            environ=environ,
            disk=disk,
        )
        _, made = arm.answer("keys", "create", "--label", "soak", "--permissions", "admin", "--json")
        steady, victim = (HttpServer(arm) for _ in range(2))
        for one in (steady, victim):
            stack.callback(one.close)
        load = Load(
            arm=arm, ledger=Ledger(kept=kept), steady=steady, victim=victim, key=made["key"], seed=seed
        )
        load.fill()
        stack.callback(load.close)
        load.start()
        attacker = Attacker(load=load, database=mine, rng=random.Random(seed))
        yield _Soak(arm=arm, load=load, attacker=attacker, soaked=Soaked(name=name, ledger=load.ledger))


NOTES = (
    "How to read it. Each store is served by two `vestige serve` and a `vestige mcp` over stdio. One of the "
    "two servers is never killed: what it holds is what must stay flat. Five clients for each store write, "
    "delete and read, and rest for a moment after each round, in which everything that was acknowledged is "
    "read back, word for word. A call that was under way when its server was killed counts neither as "
    "acknowledged nor as lost.",
    "Growth is that of the second half of the run, by the line that fits the samples best, and has the same "
    "limit in a short and in a long run. A short run therefore shows only large leaks.",
    "The clock of all servers of a store steps, from ten years back to half a day ahead. The disk of the "
    "SQLite store is filled; a full tablespace of PostgreSQL is tested in `tests/store/postgres/attacks`. "
    "PostgreSQL runs with `fsync`, and is killed and restarted under load.",
)


def _report(
    soaked: Sequence[Soaked], minutes: float, kept: int, rounds: int, skipped: dict[str, str]
) -> Report:
    attacks: list[dict[str, Cell]] = [
        {"store": one.name, "attack": name, "times": many}
        for one in soaked
        for name, many in sorted(one.attacks.items())
    ]
    refusals: list[dict[str, Cell]] = [
        {"store": one.name, "code": code, "times": many}
        for one in soaked
        for code, many in one.ledger.refusals.most_common()
    ]
    return Report(
        benchmark="soak",
        settings={
            "length, minutes": round(minutes, 1),
            "rounds": rounds,
            "memories in each store": kept,
            "embedder": "test",
        },
        tables={
            "Stores": [one.summary() for one in soaked],
            "What the server that is never killed held": [row for one in soaked for row in one.rows()],
            "Attacks": attacks,
            "Calls that were refused": refusals,
        },
        targets=[target for one in soaked for target in one.targets()],
        notes=(f"This run lasted {minutes:.1f} minutes; the full soak is 12 hours.", *NOTES),
        skipped=skipped,
        plots={
            "memory": lines(
                "Memory of the server that is never killed, MB",
                {one.name: [(s.minutes, s.held["memory MB"]) for s in one.samples] for one in soaked},
                across="minutes",
                up="MB",
            )
        },
    )
