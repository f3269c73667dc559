"""REST routes of operations: method and path, as data."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from pydantic.fields import FieldInfo

from vestige.core.lazy_dataclass import dataclass
from vestige.core.patterns import lazy_pattern

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
Created = Callable[[Mapping[str, Any]], bool]
"""Decides from an operation's answer whether something new was created."""

_PLACE = lazy_pattern(r"\{(\w+)\}")


def never(answer: Mapping[str, Any]) -> bool:
    """The operation creates nothing."""
    return False


def always(answer: Mapping[str, Any]) -> bool:
    """The operation creates something whenever it succeeds."""
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Method and path of an operation, relative to the API root."""

    operation: str
    method: Method
    path: str
    tag: str
    """The group it is listed under."""
    created: Created = never

    @classmethod
    def default(cls, operation: str) -> "Route":
        """The route of an operation without a declared one: `a.some_thing` is `POST /a/some-thing`."""
        path = "/" + operation.replace(".", "/").replace("_", "-")
        return cls(operation=operation, method="POST", path=path, tag=operation.partition(".")[0])

    @property
    def places(self) -> tuple[str, ...]:
        """The arguments that are part of the path."""
        return tuple(_PLACE.findall(self.path))

    @property
    def has_body(self) -> bool:
        """Whether the other arguments are in the body. GET and DELETE use the query: their bodies may be
        dropped.
        """
        return self.method not in ("GET", "DELETE")

    def order(self) -> list[tuple[bool, str]]:
        """Sort key: fixed parts before parameters, so /memories/batch comes before /memories/{id}."""
        return [(part.startswith("{"), part) for part in self.path.split("/")]

    def check(self, *, effect: str, arguments: Mapping[str, FieldInfo], others: Iterable["Route"]) -> None:
        """Raise TypeError if the operation cannot have this route."""
        if self.method == "GET" and effect != "none":
            raise TypeError(f"GET must not change anything, but {self.operation} may.")
        for name in self.places:
            if name not in arguments or not arguments[name].is_required():
                raise TypeError(f"{self.operation} has no required argument {name}.")
        for other in others:
            if (other.method, _PLACE.sub("{}", other.path)) == (self.method, _PLACE.sub("{}", self.path)):
                raise TypeError(f"{self.method} {self.path} already belongs to {other.operation}.")
