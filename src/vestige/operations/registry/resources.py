"""MCP resources: answers of operations under URIs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from vestige.core.errors import InvalidInput
from vestige.operations.registry.errors import unknown_argument


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """An MCP resource: the answer of an operation under a URI. `{id}` in the URI is an argument."""

    uri: str
    name: str
    description: str
    operation: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    """Query parameter name to argument name."""

    def matches(self, uri: str) -> dict[str, Any] | None:
        """The arguments from a URI without its query, or None if the URI belongs to another resource."""
        before, braces, _ = self.uri.partition("{id}")
        if not braces:
            return dict(self.arguments) if uri == self.uri else None
        found = uri.startswith(before) and len(uri) > len(before)
        return {**self.arguments, "id": uri[len(before) :]} if found else None

    def asked(self, query: str) -> dict[str, str]:
        """The arguments from the query of a URI."""
        given: dict[str, str] = {}
        for name, value in parse_qsl(query, keep_blank_values=True):
            if name not in self.query:
                raise unknown_argument(self.uri, name, list(self.query))
            if self.query[name] in given:
                raise InvalidInput(f"`{name}` is given twice.", details={"argument": name})
            given[self.query[name]] = value
        return given
