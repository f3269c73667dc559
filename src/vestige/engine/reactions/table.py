"""Which event triggers which reaction.

The reactions to an event are imported when it first happens: a search at the command line needs two of ten.
"""

from collections.abc import Callable, Mapping, Sequence
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
from vestige.engine.context import Call
from vestige.engine.recall.testing_effect import MemoriesShown

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


def _capture() -> Reaction:
    """One reaction to three kinds of event, so that those that wait are handled in their order."""
    from vestige.engine.reactions import capture

    return on_many((MemoryCreated, ImportanceScored, MemoryPromoted), capture.on_learned)


def _to_created() -> tuple[Reaction, ...]:
    from vestige.engine import intentions

    return (_capture(), on_many(MemoryCreated, intentions.on_created, own=True))


def _to_promoted() -> tuple[Reaction, ...]:
    from vestige.engine.memory import link
    from vestige.engine.reactions import competition, searches

    return (
        _capture(),
        on(MemoryPromoted, link.on_promoted),
        on(MemoryPromoted, competition.on_promoted),
        on(MemoryPromoted, searches.on_promoted, own=True),
    )


def _to_searches() -> tuple[Reaction, ...]:
    """One reaction to two kinds of event, so that what follows from a search is one commit."""
    from vestige.engine.reactions import searches

    return (on_many((MemoriesShown, SearchPerformed), searches.SearchReaction().on_searches, own=True),)


def _to_suppressed() -> tuple[Reaction, ...]:
    from vestige.engine.memory import suppress

    return (on_many(MemorySuppressed, suppress.on_suppressed),)


REACTIONS: Mapping[type[Event], Callable[[], tuple[Reaction, ...]]] = {
    MemoryCreated: _to_created,
    ImportanceScored: lambda: (_capture(),),
    MemoryPromoted: _to_promoted,
    MemoriesShown: _to_searches,
    SearchPerformed: _to_searches,
    MemorySuppressed: _to_suppressed,
}
"""What makes the reactions of all mechanisms to a kind of event, for one process."""


def all_reactions() -> tuple[Reaction, ...]:
    """The reactions to every kind of event, each once."""
    return tuple({reaction.name: reaction for make in REACTIONS.values() for reaction in make()}.values())
