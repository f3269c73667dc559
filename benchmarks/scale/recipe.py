"""The recipe by which sentences become any number of different memories, always the same ones.

A memory is two sentences of one kind with other names and numbers in them. To embed a million texts would
take hours and say nothing about searching them, so only the sentences go through the model. A memory's vector
is the normalised sum of its sentences' vectors and a little noise, its token bits are theirs, one after the
other.
`fidelity` tells how near that comes to what the model itself would say.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TypeVar
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from benchmarks.progress import track
from benchmarks.scale.sentences import Material
from vestige.cognition.text.analyser import text_hash
from vestige.cognition.text.form import asked
from vestige.core.models import Memory
from vestige.embed.protocol import Embedder, Encoded, Signature
from vestige.store.contract.changes import Add, Embedded, Piece, Tokens

Vectors = NDArray[np.float32]
Number = TypeVar("Number", int, NDArray[np.int64])

BLOCK = 1_000
"""Memories whose noise is drawn together, and that are written together."""
PER_THREAD = 10
FILTERED = 100
"""One memory in so many is in a given scope, and one in so many has a given tag."""
NOISE = 0.3
SEED = 7
SLICE = 64
FIRST = datetime(2025, 1, 1, tzinfo=UTC)
EVERY = timedelta(seconds=30)
MORE_NAMES = (
    "Ada", "Amir", "Anna", "Ben", "Bianca", "Carlos", "Chen", "Clara", "Dara", "David", "Elena", "Emil",
    "Esra", "Farid", "Fiona", "George", "Grace", "Hana", "Hugo", "Iris", "Ivan", "Jana", "Jonas",
    "Julia", "Kai", "Karim", "Laura", "Leo", "Lin", "Lucia", "Marek", "Mina", "Nadia", "Nora", "Oleg",
    "Omar", "Paula", "Pedro", "Priya", "Quentin", "Rosa", "Ruben", "Sara", "Sven", "Tara", "Theo", "Uma",
    "Victor", "Wanda", "Yara", "Yusuf", "Zoe",
)  # fmt: skip

_NUMBER = re.compile(r"\d{1,9}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """A sentence with what the model made of it."""

    text: str
    vector: Vectors
    tokens: Tokens | None


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Makes the memory, the vector and the token bits of every number from 0 on."""

    said: Sequence[Sentence]
    written: Sequence[Sentence]
    names: Sequence[str]
    signature: Signature

    @property
    def most(self) -> int:
        """How many different memories it can make."""
        return min(len(kind) * (len(kind) - 1) for kind in (self.said, self.written))

    def additions(self, start: int, end: int) -> Iterator[Add]:
        """The memories from `start` to before `end` with their vectors, as a store takes them."""
        for number, vector in zip(range(start, end), self.vectors(start, end), strict=True):
            memory = self.memory(number)
            tokens = self._tokens(number)
            piece = Piece(start=0, end=len(memory.content), vector=vector, tokens=tokens)
            embedded = Embedded(signature=self.signature, text_hash=text_hash(memory), pieces=(piece,))
            yield Add(memory=memory, embedded=embedded)

    def memory(self, number: int) -> Memory:
        """One in ten of a talk, or a note by itself; in one of the scopes, with one of the tags."""
        thread, position = divmod(number, PER_THREAD)
        content = " ".join(self._renamed(one.text, number) for one in self._parts(number))
        speaker = self.names[(2 * thread + number % 2) % len(self.names)] if is_said(number) else None
        moment = FIRST + number * EVERY
        return Memory(
            id=memory_id(number),
            content=f"{speaker}: {content}" if speaker else content,
            created_at=moment,
            updated_at=moment,
            scope=scope_of(thread),
            tags=(tag_of(number),),
            author=speaker,
            thread=f"talk-{thread}" if speaker else None,
            position=position if speaker else None,
        )

    def vectors(self, start: int, end: int) -> Vectors:
        """Their vectors, a row each."""
        blocks = [self._block(number) for number in range(start // BLOCK, -(-end // BLOCK))]
        first = start // BLOCK * BLOCK
        found: Vectors = np.concatenate(blocks)[start - first : end - first]
        return found

    def _block(self, block: int) -> Vectors:
        dimension = self.signature.dimension
        noise = np.random.default_rng((SEED, block)).standard_normal((BLOCK, dimension), dtype=np.float32)
        numbers = range(block * BLOCK, (block + 1) * BLOCK)
        rows = NOISE / np.sqrt(dimension) * noise
        rows += np.array([sum(one.vector for one in self._parts(number)) for number in numbers])
        normal: Vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
        return normal

    def _parts(self, number: int) -> tuple[Sentence, Sentence]:
        """Two different sentences; no other number below `most` has the same two in this order."""
        kind = self.said if is_said(number) else self.written
        turn, first = divmod(number, len(kind))
        second = (first + 1 + turn % (len(kind) - 1)) % len(kind)
        return kind[first], kind[second]

    def _tokens(self, number: int) -> Tokens | None:
        told = [one.tokens for one in self._parts(number) if one.tokens is not None]
        if not told:
            return None
        return Tokens(
            bits=np.concatenate([one.bits for one in told]), asked=np.concatenate([one.asked for one in told])
        )

    @cached_property
    def _named(self) -> re.Pattern[str]:
        return re.compile(rf"\b(?:{'|'.join(map(re.escape, self.names))})\b")

    def _renamed(self, text: str, number: int) -> str:
        """With other names and numbers, the same for all of one talk."""
        by = number // PER_THREAD
        places = {name: at for at, name in enumerate(self.names)}
        text = self._named.sub(lambda met: self.names[(places[met[0]] + by) % len(self.names)], text)
        return _NUMBER.sub(lambda met: str(int(met[0]) + by % 89), text)


def is_said(number: int) -> bool:
    """Half of the threads of every scope are talk; the others are ten notes each, in no thread."""
    thread = number // PER_THREAD
    return (thread + thread // FILTERED) % 2 == 0


def memory_id(number: int) -> str:
    """Ids ascend with the numbers."""
    return str(UUID(int=number))


def number_of(memory_id: str) -> int:
    """The number back from the id."""
    return UUID(memory_id).int


def scope_of(thread: int) -> str:
    """The scope of a thread."""
    return f"/project/p{thread % FILTERED}"


def tag_of(number: int) -> str:
    """The tag of a memory."""
    return f"topic-{topic_of(number)}"


def topic_of(number: Number) -> Number:
    """What a tag is told by. It goes across threads and scopes: steps of 61 visit all of a hundred."""
    return (61 * number + number // FILTERED) % FILTERED


def prepare(material: Material, embedder: Embedder) -> Recipe:
    """Have the model read every sentence."""
    said, written = (_read(texts, embedder) for texts in (material.said, material.written))
    names = tuple(dict.fromkeys((*material.names, *MORE_NAMES)))
    return Recipe(said=said, written=written, names=names, signature=embedder.signature)


def fidelity(recipe: Recipe, embedder: Embedder, count: int) -> float:
    """The mean cosine between a composed vector and the one the model gives to the composed text."""
    numbers = range(0, count * PER_THREAD, PER_THREAD)
    real = embedder.embed_documents([recipe.memory(number).content for number in numbers])
    made = recipe.vectors(0, count * PER_THREAD)[::PER_THREAD]
    return float(np.einsum("ij,ij->i", real, made).mean())


def _read(texts: Sequence[str], embedder: Embedder) -> list[Sentence]:
    ordered = sorted(texts, key=len)  # texts of one length pad each other least
    slices = [ordered[at : at + SLICE] for at in range(0, len(ordered), SLICE)]
    made = {
        text: Sentence(text=text, vector=encoded.vector, tokens=_bits(text, encoded))
        for some in track(slices, "embedding sentences")
        for text, encoded in zip(some, embedder.encode_documents(some), strict=True)
    }
    # Neighbours of a text are drawn from all over, not from its own conversation.
    return [made[texts[at]] for at in _shuffled(len(texts))]


def _bits(text: str, encoded: Encoded) -> Tokens | None:
    if encoded.tokens is None:
        return None
    return Tokens(
        bits=np.packbits(encoded.tokens.states > 0, axis=1), asked=asked(text, encoded.tokens.spans)
    )


def _shuffled(count: int) -> list[int]:
    order: list[int] = np.random.default_rng(SEED).permutation(count).tolist()
    return order
