"""Which event triggers which reaction."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from vestige.core.events import (
    Event,
    ImportanceScored,
    MemoryCreated,
    MemoryPromoted,
    MemorySuppressed,
    SearchPerformed,
)
from vestige.core.lazy_dataclass import dataclass
from vestige.engine import intentions
from vestige.engine.context import Call
from vestige.engine.memory import link, suppress
from vestige.engine.reactions import capture, competition, reconsolidation, searches

AnyEvent = TypeVar("AnyEvent", bound=Event)


MOST_TOGETHER = 100
"""The most events that one run of a reaction handles."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reaction:
    """What a mechanism does after events, with the access of the caller behind them, unless it concerns only
    the store's own data (`own`). `most` events that wait at the same time are handled in one run."""

    name: str
    event: type[Event] | tuple[type[Event], ...]
    run: Callable[[Call, Sequence[Event]], None]
    own: bool = False
    most: int = 1


def on(kind: type[AnyEvent], reaction: Callable[[Call, AnyEvent], None], *, own: bool = False) -> Reaction:
    """A reaction to each event of a kind."""

    def run(call: Call, events: Sequence[Event]) -> None:
        for event in events:
            if isinstance(event, kind):
                reaction(call, event)

    return Reaction(name=_qualified(reaction), event=kind, run=run, own=own)


def on_many(
    kind: type[AnyEvent] | tuple[type[AnyEvent], ...],
    reaction: Callable[[Call, Sequence[AnyEvent]], None],
    *,
    own: bool = False,
) -> Reaction:
    """A reaction to all events of a kind, or of several in their order, and an access that wait, in one
    run."""

    def run(call: Call, events: Sequence[Event]) -> None:
        reaction(call, [event for event in events if isinstance(event, kind)])

    return Reaction(name=_qualified(reaction), event=kind, run=run, own=own, most=MOST_TOGETHER)


def _qualified(reaction: Callable[..., None]) -> str:
    return f"{reaction.__module__.rpartition('.')[2]}.{reaction.__name__}"


def all_reactions() -> tuple[Reaction, ...]:
    """The reactions of all mechanisms, for one process."""
    return (
        on_many((MemoryCreated, ImportanceScored, MemoryPromoted), capture.on_learned),
        on_many(MemoryCreated, intentions.on_created, own=True),
        on(MemoryPromoted, link.on_promoted),
        on(MemoryPromoted, competition.on_promoted),
        on(MemoryPromoted, searches.on_promoted, own=True),
        on_many(SearchPerformed, reconsolidation.on_searches),
        on_many(SearchPerformed, searches.SearchLearner().on_searches, own=True),
        on_many(MemorySuppressed, suppress.on_suppressed),
    )
