"""The application as transports use it: two Protocols, for the type checker only."""

from collections.abc import Callable
from typing import Any, Protocol

from vestige.core.caller import Invocation
from vestige.engine.context import Engine
from vestige.transports.mcp.protocol.jsonrpc import Message


class Service(Protocol):
    """The application. Called from several threads; raises VestigeError."""

    def call_tool(self, invocation: Invocation) -> Message:
        """Run a tool; returns a JSON object."""

    def read_resource(self, invocation: Invocation) -> Message:
        """Read a resource (`name` is its URI); returns a JSON object."""

    def close(self) -> None:
        """Release everything."""


class ServerApplication(Protocol):
    """A running Vestige, such as `vestige.app.App`. Called from several threads. A `deadline` is a time of
    the engine's monotonic clock; work that is not done by then fails."""

    @property
    def engine(self) -> Engine:
        """The parts of the application."""

    def call_operation(self, invocation: Invocation) -> dict[str, Any]:
        """Run an operation; the answer as JSON-able data."""

    def call_tool(self, invocation: Invocation) -> dict[str, Any]:
        """Run an MCP tool by name."""

    def read_resource(self, invocation: Invocation) -> dict[str, Any]:
        """Read an MCP resource by URI."""


OpenApp = Callable[[], Service]
"""Opens the application: slow, and may raise VestigeError."""
