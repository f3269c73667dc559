"""Where REST offers an operation: a method and a path, as data."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic.fields import FieldInfo

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
Created = Callable[[Mapping[str, Any]], bool]
"""Whether something came into being, by the answer of an operation."""

_PLACE = re.compile(r"\{(\w+)\}")


def never(answer: Mapping[str, Any]) -> bool:
    """Nothing did."""
    return False


def always(answer: Mapping[str, Any]) -> bool:
    """Something did, or else there would be an error instead of an answer."""
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """The address of an operation, below that of the API."""

    operation: str
    method: Method
    path: str
    tag: str
    """What it is listed under."""
    created: Created = never

    @classmethod
    def default(cls, operation: str) -> "Route":
        """Where an operation is that nobody gave an address: `a.some_thing` at `POST /a/some-thing`."""
        path = "/" + operation.replace(".", "/").replace("_", "-")
        return cls(operation=operation, method="POST", path=path, tag=operation.partition(".")[0])

    @property
    def places(self) -> tuple[str, ...]:
        """The arguments that the path holds."""
        return tuple(_PLACE.findall(self.path))

    @property
    def has_body(self) -> bool:
        """Whether the other arguments are in a body. What GET and DELETE carry there has no meaning in HTTP,
        and is lost on the way by some: they have a query."""
        return self.method not in ("GET", "DELETE")

    def order(self) -> list[tuple[bool, str]]:
        """Sorts what is fixed before what stands for anything: /memories/batch before /memories/{id}."""
        return [(part.startswith("{"), part) for part in self.path.split("/")]

    def check(self, *, effect: str, arguments: Mapping[str, FieldInfo], others: Iterable["Route"]) -> None:
        """Raise TypeError for an address that this operation cannot have."""
        if self.method == "GET" and effect != "none":
            raise TypeError(f"GET changes nothing, but {self.operation} may.")
        for name in self.places:
            if name not in arguments or not arguments[name].is_required():
                raise TypeError(f"{self.operation} has no required argument {name}.")
        for other in others:
            if (other.method, _PLACE.sub("{}", other.path)) == (self.method, _PLACE.sub("{}", self.path)):
                raise TypeError(f"{self.method} {self.path} is {other.operation} already.")
