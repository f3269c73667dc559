"""Scoring a text's importance: `importance_score`."""

from pydantic import Field

from vestige.cognition.prediction.importance import (
    IMPORTANT_FROM,
    WEIGHTS,
    Channels,
    ConsolidationPriority,
    Judgement,
    encoding_boost,
    priority,
)
from vestige.core.errors import InvalidInput
from vestige.core.models import Filter, estimate, normal_scope
from vestige.engine.context import Call
from vestige.engine.ingest.importance import DIGITS, assess
from vestige.operations.registry.arguments import Arguments, Names, Scope, Wire
from vestige.operations.registry.registry import registry
from vestige.operations.shared.filters import scoped, used
from vestige.operations.shared.text import bar, count, fields

WORTH_SAVING = 0.6


class ImportanceArguments(Arguments):
    """A text, and the context to judge it in."""

    content: str = Field(min_length=1, description="Text to judge.")
    context_topics: Names = Field(
        [], description="Current topics: each counts as if you had just searched for it."
    )
    project: str | None = Field(
        None, min_length=1, max_length=200, description="Short for scope /project/<name>."
    )
    scope: Scope | None = Field(
        None,
        description="Compare with memories in this scope. Default: the current scope and what it inherits.",
    )


class ChannelsView(Wire):
    """The four signals, 0.05 to 1; 0.5 if nothing is known."""

    novelty: float
    arousal: float
    reward: float
    attention: float


class Explanations(Wire):
    """The basis of each signal."""

    novelty: str
    arousal: str
    reward: str
    attention: str


class EmotionView(Wire):
    """Emotion of the text; a flashbulb memory is both new and arousing."""

    valence: float
    arousal: float
    category: str
    flashbulb: bool


class Importance(Wire):
    """The importance of a text, and why."""

    composite: float
    channels: ChannelsView
    encoding_boost: float
    consolidation_priority: ConsolidationPriority
    weights_used: dict[str, float]
    explanations: Explanations
    emotion: EmotionView
    dominant_signal: str
    summary: str
    scope: str


def render_importance(result: Importance) -> str:
    reasons = result.explanations
    channels = result.channels
    return f"{result.summary}\n\n" + fields(
        (
            ("novelty", f"{bar(channels.novelty)} {reasons.novelty}"),
            ("arousal", f"{bar(channels.arousal)} {reasons.arousal}"),
            ("reward", f"{bar(channels.reward)} {reasons.reward}"),
            ("attention", f"{bar(channels.attention)} {reasons.attention}"),
        )
    )


@registry.operation(
    "importance_score",
    permission="read",
    example={
        "content": "Never run the migration by hand: it destroyed the ledger.",
        "context_topics": ["ledger"],
    },
    render=render_importance,
)
def importance_score(call: Call, asked: ImportanceArguments) -> Importance:
    """Score how important a text is, by four signals, without storing it.

    Novelty compares it with known memories, arousal reads its words, reward uses ratings of similar memories
    (useful, promoted, demoted), attention checks whether it matches recent searches. `smart_ingest` scores
    every text itself and encodes those above 0.5 more strongly.
    """
    if asked.project is not None and asked.scope is not None:
        raise InvalidInput(
            "`project` and `scope` are both given, but only one can set where to look.",
            hint="Give one of them.",
            details={"argument": "project"},
        )
    in_scope = asked.scope if asked.project is None else _scope_of(asked.project)
    # A suppressed memory affects no answer, not even novelty.
    where = scoped(call, Filter(valid_at=call.engine.now(), include_suppressed=False), in_scope)
    judged = assess(call, asked.content, asked.context_topics, where)
    channels = judged.channels
    return Importance(
        composite=round(channels.composite, DIGITS),
        channels=ChannelsView(**_rounded(channels)),
        encoding_boost=round(encoding_boost(channels.composite), DIGITS),
        consolidation_priority=priority(channels.composite),
        weights_used=WEIGHTS,
        explanations=_explained(judged),
        emotion=EmotionView(
            valence=round(judged.affect.valence, DIGITS),
            arousal=round(judged.affect.arousal, DIGITS),
            category=judged.affect.feeling.value,
            flashbulb=judged.flashbulb,
        ),
        dominant_signal=channels.dominant,
        summary=_summary(channels),
        scope=used(call, in_scope),
    )


def _scope_of(project: str) -> str:
    try:
        return normal_scope(f"/project/{project}")
    except InvalidInput as exc:
        raise InvalidInput(
            f"`project` is not a plain name: {project!r}.",
            hint="Give a name such as vestige, or the whole `scope`.",
            details={"argument": "project"},
        ) from exc


def _rounded(channels: Channels) -> dict[str, float]:
    return {name: round(value, DIGITS) for name, value in channels.values().items()}


def _summary(channels: Channels) -> str:
    composite = channels.composite
    if composite > WORTH_SAVING:
        advice = "worth remembering"
    else:
        advice = (
            "slightly above the ordinary" if composite > IMPORTANT_FROM else "nothing out of the ordinary"
        )
    return f"{priority(composite)} ({composite:.2f}), mostly because of {channels.dominant}: {advice}."


def _explained(judged: Judgement) -> Explanations:
    signs = ", ".join(f"“{sign}”" for sign in judged.affect.signs)
    return Explanations(
        novelty=f"The most similar memory here has a similarity of {estimate(judged.nearest):.2f}."
        if judged.nearest
        else "No similar memory is known here.",
        arousal=f"Indicated by {signs}." if signs else "No emotional word or sign.",
        reward=_rewarded(judged),
        attention=_attended(judged),
    )


def _rewarded(judged: Judgement) -> str:
    known = [one for one in judged.outcomes if one.good or one.bad or one.idle]
    if not known:
        return "No ratings of similar memories are known."
    good, bad, idle = (sum(getattr(one, name) for one in known) for name in ("good", "bad", "idle"))
    ids = ", ".join(one.memory_id for one in known)
    return (
        f"Similar memories were rated good {good:g} times, bad {bad:.2g}, and only shown {idle:g} times "
        f"({ids})."
    )


def _attended(judged: Judgement) -> str:
    if not judged.questions:
        return "No recent searches."
    asked = count(judged.questions, "recent search")
    return (
        (f"It shares {count(judged.attended, 'word')} with {asked}.")
        if judged.attended
        else (f"It shares no word with {asked}.")
    )
