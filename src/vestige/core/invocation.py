"""One call of an operation, a tool or a resource: everything a transport passes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from vestige.core.caller import LOCAL_USER, Caller

Progress = Callable[[float, float | None, str | None], None]
"""Called with (done, total, message) while a long call runs."""


def ignore_progress(done: float, total: float | None, message: str | None) -> None:
    """The progress callback of a call that no one watches."""


class CancelSignal(Protocol):
    """Reports whether a call was cancelled, such as a `threading.Event`."""

    def is_set(self) -> bool:
        """Whether the call was cancelled."""


class NeverCancelled:
    """The signal of a call that cannot be cancelled."""

    def is_set(self) -> bool:
        """Always false."""
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """A request for one operation (by name), one MCP tool (by name) or one MCP resource (by URI).

    `roots` are the URIs of the folders the client works in, if known. `deadline` is a time of the
    engine's monotonic clock.
    """

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    caller: Caller = LOCAL_USER
    request_id: str = ""
    progress: Progress = ignore_progress
    cancelled: CancelSignal = field(default_factory=NeverCancelled)
    deadline: float | None = None
    roots: Sequence[str] = ()
