"""Fixtures of tests of the server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.transports.http.support.harness import Running, Site, new_site, serving, whoami


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A server in this process with the default settings, on a new store in memory."""
    with new_site(tmp_path / "data") as opened:
        yield opened


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Site]:
    """The same without its parts: what every request passes, and a route that says who came in."""
    with new_site(tmp_path / "data", parts=(whoami,)) as opened:
        yield opened


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A real server that all tests of a module share; its data directory is the folder of `stderr`."""
    with serving(tmp_path_factory.mktemp("running")) as started:
        yield started
