"""What one process stores, the others find by its meaning with the very next search."""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks.contention.servers import Server
from benchmarks.progress import track
from benchmarks.report import Cell, Target

REAL_MODEL = {"embeddings.wait_seconds": "60", "log_level": "error"}
FIRST = 10
READY_SECONDS = 120.0

PAIRS: tuple[tuple[str, str], ...] = (
    ("Our cat is afraid of thunder.", "Which pet panics during storms?"),
    ("The invoice generator crashes on leap days.", "What goes wrong with billing on February 29?"),
    ("Maria moved to Lisbon last spring.", "Who relocated to Portugal?"),
    ("We chose Rust for the parser because of speed.", "Why isn't the syntax analyser in a slower language?"),
    ("The office kitchen runs out of milk on Fridays.", "When is there nothing for the coffee at work?"),
    ("Grandfather's clock stopped at midnight.", "Which old timepiece no longer ticks?"),
    ("Tickets for the opera cost ninety euros.", "How expensive is an evening of classical singing?"),
    ("The bakery on the corner sells rye bread.", "Where can I buy a dark loaf nearby?"),
    ("Nadia is allergic to peanuts.", "Who must avoid nuts in food?"),
    ("The river floods the lower meadow in April.", "Which field is under water each spring?"),
    ("Backups are stored in a vault in Zurich.", "Where in Switzerland are the safety copies?"),
    ("The team lead prefers short meetings.", "Does the manager dislike long discussions?"),
    ("Leo broke his arm while skiing.", "Who had an accident on the snow?"),
    ("The website is slow for visitors from Asia.", "In which part of the world do pages load badly?"),
    ("Her dog sleeps under the piano.", "Where does the puppy rest?"),
    ("The museum is closed on Mondays.", "On what day can we not see the exhibition?"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A search made right after a write: of what, who wrote, who asked, and the place of the answer, if
    any."""

    statement: int
    writer: int
    reader: int
    place: int | None
    milliseconds: float


def run(folder: Path, *, processes: int = 4, pairs: Sequence[tuple[str, str]] = PAIRS) -> list[Look]:
    """Each pair: one process stores the statement, then every process asks, the writer last."""
    looks = []
    with ExitStack() as running:
        servers = [
            running.enter_context(Server(folder / "memory", REAL_MODEL, folder / "servers.log"))
            for _ in range(processes)
        ]
        for server in servers:
            _wait_for_model(server)
        for number, (statement, question) in enumerate(track(pairs, "statements")):
            writer = number % processes
            stored = servers[writer].tool("smart_ingest", {"content": statement})["nodeId"]
            order = [(writer + step) % processes for step in range(1, processes + 1)]
            looks += [_look(servers[reader], (number, writer, reader), question, stored) for reader in order]
    return looks


def _look(server: Server, names: tuple[int, int, int], question: str, stored: str) -> Look:
    statement, writer, reader = names
    started = time.perf_counter()
    # Whether an answer is refused says nothing of what a process sees.
    asked = {"query": question, "limit": FIRST, "record": False, "all": True}
    found = server.tool("search", asked)["results"]
    milliseconds = 1000 * (time.perf_counter() - started)
    places = [place for place, hit in enumerate(found, 1) if hit["id"] == stored]
    return Look(
        statement=statement,
        writer=writer,
        reader=reader,
        place=places[0] if places else None,
        milliseconds=milliseconds,
    )


def _wait_for_model(server: Server) -> None:
    """A server answers by words while its model loads; here meaning is measured."""
    until = time.perf_counter() + READY_SECONDS
    while time.perf_counter() < until:
        if server.tool("system_status", {})["embeddingModel"]["state"] == "ready":
            return
        time.sleep(0.2)
    raise SystemExit("The embedding model does not become ready: run `vestige model install`.")


def rows(looks: Sequence[Look]) -> list[dict[str, Cell]]:
    """The searches of other processes beside those of the one that wrote."""
    others = [look for look in looks if look.reader != look.writer]
    own = [look for look in looks if look.reader == look.writer]
    return [_row(name, asked) for name, asked in (("another process", others), ("the writer itself", own))]


def targets(looks: Sequence[Look]) -> list[Target]:
    """Another process finds whatever the writer finds."""
    own = {look.statement: look for look in looks if look.reader == look.writer}
    missed = sum(
        look.place is None and own[look.statement].place is not None
        for look in looks
        if look.reader != look.writer
    )
    found = sum(look.place is not None for look in looks) / max(1, len(looks))
    return [
        Target(name="writes not seen by the next search", value=missed, limit=0, at_least=False),
        Target(name="found by meaning", value=found, limit=0.9, at_least=True),
    ]


def _row(name: str, asked: Sequence[Look]) -> dict[str, Cell]:
    return {
        "who asks": name,
        "searches": len(asked),
        f"among the first {FIRST}": sum(look.place is not None for look in asked) / max(1, len(asked)),
        "first": sum(look.place == 1 for look in asked) / max(1, len(asked)),
        "slowest ms": max((look.milliseconds for look in asked), default=None),
    }
