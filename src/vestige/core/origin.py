"""The origin of a text: which kind of source it came from. It is set once, at the door, and never rises."""

import enum
from collections.abc import Iterable


class Origin(enum.StrEnum):
    """The kinds of sources, the most trusted first."""

    USER = "user"
    """A person at the command line."""
    ASSISTANT = "assistant"
    """An agent or a program, through MCP, REST or Python."""
    IMPORT = "import"
    """A file of another memory system."""
    CONNECTOR = "connector"
    """A service that is read by itself, such as an issue tracker or a chat."""
    DOCUMENT = "document"
    """A file or a web page."""
    TOOL = "tool"
    """The output of a tool."""


_RANKS: dict[str | None, int] = {origin.value: rank for rank, origin in enumerate(reversed(Origin), start=1)}
_RANKS[None] = _RANKS[Origin.ASSISTANT]
"""Memories of earlier versions have no origin; they came from persons and agents."""


def lowest(origins: Iterable[str | None]) -> str | None:
    """The least trusted of some origins, which is that of a text made from theirs; of equal ones the first.
    One that only a newer version knows is the least trusted of all."""
    return min(origins, key=lambda origin: _RANKS.get(origin, 0), default=None)
