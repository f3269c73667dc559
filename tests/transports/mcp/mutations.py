"""Messages of MCP that something is wrong with, made from right ones by chance that can be repeated."""

import json
import random
from collections.abc import Iterator
from typing import Any

from tests.transports.mcp.lines import ENVELOPE, HAS_ROOTS, listed

MODERN = {"_meta": ENVELOPE}
PROGRESS = {"_meta": {"progressToken": "p"}}
VALID: list[dict[str, Any]] = [
    {"jsonrpc": "2.0", "id": 1, "method": "ping"},
    {"jsonrpc": "2.0", "id": "a", "method": "tools/list", "params": {"cursor": None}},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": MODERN},
    {"jsonrpc": "2.0", "id": 3, "method": "server/discover", "params": MODERN},
    {
        "jsonrpc": "2.0",
        "id": 4,
        "method": "tools/call",
        "params": {"name": "search", "arguments": {"query": "é"}},
    },
    {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "search", **MODERN}},
    {"jsonrpc": "2.0", "id": 6, "method": "tools/call", "params": {"name": "dream", **PROGRESS}},
    {"jsonrpc": "2.0", "id": 7, "method": "resources/read", "params": {"uri": "memory://stats"}},
    {"jsonrpc": "2.0", "id": 8, "method": "resources/read", "params": {"uri": "memory://item/4", **MODERN}},
    {
        "jsonrpc": "2.0",
        "id": 9,
        "method": "prompts/get",
        "params": {"name": "greet", "arguments": {"who": "x"}},
    },
    {
        "jsonrpc": "2.0",
        "id": 10,
        "method": "initialize",
        "params": {"protocolVersion": "2025-03-26", "capabilities": HAS_ROOTS, "clientInfo": {"name": "x"}},
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"},
    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 4, "reason": "no"}},
    {"jsonrpc": "2.0", "id": "vestige-roots-1", "result": listed("file:///home/ada")},
    {"jsonrpc": "2.0", "id": 11, "error": {"code": -32603, "message": "no"}},
]
STRANGE: list[Any] = [
    None, True, -1, 0.5, 1e308, 10**30, "", "\x00", "\ud800", "é" * 300, [], {}, [[]], [{}], {"": None},
    "2.0", "tools/call", {"protocolVersion": 3},
]  # fmt: skip
PIECES = (
    b"", b"\x00", b"\xff\xfe", b"{", b"}", b"[", b"]", b'"', b",", b":", b"NaN", b"-Infinity", b"1e999",
    b"\\u", b"\\ud83d", b"9" * 5_000, b"[" * 2_000, b'{"a":' * 500, b"null", b'"id":1,', "\ufeff".encode(),
)  # fmt: skip


def malformed(seed: int, number: int) -> Iterator[bytes]:
    """So many messages, each on one line; the same for the same seed."""
    rng = random.Random(seed)
    for _ in range(number):
        yield _one(rng).replace(b"\n", b" ").replace(b"\r", b" ")


def _one(rng: random.Random) -> bytes:
    value: Any = json.loads(json.dumps(rng.choice(VALID)))
    for _ in range(rng.randrange(3)):
        value = _changed(rng, value)
    if rng.random() < 0.1:
        value = [value] * rng.randrange(4)
    raw = json.dumps(value, ensure_ascii=rng.random() < 0.9).encode("utf-8", "surrogatepass")
    for _ in range(rng.randrange(3)):
        raw = _cut(rng, raw)
    return raw


def _changed(rng: random.Random, value: Any) -> Any:
    """The value with something in it replaced, removed, renamed or added."""
    if not isinstance(value, dict) or not value or rng.random() < 0.1:
        return rng.choice(STRANGE)
    key = rng.choice(sorted(value))
    changed = dict(value)
    match rng.randrange(4):
        case 0:
            del changed[key]
        case 1:
            changed[rng.choice(("id", "method", "params", "result", "error", "x" * 200))] = rng.choice(
                STRANGE
            )
        case _:
            changed[key] = _changed(rng, changed[key])
    return changed


def _cut(rng: random.Random, raw: bytes) -> bytes:
    """The bytes with some of them lost, doubled, changed or strange ones among them."""
    start = rng.randrange(len(raw) + 1)
    end = min(len(raw), start + rng.randrange(20))
    match rng.randrange(5):
        case 0:
            return raw[:start] + raw[end:]
        case 1:
            return raw[:end] + raw[start:]
        case 2:
            return raw[:start]
        case 3:
            return raw[:start] + rng.randbytes(rng.randrange(8)) + raw[end:]
        case _:
            return raw[:start] + rng.choice(PIECES) + raw[start:]
