"""What the examples, the notebook and the page about Python print is what they say."""

import ast
import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from testbed.notebook import executed
from testbed.project import PROJECT

pytestmark = pytest.mark.slow

EXAMPLES = sorted((PROJECT / "examples").glob("*.py"))
NOTEBOOK = PROJECT / "examples" / "memory.ipynb"
PAGE = PROJECT / "docs" / "howto" / "python.md"
BLOCKS = re.findall(
    r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL
)


def printed(command: list[str], folder: Path, real_model_dir: Path) -> str:
    """What a program prints that runs in a folder, with the real model and no memory of anybody's."""
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
        env={
            **{name: value for name, value in os.environ.items() if not name.startswith("VESTIGE_")},
            "VESTIGE_DATA_DIR": str(folder / "data"),
            "VESTIGE_EMBEDDINGS_CACHE_DIR": str(real_model_dir.parent),
            "VESTIGE_OFFLINE": "1",
            "PYTHONUTF8": "1",
        },
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_prints_what_it_says(example: Path, tmp_path: Path, real_model_dir: Path) -> None:
    about = ast.get_docstring(ast.parse(example.read_text("utf-8")))
    assert about is not None
    promised = textwrap.dedent(about.partition("It prints:\n\n")[2])
    assert printed([str(example)], tmp_path, real_model_dir).strip() == promised.strip()


def test_every_example_is_on_the_page_of_examples() -> None:
    page = (PROJECT / "examples" / "README.md").read_text("utf-8")
    assert [path.name for path in (*EXAMPLES, NOTEBOOK) if f"`{path.name}`" not in page] == []


@pytest.mark.parametrize(("code", "promised"), BLOCKS, ids=range(1, len(BLOCKS) + 1))
def test_the_page_about_python_prints_what_it_says(
    code: str, promised: str, tmp_path: Path, real_model_dir: Path
) -> None:
    assert printed(["-c", code], tmp_path, real_model_dir) == promised


def test_every_program_on_the_page_about_python_has_its_output() -> None:
    assert PAGE.read_text("utf-8").count("```python\n") == len(BLOCKS) == 4


ROUNDED = r"(?<=after 60 days  )\d\d%"
"""A share that depends on the moment at which the worker leaves the trace of a search."""


def texts(cells: list[list[dict[str, object]]]) -> str:
    return json.dumps([[one.get("text") for one in outputs] for outputs in cells])


def test_the_notebook_prints_and_draws_what_it_shows(
    monkeypatch: pytest.MonkeyPatch, real_model_dir: Path
) -> None:
    monkeypatch.setenv("VESTIGE_EMBEDDINGS_CACHE_DIR", str(real_model_dir.parent))
    notebook = json.loads(NOTEBOOK.read_text("utf-8"))
    shown = [cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    made = executed(notebook)
    assert re.sub(ROUNDED, "", texts(made)) == re.sub(ROUNDED, "", texts(shown))
    drawn = [one for outputs in made for one in outputs if "image/svg+xml" in one.get("data", {})]
    assert len(drawn) == 2
