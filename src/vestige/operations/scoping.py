"""In which scope an operation looks when its caller does not say, written once."""

from dataclasses import replace

from vestige.engine.context import Call
from vestige.models import Filter


def scoped(call: Call, where: Filter, given: str | None) -> Filter:
    """The filter within the scope asked for, else within the caller's own and what holds there from above."""
    if given is not None:
        return replace(where, scope=given)
    return replace(where, scope=call.scope, inherited=True)


def used(call: Call, given: str | None) -> str:
    """The name of the scope that was looked in."""
    return given if given is not None else call.scope
