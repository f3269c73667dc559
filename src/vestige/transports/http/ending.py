"""How a server ends: what still runs may finish, and is told to hurry when its time is up."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vestige.callers import LOCAL_USER, Caller
from vestige.engine.context import Engine, Progress
from vestige.operations.registry import Operation
from vestige.transports.http.desk import Application
from vestige.transports.mcp.service import Signal


@dataclass(frozen=True, slots=True)
class _Either:
    """Set when one of two signals is."""

    one: Signal
    other: Signal

    def is_set(self) -> bool:
        return self.one.is_set() or self.other.is_set()


class Hurried:
    """An application whose calls are cancelled all at once when the server's time to end is up.

    Work in a thread cannot be stopped from outside; it looks at its signal between steps.
    """

    def __init__(self, app: Application) -> None:
        self._app, self.hurry = app, threading.Event()

    @property
    def engine(self) -> Engine:
        """The application's."""
        return self._app.engine

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
        """Run an operation."""
        return self._app.answer(
            operation,
            arguments,
            caller=caller,
            request_id=request_id,
            progress=progress,
            cancelled=_Either(cancelled, self.hurry),
            deadline=deadline,
        )

    def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        request_id: str,
        progress: Progress,
        cancelled: Signal,
        roots: Sequence[str] = (),
        caller: Caller = LOCAL_USER,
        deadline: float | None = None,
    ) -> dict[str, Any]:
        """Run an MCP tool."""
        return self._app.call_tool(
            name,
            arguments,
            request_id=request_id,
            progress=progress,
            cancelled=_Either(cancelled, self.hurry),
            roots=roots,
            caller=caller,
            deadline=deadline,
        )

    def read_resource(
        self,
        uri: str,
        *,
        request_id: str,
        progress: Progress,
        cancelled: Signal,
        roots: Sequence[str] = (),
        caller: Caller = LOCAL_USER,
        deadline: float | None = None,
    ) -> dict[str, Any]:
        """Read an MCP resource."""
        return self._app.read_resource(
            uri,
            request_id=request_id,
            progress=progress,
            cancelled=_Either(cancelled, self.hurry),
            roots=roots,
            caller=caller,
            deadline=deadline,
        )
