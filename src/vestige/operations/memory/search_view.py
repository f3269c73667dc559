"""The answer of a search: hits with explanations, confidence and notes."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from vestige.cognition.evidence.trust import trust
from vestige.cognition.graph.spread import Activation
from vestige.cognition.text.analyser import searchable
from vestige.cognition.time.calendar import EARLIEST, LATEST, period_in_words
from vestige.cognition.time.expressions import Basis
from vestige.cognition.time.query_window import PastAsked, PastKind, Window
from vestige.core.events import preview
from vestige.core.models import estimate
from vestige.core.origin import Origin
from vestige.core.timezone import current_zone, local
from vestige.engine.recall.candidates import NO_MEMORIES
from vestige.engine.recall.hits import Hit
from vestige.engine.recall.recall import Recalled, RecallQuery
from vestige.engine.recall.stage_inputs import Reinstated
from vestige.operations.registry.arguments import DetailLevel, Wire
from vestige.operations.shared.memory_view import MemoryView, no_longer_valid, view_fields
from vestige.operations.shared.text import (
    ROW_INDENT,
    Role,
    bar,
    clip,
    count,
    day,
    fit,
    listed_lines,
    padded,
    page_width,
    percent,
    row_number,
    short_id,
    strength,
    styled,
    unmarked,
)

MATCHED_CHARS = 1_000
LONG_CHARS = 500
"""For longer texts the matching passage is shown too."""
LEAST_KEYWORD_SCORE = 0.0001
UNREAD = (
    "Too many memories were reworded since then to read all earlier wordings; the earliest were not searched."
)
LEVELS: tuple[DetailLevel, ...] = ("full", "summary", "brief")


class SignalView(Wire):
    """One part of a hit's relevance: value times weight."""

    signal: str
    value: float
    weight: float
    adds: float


class StageView(Wire):
    """A hit's score and rank after a stage, and how many ranks the stage moved it up."""

    stage: str
    score: float
    rank: int
    moved: int


class Explanation(Wire):
    """Why a hit has its rank."""

    rank: int
    signals: list[SignalView]
    stages: list[StageView]
    matched_text: str | None = None
    domains: list[str] | None = None


class Provenance(Wire):
    """Origin and trust of a memory: recalled text is data, to be judged by this. `origin` is left out of what
    an agent stored."""

    source: str | None = None
    author: str | None = None
    origin: str | None = None
    at: datetime
    trust: float


class FoundAssociationView(Wire):
    """The link that added a hit which the search itself did not find."""

    via: str | None
    type: str | None
    activation: float


class HitView(MemoryView):
    """A memory found.

    `confidence` is the chance that it answers the query; a memory that a link brought in has none.
    `keyword_score` is its BM25 score; it has no upper bound, and its minimum is 0.0001, for words that most
    memories contain. It is absent if no word matches. `semantic_score`, a cosine, is absent without a vector.
    `shortened` says how a memory was cut to fit a token budget: to its `summary`, its `brief` view, or the
    brief view with the `beginning` of its text.
    """

    combined_score: float
    confidence: float | None = None
    provenance: Provenance
    keyword_score: float | None = None
    semantic_score: float | None = None
    match_type: str | None = None
    matched_text: str | None = None
    duplicates: int | None = None
    duplicate_ids: list[str] | None = None
    contradicts: list[str] | None = None
    association: FoundAssociationView | None = None
    shortened: str | None = None
    explain: Explanation | None = None


class TimeView(Wire):
    """The time range that a query was understood to ask about, excluding `before`; an open end is absent.

    `year_guessed`: the query names no year, so the latest such time was assumed.
    """

    words: str
    since: datetime | None = None
    before: datetime | None = None
    year_guessed: bool | None = None


class ReinstatementView(Wire):
    """The context in which the best hit was learned, as cues, and ids of other memories learned in it."""

    memory_id: str
    temporal_hint: str
    topical_hint: str | None = None
    session_hint: str | None = None
    related_memories: list[str]


class Found(Wire):
    """The answer of a search.

    `confidence` is the probability that the answer is among the results. If it is too low, no results:
    `abstained` is true and `rejected` is the best one. `weaker_left_out` counts what `all` would show beside
    the results, which has little to do with the query. `missing` lists names, versions, days, ids
    and quoted texts of the query that occur in no memory searched; `searched` says which those were, unless
    all were. `competition_suppressed` counts hits ranked behind a rival, `left_out` those that did not fit
    the token budget; `expandable` holds their ids, as far as they fit.
    """

    query: str
    method: str
    retrieval_mode: str
    detail_level: str
    scope: str
    total: int
    confidence: float
    abstained: bool
    results: list[HitView]
    rejected: list[HitView] | None = None
    weaker_left_out: int | None = None
    missing: list[str] | None = None
    searched: str | None = None
    time: TimeView | None = None
    context_reinstatement: ReinstatementView | None = None
    competition_suppressed: int | None = None
    note: str | None = None
    left_out: int | None = None
    expandable: list[str] | None = None
    token_budget: int | None = None
    tokens_used: int | None = None


def found(
    query: RecallQuery,
    recalled: Recalled,
    *,
    level: DetailLevel,
    now: datetime,
    scope: str,
    among: str,
    suppressed: int = 0,
    wider: str | None = None,
    missing: Sequence[str] = (),
) -> Found:
    """The whole answer; `among` describes the filters, `suppressed` counts the memories that were left out
    because they are suppressed, `wider` is a hint on searching more scopes."""
    results = [
        hit_view(hit, place, level, now, explain=query.explain) for place, hit in enumerate(recalled.hits, 1)
    ]
    rejected = [hit_view(hit, 1, level, now, explain=query.explain) for hit in recalled.rejected]
    notes = [*_notes(query, recalled, among, wider), *_cut(results, rejected)]
    if suppressed:
        are = "memories were" if suppressed > 1 else "memory was"
        notes.append(f"{suppressed} suppressed {are} not searched: see `include_suppressed`.")
    return Found(
        query=query.text,
        method="hybrid" if recalled.semantic else "keyword",
        retrieval_mode=query.mode.value,
        detail_level=level,
        scope=scope,
        total=len(results),
        confidence=estimate(recalled.confidence),
        abstained=bool(recalled.rejected),
        results=results,
        rejected=rejected or None,
        weaker_left_out=(recalled.weaker or None) if results else None,
        missing=list(missing) or None,
        searched=(among or None) if missing else None,
        time=_time(query.text, recalled.time.window) if query.explain or recalled.time.past else None,
        context_reinstatement=_reinstatement(recalled.reinstated),
        competition_suppressed=recalled.overtaken or None,
        note=" ".join(notes) or None,
    )


def _cut(*shown: Sequence[HitView]) -> Iterator[str]:
    if any(view.content_length for views in shown for view in views):
        yield "Long texts are cut; `memory` with action `get` returns the whole text."


def _notes(query: RecallQuery, recalled: Recalled, among: str, wider: str | None) -> Iterator[str]:
    if recalled.why_not == NO_MEMORIES:
        yield NO_MEMORIES
        return
    if not recalled.semantic:
        yield f"Searched by words only. {recalled.why_not}"
    if recalled.unread:
        yield UNREAD
    if recalled.time.past is not None:
        yield _past_in_words(recalled.time.past, recalled.time.window)
    if recalled.contrast is not None:
        other = recalled.contrast
        yield f'The best match has "{other.stated}" where the query has "{other.asked}".'
    if recalled.rejected:
        yield (
            f"Nothing good enough was found (confidence {estimate(recalled.confidence):.2f}, required "
            f"{recalled.required:.2f}). Rephrase the query, or set "
            "`all` to see everything."
        )
        if among:
            yield f"Only memories {among} were searched."
    elif not recalled.hits:
        yield f"No memory {among} matches." if among else "No memory matches."
    if wider and (not recalled.hits or recalled.missing):
        yield wider


def _past_in_words(past: PastAsked, window: Window | None) -> str:
    """How a past time in the query was read."""
    match past.kind:
        case PastKind.THEN:
            then = f"as of {_period(window)}" if window else "as of then"
        case PastKind.BEFORE:
            then = f"as of the time before {past.successor}"
        case PastKind.FIRST:
            then = "as of the beginning"
        case PastKind.EARLIER:
            then = "about an earlier time"
    return f'Read {then}, from the question ("{past.words}"): memories that have ended since are included.'


def _period(window: Window) -> str:
    zone = current_zone()
    start = window.start if window.start == EARLIEST else local(window.start, zone)
    return period_in_words(start, local(window.end, zone))


def _time(text: str, window: Window | None) -> TimeView | None:
    if window is None:
        return None
    return TimeView(
        words=text[slice(*window.span)],
        since=None if window.start == EARLIEST else window.start,
        before=None if window.end == LATEST else window.end,
        year_guessed=window.basis is Basis.GUESSED_YEAR or None,
    )


def _reinstatement(reinstated: Reinstated | None) -> ReinstatementView | None:
    if reinstated is None:
        return None
    return ReinstatementView(
        memory_id=reinstated.memory_id,
        temporal_hint=reinstated.hints.temporal,
        topical_hint=reinstated.hints.topical,
        session_hint=reinstated.hints.session,
        related_memories=list(reinstated.related),
    )


def hit_view(
    hit: Hit, place: int, level: DetailLevel, now: datetime, *, explain: bool, shortened: str | None = None
) -> HitView:
    """A hit at a level of detail. Every level includes provenance."""
    memory = hit.record.memory
    shown = view_fields(hit.record, now, level)
    if level != "brief":
        shown |= {
            "keyword_score": _keyword_score(hit),
            "semantic_score": None if hit.semantic is None else round(hit.semantic, 4),
            "match_type": _match(hit),
            "matched_text": _matched(hit) if len(memory.content) > LONG_CHARS else None,
        }
    if explain:
        shown["explain"] = _explained(hit, place)
    return HitView(
        combined_score=round(hit.score, 6),
        confidence=None if hit.chance is None else estimate(hit.chance),
        provenance=Provenance(
            source=memory.source,
            author=memory.author,
            origin=None if memory.origin == Origin.ASSISTANT else memory.origin,  # the usual one
            at=memory.occurred_at or memory.created_at,
            trust=estimate(trust(hit.record, now)),
        ),
        duplicates=len(hit.duplicates) or None,
        duplicate_ids=list(hit.duplicates) or None,
        contradicts=list(hit.contradicts) or None,
        association=_association(hit.association),
        shortened=shortened,
        **shown,
    )


def with_domains(answer: Found, lines: Mapping[str, list[str]]) -> Found:
    """The answer whose explanations say why each hit is in its domains, by the id of the memory."""

    def explained(hit: HitView) -> HitView:
        if hit.explain is None or not lines.get(hit.id):
            return hit
        return hit.model_copy(update={"explain": hit.explain.model_copy(update={"domains": lines[hit.id]})})

    return answer.model_copy(update={"results": [explained(hit) for hit in answer.results]})


def shorter(hit: Hit, level: DetailLevel, now: datetime) -> Iterator[HitView]:
    """The hit in decreasing detail, for a token budget."""
    for lower in LEVELS[LEVELS.index(level) :]:
        if lower == "brief" and level != "brief":
            brief = hit_view(hit, 1, lower, now, explain=False, shortened="beginning")
            yield brief.model_copy(update={"content": hit.record.memory.content})
        yield hit_view(hit, 1, lower, now, explain=False, shortened=lower)


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
    """The passage of a longer text that matched the meaning best."""
    text = searchable(hit.record.memory)
    piece = text[hit.start : hit.end] if hit.end and hit.end - hit.start < len(text.strip()) else None
    return preview(piece, MATCHED_CHARS) if piece else None


def _association(activation: Activation | None) -> FoundAssociationView | None:
    if activation is None:
        return None
    return FoundAssociationView(
        via=activation.via, type=activation.kind, activation=round(activation.level, 4)
    )


def _match(hit: Hit) -> str:
    if hit.association is not None:
        return "Association"
    if hit.by_literal:
        return "Literal"
    if hit.by_words and hit.by_meaning:
        return "Both"
    return "Keyword" if hit.by_words else "Semantic"


def _keyword_score(hit: Hit) -> float | None:
    # A word that most memories contain scores near 0, but 0 would mean that no word matched.
    return None if hit.keyword is None else max(LEAST_KEYWORD_SCORE, round(hit.keyword, 4))


FAINT = 0.02
"""Below this confidence the best memory has nothing to do with the query, and a person is not shown it."""


def render_found(answer: Found) -> str:
    """Hits as text, best first."""
    lines = [line for hit in answer.results for line in _lines(hit)]
    lines += [""] if lines else _nothing(answer)
    if answer.rejected and answer.confidence >= FAINT:
        lines.extend(["The best one found:", *_lines(answer.rejected[0])])
    if answer.results:
        how = f"{count(len(answer.results), 'memory')} by {answer.method} search"
        lines.append(f"{how}, confidence {_sureness(answer.confidence)}.")
    if answer.weaker_left_out:
        left = count(answer.weaker_left_out, "weaker match")
        lines.append(f"{left} left out (`--all` shows {'it' if answer.weaker_left_out == 1 else 'them'}).")
    if answer.missing:
        named = ", ".join(f'"{clip(one)}"' for one in answer.missing)
        among = f" {answer.searched}" if answer.searched else ""
        lines.append(f"{named} {'occurs' if len(answer.missing) == 1 else 'occur'} in no memory{among}.")
    if answer.time:
        lines.append(_time_line(answer.time))
    if answer.context_reinstatement:
        lines.append(_context_line(answer.context_reinstatement))
    if answer.left_out:
        lines.append(f"{answer.left_out} more did not fit the token budget.")
    if answer.note and answer.results:
        lines.append(styled("quiet", answer.note))
    return "\n".join(lines).strip("\n")


def _sureness(confidence: float) -> str:
    role: Role = "good" if confidence >= SURE_FROM else "fair" if confidence >= UNSURE_BELOW else "weak"
    return styled(role, percent(confidence))


def _nothing(answer: Found) -> list[str]:
    """The first lines of an answer without results: its note, if that says what was not found."""
    if answer.abstained and answer.note:
        return [styled("strong", answer.note)]
    return [
        styled("strong", "Nothing fits the token budget." if answer.left_out else "Nothing found."),
        *([styled("quiet", answer.note)] if answer.note else []),
    ]


def _time_line(time: TimeView) -> str:
    since = f" from {day(time.since)}" if time.since else ""
    before = f" until {day(time.before)}" if time.before else ""
    return f'"{time.words}" is read as{since}{before}{"; the year is assumed" if time.year_guessed else ""}.'


def _context_line(context: ReinstatementView) -> str:
    cues = (context.temporal_hint, context.topical_hint, context.session_hint)
    related = ", ".join(map(short_id, context.related_memories))
    beside = f", with {related}" if related else ""
    return f"Context of the first result: {' · '.join(cue for cue in cues if cue)}{beside}."


def _lines(hit: HitView) -> list[str]:
    facts = [
        short_id(hit.id),
        f"strength {strength(hit.retention_strength)}" if hit.retention_strength is not None else None,
        _HOW_FOUND.get(hit.match_type or ""),
        f"{hit.duplicates} more say the same" if hit.duplicates else None,
        styled("warning", f"contradicts {', '.join(map(_bare_id, hit.contradicts))}")
        if hit.contradicts
        else None,
        styled("warning", "suppressed") if hit.suppression_count else None,
        f"linked to {short_id(hit.association.via or '')}" if hit.association else None,
        "shortened" if hit.shortened else None,
        styled("warning", no_longer_valid(hit) or ""),
        day(hit.provenance.at),
        hit.source,
        hit.scope,
        ", ".join(hit.tags),
    ]
    text = unmarked(hit.content) if hit.content else "(text left out)"
    lines = listed_lines(row_number(hit.id), text, facts)
    if hit.matched_text:
        lines.append(
            ROW_INDENT + fit(f"… {clip(hit.matched_text, MATCHED_CHARS)}", page_width() - len(ROW_INDENT))
        )
    return [*lines, *(_why(hit.explain) if hit.explain else ())]


def _bare_id(full: str) -> str:
    return unmarked(short_id(full))


# -- Why a hit is where it is, in words

SURE_FROM, UNSURE_BELOW = 0.7, 0.4
_HOW_FOUND = {
    "Association": "found by a link",
    "Literal": "found by its exact words",
    "Both": "found by words and meaning",
    "Keyword": "found by words",
    "Semantic": "found by meaning",
}
SIGNAL_WORDS = {
    "context": "alike, with its neighbours",
    "own": "alike, word by word",
    "words": "words in common",
    "own_words": "words in common, alone",
    "thread": "words of its thread",
    "dated": "the date asked for",
    "cosine": "alike as a whole",
    "likeness": "like the best notes",
    "speaker": "said by who is asked for",
    "present": "who is asked for is there",
    "timed": "says when",
    "asks": "is itself a question",
    "literal": "exact words",
    "form": "kind of text",
}
_STAGE_WORDS = {
    "temporal": "its time",
    "decay": "its strength",
    "context": "the context it was learned in",
    "scope": "the scope",
    "competition": "a rival",
    "spreading": "its links",
    "utility": "how useful it was before",
}
_LEAST_SHOWN = 0.0005
"""Parts of the score below it round to nothing."""


def _why(explained: Explanation) -> list[str]:
    """The signals that changed the score, as bars, then the stages that moved the hit."""
    parts = [one for one in explained.signals if abs(one.adds) >= _LEAST_SHOWN]
    parts.sort(key=lambda one: -abs(one.adds))
    most = max((abs(one.adds) for one in parts), default=1.0)
    names = [SIGNAL_WORDS.get(one.signal, one.signal.replace("_", " ")) for one in parts]
    width = max(map(len, names), default=0)
    lines = [
        f"{ROW_INDENT}{padded(name, width)}  {_signal_bar(one, most)}"
        for name, one in zip(names, parts, strict=True)
    ]
    moved = [_moved(one) for one in explained.stages if one.moved]
    lines.append(ROW_INDENT + styled("quiet", "; ".join(moved) if moved else "No later stage moved it."))
    return [*lines, *(ROW_INDENT + styled("quiet", one) for one in explained.domains or ())]


def _signal_bar(one: SignalView, most: float) -> str:
    sign = "+" if one.adds > 0 else "−"
    role: Role = "good" if one.adds > 0 else "weak"
    return f"{styled(role, bar(abs(one.adds) / most))} {sign}{abs(one.adds):.3f}"


def _moved(one: StageView) -> str:
    way = "up" if one.moved > 0 else "down"
    what = _STAGE_WORDS.get(one.stage, one.stage.replace("_", " "))
    return f"{what} moved it {way} by {abs(one.moved)}, to {one.rank}"
