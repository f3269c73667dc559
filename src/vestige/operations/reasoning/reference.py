"""Reasoning over memories: `deep_reference`."""

from pydantic import Field

from vestige.cognition.evidence.evidence import Role
from vestige.core.models import Filter
from vestige.engine.context import Call, require_scope
from vestige.engine.recall.recall import RecallQuery, record_shown
from vestige.engine.recall.reference import refer
from vestige.operations.reasoning.reference_view import (
    LEAST_BUDGET,
    Referenced,
    referenced,
    render_reference,
    within,
)
from vestige.operations.registry.arguments import Moment, SearchedScope, ZonedArguments
from vestige.operations.registry.registry import registry
from vestige.operations.shared.filters import MAX_QUERY_CHARS, check_query, searched, searched_scope


class ReferenceArguments(ZonedArguments):
    """A question, and which memories may answer it."""

    query: str = Field(min_length=1, max_length=MAX_QUERY_CHARS, description="The question.")
    depth: int = Field(20, ge=5, le=50, description="Number of memories to weigh.")
    scope: SearchedScope = None
    as_of: Moment | None = Field(None, description="Use what was true at this time. Default: now.")
    known_at: Moment | None = Field(None, description="Use what was stored at this time. Default: now.")
    token_budget: int | None = Field(
        None, ge=LEAST_BUDGET, le=100_000, description="Maximum tokens of the answer."
    )
    record: bool | None = Field(
        None, description="Whether evidence is strengthened by being shown (default true)."
    )


@registry.operation(
    "deep_reference",
    permission="read",
    effect="touch",
    example={"query": "Which language does the user prefer?", "depth": 10},
    title="Reason over memories",
    render=render_reference,
)
def deep_reference(call: Call, asked: ReferenceArguments) -> Referenced:
    """Answer a question by weighing all memories about it, or report that they do not answer it.

    Searches, follows links, and weighs the results: the best answer, what supports it, what contradicts it,
    what was superseded, and how it changed over time. `trust` comes from reviews, feedback, provenance and
    independent sources; they raise `confidence`, contradictions lower it. Use it before a decision relies on
    a memory, and `search` to look something up.
    """
    check_query("query", asked.query)
    now, settings = call.engine.now(), call.engine.settings.memory
    moment = asked.as_of or asked.known_at or now
    valid_then = Filter(valid_at=moment, known_at=asked.known_at, include_suppressed=False, now=now)
    where = searched(call, valid_then, asked.scope)
    wanted = RecallQuery(text=asked.query, where=where, limit=asked.depth)
    reference = refer(call, wanted, moment)
    if not reference.exhibits:
        require_scope(call, asked.scope)
    answer = referenced(asked.query, searched_scope(call, asked.scope), reference)
    if asked.token_budget is not None:
        answer = within(answer, asked.token_budget)
    # Superseded evidence is shown as such; only current evidence is strengthened.
    ids = {one.id for one in answer.evidence if one.role != Role.SUPERSEDED}
    shown = [hit for hit in reference.hits if hit.record.memory.id in ids]
    record = settings.record if asked.record is None else asked.record
    record_shown(call, wanted, reference.recalled, shown, record=record)
    return answer
