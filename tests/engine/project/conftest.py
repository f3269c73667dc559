"""A project to walk and index, in a folder of the test."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from testbed.world import World, open_world
from vestige.engine.context import Call

Git = Callable[..., str]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with open_world(tmp_path / "data") as made:
        yield made


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    return folder


@pytest.fixture
def call(world: World, root: Path) -> Call:
    return Call(engine=world.app.engine, local=True, folder=root)


@pytest.fixture
def git(root: Path, tmp_path: Path) -> Git:
    """Runs git in the project, which becomes a repository, with settings of its own."""
    settings = {
        "HOME": str(tmp_path), "PATH": "/usr/local/bin:/usr/bin:/bin", "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.org", "GIT_COMMITTER_NAME": "Ada",
        "GIT_COMMITTER_EMAIL": "ada@example.org", "GIT_AUTHOR_DATE": "2026-01-02T03:04:05Z",
        "GIT_COMMITTER_DATE": "2026-01-02T03:04:05Z",
    }  # fmt: skip

    def run(*words: str) -> str:
        done = subprocess.run(
            ["git", *words], cwd=root, env=settings, capture_output=True, text=True, check=True
        )
        return done.stdout

    run("init", "-q", "-b", "main")
    return run


@pytest.fixture
def write(root: Path) -> Callable[[str, str], Path]:
    """Writes a file of the project."""

    def put(path: str, text: str = "x = 1\n") -> Path:
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
        return place

    return put
