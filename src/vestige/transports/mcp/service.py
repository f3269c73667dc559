"""What the driver needs of the application. Only the type checker reads this module."""

from collections.abc import Callable, Sequence
from typing import Protocol

from vestige.transports.mcp.protocol.jsonrpc import Message

Progress = Callable[[float, float | None, str | None], None]
"""Called with (done, total, message)."""


class Signal(Protocol):
    """Tells a running call that nobody waits for it any more; a `threading.Event` is one."""

    def is_set(self) -> bool:
        """Whether the call was cancelled."""


class Service(Protocol):
    """The application. Called from several threads; raises VestigeError for what it refuses.

    `roots` are the URIs of the folders its client works in, as far as known.
    """

    def call_tool(
        self,
        name: str,
        arguments: Message,
        *,
        request_id: str,
        progress: Progress,
        cancelled: Signal,
        roots: Sequence[str] = (),
    ) -> Message:
        """Run a tool; its answer as a JSON object."""

    def read_resource(
        self,
        uri: str,
        *,
        request_id: str,
        progress: Progress,
        cancelled: Signal,
        roots: Sequence[str] = (),
    ) -> Message:
        """Read a resource; its content as a JSON object."""

    def close(self) -> None:
        """Let go of everything."""


OpenApp = Callable[[], Service]
"""Opens the application: slow, and may raise VestigeError."""
