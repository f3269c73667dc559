"""Searching memories: `search`."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from pydantic import Field

from vestige.cognition.ranking.stages import Context
from vestige.core.models import Filter
from vestige.engine.context import Call
from vestige.engine.recall.candidates import Mode, RequiredConfidence
from vestige.engine.recall.recall import NO_CONFIDENCE, RecallQuery, recall, record_shown
from vestige.operations.memory.budget import within
from vestige.operations.memory.search_view import Found, found, render_found, shorter, with_domains
from vestige.operations.registry.arguments import DetailLevel, Moment, Names
from vestige.operations.registry.registry import registry
from vestige.operations.shared.filters import (
    MAX_QUERY_CHARS,
    FilterArguments,
    check_query,
    limits,
    searched_scope,
    widening,
)
from vestige.operations.shared.text import day


class SearchArguments(FilterArguments):
    """A query, its filters, and options of the answer."""

    query: str = Field(min_length=1, max_length=MAX_QUERY_CHARS, description="What to look for.")
    limit: int | None = Field(None, ge=1, le=100, description="Maximum number of results (default 10).")
    detail_level: DetailLevel | None = Field(
        None, description="brief: no text; summary (default); full: every field."
    )
    retrieval_mode: Mode = Field(
        Mode.BALANCED,
        description="precise: only confident results near the best; balanced (default); exhaustive: "
        "everything, and linked memories.",
    )
    context_topics: Names = Field([], description="Current topics: memories with such tags rank higher.")
    context_session: str | None = Field(
        None, max_length=1000, description="Current session: memories from it rank higher."
    )
    context_codebase: str | None = Field(
        None, max_length=200, description="Current codebase: its memories rank higher."
    )
    context_file: str | None = Field(
        None, max_length=1000, description="Current file: memories that name it or come from it rank higher."
    )
    context_time: Moment | None = Field(
        None, description="When you learned it: memories from a near time, hour or weekday rank higher."
    )
    as_of: Moment | None = Field(None, description="Search what was true at this time. Default: now.")
    known_at: Moment | None = Field(None, description="Search what was stored at this time. Default: now.")
    include_expired: bool = Field(False, description="Also search memories that are no longer true.")
    include_suppressed: bool = Field(False, description="Also search suppressed memories.")
    min_similarity: float | None = Field(
        None, ge=0, le=1, description="Minimum cosine similarity of a match by meaning."
    )
    min_confidence: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Return nothing below this confidence (default depends on retrieval_mode).",
    )
    all: bool = Field(
        False, description="Show everything found: nothing is refused or left out as too weak a match."
    )
    token_budget: int | None = Field(None, ge=100, le=100_000, description="Maximum tokens of the answer.")
    explain: bool = Field(False, description="Explain the rank of each result.")
    record: bool | None = Field(
        None, description="Whether results are strengthened by being found (default true)."
    )

    def context(self) -> Context:
        """The context given by the caller."""
        return Context(
            topics=tuple(self.context_topics),
            session_id=self.context_session,
            codebase=self.context_codebase,
            file=self.context_file,
            moment=self.context_time,
        )

    def _phrases(self) -> Iterator[str]:
        yield from super()._phrases()
        if self.as_of is not None:
            yield f"true at {day(self.as_of)}"
        if self.known_at is not None:
            yield f"known at {day(self.known_at)}"


@registry.operation(
    "search",
    permission="read",
    effect="touch",
    example={"query": "TypeScript", "limit": 5, "explain": True},
    title="Search memories",
    render=render_found,
)
def search(call: Call, asked: SearchArguments) -> Found:
    """Find memories by meaning and by words, best first.

    Searches what is true now, unless `as_of` or `include_expired` is given or the query asks about a past
    time ("who was the CTO in March"; `note` says how it was read), in everything you have access to. The
    current project ranks first among equals; each result names the scope it is in. Write a question or key
    words; quote text that must occur literally. `confidence` is the certainty of the answer; if nothing is
    good enough, `abstained` is true and there are no results. Results that have little to do with the query
    are left out and counted in `weakerLeftOut`; `all` shows them. `missing` lists what you asked about
    (names, versions, days, ids, quoted text) that no memory searched mentions: the results are then about
    something else; `searched` says where it looked, if not everywhere. With `context_…` arguments, memories
    from a similar context rank a little higher; then, and with `explain`, `contextReinstatement` describes
    the context of the best result. `competitionSuppressed` counts results ranked behind a current rival.
    Results are strengthened a little, at most once a day; `record: false` leaves no trace. If you have an id,
    use `memory` with action `get`.
    """
    check_query("query", asked.query)
    settings, now = call.engine.settings.memory, call.engine.now()
    valid_at = None if asked.include_expired else asked.as_of or asked.known_at or now
    where = Filter(valid_at=valid_at, known_at=asked.known_at, include_suppressed=asked.include_suppressed)
    mode = asked.retrieval_mode
    wanted = RecallQuery(
        text=asked.query,
        where=asked.narrow(call, where),
        limit=asked.limit or settings.limit,
        mode=mode,
        context=asked.context(),
        explain=asked.explain,
        asks_time=asked.as_of is None and asked.known_at is None and not asked.include_expired,
        min_similarity=-1.0 if asked.min_similarity is None else asked.min_similarity,
        min_confidence=_required(asked),
        show_all=asked.all or mode is Mode.EXHAUSTIVE,
    )
    recalled = recall(call, wanted)
    level = asked.detail_level or settings.detail_level
    hits = (*recalled.hits, *recalled.rejected)
    scope = searched_scope(call, asked.scope)
    answer = found(
        wanted,
        recalled,
        level=level,
        now=now,
        scope=scope,
        among=asked.in_words(call) or limits(call),
        suppressed=0 if recalled.hits else _suppressed(call, wanted.where, now),
        wider=widening(call, scope, "search"),
        missing=recalled.missing,
    )
    if asked.explain:
        from vestige.engine.domains.overview import score_lines  # late: few searches are explained

        answer = with_domains(answer, score_lines(call, [hit.record.memory for hit in hits]))
    if asked.token_budget is not None:
        smaller = (one for hit in hits[:1] for one in shorter(hit, level, now))
        answer = within(answer, asked.token_budget, smaller)
    # Only results that the caller gets count as shown.
    record = settings.record if asked.record is None else asked.record
    ids = {view.id for view in answer.results}
    shown = [hit for hit in recalled.hits if hit.record.memory.id in ids]
    record_shown(call, wanted, recalled, shown, record=record)
    return answer


def _required(asked: SearchArguments) -> RequiredConfidence:
    if asked.min_confidence is not None:
        return RequiredConfidence(asked.min_confidence, asked.min_confidence)
    return NO_CONFIDENCE if asked.all else asked.retrieval_mode.depth.confidence


def _suppressed(call: Call, where: Filter, now: datetime) -> int:
    """How many suppressed memories the filter leaves out."""
    if where.include_suppressed:
        return 0
    hidden = replace(where, include_suppressed=True, suppressed_by=now)
    return call.engine.store.count(hidden, access=call.access)
