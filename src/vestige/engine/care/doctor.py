"""The doctor: checks the whole store, and repairs derived data.

Canonical data is never repaired: no rule can decide which of two contradicting records is right. The log and
the versions are read once, and the derived data is compared with what follows from them.
"""

import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from functools import cached_property

from vestige import __version__
from vestige.cognition.fsrs.strength import fold
from vestige.core.documents import Document
from vestige.core.errors import InvalidInput, StoreError, VestigeError
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import EVERYTHING, Edge, Strength
from vestige.embed.background import EmbedderState
from vestige.engine.care.backup import backup_warning
from vestige.engine.care.health import AT_WORK, why_no_model
from vestige.engine.care.rebuild import rebuild_strengths
from vestige.engine.context import Call
from vestige.engine.embedding import backfill, embedder_or_none, missing_vectors, store_has_other_model
from vestige.engine.recall.as_known import log_events
from vestige.store.contract.answers import LogQuery
from vestige.store.contract.processes import Who
from vestige.store.contract.trouble import MOST_IDS, UNREADABLE, Severity, Trouble, about, file_software
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

# -- The canonical state, and what the derived state must be

EdgeName = tuple[str, str, str]


@dataclass(slots=True, kw_only=True)
class CanonicalState:
    """What the log and the versions say. `impossible` are histories that contradict themselves: the memory
    id, if it is a memory, and why."""

    position: int
    curves: Curves = field(default_factory=Curves)
    strengths: dict[str, Strength] = field(default_factory=dict)
    edges: dict[EdgeName, Edge] = field(default_factory=dict)
    cited: dict[str, tuple[str, ...]] = field(default_factory=dict)
    impossible: list[tuple[str | None, str]] = field(default_factory=list)


def read_canonical(call: Call) -> CanonicalState:
    """Read every history of one moment."""
    store, done = call.engine.store, 0
    last = store.latest(LogQuery(), access=EVERYTHING, limit=1)
    state = CanonicalState(position=last[0].position if last else 0)
    for histories in store.histories(access=EVERYTHING):
        call.check()
        for history in histories:
            _add_history(state, history)
        done += len(histories)
        call.progress(done, None, f"{done} histories read")
    there = state.strengths.keys()
    state.edges = {name: one for name, one in state.edges.items() if there >= {name[0], name[1]}}
    return state


def changed_since(call: Call, state: CanonicalState) -> set[str]:
    """The memories that have changed since the canonical state was read."""
    events = log_events(call, access=EVERYTHING, after=state.position)
    ends = (end for event in events for end in (event.memory_id, event.payload.get("target")))
    return {end for end in ends if isinstance(end, str)}


def _add_history(state: CanonicalState, history: EntityHistory) -> None:
    try:
        check(history)
    except InvalidInput as exc:
        memory_id = history.memory_id if isinstance(history, MemoryHistory) else None
        state.impossible.append((memory_id, exc.message))
    match history:
        case CurveHistory():
            state.curves = Curves.from_events(history.events)
        case MemoryHistory():
            memory = present(history)
            if memory is not None:
                seen = state.curves.sightings(history.events)
                state.strengths[memory.id] = fold(memory.created_at, seen, state.curves.present)
        case EdgeHistory():
            found = edge(history)
            if found is not None:
                state.edges[history.source_id, history.target_id, history.kind] = found
        case DocumentHistory(document=Document() as document):
            state.cited[f"{history.kind} {history.id}"] = document.cites


# -- Examination and repair

OPENING = "opening"
"""The name of the check that a store fails if it cannot be opened."""
ROUNDS = 2
"""How often findings are repaired: one fault can hide another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorFinding:
    """A fault, and whether it was repaired."""

    trouble: Trouble
    repaired: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorReport:
    """The checks that ran, their findings, the versions of the software, and other processes of the store."""

    findings: tuple[DoctorFinding, ...]
    checked: tuple[str, ...]
    versions: dict[str, str]
    others: tuple[Who, ...]


@dataclass(kw_only=True)
class Examination:
    """One run of all checks. The canonical state is read once, when a check first needs it."""

    call: Call
    deep: bool

    @cached_property
    def canonical(self) -> CanonicalState:
        return read_canonical(self.call)


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorCheck:
    name: str
    about: str
    look: Callable[[Examination], Iterator[Trouble]]


def doctor(call: Call, *, repair: bool = False, deep: bool = False) -> DoctorReport:
    """Run every check; with `repair`, repair derived data and check again."""
    first = examine(call, deep=deep)
    left = first
    for _ in range(ROUNDS if repair else 0):
        wanted = repairs(left)
        if wanted:
            _repair(call, wanted)
            left = examine(call, deep=deep)
    return DoctorReport(
        findings=tuple(_with_repaired(first, left)),
        checked=tuple(one.name for one in CHECKS),
        versions={**_versions(), **call.engine.store.software},
        others=tuple(call.engine.store.processes()),
    )


def post_mortem(why: StoreError, troubles: Sequence[Trouble]) -> DoctorReport:
    """The report on a store that could not be opened, with what can be seen from outside."""
    advice = f" {why.hint}" if why.hint else ""
    refused = Trouble(check=OPENING, message=f"The store cannot be opened: {why.message}{advice}")
    return DoctorReport(
        findings=tuple(DoctorFinding(trouble=one) for one in (refused, *troubles)),
        checked=(OPENING, *(["file"] if troubles else [])),
        versions={**_versions(), **(file_software() if troubles else {})},
        others=(),
    )


def examine(call: Call, *, deep: bool) -> list[Trouble]:
    visit, found = Examination(call=call, deep=deep), []
    for done, one in enumerate(CHECKS):
        call.check()
        call.progress(done, len(CHECKS), f"Checking the {one.name}")
        found.extend(_run_check(one, visit))
    return found


def repairs(found: list[Trouble]) -> list[str]:
    """The repairs that are safe to make.

    Nothing is written to a damaged file, and nothing is derived from an incomplete log: the present rows may
    be all that is left of it.
    """
    lost = {one.check for one in found if one.severity == "broken" and one.repair is None}
    if lost & FILE:
        return []
    wanted = dict.fromkeys(one.repair for one in found if one.repair is not None)
    return [name for name in wanted if name not in FROM_LOG or not lost & LOG]


def _run_check(check: DoctorCheck, visit: Examination) -> list[Trouble]:
    """The findings of a check. A check that fails on damaged data reports that, and the others go on."""
    try:
        return list(check.look(visit))
    except (StoreError, InvalidInput, *UNREADABLE) as exc:
        why = exc.message if isinstance(exc, VestigeError) else f"{type(exc).__name__}: {exc}"
        return [Trouble(check=check.name, message=f"The data could not be read to the end. {why}")]


def _with_repaired(first: list[Trouble], left: list[Trouble]) -> Iterator[DoctorFinding]:
    still = {(one.check, one.message) for one in left}
    for one in first:
        if (one.check, one.message) not in still:
            yield DoctorFinding(trouble=one, repaired=True)
    yield from (DoctorFinding(trouble=one) for one in left)


def _versions() -> dict[str, str]:
    return {"vestige": __version__, "python": platform.python_version()}


def _repair(call: Call, repairs: list[str]) -> None:
    store, now = call.engine.store, call.engine.now()
    with store.alone("repair"):
        for name in repairs:
            call.check()
            call.progress(0, None, f"Repairing the {name}")
            if name != EMBEDDING:
                store.repair(name, now)
            if name in FURTHER:
                FURTHER[name](call)


# -- The checks


def _store(visit: Examination) -> Iterator[Trouble]:
    yield from visit.call.engine.store.examine(visit.call.engine.now(), deep=visit.deep)


def _history(visit: Examination) -> Iterator[Trouble]:
    impossible = visit.canonical.impossible
    of_memories = [memory_id for memory_id, _ in impossible if memory_id is not None]
    if impossible:
        yield Trouble(
            check="history",
            message=f"Some records have an impossible history. The first: {impossible[0][1]}",
            count=len(impossible),
            ids=tuple(sorted(of_memories)[:MOST_IDS]),
        )


def _curve(visit: Examination) -> Iterator[Trouble]:
    right = visit.canonical.curves.present
    first = next(iter(visit.call.engine.store.stream(access=EVERYTHING, batch=1)), ())
    held = first[0].strength.curve if first else right
    if held != right and not changed_since(visit.call, visit.canonical):
        message = f"The forgetting curve in use is {held:g}, and the log says {right:g}."
        yield Trouble(check="curve", message=message, repair="curve")


def _strengths(visit: Examination) -> Iterator[Trouble]:
    state, drifted = visit.canonical, []
    for records in visit.call.engine.store.stream(access=EVERYTHING):
        visit.call.check()
        for record in records:
            right = state.strengths.get(record.memory.id)
            # The curve is the same for all of them, and has its own check.
            if right is not None and replace(right, curve=record.strength.curve) != record.strength:
                drifted.append(record.memory.id)
    drifted = sorted(set(drifted) - changed_since(visit.call, state)) if drifted else []
    yield from about("strengths", "Strengths differ from what the log yields.", drifted, repair="strengths")


def _edges(visit: Examination) -> Iterator[Trouble]:
    state = visit.canonical
    held = {
        (one.source_id, one.target_id, one.kind): one
        for edges in visit.call.engine.store.stream_edges(access=EVERYTHING)
        for one in edges
    }
    wrong = [name for name in held.keys() | state.edges.keys() if held.get(name) != state.edges.get(name)]
    moved = changed_since(visit.call, state) if wrong else set()
    ends = [name[0] for name in wrong if moved.isdisjoint(name[:2])]
    if ends:
        yield Trouble(
            check="edges",
            message="Edges differ from what the log yields.",
            count=len(ends),
            ids=tuple(sorted(set(ends))[:MOST_IDS]),
            repair="edges",
        )


def _documents(visit: Examination) -> Iterator[Trouble]:
    state = visit.canonical
    missing = {one for cites in state.cited.values() for one in cites if one not in state.strengths}
    yield from about(
        "documents", "Documents cite memories that are not here.", sorted(missing), severity="warning"
    )


def _model(visit: Examination) -> Iterator[Trouble]:
    engine = visit.call.engine
    embedder = embedder_or_none(engine)
    status = engine.embedders.status()
    if embedder is None:
        if status.state not in (EmbedderState.OFF, *AT_WORK):
            message = f"Search works on words only: {why_no_model(status)}."
            yield Trouble(check="model", message=message, severity="warning")
    elif store_has_other_model(engine, embedder):
        held = engine.store.signature()
        message = (
            f"The store holds vectors of {held.profile if held else 'no model'}, the settings name "
            f"{embedder.signature.profile}: search works on words only. See `vestige migrate --reembed`."
        )
        yield Trouble(check="model", message=message, severity="warning")


def _coverage(visit: Examination) -> Iterator[Trouble]:
    engine = visit.call.engine
    embedder = embedder_or_none(engine)
    if embedder is None or store_has_other_model(engine, embedder):
        return
    bare = [one.id for one in engine.store.unembedded(embedder.signature, limit=MOST_COUNTED)]
    yield from about("coverage", "Memories have no vectors.", bare, repair=EMBEDDING, severity="warning")
    some = [one.id for one in missing_vectors(engine.store, embedder, limit=len(bare) + MOST_COUNTED)]
    yield from about(
        "coverage",
        "Memories have vectors but no token bits, so they are ranked by fewer signals.",
        sorted(set(some) - set(bare)),
        repair=EMBEDDING,
        severity="warning",
    )


def _settings(visit: Examination) -> Iterator[Trouble]:
    visit.call.engine.reranker()
    status = visit.call.engine.reranker.status()
    if status.state is EmbedderState.FAILED:
        message = f"The configured reranker cannot be used: {status.detail}"
        yield Trouble(check="settings", message=message, severity="warning")
    file = visit.call.engine.settings.exposed_file
    if file is not None:
        message = f"{file} holds a password or a key, and its mode lets other users read it: chmod 600 {file}"
        yield Trouble(check="settings", message=message, severity="warning")


WORTH_A_WARNING = 100
"""A smaller store without a backup is advised to make one, and is no problem."""


def _backup(visit: Examination) -> Iterator[Trouble]:
    engine = visit.call.engine
    memories = engine.store.stats(access=EVERYTHING, now=engine.now()).memories
    warning = backup_warning(visit.call, memories)
    if warning is not None and memories > WORTH_A_WARNING:
        yield Trouble(check="backup", message=warning, severity="warning")


# -- The repairs

EMBEDDING = "embedding"
"""A repair that needs a model, which no store has."""
MOST_COUNTED = 1_000
"""The most memories without vectors that are counted, because counting reads their texts."""


def _embed(call: Call) -> None:
    embedder = embedder_or_none(call.engine)
    if embedder is not None:
        backfill(call, embedder)


FILE = frozenset({"pages", "schema"})
LOG = frozenset({"log", "history"})
"""If these checks find something, repairs are left out."""
FROM_LOG = frozenset({"strengths", "curve", "edges", "tombstones"})

FURTHER: dict[str, Callable[[Call], object]] = {
    "strengths": rebuild_strengths,
    "curve": rebuild_strengths,
    "events": rebuild_strengths,
    "clocks": rebuild_strengths,
    "vectors": _embed,
    EMBEDDING: _embed,
}
"""What else is to be done after the store's own part of a repair."""

CHECKS: tuple[DoctorCheck, ...] = (
    DoctorCheck(
        name="store", about="the file, its rows and the files beside it: `MemoryStore.examine`", look=_store
    ),
    DoctorCheck(
        name="history",
        about="whether every version has its event, and the history is possible",
        look=_history,
    ),
    DoctorCheck(name="curve", about="the forgetting curve, against the log", look=_curve),
    DoctorCheck(name="strengths", about="every strength, against its evidence in the log", look=_strengths),
    DoctorCheck(name="edges", about="every edge, against the log", look=_edges),
    DoctorCheck(name="documents", about="whether the memories that documents cite are here", look=_documents),
    DoctorCheck(name="model", about="whether the configured model made the vectors", look=_model),
    DoctorCheck(
        name="coverage", about="whether every memory has vectors, with their token bits", look=_coverage
    ),
    DoctorCheck(
        name="settings",
        about="whether the configured reranker works, and no other user can read the settings file",
        look=_settings,
    ),
    DoctorCheck(name="backup", about="the age of the last backup", look=_backup),
)


def severity_of(report: DoctorReport) -> Severity | None:
    """The worst severity that is left."""
    left = {one.trouble.severity for one in report.findings if not one.repaired}
    return "broken" if "broken" in left else "warning" if left else None
