"""What is kept of the texts a model read last."""

import numpy as np
import pytest

from vestige.embed.protocol import Encoded, TokenStates
from vestige.embed.recent import Recent, encoding_bytes, read_only, text_key


def made(tokens: int) -> Encoded:
    states = TokenStates(
        ids=np.zeros(tokens, np.int32),
        spans=np.zeros((tokens, 2), np.int32),
        states=np.ones((tokens, 4), np.float32),
    )
    return Encoded(vector=np.ones(4, np.float32), tokens=states)


def test_the_value_that_was_used_longest_ago_goes_first() -> None:
    held = Recent[str, int](2)
    held.put("a", 1)
    held.put("b", 2)
    assert held.get("a") == 1
    held.put("c", 3)
    assert (held.get("a"), held.get("b"), held.get("c")) == (1, None, 3)


def test_the_sizes_of_what_is_kept_never_exceed_the_limit() -> None:
    held = Recent[int, Encoded](1000, encoding_bytes)
    for at in range(50):
        held.put(at, made(1 + at % 7))
        assert held.total == sum(encoding_bytes(one) for k in range(50) if (one := held.get(k))) <= 1000
    assert 1 < len(held) < 50


def test_a_value_above_the_limit_is_not_kept_and_pushes_nothing_out() -> None:
    held = Recent[str, Encoded](200, encoding_bytes)
    held.put("short", made(1))
    held.put("long", made(100))
    assert held.get("short") is not None
    assert held.get("long") is None


def test_a_value_that_is_kept_again_counts_once() -> None:
    held = Recent[str, Encoded](1000, encoding_bytes)
    held.put("a", made(2))
    held.put("a", made(3))
    assert held.total == encoding_bytes(made(3))


def test_keys_do_not_hold_the_text_and_take_any_text() -> None:
    keys = {text_key(text) for text in ("tea", "Tea", "tea ", "", "\ud800", "té")}
    assert len(keys) == 6
    assert all(len(key) == 16 and b"tea" not in key for key in keys)


def test_a_shared_encoding_cannot_be_changed() -> None:
    shared = read_only(made(2))
    assert shared.tokens is not None
    for part in (shared.vector, shared.tokens.ids, shared.tokens.spans, shared.tokens.states):
        with pytest.raises(ValueError, match="read-only"):
            part[...] = 0
