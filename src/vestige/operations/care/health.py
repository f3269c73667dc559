"""Retention of all memories: `memory_health`."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from vestige.cognition.fsrs.strength import keeping
from vestige.cognition.fsrs.trend import trend
from vestige.engine.care.health import snapshots
from vestige.engine.context import Call
from vestige.operations.registry.arguments import Wire
from vestige.operations.registry.registry import registry
from vestige.operations.shared.text import fields, percent


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


def render_health(health: HealthView) -> str:
    numbers = fields(
        (
            ("average retention", health.avg_retention),
            ("average recall probability", percent(health.avg_retrieval_strength)),
            ("target", f"{percent(health.retention_target)}{_met(health)}"),
            ("trend", health.trend.replace("_", " ")),
            ("memories", f"{health.total_memories:,}"),
            *((f"at {one.bucket}", f"{one.count:,}") for one in health.distribution),
            ("below 30 %", f"{health.memories_below_30pct:,}"),
            ("below 50 %", f"{health.memories_below_50pct:,}"),
        )
    )
    return f"{numbers}\n\n{health.recommendation}"


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
def memory_health(call: Call) -> HealthView:
    """Show how well all accessible memories are retained, the target, and a recommendation.

    The target for the average recall probability is the setting `memory.retention_target`. Every
    consolidation takes a snapshot, which the trend is computed from. For the store and the model, use
    `system_status`.
    """
    engine, history = call.engine, snapshots(call)
    stats = engine.store.stats(access=call.access, now=engine.now())
    kept, target = keeping(stats.retentions, stats.retrievals), engine.settings.memory.retention_target
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
    )
