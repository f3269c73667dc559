"""The error tree: one code each, the docstring as the message, one value everywhere."""

import inspect
import json
import re
import shlex
import sys
import tomllib
from importlib.metadata import PackageNotFoundError

import pytest

from testbed.failures import each
from testbed.project import PROJECT
from vestige.core import errors
from vestige.core.errors import InvalidInput, MissingExtra, NotFound, TooLarge, VestigeError


def every_error() -> list[type[VestigeError]]:
    """Those of the tree itself; what only a client meets is in `vestige.client.failures`."""
    found = [VestigeError]
    for kind in found:
        found.extend(one for one in kind.__subclasses__() if one.__module__ == errors.__name__)
    return found


ALL = every_error()


def test_every_error_has_a_code_of_its_own() -> None:
    codes = [kind.code for kind in ALL]
    assert len(set(codes)) == len(codes)
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", code) for code in codes)


@each("kind", ALL)
def test_the_docstring_is_the_default_message(kind: type[VestigeError]) -> None:
    doc = inspect.getdoc(kind)
    assert doc is not None
    assert doc.endswith(".")
    assert "\n" not in doc
    assert kind().value() == {"code": kind.code, "message": doc}


@each("kind", ALL)
def test_status_and_exit_code_are_failures(kind: type[VestigeError]) -> None:
    assert 400 <= kind.status < 600
    assert 0 < kind.exit_code < 128


def test_the_tree_that_is_drawn_is_the_tree_that_is() -> None:
    drawn: dict[str, str] = {}
    above: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        match = re.match(r"    ([│ ├└─]*)([A-Z]\w+)(?: |$)", line)
        if match:
            depth = len(match.group(1)) // 4
            del above[depth:]
            drawn[match.group(2)] = above[-1] if above else "Exception"
            above.append(match.group(2))
    assert drawn == {kind.__name__: kind.__base__.__name__ for kind in ALL if kind.__base__}


def test_an_error_says_what_it_was_told_and_leaves_out_what_is_missing() -> None:
    error = NotFound("There is no memory 7.", hint="Search for it.", details={"id": "7"})
    assert str(error) == "There is no memory 7."
    assert error.value() == {
        "code": "not_found",
        "message": "There is no memory 7.",
        "hint": "Search for it.",
        "details": {"id": "7"},
    }


def test_the_details_of_an_error_are_its_own() -> None:
    given = {"id": "7"}
    error = NotFound(details=given)
    error.details["more"] = "added by a caller further up"
    assert given == {"id": "7"}
    assert NotFound().details == {}


def test_a_missing_extra_names_the_command_that_installs_it_here() -> None:
    error = MissingExtra.named("postgres", "The backend")
    assert error.message == "The backend needs the extra 'postgres', which is not installed."
    assert error.details == {"extra": "postgres"}
    assert error.hint is not None
    # Vestige is on no package index: its name must not be asked for there.
    assert shlex.split(error.hint) == [sys.executable, "-m", "pip", "install", "psycopg[binary]>=3.2"]


def test_what_is_installed_for_an_extra_is_what_the_project_lists() -> None:
    pyproject = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = pyproject["project"]["optional-dependencies"]
    del extras["all"]  # names the others
    for extra, listed in extras.items():
        words = shlex.split(MissingExtra.named(extra, "It").hint or "")
        wanted = sorted(requirement.partition(";")[0] for requirement in listed)  # without its condition
        assert sorted(words[words.index("install") + 1 :]) == wanted


def test_sources_that_were_never_installed_are_installed_from_their_folder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unknown(_name: str) -> list[str]:
        raise PackageNotFoundError

    monkeypatch.setattr("importlib.metadata.requires", unknown)
    assert (MissingExtra.named("local", "It").hint or "").endswith("-m pip install -e '.[local]'")


def test_an_error_value_is_json() -> None:
    error = TooLarge("Too long.", details={"bytes": 2_000_000, "limit": 1_000_000})
    assert json.loads(json.dumps(error.value())) == error.value()


def test_catching_bad_input_catches_its_special_cases() -> None:
    with pytest.raises(InvalidInput):
        raise TooLarge()
