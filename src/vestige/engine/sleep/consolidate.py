"""Consolidation: maintenance steps that run while the memory is idle. Each step is counted, none destroys
data.

A step that cannot be done (without a model, say) reports why, and the others go on. Each commits in small
transactions, so that no search or write waits for the whole.
"""

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np

from vestige.cognition.evidence.duplicates import LIKELY, unfit, whole
from vestige.cognition.fsrs.strength import keeping
from vestige.core.errors import INSIDE, Cancelled, DeadlineExceeded, VestigeError
from vestige.core.events import ConsolidationCompleted, ConsolidationStarted, EventScope
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import EVERYTHING, ROOT_SCOPE, Filter
from vestige.engine.context import Call
from vestige.engine.embedding import backfill, embedder_or_none
from vestige.engine.intentions import drop_ended
from vestige.engine.memory.link import fade
from vestige.engine.memory.states import log_state_changes
from vestige.engine.memory.suppress import sweep
from vestige.engine.reactions import capture, reconsolidation
from vestige.engine.sleep.dream import Dreamed, DreamQuery, dream
from vestige.engine.sleep.insights import drop_stale
from vestige.engine.sleep.personal_curve import tune
from vestige.engine.sleep.runs import (
    CONSOLIDATION,
    SNAPSHOT,
    alone,
    drop_older,
    history_row,
    last_run,
    run_scope,
    trim,
)

logger = logging.getLogger(__name__)

LOOKED_AT = 200
"""The newest memories, which are checked for duplicates."""
BLOCK = 25
WINDOWS = {capture.KIND: timedelta(days=30), reconsolidation.KIND: timedelta(days=1)}
"""Kinds of documents that matter only for a time, and how long after their last change they are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidationStep:
    name: str
    count: int
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Consolidated:
    id: str
    memories: int
    steps: tuple[ConsolidationStep, ...]
    dreamed: Dreamed | None
    tuned: bool
    duration_ms: float

    def count(self, name: str) -> int:
        """The count of a step; 0 if it was not done."""
        return next((step.count for step in self.steps if step.name == name), 0)


@dataclass(slots=True, kw_only=True)
class _Run:
    """A consolidation while it runs."""

    call: Call
    scope: str
    since: datetime | None
    """When the last consolidation was."""
    dream: DreamQuery | None
    dreamed: Dreamed | None = None
    tuned: bool = False


def consolidate(call: Call, *, dreaming: DreamQuery | None) -> Consolidated:
    """Do all steps, with a dream if one is due. Raises Conflict while another consolidation runs."""
    scope, engine = run_scope(call), call.engine
    started = engine.monotonic()
    with alone(call, CONSOLIDATION) as call:
        here = (EventScope(scope=scope),)
        engine.events.emit(ConsolidationStarted(timestamp=engine.now(), scopes=here))
        before = last_run(call, CONSOLIDATION, scope)
        # A step reports its progress on its own scale, which would confuse the caller.
        silent = replace(call, progress=lambda done, total, what: None)
        run = _Run(call=silent, scope=scope, since=before.at if before else None, dream=dreaming)
        steps = []
        for at, (name, work) in enumerate(STEPS.items()):
            call.check()
            call.progress(at, len(STEPS), name)
            steps.append(_run_step(name, work, run))
        done = _close(run, steps, round(1000 * (engine.monotonic() - started), 1))
    call.progress(len(STEPS), len(STEPS), "done")
    engine.events.emit(
        ConsolidationCompleted(
            timestamp=engine.now(),
            scopes=here,
            nodes_processed=done.memories,
            decay_applied=done.count("states"),
            embeddings_generated=done.count("embeddings"),
            duration_ms=done.duration_ms,
        )
    )
    return done


def _run_step(name: str, work: "Work", run: _Run) -> ConsolidationStep:
    """Run one step. Cancellation ends everything, any other error only this step."""
    try:
        count, note = work(run)
    except (Cancelled, DeadlineExceeded):
        raise
    except VestigeError as exc:
        logger.warning("Consolidation goes on without the step %s: %s", name, exc.message)
        # The note is stored, and other callers read it.
        why = type(exc).__doc__ if isinstance(exc, INSIDE) else exc.message
        return ConsolidationStep(name=name, count=0, note=f"not done: {why}")
    return ConsolidationStep(name=name, count=count, note=note)


def _close(run: _Run, steps: list[ConsolidationStep], duration_ms: float) -> Consolidated:
    """Take a snapshot of retention, and write the row of the history."""
    call = run.call
    stats = call.engine.store.stats(access=call.access, now=call.engine.now())
    levels = call.engine.store.levels(access=call.access, now=call.engine.now())
    kept = keeping(levels.retentions, levels.retrievals)
    snapshot = {"memories": stats.memories, "retention": kept.average, "recall": kept.recall}
    body = {
        "memories": stats.memories,
        "steps": [{"step": step.name, "count": step.count, "note": step.note} for step in steps],
        "duration_ms": duration_ms,
    }
    row = history_row(call, CONSOLIDATION, run.scope, body)
    changes = [history_row(call, SNAPSHOT, run.scope, snapshot, logged=False), row]
    call.engine.store.commit(changes, access=call.access)
    return Consolidated(
        id=row.document.id,
        memories=stats.memories,
        steps=tuple(steps),
        dreamed=run.dreamed,
        tuned=run.tuned,
        duration_ms=duration_ms,
    )


def _noted(work: Callable[[Call], int], note: str) -> "Work":
    """A step that only counts; the note is given if there was anything."""

    def step(run: _Run) -> Counted:
        count = work(run.call)
        return count, note if count else None

    return step


def _embeddings(run: _Run) -> "Counted":
    if run.call.access != EVERYTHING:  # the number would say what others have stored
        return 0, "not done: missing vectors are made only with access to the whole store"
    embedder = embedder_or_none(run.call.engine)
    if embedder is None:
        return 0, "not done: there is no embedding model"
    count = backfill(run.call, embedder)
    return count, "memories had no vectors" if count else None


def _curve(run: _Run) -> "Counted":
    tuned = tune(run.call)
    run.tuned = tuned.fitted
    return tuned.reviews, tuned.why or f"w20 is {tuned.w20:.4f}"


def _cascade(run: _Run) -> "Counted":
    swept = sweep(run.call)
    return swept.neighbors, f"{swept.seeds} suppressions became final" if swept.seeds else None


def _duplicates(run: _Run) -> "Counted":
    """Count new memories that are nearly the same as another one. They are never merged here."""
    call, store = run.call, run.call.engine.store
    now, signature = call.engine.now(), store.signature()
    if signature is None:
        return 0, "not done: there are no vectors"
    where = Filter(valid_at=now, include_suppressed=False, created_from=run.since)
    found = (one.memory for one in store.find(where, access=call.access, limit=LOOKED_AT))
    count = 0
    for at, memory in enumerate(one for one in found if not unfit(one, now)):
        if at % BLOCK == 0:
            call.check()
        held = store.vectors([memory.id], signature, access=call.access)
        if held:
            there = Filter(scope=memory.scope, scope_only=True, valid_at=now, include_suppressed=False)
            matrix = np.stack([whole(held[memory.id])])
            near = store.nearest(matrix, signature, there, access=call.access, limit=2)[0]
            count += any(one.memory_id != memory.id and one.score >= LIKELY for one in near)
    return count, "found, not merged: see `dedup` with the action `scan`" if count else None


def _links(run: _Run) -> "Counted":
    if run.scope != ROOT_SCOPE:
        return 0, "not done: links fade only in a consolidation of the whole store"
    done = fade(run.call)
    return done.faded, f"{done.pruned} more were cut" if done.pruned else None


def _dream(run: _Run) -> "Counted":
    if run.dream is None:
        return 0, "none was due"
    run.dreamed = dream(run.call, run.dream)
    found = f"links made: {len(run.dreamed.linked)}, insights: {len(run.dreamed.insights)}"
    return run.dreamed.replayed, found


def _drop_closed_windows(call: Call) -> int:
    """Drop documents of mechanisms whose window has closed long ago."""
    return sum(drop_older(call, kind, call.engine.now() - age) for kind, age in WINDOWS.items())


Counted = tuple[int, str | None]
Work = Callable[[_Run], Counted]

STEPS: dict[str, Work] = {
    "states": _noted(log_state_changes, "memories changed state"),
    "embeddings": _embeddings,
    "curve": _curve,
    "cascade": _cascade,
    "duplicates": _duplicates,
    "dream": _dream,
    "insights": _noted(drop_stale, "dropped, because their sources have changed"),
    "intentions": _noted(drop_ended, "dropped, because they ended long ago"),
    "windows": _noted(_drop_closed_windows, "closed windows of capture and recall dropped"),
    "history": _noted(trim, "old rows of the history dropped"),
    "links": _links,
}
