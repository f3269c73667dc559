"""Retention of all memories: `memory_health`."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, time, timedelta
from itertools import pairwise
from typing import Annotated

from pydantic import Field

from vestige.cognition.fsrs.strength import keeping
from vestige.cognition.fsrs.trend import Trend, trend
from vestige.core.models import Evidence
from vestige.engine.care.health import snapshots
from vestige.engine.context import Call
from vestige.operations.registry.arguments import Wire
from vestige.operations.registry.registry import registry
from vestige.operations.shared.text import fields, percent, strength, strength_share
from vestige.store.contract.answers import LogQuery

FORECAST_DAYS, FORECAST_WEEKS = (7, 30), 6
PAST_DAYS, COMING_DAYS = 84, 28
MOST_REVIEWS = 100_000
REVIEWS = (Evidence.AGAIN, Evidence.HARD, Evidence.GOOD, Evidence.EASY)


class Bucket(Wire):
    """The number of memories in a range of retention."""

    bucket: str
    count: int


class SnapshotView(Wire):
    """Average retention at a consolidation."""

    at: datetime
    avg_retention: float
    avg_retrieval_strength: float | None = None
    memories: int


class FadedCount(Wire):
    """How many memories have a retention below 30 % after a number of days without recall."""

    days: int
    below_30pct: Annotated[int, Field(alias="below30pct")]


class DueCount(Wire):
    """How many reviews fall due in a week from now, the first being 1; those of week 0 are overdue."""

    weeks: int
    count: int


class CalendarDay(Wire):
    """A day in your time zone: reviews that were made, or what comes without a recall: reviews that fall due
    and memories whose retention falls below 30 %. Today has both, from now on."""

    date: str
    reviews: int | None = None
    due: int | None = None
    fading: int | None = None


class HealthView(Wire):
    """The strength of all memories, the target, and the trend.

    The target applies to `avg_retrieval_strength`, the average probability that a memory is recalled now: 1
    for a new one. Retention also counts how well a memory was learned; it starts at 73 % and grows with use
    over years. Both are absent without memories. `trend` compares the average retention of the last two
    consolidations with the three before; `history` lists them, newest first.
    """

    avg_retention: str
    avg_retention_raw: float
    avg_retrieval_strength: float | None = None
    retention_target: float
    meets_target: bool | None = None
    total_memories: int
    distribution: list[Bucket]
    trend: str
    history: list[SnapshotView]
    memories_below_30pct: Annotated[int, Field(alias="memoriesBelow30pct")]
    memories_below_50pct: Annotated[int, Field(alias="memoriesBelow50pct")]
    recommendation: str
    forecast: list[FadedCount] | None = None
    due: list[DueCount] | None = None
    calendar: list[CalendarDay] | None = None


def render_health(health: HealthView) -> str:
    known = bool(health.total_memories)
    numbers = fields(
        (
            ("strength", f"{strength(health.avg_retention_raw)} on average" if known else ""),
            ("recall probability", f"{percent(health.avg_retrieval_strength)} on average" if known else ""),
            ("target", f"{percent(health.retention_target)}{_met(health)}"),
            ("trend", "" if health.trend == Trend.UNKNOWN else health.trend),
            ("memories", f"{health.total_memories:,}"),
            *((f"… {name}", f"{number:,}") for name, number in _by_strength(health.distribution) if number),
        )
    )
    return f"{numbers}\n\n{health.recommendation}"


def _by_strength(buckets: Sequence[Bucket]) -> Iterator[tuple[str, int]]:
    """The memories by strength, as lists show it: a new memory, which has a retention of 73 %, has 100 %."""
    strong = 0
    for one in buckets:
        low, high = (strength_share(int(end) / 100) for end in one.bucket.rstrip("%").split("-"))
        if high < 1:
            yield f"{percent(low)} to {percent(high)}", one.count
        else:
            strong += one.count
    yield "stronger", strong


def _met(health: HealthView) -> str:
    return "" if health.meets_target is None else " (met)" if health.meets_target else " (not met)"


@registry.operation(
    "memory_health",
    permission="read",
    example={},
    command="health",
    title="Retention of memories",
    render=render_health,
)
def memory_health(
    call: Call,
    forecast: Annotated[
        bool, Field(description="Include how many fade below 30 % and fall due in the next weeks.")
    ] = False,
    calendar: Annotated[
        bool,
        Field(
            description="Include reviews of the last 12 weeks by day, and by day of the next four what falls "
            "due or fades below 30 %."
        ),
    ] = False,
) -> HealthView:
    """Show how well all accessible memories are retained, the target, and a recommendation.

    The target for the average recall probability is the setting `memory.retention_target`. Every
    consolidation takes a snapshot, which the trend is computed from. For the store and the model, use
    `system_status`.
    """
    engine, history = call.engine, snapshots(call)
    stats = engine.store.stats(access=call.access, now=engine.now())
    levels = engine.store.levels(access=call.access, now=engine.now())
    kept, target = keeping(levels.retentions, levels.retrievals), engine.settings.memory.retention_target
    return HealthView(
        avg_retention=f"{100 * kept.average:.1f}%",
        avg_retention_raw=round(kept.average, 4),
        avg_retrieval_strength=None if kept.recall is None else round(kept.recall, 4),
        retention_target=target,
        meets_target=None if kept.recall is None else kept.recall >= target,
        total_memories=stats.memories,
        distribution=[Bucket(bucket=name, count=number) for name, number in kept.distribution.items()],
        trend=trend([one.retention for one in history]),
        history=[
            SnapshotView(
                at=one.at,
                avg_retention=round(one.retention, 4),
                avg_retrieval_strength=None if one.recall is None else round(one.recall, 4),
                memories=one.memories,
            )
            for one in history
        ],
        memories_below_30pct=kept.below_weak,
        memories_below_50pct=kept.below_half,
        recommendation=kept.advice,
        forecast=_forecast(call) if forecast else None,
        due=_due(call) if forecast else None,
        calendar=_calendar(call) if calendar else None,
    )


def _forecast(call: Call) -> list[FadedCount]:
    now = call.engine.now()
    return [
        FadedCount(days=days, below_30pct=_below(call, now + timedelta(days=days))) for days in FORECAST_DAYS
    ]


def _due(call: Call) -> list[DueCount]:
    store, now = call.engine.store, call.engine.now()
    until = [
        store.stats(access=call.access, now=now + timedelta(weeks=week)).due for week in range(FORECAST_WEEKS)
    ]
    weekly = [until[0], *(later - before for before, later in pairwise(until))]
    return [DueCount(weeks=week, count=number) for week, number in enumerate(weekly)]


def _calendar(call: Call) -> list[CalendarDay]:
    store, now, today = call.engine.store, call.local_now(), call.local_now().date()
    first = datetime.combine(today - timedelta(days=PAST_DAYS - 1), time.min, call.zone)
    log = store.latest(LogQuery(since=first, evidence=REVIEWS), access=call.access, limit=MOST_REVIEWS)
    made = Counter(event.at.astimezone(call.zone).date() for event in log)
    past = [today - timedelta(days=number) for number in range(PAST_DAYS - 1, 0, -1)]
    days = [CalendarDay(date=day.isoformat(), reviews=made[day]) for day in past]
    coming = [today + timedelta(days=number) for number in range(COMING_DAYS)]
    ends = [now, *(datetime.combine(day + timedelta(days=1), time.min, call.zone) for day in coming)]
    due = [store.stats(access=call.access, now=end).due for end in ends]
    below = [_below(call, end) for end in ends]
    for number, day in enumerate(coming):
        more, weaker = due[number + 1] - due[number], below[number + 1] - below[number]
        reviews = None if number else made[day]
        days.append(CalendarDay(date=day.isoformat(), reviews=reviews, due=more, fading=max(0, weaker)))
    return days


def _below(call: Call, now: datetime) -> int:
    levels = call.engine.store.levels(access=call.access, now=now)
    return keeping(levels.retentions, levels.retrievals).below_weak
