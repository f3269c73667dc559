"""How much a text matters: `importance_score`."""

from typing import Annotated

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
from vestige.core.models import Filter, normal_scope
from vestige.engine.context import Call
from vestige.engine.ingest.importance import DIGITS, assess
from vestige.operations.registry.arguments import Arguments, Names, Scope, Wire
from vestige.operations.registry.registry import registry
from vestige.operations.shared.filters import scoped, used
from vestige.operations.shared.text import count, fields

WORTH_SAVING = 0.6


class ImportanceArguments(Arguments):
    """A text, and where and in what it would matter."""

    content: Annotated[str, Field(min_length=1, description="The text to judge.")]
    context_topics: Annotated[
        Names, Field(description="What you are busy with: each counts as if you had just asked for it.")
    ] = []
    project: Annotated[
        str | None, Field(min_length=1, max_length=200, description="Short for scope /project/<name>.")
    ] = None
    scope: Annotated[
        Scope | None,
        Field(description="What is known here counts; default is your own scope and what it inherits."),
    ] = None


class ChannelsView(Wire):
    """The four signals, 0.05 to 1; 0.5 where nothing is known."""

    novelty: float
    arousal: float
    reward: float
    attention: float


class Explanations(Wire):
    """What each signal was read from."""

    novelty: str
    arousal: str
    reward: str
    attention: str


class EmotionView(Wire):
    """How the text feels; a flashbulb is both new and rousing."""

    valence: float
    arousal: float
    category: str
    flashbulb: bool


class Importance(Wire):
    """How much a text would matter, and why."""

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
    """The judgement for a person."""
    told = result.explanations
    channels = result.channels
    return f"{result.summary}\n\n" + fields(
        (
            ("novelty", f"{channels.novelty:.2f}  {told.novelty}"),
            ("arousal", f"{channels.arousal:.2f}  {told.arousal}"),
            ("reward", f"{channels.reward:.2f}  {told.reward}"),
            ("attention", f"{channels.attention:.2f}  {told.attention}"),
        )
    )


@registry.operation(
    "importance_score",
    permission="read",
    effect="none",
    example={
        "content": "Never run the migration by hand: it destroyed the ledger.",
        "context_topics": ["ledger"],
    },
    positional=("content",),
    render=render_importance,
)
def importance_score(call: Call, asked: ImportanceArguments) -> Importance:
    """Judge how much a text matters, by four signals, without storing it.

    Novelty compares it with what is known, arousal reads its words, reward asks how the memories near it did
    (useful, promoted, demoted), attention whether it is about what was lately asked for. `smart_ingest`
    judges by itself and encodes what scores above 0.5 more strongly.
    """
    if asked.project is not None and asked.scope is not None:
        raise InvalidInput(
            "`project` and `scope` both say where to look.",
            hint="Give one of them.",
            details={"argument": "project"},
        )
    place = asked.scope if asked.project is None else _scope_of(asked.project)
    # What is suppressed shows itself in no answer, not even by making something less new.
    where = scoped(call, Filter(valid_at=call.engine.now(), include_suppressed=False), place)
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
        scope=used(call, place),
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
            "a little above the ordinary" if composite > IMPORTANT_FROM else "nothing out of the ordinary"
        )
    return f"{priority(composite)} ({composite:.2f}), mostly by {channels.dominant}: {advice}."


def _explained(judged: Judgement) -> Explanations:
    signs = ", ".join(f"“{sign}”" for sign in judged.affect.signs)
    return Explanations(
        novelty=f"The nearest thing known here has a similarity of {judged.nearest:.2f}."
        if judged.nearest
        else "Nothing like it is known here.",
        arousal=f"Told by {signs}." if signs else "No word or sign of feeling.",
        reward=_rewarded(judged),
        attention=_attended(judged),
    )


def _rewarded(judged: Judgement) -> str:
    known = [one for one in judged.outcomes if one.good or one.bad or one.idle]
    if not known:
        return "Nothing is known of how memories like it did."
    good, bad, idle = (sum(getattr(one, name) for one in known) for name in ("good", "bad", "idle"))
    ids = ", ".join(one.memory_id for one in known)
    return f"Memories near it proved good {good:g} times, bad {bad:.2g}, were only shown {idle:g} ({ids})."


def _attended(judged: Judgement) -> str:
    if not judged.questions:
        return "Nothing was asked lately."
    asked = count(judged.questions, "recent question")
    return f"It has {count(judged.attended, 'word')} of {asked}." if judged.attended else f"None of {asked}."
