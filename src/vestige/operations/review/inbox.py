"""Everything that waits for a person, in one answer: `review.waiting`."""

from typing import Annotated

from pydantic import Field

from vestige.core.models import EVERYTHING
from vestige.engine.context import Call
from vestige.operations.domains.domains import proposals
from vestige.operations.domains.view import ProposalsView, render_proposals
from vestige.operations.memory.contradictions import (
    Contradictions,
    ContradictionsArguments,
    find_contradictions,
    render_contradictions,
)
from vestige.operations.memory.dedup import Duplicates, DuplicatesArguments, duplicates, render_duplicates
from vestige.operations.reasoning.insights import Insights, InsightsArguments, list_insights, render_insights
from vestige.operations.registry.arguments import Wire
from vestige.operations.registry.registry import registry
from vestige.operations.review.review import InboxArguments, list_inbox
from vestige.operations.review.view import Inbox, render_inbox
from vestige.operations.shared.text import styled


class WaitingView(Wire):
    """What waits for a person, by kind, each as its own operation lists it.

    `domain_proposals` are absent for a caller with limited access, who does not decide about them.
    """

    proposed_memories: Inbox
    contradictions: Contradictions
    domain_proposals: ProposalsView | None = None
    duplicates: Duplicates
    insights: Insights


def render_waiting(answer: WaitingView) -> str:
    parts = [
        ("Proposed memories", render_inbox(answer.proposed_memories)),
        ("Contradictions", render_contradictions(answer.contradictions)),
        ("Duplicates", render_duplicates(answer.duplicates)),
        ("Insights", render_insights(answer.insights)),
    ]
    if answer.domain_proposals is not None:
        parts.insert(2, ("Domain proposals", render_proposals(answer.domain_proposals)))
    return "\n\n".join(f"{styled('strong', name)}\n{text}" for name, text in parts)


@registry.operation(
    "review.waiting",
    permission="read",
    effect="none",
    long=True,
    example={"limit": 5},
    title="List everything that waits for you",
    render=render_waiting,
)
def list_waiting(
    call: Call, limit: Annotated[int, Field(ge=1, le=100, description="Maximum number of each kind.")] = 20
) -> WaitingView:
    """List everything that waits for the user's decision: proposed memories, contradictions, proposed changes
    of domains, duplicates and insights.

    `review list`, `contradictions`, `domains proposals`, `find_duplicates` and `insights` list one kind with
    more options.
    """
    return WaitingView(
        proposed_memories=list_inbox(call, InboxArguments(limit=limit)),
        contradictions=find_contradictions(call, ContradictionsArguments(limit=limit)),
        domain_proposals=proposals(call) if call.access == EVERYTHING else None,
        duplicates=duplicates(call, DuplicatesArguments(limit=limit)),
        insights=list_insights(call, InsightsArguments(limit=limit)),
    )
