"""How words become arguments: standard input, files, lists, switches, and being asked."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import click
import pytest
from pydantic import Field

from tests.transports.cli.harness import ENVIRONMENT, Outcome, invoke
from vestige.app.app import open_app, open_database, open_ends, open_server
from vestige.engine.context import Call
from vestige.operations.registry.arguments import Wire
from vestige.operations.registry.registry import Registry
from vestige.transports.arguments import arguments_of
from vestige.transports.cli.catalog import of_registry
from vestige.transports.cli.command_group import CommandGroup
from vestige.transports.cli.operation_commands import add_operations
from vestige.transports.cli.session import CliSession


@pytest.fixture
def data_dir(tmp_path: Path) -> str:
    return str(tmp_path / "data")


def error(outcome: Outcome) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(outcome.stderr)["error"]
    return value


def contents(data_dir: str) -> list[dict[str, Any]]:
    shown = invoke(["memory", "list", "--detail-level", "full", "--data-dir", data_dir])
    results: list[dict[str, Any]] = json.loads(shown.stdout)["results"]
    return results


class Echo(Wire):
    said: dict[str, Any]


def echoing_registry() -> Registry:
    """A registry this module made up: the command line has never heard of its operation."""
    registry = Registry()

    @registry.operation(
        "parrot.repeat",
        permission="read",
        effect="none",
        example={"words": ["a"]},
        positional=("words",),
        render=lambda result: str(result.said),
    )
    def repeat(
        call: Call,
        words: Annotated[list[str], Field(description="What to say.")],
        loud: Annotated[bool, Field(description="Shout.")] = False,
        politely: Annotated[bool, Field(description="Say please.")] = True,
        times: Annotated[int | None, Field(ge=1, le=9, description="How often.")] = None,
        to: Annotated[list[str], Field(description="Who listens.")] = ["you", "me"],  # noqa: B006  as below
        notes: Annotated[dict[str, int], Field(description="Anything.")] = {},  # noqa: B006  pydantic copies defaults
    ) -> Echo:
        """Say it again."""
        return Echo(said={"words": words, "loud": loud, "politely": politely, "times": times, "notes": notes})

    return registry


def made_up_commands() -> CommandGroup:
    registry, root = echoing_registry(), CommandGroup("made-up", "Made up.")
    add_operations(root, of_registry(registry), lambda entry: registry.operations[entry.name])
    return root


def repeated(words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    for name, value in {**ENVIRONMENT, "VESTIGE_STORAGE_BACKEND": "memory"}.items():
        monkeypatch.setenv(name, value)
    root = made_up_commands()
    root.main(
        ["parrot", "repeat", *words],
        standalone_mode=False,
        obj=CliSession(
            open_app=open_app, open_server=open_server, open_database=open_database, open_ends=open_ends
        ),
    )
    return json.loads(capsys.readouterr().out)["said"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["a", "b"], {"words": ["a", "b"], "loud": False, "politely": True, "times": None, "notes": {}}),
        (["a,b", "--loud"], {"words": ["a", "b"], "loud": True}),
        (["a", "--no-politely", "--times", "3"], {"politely": False, "times": 3}),
        (["a", "--politely", "--notes", '{"x": 1}'], {"politely": True, "notes": {"x": 1}}),
    ],
)
def test_an_operation_the_command_line_never_heard_of_gets_its_command(
    words: list[str],
    said: dict[str, Any],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert repeated(words, capsys, monkeypatch).items() >= said.items()


def test_arguments_are_read_with_their_kind_default_and_limits() -> None:
    found = {one.name: one for one in arguments_of(echoing_registry().operations["parrot.repeat"])}
    assert {name: one.kind for name, one in found.items()} == {
        "words": "list", "loud": "boolean", "politely": "boolean", "times": "integer", "to": "list",
        "notes": "json",
    }  # fmt: skip
    assert (found["words"].required, found["words"].positional) == (True, True)
    assert (found["times"].limits, found["times"].default) == ("1 to 9", None)
    assert [name for name, one in found.items() if one.two_sided] == ["politely"]


def test_a_default_of_several_values_is_shown_as_words() -> None:
    root = made_up_commands()
    parrot = root.commands["parrot"]
    assert isinstance(parrot, CommandGroup)
    repeat = parrot.get_command(click.Context(parrot), "repeat")
    assert repeat is not None
    shown = {one.name: getattr(one, "help", None) for one in repeat.params}
    assert shown["to"] == "Who listens. [repeatable, or separated by commas; default: you, me]"
    assert shown["politely"] == "Say please. [default: true]"


def test_a_dash_reads_the_text_from_standard_input_without_its_last_line_end(data_dir: str) -> None:
    stored = invoke(["ingest", "-", "--data-dir", data_dir], stdin="Two lines\nof tea.\n")
    assert stored.exit_code == 0
    assert [one["content"] for one in contents(data_dir)] == ["Two lines\nof tea."]


def test_standard_input_that_is_not_utf8_is_refused_and_nothing_is_stored(data_dir: str) -> None:
    refused = invoke(["ingest", "-", "--data-dir", data_dir], stdin=b"tea \xff\xfe")
    assert refused.exit_code == 2
    assert error(refused)["code"] == "invalid_input"
    assert "UTF-8" in error(refused)["message"]
    assert not Path(data_dir).exists()


def test_standard_input_is_given_to_one_argument_only(data_dir: str) -> None:
    refused = invoke(["ingest", "-", "--metadata", "-", "--data-dir", data_dir], stdin="{}")
    assert "both read from standard input" in error(refused)["message"]


def test_null_takes_a_time_away(data_dir: str) -> None:
    window = ["--valid-from", "2026-01-01", "--valid-until", "2030-12-31"]
    stored = invoke(["ingest", "The lease runs.", *window, "--data-dir", data_dir])
    memory_id = json.loads(stored.stdout)["nodeId"]

    opened = invoke(["memory", "set-validity", memory_id, "--valid-from", "null", "--data-dir", data_dir])

    assert opened.exit_code == 0
    [held] = contents(data_dir)
    assert "validFrom" not in held
    assert held["validUntil"].startswith("2031-01-01")


def test_a_list_says_that_a_memory_has_ended_only_when_it_has(data_dir: str) -> None:
    for text, end in (("The lease runs.", "9999-01-01"), ("The sale is on.", "2001-01-01")):
        invoke(["ingest", text, "--valid-until", end, "--data-dir", data_dir])

    shown = invoke(["memory", "list", "--table", "--data-dir", data_dir]).stdout.splitlines()

    facts = {text[4:]: facts for text, facts in pairwise(shown) if text[4:].startswith("The ")}
    assert "ended" not in facts["The lease runs."]
    assert "ended 2001-01-0" in facts["The sale is on."]


def test_lists_take_commas_and_repeats(data_dir: str) -> None:
    invoke(["ingest", "Tea.", "--tags", "a, b,", "--tags", "c", "--data-dir", data_dir])
    assert [one["tags"] for one in contents(data_dir)] == [["a", "b", "c"]]


@pytest.mark.parametrize("way", ["text", "file", "stdin"])
def test_json_comes_as_text_from_a_file_or_from_standard_input(
    way: str, tmp_path: Path, data_dir: str
) -> None:
    items = json.dumps([{"content": "Ada prefers tea."}, {"content": "Ben runs on Fridays."}])
    source = tmp_path / "items.json"
    source.write_text(items, encoding="utf-8")
    word = {"text": items, "file": f"@{source}", "stdin": "-"}[way]
    stored = invoke(["ingest", "--items", word, "--data-dir", data_dir], stdin=items)
    assert json.loads(stored.stdout)["summary"]["total"] == 2


@pytest.mark.parametrize("word", ["{not json", "@/no/such/file"])
def test_json_that_cannot_be_read_is_refused_with_the_name_of_the_argument(word: str, data_dir: str) -> None:
    refused = invoke(["ingest", "Tea.", "--metadata", word, "--data-dir", data_dir])
    assert refused.exit_code == 2
    assert error(refused)["details"] == {"argument": "metadata"}


def test_what_deletes_needs_a_yes_where_nobody_can_be_asked(data_dir: str) -> None:
    stored = json.loads(invoke(["ingest", "Ada prefers tea.", "--data-dir", data_dir]).stdout)["nodeId"]
    refused = invoke(["memory", "delete", stored, "--data-dir", data_dir])
    assert refused.exit_code == 2
    assert "--yes" in error(refused)["hint"]
    assert len(contents(data_dir)) == 1
    assert invoke(["memory", "delete", stored, "--yes", "--data-dir", data_dir]).exit_code == 0
    assert contents(data_dir) == []


@pytest.mark.parametrize("word", ["--yes", "-y", "--confirm"])
def test_either_word_purges_and_without_one_the_error_names_one(word: str, data_dir: str) -> None:
    stored = json.loads(invoke(["ingest", "Ada prefers tea.", "--data-dir", data_dir]).stdout)["nodeId"]
    refused = invoke(["purge", stored, "--data-dir", data_dir])
    assert (refused.exit_code, error(refused)["hint"]) == (2, "Pass --yes to confirm.")
    assert len(contents(data_dir)) == 1
    assert invoke(["purge", stored, word, "--data-dir", data_dir]).exit_code == 0
    assert contents(data_dir) == []


def test_wrong_arguments_are_refused_before_the_question() -> None:
    assert error(invoke(["memory", "delete"]))["details"]["argument"] == "id"


def test_no_operation_has_an_argument_that_hides_an_option_for_everything() -> None:
    from vestige.operations.registry.groups import registry

    taken = {"data_dir", "config", "json", "table", "help", "yes"}
    for operation in registry.operations.values():
        assert not taken & operation.arguments.model_fields.keys(), operation.name
