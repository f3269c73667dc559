"""Predicting which memories are needed next: `predict`."""

import re
from datetime import datetime

from pydantic import Field

from vestige.cognition.prediction.forecast import SUGGESTED
from vestige.core.events import preview
from vestige.core.models import Filter, estimate
from vestige.engine.context import Call
from vestige.engine.reactions.predict import CurrentWork, LikelyQuery, Prediction, predict
from vestige.operations.registry.arguments import Arguments, Names, SearchedScope, Wire
from vestige.operations.registry.registry import registry
from vestige.operations.shared.filters import searched, searched_scope
from vestige.operations.shared.text import listed_lines, percent, row_number, short_id, unmarked, warning

PREVIEW_CHARS = 200


class PredictionContext(Arguments):
    """The caller's current work."""

    current_file: str | None = Field(None, max_length=1000, description="Current file.")
    current_topics: Names = Field([], description="Current topics.")
    codebase: str | None = Field(None, max_length=200, description="Current codebase.")


class PredictArguments(Arguments):
    """The caller's current work, and how much to predict."""

    context: PredictionContext | None = Field(None, description="Your current work.")
    limit: int = Field(5, ge=1, le=20, description="Maximum number of memories.")
    scope: SearchedScope = None


class PredictionView(Wire):
    """A memory that is likely to be needed, and why."""

    memory_id: str
    preview: str
    confidence: float
    reasons: list[str]
    node_type: str
    scope: str
    source: str | None = None
    created_at: datetime


class LikelyQueryView(Wire):
    """A query that is likely to come, in its earlier words, and the memories that answer it."""

    query: str
    memory_ids: list[str]
    confidence: float


class Interest(Wire):
    """A word searched for recently; the most frequent one has the weight 1."""

    topic: str
    weight: float


class Predictions(Wire):
    """Predictions of what is needed next.

    `prediction_accuracy` is the share of the last `predictions_measured` predictions of which something was
    needed within an hour. `predict_degraded` states why these are not real predictions, if so.
    """

    predictions: list[PredictionView]
    suggestions: list[PredictionView]
    speculative: list[LikelyQueryView]
    top_interests: list[Interest]
    prediction_accuracy: float | None = None
    predictions_measured: int
    predict_degraded: str | None = None
    scope: str


_WHOLE_ID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")


def render_predictions(answer: Predictions) -> str:
    lines = [warning(answer.predict_degraded)] if answer.predict_degraded and answer.predictions else []
    for one in answer.predictions:
        reasons = (_WHOLE_ID.sub(lambda found: short_id(found[0]), said) for said in one.reasons)
        facts = [short_id(one.memory_id), f"{percent(one.confidence)} likely", one.scope, *reasons]
        lines += listed_lines(row_number(one.memory_id), unmarked(one.preview), facts)
    if answer.speculative:
        lines.append("Likely queries: " + "; ".join(one.query for one in answer.speculative))
    if answer.prediction_accuracy is not None:
        share = percent(answer.prediction_accuracy)
        lines.append(f"Of the last {answer.predictions_measured} predictions, {share} came true.")
    return "\n".join(lines) or "No memories here yet."


@registry.operation(
    "predict",
    permission="read",
    effect="touch",
    example={"limit": 3},
    title="Predict memories",
    render=render_predictions,
)
def predict_next(call: Call, asked: PredictArguments) -> Predictions:
    """Predict which memories will be needed next, from the history of searches.

    Each prediction lists its evidence with numbers: found together with something of this session, with the
    topics, file or codebase in `context`, at this hour, and how often. `suggestions` are the more likely
    ones, `speculative` the queries likely to come. `predictionAccuracy` is the share of predictions that came
    true within an hour. Without history, `predictDegraded` says so and the newest strong memories are listed.
    """
    about = asked.context or PredictionContext()
    busy = CurrentWork(file=about.current_file, topics=tuple(about.current_topics), codebase=about.codebase)
    found = predict(call, busy, asked.limit, within=searched(call, Filter(), asked.scope))
    predictions = [_view(one) for one in found.predictions]
    return Predictions(
        predictions=predictions,
        suggestions=[one for one in predictions if one.confidence >= SUGGESTED],
        speculative=[_query(one) for one in found.speculative],
        top_interests=[Interest(topic=word, weight=round(weight, 4)) for word, weight in found.interests],
        prediction_accuracy=None if found.accuracy is None else round(found.accuracy, 4),
        predictions_measured=found.measured,
        predict_degraded=found.degraded,
        scope=searched_scope(call, asked.scope),
    )


def _view(one: Prediction) -> PredictionView:
    memory = one.record.memory
    return PredictionView.of(
        memory,
        memory_id=memory.id,
        preview=preview(memory.content, PREVIEW_CHARS),
        confidence=estimate(one.confidence),
        reasons=list(one.reasons),
    )


def _query(one: LikelyQuery) -> LikelyQueryView:
    return LikelyQueryView(
        query=" ".join(one.words), memory_ids=list(one.memory_ids), confidence=estimate(one.confidence)
    )
