"""Choosing which texts wait in the review inbox, by scope."""

from collections.abc import Mapping

from vestige.core.errors import Forbidden
from vestige.core.models import EVERYTHING, Access, covers
from vestige.engine.context import Call, may_write_to
from vestige.engine.ingest.inbox import (
    POLICIES,
    POLICIES_ID,
    ReviewPolicy,
    chosen_policies,
    nearest_policy,
    policies_by_scope,
)
from vestige.engine.revise import find_document, not_before, put_document, retry_on_conflict

STRICTNESS = ("off", "low_trust", "all")


def _require(call: Call, scope: str) -> None:
    if not may_write_to(call, scope):
        raise Forbidden(f"You have no access to {scope}.", details={"scope": scope})


def review_policies(call: Call, scope: str) -> tuple[ReviewPolicy, list[ReviewPolicy]]:
    """The policy that counts in a scope, and all policies of scopes that the caller may write to, or that
    are above one of these. A caller that is limited to domains gets those above the scope that it names: the
    names of others may be about memories of others."""
    _require(call, scope)
    known = policies_by_scope(call, chosen_policies(call))
    seen = [one for one in known.values() if _is_shown(call.access, one.scope, scope)]
    return nearest_policy(known, scope), sorted(seen, key=lambda one: one.scope)


def _is_shown(access: Access, scope: str, asked: str) -> bool:
    if access.domains is not None:
        return covers(scope, asked)
    limits = access.scopes
    return limits is None or any(covers(limit, scope) or covers(scope, limit) for limit in limits)


def choose_policy(call: Call, scope: str, policy: str | None) -> ReviewPolicy:
    """Set the policy of a scope, or with None let the settings decide again. Returns the one that counts."""
    _require(call, scope)
    if call.access.domains is not None:
        raise Forbidden("A key that is limited to domains may not choose what waits.")

    def attempt() -> ReviewPolicy:
        held = find_document(call, POLICIES, POLICIES_ID, access=EVERYTHING)
        before: Mapping[str, str] = held.body["scopes"] if held else {}
        after = {name: value for name, value in before.items() if name != scope}
        if policy is not None:
            after[scope] = policy
        counts = nearest_policy(policies_by_scope(call, after), scope)
        _refuse_looser(
            call, scope, nearest_policy(policies_by_scope(call, before), scope).policy, counts.policy
        )
        if after != before:
            now = call.engine.now()
            now = not_before(held.updated_at, now) if held else now
            put = put_document(POLICIES, POLICIES_ID, held, now, body={"scopes": after})
            call.engine.store.commit([put], access=EVERYTHING)
        return counts

    return retry_on_conflict(call, attempt)


def _refuse_looser(call: Call, scope: str, before: str, after: str) -> None:
    """A text could order an agent to open the way for the next one."""
    if call.in_context and STRICTNESS.index(after) < STRICTNESS.index(before):
        raise Forbidden(
            "An agent must not let fewer texts wait for the user.",
            hint=f"Ask the user to run `vestige review choose {scope} {after}`.",
            details={"scope": scope, "policy": before},
        )
