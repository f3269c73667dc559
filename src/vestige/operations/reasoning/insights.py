"""Insights from dreams, and runs of dreams and consolidations: the tool `insights`."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from vestige.core.models import Filter, estimate
from vestige.engine.context import Call
from vestige.engine.sleep.insights import KeptInsight, insights
from vestige.engine.sleep.insights import dismiss as dismiss_insight
from vestige.engine.sleep.runs import CONSOLIDATION, DREAM, RunRecord, run_records
from vestige.operations.registry.arguments import Arguments, IdOf, SearchedScope, Wire
from vestige.operations.registry.registry import registry
from vestige.operations.shared.filters import searched, searched_scope
from vestige.operations.shared.text import count, day, percent, short_id, table

EXAMPLE_INSIGHT = "00000000000000000000000000000000"


class InsightView(Wire):
    """An insight that a dream drew from the memories it names.

    Its field names are those of the reference system.
    """

    id: str
    insight_type: Annotated[str, Field(alias="insight_type")]
    insight: str
    source_memories: Annotated[list[str], Field(alias="source_memories")]
    confidence: float
    novelty_score: Annotated[float, Field(alias="novelty_score")]
    generated_at: Annotated[datetime, Field(alias="generated_at")]
    scope: str
    origin: str | None = None


def insight_view(held: KeptInsight) -> InsightView:
    """The view of a stored insight."""
    return InsightView.of(
        held,
        insight_type=held.kind,
        insight=held.text,
        source_memories=list(held.sources),
        confidence=estimate(held.confidence),
        novelty_score=held.novelty,
        generated_at=held.at,
    )


def insight_lines(views: Sequence[InsightView]) -> str:
    """Insights as text."""
    return "\n".join(
        f"{one.insight_type} ({percent(one.confidence)}): {one.insight}\n  {one.id}" for one in views
    )


class Insights(Wire):
    """Insights, newest first."""

    scope: str
    shown: int
    insights: list[InsightView]


class InsightsArguments(Arguments):
    """Scope and limit."""

    limit: int = Field(20, ge=1, le=100, description="Maximum number of insights.")
    scope: SearchedScope = None


def render_insights(answer: Insights) -> str:
    if not answer.insights:
        return f"No insights in {answer.scope}. `vestige dream` may find some."
    return f"{insight_lines(answer.insights)}\n\n{count(answer.shown, 'insight')} in {answer.scope}."


@registry.operation(
    "insights.list", permission="read", example={"limit": 5}, title="List insights", render=render_insights
)
def list_insights(call: Call, asked: InsightsArguments) -> Insights:
    """List insights from dreams, newest first, each with its source memories.

    An insight is hidden once one of its sources is edited, ended, suppressed, archived or deleted.
    """
    scope, where = searched_scope(call, asked.scope), searched(call, Filter(), asked.scope)
    found = insights(call, scope=where.scope, inherited=where.inherited, limit=asked.limit)
    return Insights(scope=scope, shown=len(found), insights=[insight_view(one) for one in found])


class Dismissed(Wire):
    """A dismissed insight."""

    id: str
    insight_type: Annotated[str, Field(alias="insight_type")]
    dismissed: bool


@registry.operation(
    "insights.dismiss",
    permission="write",
    effect="delete",
    example={"id": EXAMPLE_INSIGHT},
    title="Dismiss an insight",
    render=lambda answer: f"The insight {short_id(answer.id)} is removed for good.",
)
def dismiss(
    call: Call,
    id: Annotated[str, Field(min_length=1, max_length=64, description="Id of the insight."), IdOf("insight")],
) -> Dismissed:
    """Remove an insight for good: its text is deleted, and no dream draws it again from the same texts."""
    gone = dismiss_insight(call, id)
    return Dismissed(id=gone.id, insight_type=str(gone.body["type"]), dismissed=True)


class RunView(Wire):
    """A past dream or consolidation with its counts."""

    id: str
    kind: str
    at: datetime
    scope: str
    counts: dict[str, int]
    duration_ms: float | None = None


class Runs(Wire):
    """Runs, newest first."""

    shown: int
    runs: list[RunView]


def render_runs(answer: Runs) -> str:
    if not answer.runs:
        return "No dream or consolidation has run yet."
    run_rows = ((day(one.at), one.kind, one.scope, _counts(one)) for one in answer.runs)
    return table(("at", "what", "scope", "counts"), run_rows)


def _counts(run: RunView) -> str:
    return ", ".join(f"{name} {number}" for name, number in run.counts.items() if number) or "nothing to do"


@registry.operation(
    "insights.runs",
    permission="read",
    example={"limit": 5},
    title="Dream and consolidation runs",
    render=render_runs,
)
def list_runs(
    call: Call,
    limit: Annotated[int, Field(ge=1, le=100, description="Maximum number of runs.")] = 20,
    kind: Annotated[
        Literal["dream", "consolidation"] | None, Field(description="Only this kind. Default: both.")
    ] = None,
) -> Runs:
    """List the latest dreams and consolidations that you have access to, with their effects."""
    kinds = (kind,) if kind else (DREAM, CONSOLIDATION)
    found = [row for one in kinds for row in run_records(call, one, limit=limit)]
    found.sort(key=lambda row: (row.at, row.id), reverse=True)
    return Runs(shown=len(found[:limit]), runs=[_run_view(row) for row in found[:limit]])


def _run_view(row: RunRecord) -> RunView:
    steps = {step["step"]: step["count"] for step in row.body.get("steps", ())}
    plain = {
        name: number for name, number in row.body.items() if name not in ("turn", "steps", "duration_ms")
    }
    return RunView.of(row, counts={**plain, **steps}, duration_ms=row.body.get("duration_ms"))
