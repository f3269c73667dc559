"""What a model made of the texts it read last, so that it need not read them again.

The gate compares a new text with its nearest rivals by their token states, and asks the pair model about
some of them. In a store of alike notes these are the same few texts, note after note.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from hashlib import blake2b
from typing import Generic, TypeVar

from vestige.embed.protocol import Encoded

SHORT_CHARS = 400
"""The longest text whose encoding is kept: a longer one would push out many short ones."""
ENCODING_BYTES = 8 * 2**20
"""The limit of all kept encodings: 500 texts of ten word pieces."""
MOST_PAIRS = 1024
"""The limit of pairs whose scores are kept."""
MOST_READ = 512
"""The limit of texts whose word pieces are kept for the pair model."""

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Recent(Generic[Key, Value]):
    """The values that were used last, as many as their sizes allow. Thread-safe."""

    def __init__(self, limit: int, size: Callable[[Value], int] = lambda _: 1) -> None:
        self._limit, self._size = limit, size
        self._held: OrderedDict[Key, tuple[Value, int]] = OrderedDict()
        self._lock = threading.Lock()
        self.total = 0

    def get(self, key: Key) -> Value | None:
        with self._lock:
            found = self._held.get(key)
            if found is None:
                return None
            self._held.move_to_end(key)
            return found[0]

    def put(self, key: Key, value: Value) -> None:
        size = self._size(value)
        if size > self._limit:
            return
        with self._lock:
            before = self._held.pop(key, None)
            self.total += size - (before[1] if before else 0)
            self._held[key] = value, size
            while self.total > self._limit:
                _, (_, gone) = self._held.popitem(last=False)
                self.total -= gone

    def __len__(self) -> int:
        return len(self._held)


def text_key(text: str) -> bytes:
    """The key of a text. The text itself is not kept: it may be deleted from the store meanwhile."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def encoding_bytes(encoded: Encoded) -> int:
    """The memory that an encoding takes."""
    tokens = encoded.tokens
    parts = (encoded.vector,) if tokens is None else (encoded.vector, tokens.ids, tokens.spans, tokens.states)
    return sum(part.nbytes for part in parts)


def read_only(encoded: Encoded) -> Encoded:
    """The encoding with its arrays protected from changes, because several callers share them."""
    tokens = encoded.tokens
    parts = (encoded.vector,) if tokens is None else (encoded.vector, tokens.ids, tokens.spans, tokens.states)
    for part in parts:
        part.setflags(write=False)
    return encoded
