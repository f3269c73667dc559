"""Which texts wait in the review inbox: `review policy` and `review choose`."""

from typing import Annotated, Literal

from pydantic import Field

from vestige.engine.context import Call
from vestige.engine.ingest.inbox import ReviewPolicy
from vestige.engine.ingest.review_policy import choose_policy, review_policies
from vestige.operations.registry.arguments import Scope, Wire
from vestige.operations.registry.registry import registry
from vestige.operations.shared.text import table

MEANINGS = {
    "off": "nothing waits",
    "low_trust": "what gives orders to an agent or hides something waits, unless the user wrote it",
    "all": "everything that the user did not write waits",
}


class ReviewPolicyView(Wire):
    """The policy of a scope and what is below it; `chosen` with `choose`, or else set in the settings."""

    scope: str
    policy: str
    chosen: bool


class ReviewPolicies(Wire):
    """The policy that counts in a scope, with the scope that it was set for (`set_in`), and all policies."""

    scope: str
    policy: str
    set_in: str
    policies: list[ReviewPolicyView]
    message: str


def _view(one: ReviewPolicy) -> ReviewPolicyView:
    return ReviewPolicyView(scope=one.scope, policy=one.policy, chosen=one.chosen)


def _render(found: ReviewPolicies) -> str:
    rows = (
        (one.scope, one.policy, "chosen" if one.chosen else "settings", MEANINGS[one.policy])
        for one in found.policies
    )
    return f"{found.message}\n\n{table(('scope', 'policy', 'from', 'meaning'), rows)}"


def _policies(call: Call, scope: str) -> ReviewPolicies:
    counts, known = review_policies(call, scope)
    return ReviewPolicies(
        scope=scope,
        policy=counts.policy,
        set_in=counts.scope,
        policies=list(map(_view, known)),
        message=f"{scope}: {MEANINGS[counts.policy]} (policy {counts.policy}, set for {counts.scope}).",
    )


@registry.operation(
    "review.policy",
    permission="read",
    effect="none",
    example={"scope": "/project/vestige"},
    positional=("scope",),
    title="Which texts wait",
    render=_render,
)
def policy(
    call: Call,
    scope: Annotated[Scope | None, Field(description="The scope to tell about. Default: your own.")] = None,
) -> ReviewPolicies:
    """Say which texts wait for a review in a scope, and where a policy is set: the nearest scope decides."""
    return _policies(call, scope or call.scope)


@registry.operation(
    "review.choose",
    permission="admin",
    example={"scope": "/project/vestige", "policy": "all"},
    positional=("scope", "policy"),
    title="Choose which texts wait",
    render=_render,
)
def choose(
    call: Call,
    scope: Annotated[Scope, Field(description="The scope; what is below it follows. / is everything.")],
    policy: Annotated[
        Literal["off", "low_trust", "all", "default"],
        Field(
            description="off: nothing waits; low_trust: what gives orders to an agent or hides something; "
            "all: everything that the user did not write; default: as in the settings."
        ),
    ],
) -> ReviewPolicies:
    """Choose which texts wait for a review in a scope, at once and for all processes of this store.

    It replaces the setting for this scope. An agent can only let more texts wait, not fewer. What waits
    already goes on waiting.
    """
    choose_policy(call, scope, None if policy == "default" else policy)
    return _policies(call, scope)
