"""The error tree: one code each, the docstring as the message, one value everywhere."""

import inspect
import json
import re

import pytest

from vestige import errors
from vestige.errors import InvalidInput, MissingExtra, NotFound, TooLarge, VestigeError


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


@pytest.mark.parametrize("kind", ALL)
def test_the_docstring_is_the_default_message(kind: type[VestigeError]) -> None:
    doc = inspect.getdoc(kind)
    assert doc is not None
    assert doc.endswith(".")
    assert "\n" not in doc
    assert kind().value() == {"code": kind.code, "message": doc}


@pytest.mark.parametrize("kind", ALL)
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


def test_a_missing_extra_names_the_command_that_installs_it() -> None:
    error = MissingExtra.named("local", "The local model")
    assert error.value() == {
        "code": "missing_extra",
        "message": "The local model needs the extra 'local', which is not installed.",
        "hint": "pip install 'vestige[local]'",
        "details": {"extra": "local"},
    }


def test_an_error_value_is_json() -> None:
    error = TooLarge("Too long.", details={"bytes": 2_000_000, "limit": 1_000_000})
    assert json.loads(json.dumps(error.value())) == error.value()


def test_catching_bad_input_catches_its_special_cases() -> None:
    with pytest.raises(InvalidInput):
        raise TooLarge()
