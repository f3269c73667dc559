"""The strength of a foreign memory, converted to ours.

Both systems keep FSRS-6 and the two strengths of Bjork & Bjork. The reference system stores the chance of
recall; ours is computed whenever it is read. So the stored value is taken as the chance at the moment of the
import, and fades from there.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from vestige.cognition.fsrs import formulas
from vestige.cognition.fsrs.strength import MAX_STORAGE, encode, retention_of
from vestige.core.models import LearningState, Strength
from vestige.exchange.importers.fields import ForeignRecord
from vestige.exchange.importers.records import Target

LEARNING = "learning"
"""States between a first failed review and the first good one, which are still `new` here."""
STATES = {state.value: state for state in LearningState}
CLOSE = 0.005
"""A retention this near to ours counts as equal."""
_LATEST = datetime.max.replace(tzinfo=UTC)


def carried(fields: ForeignRecord, created_at: datetime, target: Target) -> Strength | None:
    """The strength of a record; None without a stability."""
    if "stability" not in fields.rest():
        return None
    fresh = encode(created_at, target.curve)
    given = fields.number("stability", formulas.MIN_STABILITY_DAYS, formulas.MAX_STABILITY_DAYS)
    stability = fresh.stability if given is None else given
    difficulty = fields.number("difficulty", formulas.MIN_DIFFICULTY, formulas.MAX_DIFFICULTY)
    storage = fields.number("storage_strength", 0.0, MAX_STORAGE)
    retrieval = fields.number("retrieval_strength", 0.0, 1.0)
    last_accessed = fields.moment("last_accessed", past=True) or created_at
    level, decay_from = faded_to(1.0 if retrieval is None else retrieval, stability, last_accessed, target)
    due_at = fields.moment("next_review")
    strength = Strength(
        stability=stability,
        difficulty=fresh.difficulty if difficulty is None else difficulty,
        retrieval=level,
        storage=fresh.storage if storage is None else storage,
        decay_from=decay_from,
        due_at=due_at or _due(decay_from, stability, target.curve),
        last_accessed=last_accessed,
        retention=0.0,
        retention_at=target.now,
        learning_state=_learning_state(fields),
        reps=fields.count("reps"),
        lapses=fields.count("lapses"),
        times_retrieved=fields.count("times_retrieved"),
        times_useful=fields.count("times_useful"),
        curve=target.curve,
    )
    return replace(strength, retention=_retention(fields, retention_of(strength, target.now)))


def faded_to(
    retrieval: float, stability: float, last_accessed: datetime, target: Target
) -> tuple[float, datetime]:
    """The level and the moment from which a memory has faded to exactly this chance of recall by now.

    It fades since it was last used. If that alone leaves more than the record says, something lowered its
    level; if it leaves less, something refreshed it later.
    """
    days = (target.now - last_accessed) / timedelta(days=1)
    by_itself = float(formulas.retrievability(days, stability, curve=target.curve))
    if retrieval <= by_itself:
        return retrieval / by_itself, last_accessed
    since = formulas.elapsed_at(retrieval, stability, curve=target.curve)
    return 1.0, target.now - timedelta(days=since)


def _due(decay_from: datetime, stability: float, curve: float) -> datetime:
    days = formulas.interval_days(stability, curve=curve)
    return decay_from + min(timedelta(days=days), _LATEST - decay_from)


def _learning_state(fields: ForeignRecord) -> LearningState:
    learned = (fields.text("learning_state") or LearningState.NEW).lower()
    if learned not in STATES:
        fields.note(f"the learning state is `new` here, where it was `{LEARNING}` or one we do not know")
        fields.keep("learning_state", learned)
    return STATES.get(learned, LearningState.NEW)


def _retention(fields: ForeignRecord, here: float) -> float:
    """The retention it was last seen with. Ours is derived, so another one is kept beside it."""
    stored = fields.number("retention_strength", 0.0, 1.0)
    if stored is not None and abs(stored - here) > CLOSE:
        fields.keep("retention_strength", stored)
    return here if stored is None else stored
