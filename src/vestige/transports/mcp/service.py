"""The application as the MCP driver uses it. Only the type checker reads this module."""

from collections.abc import Callable, Sequence
from typing import Protocol

from vestige.transports.mcp.protocol.jsonrpc import Message

Progress = Callable[[float, float | None, str | None], None]
"""Called with (done, total, message)."""


class Signal(Protocol):
    """Reports to a running call that it was cancelled, such as a `threading.Event`."""

    def is_set(self) -> bool:
        """Whether the call was cancelled."""


class Service(Protocol):
    """The application. Called from several threads; raises VestigeError.

    `roots` are the URIs of the folders that the client works in, if known.
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
        """Run a tool; returns a JSON object."""

    def read_resource(
        self,
        uri: str,
        *,
        request_id: str,
        progress: Progress,
        cancelled: Signal,
        roots: Sequence[str] = (),
    ) -> Message:
        """Read a resource; returns a JSON object."""

    def close(self) -> None:
        """Close everything."""


OpenApp = Callable[[], Service]
"""Opens the application: slow, and may raise VestigeError."""
