"""The application as the MCP driver uses it. Only the type checker reads this module."""

from collections.abc import Callable
from typing import Protocol

from vestige.core.invocation import Invocation
from vestige.transports.mcp.protocol.jsonrpc import Message


class Service(Protocol):
    """The application. Called from several threads; raises VestigeError."""

    def call_tool(self, invocation: Invocation) -> Message:
        """Run a tool; returns a JSON object."""

    def read_resource(self, invocation: Invocation) -> Message:
        """Read a resource (`name` is its URI); returns a JSON object."""

    def close(self) -> None:
        """Release everything."""


OpenApp = Callable[[], Service]
"""Opens the application: slow, and may raise VestigeError."""
