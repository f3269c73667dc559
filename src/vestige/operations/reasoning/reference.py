"""Reasoning over memory: `deep_reference`."""

from typing import Annotated

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
from vestige.operations.registry.arguments import Arguments, Moment, Scope
from vestige.operations.registry.registry import registry
from vestige.operations.shared.filters import MAX_QUERY_CHARS, check_query, scoped, used


class ReferenceArguments(Arguments):
    """A question, and which memories may answer it."""

    query: Annotated[str, Field(min_length=1, max_length=MAX_QUERY_CHARS, description="The question.")]
    depth: Annotated[int, Field(ge=5, le=50, description="How many memories are weighed.")] = 20
    scope: Annotated[
        Scope | None, Field(description="Only this scope and what is below it; default is where you are.")
    ] = None
    as_of: Annotated[Moment | None, Field(description="What was true then; default is now.")] = None
    known_at: Annotated[Moment | None, Field(description="What this memory knew then; default is now.")] = (
        None
    )
    token_budget: Annotated[
        int | None, Field(ge=LEAST_BUDGET, le=100_000, description="Most tokens the answer may take.")
    ] = None
    record: Annotated[
        bool | None, Field(description="Whether being shown strengthens the evidence (default true).")
    ] = None


@registry.operation(
    "deep_reference",
    permission="read",
    effect="touch",
    example={"query": "Which language does the user prefer?", "depth": 10},
    positional=("query",),
    title="Reason over memories",
    render=render_reference,
)
def deep_reference(call: Call, asked: ReferenceArguments) -> Referenced:
    """Answer a question from what all memories say together, or say that they do not answer it.

    Searches, follows links, and weighs what it finds: which memory answers best, what supports it, what
    contradicts it, what was superseded, and how it came to be so. `trust` comes from reviews, feedback,
    provenance and independent sources; `confidence` is raised by these and lowered by contradictions. Use it
    before you rely on a memory for a decision, and `search` to look something up.
    """
    check_query("query", asked.query)
    now, settings = call.engine.now(), call.engine.settings.memory
    moment = asked.as_of or asked.known_at or now
    standing = Filter(valid_at=moment, known_at=asked.known_at, include_suppressed=False, now=now)
    where = scoped(call, standing, asked.scope)
    wanted = RecallQuery(text=asked.query, where=where, limit=asked.depth)
    reference = refer(call, wanted, moment)
    if not reference.exhibits:
        require_scope(call, asked.scope)
    answer = referenced(asked.query, used(call, asked.scope), reference)
    if asked.token_budget is not None:
        answer = within(answer, asked.token_budget)
    # What is over is shown as such; only what holds is strengthened by being shown.
    ids = {one.id for one in answer.evidence if one.role != Role.SUPERSEDED}
    shown = [hit for hit in reference.hits if hit.record.memory.id in ids]
    record = settings.record if asked.record is None else asked.record
    record_shown(call, wanted, reference.recalled, shown, record=record)
    return answer
