"""The schedule of sleep: what the store needs, whether it is time, and running it."""

import logging
from datetime import datetime, timedelta

from vestige.cognition.graph.dreams.replay import LEAST_MEMORIES
from vestige.core.errors import Conflict
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Filter
from vestige.engine.context import Call
from vestige.engine.reactions.searches import ATTENTION
from vestige.engine.sleep.consolidate import Consolidated, consolidate
from vestige.engine.sleep.dream import DreamQuery
from vestige.engine.sleep.runs import CONSOLIDATION, DREAM, last_run, run_scope
from vestige.store.contract.answers import LogQuery
from vestige.store.contract.changes import CREATED, REMARKED

logger = logging.getLogger(__name__)

DREAM_EVERY = timedelta(hours=24)
MANY_SAVES = 50
"""Memories stored since the last dream that make another one due."""
USED = (CREATED, REMARKED, "memory.revised", "memory.deleted")
"""Events that show use by a caller, in any process; of the chores only the cascade of suppressions causes
them."""
LEAST_SIMILARITY = 0.5
"""How alike two memories must be for a dream to link them, by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SleepNeeds:
    dream: bool
    consolidation: bool


def needs(call: Call) -> SleepNeeds:
    """What is due in the caller's default scope."""
    if call.access.domains is not None:  # such a caller may not run it
        return SleepNeeds(dream=False, consolidation=False)
    return SleepNeeds(dream=_needs_dream(call), consolidation=_needs_consolidation(call))


def _needs_consolidation(call: Call) -> bool:
    before = last_run(call, CONSOLIDATION, run_scope(call))
    every = timedelta(hours=call.engine.settings.sleep.interval_hours)
    return before is None or call.engine.now() - before.at >= every


def _needs_dream(call: Call) -> bool:
    store, now = call.engine.store, call.engine.now()
    where = dreamable(call)
    if store.count(where, access=call.access) < LEAST_MEMORIES:
        return False
    before = last_run(call, DREAM, call.scope)
    if before is None or now - before.at > DREAM_EVERY:
        return True
    saved = Filter(scope=call.scope, inherited=True, created_from=before.at)
    return store.count(saved, access=call.access) > MANY_SAVES


def dreamable(call: Call) -> Filter:
    """The filter for a dream of the caller: valid and visible memories of its scope."""
    return Filter(scope=call.scope, inherited=True, valid_at=call.engine.now(), include_suppressed=False)


def due(call: Call, last_activity: datetime) -> bool:
    """Whether it is time to sleep: enough time has passed, and no process is in use."""
    settings = call.engine.settings.sleep
    if not settings.enabled or call.engine.store.read_only:
        return False
    busy_until = call.engine.now() - timedelta(minutes=settings.idle_minutes)
    return last_activity <= busy_until and _needs_consolidation(call) and _is_idle_since(call, busy_until)


def _is_idle_since(call: Call, since: datetime) -> bool:
    """Whether the store shows no use after a time: no memory stored, shown or judged, and no search."""
    store = call.engine.store
    events = store.latest(LogQuery(kinds=USED), access=call.access, limit=1)
    searches = store.documents(ATTENTION, access=call.access, limit=1)
    return all(at <= since for at in (*(one.at for one in events), *(one.updated_at for one in searches)))


def sleep(call: Call) -> Consolidated:
    """Consolidate, with a dream if one is due."""
    query = DreamQuery(
        where=dreamable(call),
        scope=call.scope,
        memories=call.engine.settings.sleep.dream_memories,
        least=LEAST_SIMILARITY,
    )
    return consolidate(call, dreaming=query if needs(call).dream else None)


def run(call: Call) -> None:
    """Sleep, unless another process does."""
    try:
        sleep(call)
    except Conflict as exc:
        logger.info("Consolidation was skipped: %s", exc.message)
