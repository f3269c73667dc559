"""Arguments for every operation, made from its schema: of the right shape, and with hostile values."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from random import Random
from typing import Any

from tests.transports.parity.example_store import example_of
from vestige.operations.registry.registry import Operation

TEXTS = (
    "", " ", "\n", "\0", "a\0b", "\ud800", "a\udfffb", "\u202e\u200b\ufeff", "x" * 5_000, "é" * 300,
    "日本" * 50,
    "The mill closes at five.", "The mill never closes at five.", "Ada drinks tea.", "Ada drinks coffee now.",
    "%s {} ' \" ; -- \\ */ <b>", "NaN", "null", "-1", "1e999", "9" * 400, "0.0.0.0:99999", "AND OR NOT NEAR(",
    '"', "*", "a*", "(((((", "every day at 25:61", "on 31 February 9999 at noon", "in 999999999999 years",
    "remind me yesterday", "until 9999-12-31", "since 0001-01-01", "👩‍👩‍👧‍👦" * 20,
)  # fmt: skip
TIMES = (
    "0001-01-01", "0001-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "0001-01-01T00:00:00-14:00",
    "9999-12-31", "9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59-14:00", "9999-12-31T00:00:00+14:00",
    "1969-12-31T23:59:59Z", "1900-01-01", "2400-02-29", "2026-02-30", "now", "",
)  # fmt: skip
SCOPES = (
    "/user/ada", "/project/mill/deep", "/agent/x", "/" + "a/" * 200, "/é/日本", "//", "/a/../b", "relative",
    "/\0", "/\ud800", "", " ", "/project/MILL",
)  # fmt: skip
IDS = (
    "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff", "0189", "", "\0", "'",
    "x" * 64, "01890000-0000-7000-8000-00000000ffff", "\ud800", "00000000000000000000000000000000",
)  # fmt: skip
PATHS = ("kept", "kept/none/there.json", "k\0", "k\ud800", "kept/" + "n" * 300, "")
NUMBERS = (
    0, -1, 1, 2, .5, -.5, 1e-300, -1e-300, 1e308, -1e308, math.nan, math.inf, -math.inf, 2**31, 2**63, 2**70,
)  # fmt: skip
MILD_TEXTS = (
    "The mill is in the valley.",
    "Ada drinks tea at five.",
    "mill",
    "tea",
    "Call Ada tomorrow at 10:00",
)
MILD_TIMES = ("2026-02-28T12:00:00Z", "2026-03-01", "2026-04-01T09:00:00+02:00")
MILD_SCOPES = ("/", "/user", "/project/mill", "/project/other")
MILD_PATHS = ("kept/new.jsonl", "kept/new.jsonl.gz", "kept/new.db")
ID_NAMES = frozenset(("id", "ids", "memory_id", "target", "center_id", "from", "to"))
PATH_NAMES = frozenset(("path", "folder"))
SCOPE_NAMES = frozenset(("scope", "scopes"))
PROJECT = "code"
"""The folder of the planted project, in the working directory."""
FROM_EXAMPLES = 0.5
"""The share of texts that are from the example of some operation with an argument of this name."""


class HostileArguments:
    """Makes arguments by chance, of a seed. `ids` are those of things that are stored. Some calls have a
    single hostile value, so that it is not refused for the sake of another one; what is not hostile is from
    the examples of operations."""

    def __init__(self, seed: int, ids: Sequence[str], operations: Iterable[Operation]) -> None:
        self._rng, self._ids = Random(seed), list(ids)
        self._hostile = 1.0
        self._defined: Mapping[str, Any] = {}
        self._examples: dict[str, list[str]] = {}
        for operation in operations:
            for name, value in example_of(operation).items():
                if isinstance(value, str):
                    self._examples.setdefault(name, []).append(value)

    def of(self, operation: Operation) -> dict[str, Any]:
        """Every required argument, and some of the others."""
        made = self._made_for(operation)
        if "path" in made and operation.name.startswith("project"):
            made["path"] = self._choice((PROJECT,), PATHS)
        for name, value in example_of(operation).items():
            if self._rng.random() >= self._hostile:
                made[name] = value
        return made

    def _made_for(self, operation: Operation) -> dict[str, Any]:
        schema = operation.arguments.model_json_schema(by_alias=False)
        self._defined, needed = schema.get("$defs", {}), {*schema.get("required", ()), *operation.positional}
        self._hostile = self._rng.choice((0.0, 0.1, 0.3, 1.0))
        return self._members(schema.get("properties", {}), needed)

    def _members(self, found: Mapping[str, Any], needed: Collection[str]) -> dict[str, Any]:
        share = self._rng.choice((0.05, 0.3, 0.6))
        return {
            name: self._value(name, one)
            for name, one in found.items()
            if name in needed or self._rng.random() < share
        }

    def _value(self, name: str, schema: Mapping[str, Any]) -> Any:
        if "$ref" in schema:
            return self._value(name, self._defined[schema["$ref"].rsplit("/", 1)[-1]])
        if "anyOf" in schema:
            return self._value(name, self._rng.choice(schema["anyOf"]))
        if "enum" in schema or "const" in schema:
            return self._choice(schema.get("enum", [schema.get("const")]), TEXTS)
        makers: dict[str | None, Callable[[], Any]] = {
            "null": lambda: None,
            "boolean": lambda: self._rng.random() < 0.5,
            "integer": lambda: self._number(schema),
            "number": lambda: self._number(schema),
            "array": lambda: self._list(name, schema),
            "object": lambda: self._object(schema),
            "string": lambda: self._text(name, schema),
        }
        return makers.get(schema.get("type"), self._json)()

    def _choice(self, mild: Sequence[Any], hostile: Sequence[Any]) -> Any:
        return self._rng.choice(hostile if self._rng.random() < self._hostile else mild)

    def _number(self, schema: Mapping[str, Any]) -> float:
        low, high = schema.get("minimum", schema.get("exclusiveMinimum", 1)), schema.get("maximum", 5)
        chosen: float = self._choice((low, high, low + 1), NUMBERS)
        whole = schema["type"] == "integer" and math.isfinite(chosen) and self._rng.random() < 0.8
        return int(chosen) if whole else chosen

    def _list(self, name: str, schema: Mapping[str, Any]) -> list[Any]:
        most = schema.get("maxItems", 20)
        length = min(60, self._choice((1, 2, 2, 3), (0, 5, most, most + 1)))
        return [self._value(name, schema.get("items", {})) for _ in range(length)]

    def _object(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        if "properties" in schema:
            return self._members(schema["properties"], schema.get("required", ()))
        return {self._choice(MILD_TEXTS, TEXTS)[:40]: self._json() for _ in range(self._rng.randrange(4))}

    def _text(self, name: str, schema: Mapping[str, Any]) -> Any:
        if name in self._examples and self._rng.random() < FROM_EXAMPLES:
            return self._choice(self._examples[name], TEXTS)
        if name in PATH_NAMES:
            return self._choice(MILD_PATHS, PATHS)
        if name in ID_NAMES:
            return self._choice(self._ids, IDS)
        if name in SCOPE_NAMES:
            return self._choice(MILD_SCOPES, SCOPES)
        if schema.get("format") == "date-time" or name in ("deadline", "expires", "snooze_until"):
            return self._choice(MILD_TIMES, TIMES)
        return self._choice(MILD_TEXTS, TEXTS)

    def _json(self, depth: int = 0) -> Any:
        """Any JSON value, sometimes a deep one."""
        rng = self._rng
        if depth == 0 and rng.random() < 0.1:
            deep: Any = "end"
            for _ in range(rng.choice((10, 100, 500))):
                deep = {"in": deep} if rng.random() < 0.5 else [deep]
            return deep
        if depth < 3 and rng.random() < 0.4:
            inner = [self._json(depth + 1) for _ in range(rng.randrange(4))]
            return inner if rng.random() < 0.5 else {rng.choice(TEXTS)[:20]: one for one in inner}
        return rng.choice((*NUMBERS, *TEXTS, *TIMES, True, False, None))
