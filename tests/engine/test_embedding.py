"""Embedding in portions: what the model makes of a text is in memory only until its bits are packed."""

import weakref
from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
import pytest

from testbed.world import World
from vestige.core.models import Memory
from vestige.embed.background import EmbedderSource
from vestige.embed.hashing import HashingEmbedder
from vestige.embed.protocol import Encoded
from vestige.engine import embedding
from vestige.engine.context import Call
from vestige.engine.embedding import SLICE, SLICE_CHARS, embed_memories, embed_missing

NOW = datetime(2026, 3, 1, tzinfo=UTC)


class Watched(HashingEmbedder):
    """Counts the characters of the texts whose token states are still in memory when it is asked for more."""

    def __init__(self) -> None:
        super().__init__()
        self.most_alive = self.most_asked = self.most_texts = 0
        self._alive: dict[int, int] = {}

    def encode_documents(self, texts: Sequence[str]) -> list[Encoded]:
        self.most_alive = max(self.most_alive, sum(self._alive.values()))
        self.most_asked = max(self.most_asked, sum(map(len, texts)))
        self.most_texts = max(self.most_texts, len(texts))
        made = super().encode_documents(texts)
        for text, encoded in zip(texts, made, strict=True):
            assert encoded.tokens is not None
            states = encoded.tokens.states
            self._alive[id(states)] = len(text)
            weakref.finalize(states, self._alive.pop, id(states))
        return made


def memory(number: int, content: str) -> Memory:
    return Memory(id=f"00000000-0000-7000-8000-{number:012}", content=content, created_at=NOW, updated_at=NOW)


def sentences(chars: int, word: str) -> str:
    return f"The {word} is kept in the cellar behind the door. " * (chars // 40)


def test_token_states_are_kept_for_one_portion_however_long_the_texts_are(world: World) -> None:
    embedder = Watched()
    memories = [memory(number, sentences(60_000, f"w{number}")) for number in range(6)]
    made = embed_memories(Call(engine=world.app.engine), embedder, memories)

    assert sum(len(one.pieces) for one in made) > 6 * 50
    assert embedder.most_asked <= SLICE_CHARS
    assert embedder.most_alive <= SLICE_CHARS


def test_a_portion_of_short_texts_has_as_many_as_the_model_takes_at_once(world: World) -> None:
    embedder = Watched()
    memories = [memory(number, f"Note {number}") for number in range(SLICE + 1)]
    embed_memories(Call(engine=world.app.engine), embedder, memories)
    assert embedder.most_texts == SLICE


def test_portions_change_nothing_about_what_is_stored(world: World) -> None:
    embedder = HashingEmbedder()
    memories = [
        memory(number, sentences(size, f"w{number}")) for number, size in enumerate((100, 30_000, 50))
    ]
    call = Call(engine=world.app.engine)
    together = embed_memories(call, embedder, memories)
    alone = [embed_memories(call, embedder, [one])[0] for one in memories]

    for one, other in zip(together, alone, strict=True):
        assert one.text_hash == other.text_hash
        assert [(piece.start, piece.end) for piece in one.pieces] == [
            (piece.start, piece.end) for piece in other.pieces
        ]
        for piece, same in zip(one.pieces, other.pieces, strict=True):
            assert piece.tokens is not None
            assert same.tokens is not None
            np.testing.assert_array_equal(piece.vector, same.vector)
            np.testing.assert_array_equal(piece.tokens.bits, same.tokens.bits)


def test_memories_that_are_embedded_later_come_in_portions_too(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding, "MISSING_CHARS", 100)
    object.__setattr__(world.app.engine, "embedders", EmbedderSource.off("It comes later."))
    for length in (60, 30, 50, 150, 40):
        world.remember("".join(f"w{length}x{number} " for number in range(30))[:length].strip())
    done: list[float] = []
    call = Call(engine=world.app.engine, progress=lambda made, *_: done.append(made))
    assert embed_missing(call, HashingEmbedder()) == 5
    assert done == [2, 3, 4, 5]  # 60 + 30, 50, 150 alone, 40
