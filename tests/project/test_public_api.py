"""What others rely on: the version, the typing mark, the commands, and a light import."""

import importlib
import json
import re
import subprocess
import sys
import tomllib

import pytest

import vestige
from testbed.project import PROJECT

PYPROJECT = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_version_is_the_newest_in_the_changelog() -> None:
    text = (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (\S+)", text, re.MULTILINE)
    released = [heading for heading in headings if heading != "Unreleased"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", vestige.__version__)
    assert released[0] == vestige.__version__


def test_the_package_says_that_it_is_typed() -> None:
    assert (PROJECT / "src" / "vestige" / "py.typed").is_file()


def test_names_that_programs_import_are_where_they_were() -> None:
    from vestige.app import App, open_app
    from vestige.errors import VestigeError

    assert callable(open_app)
    assert App.exchange_news is App.exchange_events
    assert issubclass(VestigeError, Exception)


@pytest.mark.parametrize(("command", "target"), PYPROJECT["scripts"].items())
def test_every_command_has_something_to_run(command: str, target: str) -> None:
    module, _, function = target.partition(":")
    assert callable(getattr(importlib.import_module(module), function)), command


def test_the_extra_all_brings_every_extra() -> None:
    extras = PYPROJECT["optional-dependencies"]
    (everything,) = extras["all"]
    assert set(re.findall(r"\w+", everything)) == {"vestige", *extras} - {"all"}


def test_constraints_are_exact_and_name_no_place() -> None:
    lines = (PROJECT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[a-z0-9-]+==[\w.]+", pin) for pin in pins)
    assert len({pin.partition("==")[0] for pin in pins}) == len(pins)


@pytest.mark.slow
def test_importing_vestige_imports_nothing_heavy() -> None:
    code = "import vestige, sys, json; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    loaded = set(json.loads(done.stdout))
    assert "vestige" in loaded
    assert not loaded & {"pydantic", "numpy", "click", "onnxruntime", "sqlite3", "asyncio"}
