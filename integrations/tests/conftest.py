"""A real memory for the adapters: in this process, with the embedder of the tests."""

from collections.abc import Iterator

import pytest

from vestige import AsyncMemory, Memory

SETTINGS = {"embeddings.provider": "hashing"}


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory(":memory:", settings=SETTINGS) as opened:
        yield opened


@pytest.fixture
def async_memory() -> AsyncMemory:
    return AsyncMemory(":memory:", settings=SETTINGS)
