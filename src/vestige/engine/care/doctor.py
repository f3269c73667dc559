"""Whether everything is as it should be, and putting right what is derived.

What is canonical is never repaired: no rule can tell which of two contradicting records is the true one.
"""

import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from vestige import __version__
from vestige.cognition.fsrs.strength import fold
from vestige.core.errors import InvalidInput, StoreError, VestigeError
from vestige.core.models import EVERYTHING, Edge, Strength
from vestige.embed.background import EmbedderState
from vestige.engine.care.backup import neglect
from vestige.engine.care.health import AT_WORK, why_no_model
from vestige.engine.care.rebuild import rebuild_strengths
from vestige.engine.context import Call
from vestige.engine.embedding import backfill, embedder_or_none, is_foreign, lacking
from vestige.engine.recall.as_known import logged
from vestige.store.contract.answers import LogQuery
from vestige.store.contract.processes import Who
from vestige.store.contract.trouble import MOST_IDS, Severity, Trouble, about, file_software
from vestige.store.merge.absorb import check
from vestige.store.merge.histories import (
    CurveHistory,
    DocumentHistory,
    EdgeHistory,
    EntityHistory,
    MemoryHistory,
)
from vestige.store.merge.strength_log import Curves
from vestige.store.merge.union import edge, present

# -- Everything canonical, read once, and what it says the derived state must be.

EdgeName = tuple[str, str, str]


@dataclass(slots=True, kw_only=True)
class Retold:
    """What the log and the versions say: the strength of each memory, the edges, what documents cite, the
    curve in force. `impossible` are lives that contradict themselves: the memory, if it is one, and why."""

    position: int
    curves: Curves = field(default_factory=Curves)
    strengths: dict[str, Strength] = field(default_factory=dict)
    edges: dict[EdgeName, Edge] = field(default_factory=dict)
    cited: dict[str, tuple[str, ...]] = field(default_factory=dict)
    impossible: list[tuple[str | None, str]] = field(default_factory=list)


def retell(call: Call) -> Retold:
    """Read every life of one moment."""
    store, done = call.engine.store, 0
    last = store.latest(LogQuery(), access=EVERYTHING, limit=1)
    told = Retold(position=last[0].position if last else 0)
    for lives in store.histories(access=EVERYTHING):
        call.check()
        for life in lives:
            _take(told, life)
        done += len(lives)
        call.progress(done, None, f"{done} lives read")
    there = told.strengths.keys()
    told.edges = {name: one for name, one in told.edges.items() if there >= {name[0], name[1]}}
    return told


def moved_since(call: Call, told: Retold) -> set[str]:
    """The memories that something has happened to since everything was read."""
    return set(_touched(call, told.position))


def _take(told: Retold, life: EntityHistory) -> None:
    try:
        check(life)
    except InvalidInput as exc:
        told.impossible.append((life.memory_id if isinstance(life, MemoryHistory) else None, exc.message))
    match life:
        case CurveHistory():
            told.curves = Curves.from_events(life.events)
        case MemoryHistory():
            memory = present(life)
            if memory is not None:
                seen = told.curves.sightings(life.events)
                told.strengths[memory.id] = fold(memory.created_at, seen, told.curves.present)
        case EdgeHistory():
            found = edge(life)
            if found is not None:
                told.edges[life.source_id, life.target_id, life.kind] = found
        case DocumentHistory():
            if life.document is not None:
                told.cited[f"{life.kind} {life.id}"] = life.document.cites


def _touched(call: Call, position: int) -> Iterator[str]:
    for event in logged(call, access=EVERYTHING, after=position):
        if event.memory_id is not None:
            yield event.memory_id
        target = event.payload.get("target")
        if isinstance(target, str):
            yield target


# -- doctor

OPENING = "opening"
"""The check that a store which cannot be opened does not pass."""
ROUNDS = 2
"""How often is repaired what is found: what was missing can hide that something else is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorFinding:
    """A trouble, and whether it was put right."""

    trouble: Trouble
    repaired: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What was looked at, what was found, what all runs on, and who else is at work on the store."""

    findings: tuple[DoctorFinding, ...]
    checked: tuple[str, ...]
    versions: dict[str, str]
    others: tuple[Who, ...]


@dataclass(slots=True, kw_only=True)
class Visit:
    """One look at everything. What the log and the versions tell is read once, when it is first needed."""

    call: Call
    deep: bool
    _told: Retold | None = None

    def told(self) -> Retold:
        """Everything canonical."""
        if self._told is None:
            self._told = retell(self.call)
        return self._told


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorCheck:
    """One thing that is looked at."""

    name: str
    about: str
    look: Callable[[Visit], Iterator[Trouble]]


def doctor(call: Call, *, repair: bool = False, deep: bool = False) -> Report:
    """Look at everything; with `repair`, put right what is derived and look again."""
    first = examine(call, deep=deep)
    left = first
    for _ in range(ROUNDS if repair else 0):
        wanted = repairs(left)
        if wanted:
            _mend(call, wanted)
            left = examine(call, deep=deep)
    return Report(
        findings=tuple(_compared(first, left)),
        checked=tuple(one.name for one in CHECKS),
        versions={**_versions(), **call.engine.store.software},
        others=tuple(call.engine.store.processes()),
    )


def post_mortem(why: StoreError, troubles: Sequence[Trouble]) -> Report:
    """The report on a store that could not be opened, with what could be seen of it from outside."""
    advice = f" {why.hint}" if why.hint else ""
    refused = Trouble(check=OPENING, message=f"The store cannot be opened: {why.message}{advice}")
    return Report(
        findings=tuple(DoctorFinding(trouble=one) for one in (refused, *troubles)),
        checked=(OPENING, *(["file"] if troubles else [])),
        versions={**_versions(), **(file_software() if troubles else {})},
        others=(),
    )


def examine(call: Call, *, deep: bool) -> list[Trouble]:
    """Run every check."""
    visit, found = Visit(call=call, deep=deep), []
    for done, one in enumerate(CHECKS):
        call.check()
        call.progress(done, len(CHECKS), f"Looking at the {one.name}")
        found.extend(_looked(one, visit))
    return found


def repairs(found: list[Trouble]) -> list[str]:
    """What can be put right. Nothing is written to a damaged file, and nothing is derived from a log that is
    not whole: what is there now may be all that is left of what it told."""
    lost = {one.check for one in found if one.severity == "broken" and one.repair is None}
    if lost & FILE:
        return []
    wanted = dict.fromkeys(one.repair for one in found if one.repair is not None)
    return [name for name in wanted if name not in FROM_LOG or not lost & LOG]


def _looked(check: DoctorCheck, visit: Visit) -> list[Trouble]:
    """What a check finds. One that stumbles over damage says so, and the others go on."""
    try:
        return list(check.look(visit))
    except (StoreError, InvalidInput, ValueError, KeyError, TypeError) as exc:
        told = exc.message if isinstance(exc, VestigeError) else f"{type(exc).__name__}: {exc}"
        return [Trouble(check=check.name, message=f"This cannot be read to its end. {told}")]


def _compared(first: list[Trouble], left: list[Trouble]) -> Iterator[DoctorFinding]:
    still = {(one.check, one.message) for one in left}
    for one in first:
        if (one.check, one.message) not in still:
            yield DoctorFinding(trouble=one, repaired=True)
    yield from (DoctorFinding(trouble=one) for one in left)


def _versions() -> dict[str, str]:
    return {"vestige": __version__, "python": platform.python_version()}


def _mend(call: Call, repairs: list[str]) -> None:
    store, now = call.engine.store, call.engine.now()
    with store.alone("repair"):
        for name in repairs:
            call.check()
            call.progress(0, None, f"Repairing the {name}")
            if name != EMBEDDING:
                store.repair(name, now)
            if name in FURTHER:
                FURTHER[name](call)


# -- what is looked at ---------------------------------------------------------------------------------


def _store(visit: Visit) -> Iterator[Trouble]:
    store, now = visit.call.engine.store, visit.call.engine.now()
    yield from store.examine(now, deep=visit.deep)


def _history(visit: Visit) -> Iterator[Trouble]:
    impossible = visit.told().impossible
    of_memories = [memory_id for memory_id, _ in impossible if memory_id is not None]
    if impossible:
        yield Trouble(
            check="history",
            message=f"What is told of some records cannot be true. The first: {impossible[0][1]}",
            count=len(impossible),
            ids=tuple(sorted(of_memories)[:MOST_IDS]),
        )


def _curve(visit: Visit) -> Iterator[Trouble]:
    store, right = visit.call.engine.store, visit.told().curves.present
    for records in store.stream(access=EVERYTHING, batch=1):
        held = records[0].strength.curve
        if held != right and not moved_since(visit.call, visit.told()):
            yield Trouble(
                check="curve",
                message=f"Memories fade by a curve of {held:g}, and the log says {right:g}.",
                repair="curve",
            )
        break


def _strengths(visit: Visit) -> Iterator[Trouble]:
    told, drifted = visit.told(), []
    for records in visit.call.engine.store.stream(access=EVERYTHING):
        visit.call.check()
        for record in records:
            right = told.strengths.get(record.memory.id)
            # The curve is one number for all of them, and looked at by itself.
            if right is not None and replace(right, curve=record.strength.curve) != record.strength:
                drifted.append(record.memory.id)
    drifted = sorted(set(drifted) - moved_since(visit.call, told)) if drifted else []
    yield from about(
        "strengths", "Strengths are not what the log makes of them.", drifted, repair="strengths"
    )


def _edges(visit: Visit) -> Iterator[Trouble]:
    told = visit.told()
    held = {
        (one.source_id, one.target_id, one.kind): one
        for edges in visit.call.engine.store.stream_edges(access=EVERYTHING)
        for one in edges
    }
    wrong = [name for name in held.keys() | told.edges.keys() if held.get(name) != told.edges.get(name)]
    moved = moved_since(visit.call, told) if wrong else set()
    ends = [name[0] for name in wrong if moved.isdisjoint(name[:2])]
    if ends:
        yield Trouble(
            check="edges",
            message="Edges are not those that the log tells of.",
            count=len(ends),
            ids=tuple(sorted(set(ends))[:MOST_IDS]),
            repair="edges",
        )


def _documents(visit: Visit) -> Iterator[Trouble]:
    told = visit.told()
    missing = {one for cites in told.cited.values() for one in cites if one not in told.strengths}
    yield from about(
        "documents", "Documents cite memories that are not here.", sorted(missing), severity="warning"
    )


def _model(visit: Visit) -> Iterator[Trouble]:
    engine = visit.call.engine
    embedder = embedder_or_none(engine)
    status = engine.embedders.status()
    if embedder is None:
        if status.state not in (EmbedderState.OFF, *AT_WORK):
            message = f"Search works on words only: {why_no_model(status)}."
            yield Trouble(check="model", message=message, severity="warning")
    elif is_foreign(engine, embedder):
        held = engine.store.signature()
        yield Trouble(
            check="model",
            message=f"The store holds vectors of {held.profile if held else 'no model'}, the settings name "
            f"{embedder.signature.profile}: search works on words only. See `vestige migrate --reembed`.",
            severity="warning",
        )


def _coverage(visit: Visit) -> Iterator[Trouble]:
    engine = visit.call.engine
    embedder = embedder_or_none(engine)
    if embedder is None or is_foreign(engine, embedder):
        return
    bare = [one.id for one in engine.store.unembedded(embedder.signature, limit=MOST_BARE)]
    yield from about("coverage", "Memories have no vectors.", bare, repair=EMBEDDING, severity="warning")
    some = [one.id for one in lacking(engine.store, embedder, limit=len(bare) + MOST_BARE)]
    yield from about(
        "coverage",
        "Memories have vectors and no token bits: they are ranked by less than others.",
        sorted(set(some) - set(bare)),
        repair=EMBEDDING,
        severity="warning",
    )


def _settings(visit: Visit) -> Iterator[Trouble]:
    visit.call.engine.reranker()
    status = visit.call.engine.reranker.status()
    if status.state is EmbedderState.FAILED:
        message = f"The reranker of the settings cannot be used: {status.detail}"
        yield Trouble(check="settings", message=message, severity="warning")
    file = visit.call.engine.settings.exposed_file
    if file is not None:
        yield Trouble(
            check="settings",
            message=f"{file} holds a password or a key, and its mode lets other users read it: "
            f"chmod 600 {file}",
            severity="warning",
        )


def _backup(visit: Visit) -> Iterator[Trouble]:
    engine = visit.call.engine
    told = neglect(visit.call, engine.store.stats(access=EVERYTHING, now=engine.now()).memories)
    if told is not None:
        yield Trouble(check="backup", message=told, severity="warning")


# -- what is put right ---------------------------------------------------------------------------------

EMBEDDING = "embedding"
"""A repair that needs a model, which no store has."""
MOST_BARE = 1_000
"""So many memories without vectors are counted: their texts are read for it."""


def _embed(call: Call) -> None:
    embedder = embedder_or_none(call.engine)
    if embedder is not None:
        backfill(call, embedder)


def _fold(call: Call) -> None:
    rebuild_strengths(call)


FILE = frozenset({"pages", "schema"})
LOG = frozenset({"log", "history"})
"""The checks after which, when they find something, repairs are left alone."""
FROM_LOG = frozenset({"strengths", "curve", "edges", "tombstones"})

FURTHER: dict[str, Callable[[Call], None]] = {
    "strengths": _fold,
    "curve": _fold,
    "vectors": _embed,
    EMBEDDING: _embed,
}
"""What remains to be done after the store has done its part of a repair."""

CHECKS: tuple[DoctorCheck, ...] = (
    DoctorCheck(
        name="store", about="the file, its rows and what is around it: `MemoryStore.examine`", look=_store
    ),
    DoctorCheck(name="history", about="whether every version has its event, and can be true", look=_history),
    DoctorCheck(name="curve", about="the curve of forgetting, against the log", look=_curve),
    DoctorCheck(name="strengths", about="every strength, against its evidence in the log", look=_strengths),
    DoctorCheck(name="edges", about="every edge, against the log", look=_edges),
    DoctorCheck(name="documents", about="whether the memories that documents cite are here", look=_documents),
    DoctorCheck(
        name="model", about="whether the model of the settings is the one of the vectors", look=_model
    ),
    DoctorCheck(
        name="coverage", about="whether every memory has vectors, with their token bits", look=_coverage
    ),
    DoctorCheck(name="settings", about="whether what the settings ask for can be used", look=_settings),
    DoctorCheck(name="backup", about="the age of the last backup", look=_backup),
)


def severity_of(report: Report) -> Severity | None:
    """The worst that is left."""
    left = {one.trouble.severity for one in report.findings if not one.repaired}
    return "broken" if "broken" in left else "warning" if left else None
