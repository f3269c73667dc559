"""What the generated methods have in common: a channel that runs an operation by its name."""

from collections.abc import Mapping
from typing import Any, Protocol


class OperationChannel(Protocol):
    """Runs operations: on a server (`Client`) or in this process (`Memory`)."""

    def ask(self, operation: str, arguments: Mapping[str, Any]) -> Any:  # JSON; the caller knows its type
        """The answer of an operation. `arguments` are all local variables of a method of a `Part`."""


class AsyncOperationChannel(Protocol):
    """The same for methods that are awaited."""

    async def ask(self, operation: str, arguments: Mapping[str, Any]) -> Any:
        """The answer of an operation."""


class Part:
    """A group of operations of a channel."""

    def __init__(self, channel: OperationChannel) -> None:
        self._channel = channel


class AsyncPart:
    """A group of operations that are awaited."""

    def __init__(self, channel: AsyncOperationChannel) -> None:
        self._channel = channel


def given_arguments(local_variables: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments among the local variables of a method: those that are not null, without `self`. The name
    of one that is a keyword, such as `from`, has a trailing `_` there."""
    return {
        name.removesuffix("_"): value
        for name, value in local_variables.items()
        if value is not None and name != "self"
    }
