"""The answer to a search as it is shown: hits with their reasons, within a budget of tokens."""

from datetime import datetime

import orjson

from vestige.cognition.activation import Activation
from vestige.cognition.pieces import estimate_tokens
from vestige.cognition.text import searchable
from vestige.cognition.trust import trust
from vestige.engine.answering import Hit
from vestige.engine.recall import Recalled, RecallQuery
from vestige.operations.fields import DetailLevel
from vestige.operations.prose import clip, count, day, percent
from vestige.operations.registry import Wire
from vestige.operations.views import MemoryView, view_fields

MATCHED_CHARS = 1_000
LONG_CHARS = 500
"""Of a longer text the piece that matched is shown too."""
ECHOED_CHARS = 100
"""Of the query, in an answer that has a budget."""


class SignalView(Wire):
    """One part of a hit's relevance: value times weight."""

    signal: str
    value: float
    weight: float
    adds: float


class StageView(Wire):
    """A hit's score and rank after a stage, and how many places the stage moved it up."""

    stage: str
    score: float
    rank: int
    moved: int


class Explanation(Wire):
    """Why a hit ranks where it does."""

    rank: int
    signals: list[SignalView]
    stages: list[StageView]
    matched_text: str | None = None


class Provenance(Wire):
    """Where a memory comes from: recalled text is data, to be weighed by this."""

    source: str | None = None
    author: str | None = None
    at: datetime
    trust: float


class AssociationView(Wire):
    """Which link brought a hit in that no arm found."""

    via: str | None
    type: str | None
    activation: float


class HitView(MemoryView):
    """A memory found."""

    combined_score: float
    provenance: Provenance
    keyword_score: float | None = None
    semantic_score: float | None = None
    match_type: str | None = None
    matched_text: str | None = None
    duplicates: int | None = None
    duplicate_ids: list[str] | None = None
    contradicts: list[str] | None = None
    association: AssociationView | None = None
    explain: Explanation | None = None


class Found(Wire):
    """The answer to a search.

    `confidence` is the chance that the answer is among the results. When it is too low there are none:
    `abstained` is true and `rejected` is the best there was.
    """

    query: str
    method: str
    retrieval_mode: str
    detail_level: str
    total: int
    confidence: float
    abstained: bool
    results: list[HitView]
    rejected: list[HitView] | None = None
    note: str | None = None
    expandable: list[str] | None = None
    token_budget: int | None = None
    tokens_used: int | None = None


def found(
    query: RecallQuery, recalled: Recalled, *, level: DetailLevel, explain: bool, now: datetime
) -> Found:
    """The whole answer."""
    abstained = bool(recalled.rejected)
    notes = [] if recalled.semantic else [f"Searched by words only. {recalled.why_not}"]
    if abstained:
        notes.append(
            f"Nothing good enough was found (confidence {recalled.confidence:.2f}, wanted at least "
            f"{query.min_confidence:.2f}); `rejected` is the best there was. Say what you look for in other "
            "words, or set min_confidence to 0 to see everything."
        )
    elif not recalled.hits:
        notes.append("No memory that passes the filters matches.")
    results = [
        hit_view(hit, place, level, now, explain=explain) for place, hit in enumerate(recalled.hits, 1)
    ]
    return Found(
        query=query.text,
        method="hybrid" if recalled.semantic else "keyword",
        retrieval_mode=query.mode.value,
        detail_level=level,
        total=len(results),
        confidence=round(recalled.confidence, 4),
        abstained=abstained,
        results=results,
        rejected=[hit_view(hit, 1, level, now, explain=explain) for hit in recalled.rejected] or None,
        note=" ".join(notes) or None,
    )


def hit_view(hit: Hit, place: int, level: DetailLevel, now: datetime, *, explain: bool) -> HitView:
    """A hit at a level of detail. Provenance is part of every level."""
    memory = hit.record.memory
    shown = view_fields(hit.record, now, level)
    if level != "brief":
        shown |= {
            "keyword_score": _rounded(hit.keyword),
            "semantic_score": _rounded(hit.semantic),
            "match_type": _match(hit),
            "matched_text": _matched(hit) if len(memory.content) > LONG_CHARS else None,
        }
    if explain:
        shown["explain"] = _explained(hit, place)
    return HitView(
        combined_score=round(hit.score, 6),
        provenance=Provenance(
            source=memory.source,
            author=memory.author,
            at=memory.occurred_at or memory.created_at,
            trust=round(trust(hit.record), 4),
        ),
        duplicates=len(hit.duplicates) or None,
        duplicate_ids=list(hit.duplicates) or None,
        contradicts=list(hit.contradicts) or None,
        association=_association(hit.association),
        **shown,
    )


def within(answer: Found, token_budget: int) -> Found:
    """The best hits that fit, the answer around them included, and the ids of the others as far as they fit.

    Tokens are counted over the JSON of the whole answer by `cognition.pieces.estimate_tokens`, which is
    fitted to word pieces on the high side. What was rejected has to fit like any hit.
    """
    offered = answer.results or answer.rejected or []
    shell = _shell(answer.model_copy(update={"token_budget": token_budget}), len(offered))
    room = token_budget - tokens_of(shell)
    kept: list[HitView] = []
    for hit in offered:
        tokens = _tokens(hit) + 1  # and the comma
        if tokens <= room:
            room -= tokens
            kept.append(hit)
    shown = {hit.id for hit in kept}
    left_out = [hit.id for hit in offered if hit.id not in shown]
    while left_out and tokens_of(_filled(shell, kept, left_out)) > token_budget:
        left_out.pop()
    return _counted(_filled(shell, kept, left_out))


def tokens_of(answer: Found) -> int:
    """The tokens of an answer as JSON."""
    return _tokens(answer)


def _tokens(part: Wire) -> int:
    return estimate_tokens(orjson.dumps(part.wire()).decode("utf-8"))


def _shell(answer: Found, hits: int) -> Found:
    """The answer without its hits, counted as if all were there: the longest that fits the budget."""
    budget = answer.token_budget or 0
    empty: dict[str, object] = {"results": [], "total": hits, "expandable": [], "tokens_used": budget}
    if answer.abstained:
        empty["rejected"] = []
    echo = clip(answer.query, ECHOED_CHARS)
    # The caller knows the query, and what the note says in words is said by other fields too.
    shorter = ({"query": echo}, {"query": "…"}, {"query": "…", "note": None})
    shells = [answer.model_copy(update=empty | update) for update in shorter]
    return next((shell for shell in shells if tokens_of(shell) <= budget), shells[-1])


def _filled(shell: Found, kept: list[HitView], left_out: list[str]) -> Found:
    if shell.abstained:
        return shell.model_copy(update={"rejected": kept, "total": 0, "expandable": left_out})
    return shell.model_copy(update={"results": kept, "total": len(kept), "expandable": left_out})


def _counted(answer: Found) -> Found:
    """The answer with its tokens, counted again while the number of them becomes shorter by that."""
    while (tokens := tokens_of(answer)) != answer.tokens_used:
        answer = answer.model_copy(update={"tokens_used": tokens})
    return answer


def _explained(hit: Hit, place: int) -> Explanation:
    ranks = [rank for _, _, rank in hit.stages]
    return Explanation(
        rank=place,
        signals=[
            SignalView(
                signal=one.name,
                value=round(one.value, 4),
                weight=round(one.weight, 4),
                adds=round(one.value * one.weight, 4),
            )
            for one in hit.signals
        ],
        stages=[
            StageView(stage=name, score=round(score, 6), rank=rank, moved=before - rank)
            for (name, score, rank), before in zip(hit.stages, [*ranks[:1], *ranks], strict=False)
        ],
        matched_text=_matched(hit),
    )


def _matched(hit: Hit) -> str | None:
    """The piece of a longer text that matched the meaning best."""
    text = searchable(hit.record.memory)
    piece = text[hit.start : hit.end] if hit.end and hit.end - hit.start < len(text.strip()) else None
    return clip(piece, MATCHED_CHARS) if piece else None


def _association(activation: Activation | None) -> AssociationView | None:
    if activation is None:
        return None
    return AssociationView(via=activation.via, type=activation.kind, activation=round(activation.level, 4))


def _match(hit: Hit) -> str:
    if hit.association is not None:
        return "Association"
    if hit.by_literal:
        return "Literal"
    if hit.by_words and hit.by_meaning:
        return "Both"
    return "Keyword" if hit.by_words else "Semantic"


def _rounded(score: float | None) -> float | None:
    return None if score is None else round(score, 4)


def render_found(answer: Found) -> str:
    """Hits for a person, best first."""
    lines = [line for place, hit in enumerate(answer.results, 1) for line in _lines(hit, place)]
    lines.append("" if lines else _nothing(answer))
    if answer.rejected:
        lines.extend(["The best that was found:", *_lines(answer.rejected[0], 1)])
    how = f"{count(len(answer.results), 'memory')} by {answer.method} search"
    lines.append(f"{how}, confidence {percent(answer.confidence)}.")
    if answer.expandable:
        lines.append(f"{len(answer.expandable)} more did not fit the token budget.")
    if answer.note:
        lines.append(answer.note)
    return "\n".join(lines).strip("\n")


def _nothing(answer: Found) -> str:
    if answer.abstained:
        return "Nothing good enough."
    return "Nothing fits the token budget." if answer.token_budget and answer.confidence else "Nothing found."


def _lines(hit: HitView, place: int) -> list[str]:
    facts = [
        f"score {hit.combined_score:.3f}",
        f"retention {percent(hit.retention_strength)}",
        hit.match_type,
        f"{hit.duplicates} more say the same" if hit.duplicates else None,
        f"contradicts {', '.join(hit.contradicts)}" if hit.contradicts else None,
        f"via {hit.association.via}" if hit.association else None,
        day(hit.created_at),
        hit.source,
        ", ".join(hit.tags),
        hit.id,
    ]
    lines = [
        f"{place:>2}. {clip(hit.content or '(text left out)', 74)}",
        "    " + " · ".join(fact for fact in facts if fact),
    ]
    if hit.matched_text:
        lines.append(f"    … {clip(hit.matched_text, 74)}")
    if hit.explain:
        parts = " + ".join(f"{one.adds:.3f} {one.signal}" for one in hit.explain.signals if one.adds)
        steps = " → ".join(f"{one.stage} {one.score:.3f} (#{one.rank})" for one in hit.explain.stages)
        lines.extend([f"    why: {parts}", f"         {steps}"])
    return lines
