"""In which scope an operation looks when its caller does not say, written once."""

from dataclasses import replace

from vestige.engine.context import Call
from vestige.models import EVERYTHING, ROOT_SCOPE, Filter, covers


def scoped(call: Call, where: Filter, given: str | None) -> Filter:
    """The filter within the scope asked for, else within the caller's own and what holds there from above."""
    if given is not None:
        return replace(where, scope=given)
    return replace(where, scope=call.scope, inherited=True)


def used(call: Call, given: str | None) -> str:
    """The name of the scope that was looked in."""
    return given if given is not None else call.scope


def widening(call: Call, scope: str, to: str) -> str | None:
    """How to search or export (`to`) more than was looked in; None where this caller reaches no more."""
    reach = (ROOT_SCOPE,) if call.access.scopes is None else call.access.scopes
    if all(covers(scope, one) for one in reach):
        return None
    everything = "everything" if call.access == EVERYTHING else "everything you reach"
    return f'Pass scope "/" (--scope /) to {to} {everything}.'
