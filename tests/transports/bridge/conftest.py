"""Fixtures of tests of the bridge."""

from collections.abc import Iterator

import pytest

from tests.transports.bridge.harness import FAKE, Bridged, bridged


@pytest.fixture(scope="module")
def bridge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bridged]:
    """A bridge in front of a real `vestige-mcp`, which all tests of a module share."""
    with bridged(tmp_path_factory.mktemp("bridge")) as opened:
        yield opened


@pytest.fixture(scope="module")
def faked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bridged]:
    """A bridge in front of a program that repeats what it is told."""
    with bridged(tmp_path_factory.mktemp("faked"), FAKE) as opened:
        yield opened


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bridged]:
    """A bridge that keeps agents apart, in front of a real `vestige-mcp`."""
    with bridged(tmp_path_factory.mktemp("apart"), bridge__isolate_agents=True) as opened:
        yield opened
