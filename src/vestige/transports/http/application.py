"""What the server needs of the application. Nothing of the extra is imported here."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from vestige.callers import Caller
from vestige.engine.context import Engine, Progress
from vestige.operations.registry import Operation
from vestige.transports.mcp.service import Signal


class Application(Protocol):
    """A running Vestige, as `vestige.app.App` is one. Called from several threads.

    A `deadline` is a time of its engine's monotonic clock: what is not done by then is given up.
    """

    @property
    def engine(self) -> Engine:
        """Its parts."""

    def answer(
        self,
        operation: Operation,
        arguments: Mapping[str, Any],
        *,
        caller: Caller,
        request_id: str,
        progress: Progress,
        cancelled: Signal,
        deadline: float,
    ) -> dict[str, Any]:
        """Run an operation; the answer as JSON-able data."""

    def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        request_id: str,
        progress: Progress,
        cancelled: Signal,
        roots: Sequence[str] = (),
        caller: Caller = ...,
        deadline: float | None = None,
    ) -> dict[str, Any]:
        """Run an MCP tool by name."""

    def read_resource(
        self,
        uri: str,
        *,
        request_id: str,
        progress: Progress,
        cancelled: Signal,
        roots: Sequence[str] = (),
        caller: Caller = ...,
        deadline: float | None = None,
    ) -> dict[str, Any]:
        """Read an MCP resource."""
