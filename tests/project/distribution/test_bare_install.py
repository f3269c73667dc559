"""Vestige without extras: installed from a built wheel into an environment of its own, and used."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.project import PROJECT

CONSTRAINTS = str(PROJECT / "constraints.txt")

pytestmark = pytest.mark.slow

Run = Callable[..., str]


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs a command of a fresh environment that has Vestige and nothing it does not require."""
    folder = tmp_path_factory.mktemp("bare")
    environment = folder / "environment"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    programs = environment / ("Scripts" if sys.platform == "win32" else "bin")
    pip = [str(programs / "python"), "-m", "pip", "install", "--quiet", "--constraint", CONSTRAINTS]
    subprocess.run([*pip, "pip"], check=True)
    subprocess.run([*pip, "--build-constraint", CONSTRAINTS, str(PROJECT)], check=True)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("VESTIGE_")}
    environ = {**inherited, "HOME": str(folder), "VESTIGE_OFFLINE": "1"}
    for name in ("XDG_DATA_HOME", "XDG_CACHE_HOME", "PYTHONPATH"):
        environ.pop(name, None)

    def run(program: str, *arguments: str) -> str:
        done = subprocess.run(
            [str(programs / program), *arguments],
            cwd=folder,
            env=environ,
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_no_extra_is_installed(bare: Run) -> None:
    extras = ("onnxruntime", "httpx", "mcp", "psycopg")
    code = f"import importlib.util as u; print([n for n in {extras} if u.find_spec(n)])"
    assert bare("python", "-c", code).strip() == "[]"


def test_the_wheel_carries_everything_that_is_read_at_run_time(bare: Run) -> None:
    code = "import vestige, pathlib; print(pathlib.Path(vestige.__file__).parent)"
    installed = Path(bare("python", "-c", code).strip())
    source = PROJECT / "src" / "vestige"
    assert source not in installed.parents
    wanted = {
        path.relative_to(source)
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {Path("py.typed"), Path("app/demo.json"), Path("cognition/english/data/antonyms.txt")} <= wanted
    assert Path("embed/minilm/data/pair_model.npz") in wanted
    assert {path for path in wanted if not (installed / path).is_file()} == set()


def test_the_commands_answer(bare: Run) -> None:
    assert "search" in bare("vestige", "--help")
    assert "vestige-mcp" in bare("vestige-mcp", "--help")


def test_a_memory_is_stored_and_found_by_its_words(bare: Run) -> None:
    bare("vestige", "ingest", "The staging server restarts every Sunday.")
    found = json.loads(bare("vestige", "search", "staging restart", "--json"))
    assert [hit["content"] for hit in found["results"]] == ["The staging server restarts every Sunday."]
    assert found["method"] == "keyword"
    assert "words only" in found["note"]
