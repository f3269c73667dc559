"""Values of records, and branches of a tree."""

import pytest

from vestige.core.transcripts import side_branches
from vestige.exchange.transcripts.shape import action, patched_files, seconds, shortened


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("1970-01-01T00:01:00Z", 60.0), ("1970-01-01T00:01:00", 60.0), (60, 60.0), (1_700_000_000_000, 1.7e9),
        ("soon", None), (None, None), (True, None), ([], None),
    ],
)  # fmt: skip
def test_a_moment_is_read_from_text_seconds_and_milliseconds(value: object, expected: float | None) -> None:
    assert seconds(value) == expected


def test_only_what_the_last_entry_does_not_descend_from_is_a_side_branch() -> None:
    links = [("a", None), ("b", "a"), ("c", "b"), ("d", "a"), ("e", "d"), ("z", "unknown")]
    assert side_branches(links) == {"b", "c"}


def test_entries_without_parents_have_no_branches_and_a_circle_ends() -> None:
    assert side_branches([("a", None), ("b", None)]) == set()
    assert side_branches([("a", "b"), ("b", "a")]) == set()


def test_a_long_output_keeps_its_beginning_and_its_end() -> None:
    short = shortened("begin" + "x" * 10_000 + "the error")
    assert short.startswith("begin")
    assert short.endswith("the error")
    assert len(short) < 2_100


def test_arguments_as_text_and_files_of_a_patch_are_read() -> None:
    made = action("1", "Edit", '{"file_path": "/w/a.py", "old_string": "x"}')
    assert (made.files, made.command) == (("/w/a.py",), None)
    assert action("1", "x", "not json").detail == "not json"
    assert patched_files("--- a/x\n+++ b/x.py\n*** Delete File: y.py") == ("x.py", "y.py")
