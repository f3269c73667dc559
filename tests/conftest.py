"""Fixtures every test may use."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from testbed.effort import NIGHTLY, effort
from testbed.fresh_databases import FreshDatabases, fresh_databases
from testbed.memory_folder import memory_folder
from testbed.postgres_server import Server, server
from testbed.world import World, on_postgres, open_world
from vestige.embed.minilm.install import ModelPresence, status

pytest_plugins = ["testbed.durations"]

POSTGRES = pytest.param("postgres", marks=pytest.mark.slow)  # it starts a server
BACKENDS = ("sqlite", "memory")

# How long an example takes depends on what else the machine does; it is no law of what is tested. Every run
# tries the same examples, so that none fails by chance; only `make nightly` tries others each time, and more.
settings.register_profile(
    "patient",
    deadline=None,
    derandomize=not NIGHTLY,
    suppress_health_check=[HealthCheck.too_slow],
    max_examples=effort(50, nightly=500),
)
settings.load_profile("patient")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """One process more than there are cores for the fast tests, which wait a little now and then."""
    return (os.cpu_count() or 1) + 1 if "not slow" in config.option.markexpr else None


def pytest_configure() -> None:
    """Let Ctrl-C reach the programs that tests start, keep temporary files in memory, and use UTC on every
    machine.

    A run in the background of a script ignores Ctrl-C, which the programs would inherit.
    """
    os.environ["TZ"] = "UTC"
    if (folder := memory_folder()) is not None:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(folder))
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """One PostgreSQL for all tests that want one."""
    with server() as started:
        yield started


@pytest.fixture(scope="session")
def postgres_databases(
    postgres_server: Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FreshDatabases]:
    """Databases there, each with an empty store."""

    def prepare(url: str) -> None:
        with open_world(tmp_path_factory.mktemp("template"), **on_postgres(url)):
            pass

    with fresh_databases(postgres_server, prepare) as databases:
        yield databases


@contextmanager
def store_of(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """Settings that name an empty store of the kind that is a fixture's parameter."""
    if request.param != "postgres":
        yield {"storage.backend": request.param}
        return
    databases: FreshDatabases = request.getfixturevalue("postgres_databases")
    url = databases.take()
    yield on_postgres(url)
    databases.give_back(url)


@pytest.fixture(params=BACKENDS)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """A world on each store in turn, with the hashing embedder and a clock that stands still."""
    with store_of(request) as settings, open_world(tmp_path / "data", **settings) as opened:
        yield opened


@pytest.fixture(scope="session")
def real_model_dir() -> Path:
    """The installed default model; `make` installs it, and nothing is downloaded here."""
    override = os.environ.get("VESTIGE_MODEL_DIR")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    root = Path(override) if override else cache / "vestige" / "models"
    found = status(root)
    if found.presence is not ModelPresence.READY:
        pytest.skip(f"THE REAL MODEL IS NOT TESTED: {found.presence} in {root}; run `vestige model install`")
    return found.path
