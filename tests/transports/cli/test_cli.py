"""The command line in this process: commands from the registry, answers, and errors."""

import json
import re
from pathlib import Path
from typing import Any

import click
import pytest

from testbed.failures import each
from tests.transports.cli.harness import Outcome, invoke
from vestige.core.errors import VestigeError
from vestige.operations.care.archive import Collected
from vestige.operations.registry.groups import registry
from vestige.operations.registry.registry import Operation
from vestige.transports.arguments import ArgumentReader, arguments_of, example_of, words_of
from vestige.transports.cli.main import root_command

OPERATIONS = list(registry.operations.values())


@pytest.fixture
def data_dir(tmp_path: Path) -> str:
    return str(tmp_path / "data")


def answer(outcome: Outcome) -> dict[str, Any]:
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    value: dict[str, Any] = json.loads(outcome.stdout)
    return value


def error(outcome: Outcome) -> dict[str, Any]:
    assert outcome.exit_code != 0
    assert outcome.stdout == ""
    value: dict[str, Any] = json.loads(outcome.stderr)["error"]
    return value


def command_at(path: tuple[str, ...]) -> click.Command:
    command: click.Command = root_command()
    for word in path:
        assert isinstance(command, click.Group)
        inner = command.get_command(click.Context(command), word)
        assert inner is not None
        command = inner
    return command


def parsed(operation: Operation, words: list[str]) -> dict[str, Any]:
    """What a command line gives the operation."""
    command = command_at(operation.command)
    with command.make_context("x", words[len(operation.command) :]) as ctx:
        return ArgumentReader(lambda: b"").values(arguments_of(operation), ctx.params)


@each("operation", OPERATIONS)
def test_the_help_names_arguments_and_tools_as_the_command_line_does(operation: Operation) -> None:
    command = command_at(operation.command)
    texts = [
        str(command.help),
        str(command.short_help),
        *(getattr(one, "help", "") or "" for one in command.params),
    ]
    for text in texts:
        for argument in arguments_of(operation):
            if "_" in argument.name:
                assert not re.search(rf"(?<!\w){argument.name}\b", text)
            assert not re.search(rf"`{argument.name}(?:: \w+)?`(?! in the answer)", text)
        assert not re.search(r"`\s+(?:with|and)\s+(?:the\s+)?action\s", text)
        assert not [name for name in registry.tools if "_" in name and f"`{name}`" in text]


def test_commas_separate_labels_and_stay_in_sentences() -> None:
    log, ingest = registry.operations["agent.log"], registry.operations["smart_ingest"]
    why = "Pratt parsing, because precedence is easy"
    words = [*log.command, "Parser", "Wrote it.", "--decisions", why, "--decisions", "no macros"]
    assert parsed(log, words)["decisions"] == [why, "no macros"]
    files = parsed(log, [*log.command, "Parser", "Wrote it.", "--artifacts", "a.py, b.py"])
    assert files["artifacts"] == ["a.py", "b.py"]
    tagged = parsed(ingest, [*ingest.command, "Text", "--tags", "a,b", "--tags", "c"])
    assert tagged["tags"] == ["a", "b", "c"]
    search = registry.operations["search"]
    words = [*search.command, "flapping", "--domains", "bgp, vlan", "--domains", "home"]
    assert parsed(search, words)["domains"] == ["bgp, vlan", "home"]
    session = registry.operations["session_context"]
    asked = "the parser, and what is open"
    assert parsed(session, [*session.command, asked])["queries"] == [asked]


@each("operation", [one for one in OPERATIONS if any(value.divided for value in arguments_of(one))])
def test_a_list_that_commas_separate_holds_no_long_texts(operation: Operation) -> None:
    fields = operation.arguments.model_json_schema(by_alias=False)["properties"]
    for argument in arguments_of(operation):
        longest = fields[argument.name].get("items", {}).get("maxLength", 0) if argument.divided else 0
        assert longest <= 1_000 or argument.name in ("artifacts",), argument.name


def test_the_help_shows_how_the_command_line_writes_a_value(data_dir: str) -> None:
    search = " ".join(invoke(["search", "--help"]).stdout.split())
    assert "The current project ranks first among equals; each result names the scope it is in" in search
    assert "`--no-record` leaves no trace" in search
    assert "use `vestige memory get`" in search
    assert "With `--dry-run` (the default)" in " ".join(invoke(["gc", "--help"]).stdout.split())


@each("operation", OPERATIONS)
def test_a_default_is_stated_once_and_not_in_python(operation: Operation) -> None:
    for option in command_at(operation.command).params:
        shown = getattr(option, "help", None) or ""
        assert shown.lower().count("default") <= 1, shown
        assert not re.search(r"default: (?:True|\[|\{|')", shown), shown


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["memory", "list"], "Maximum number of memories. [1 to 200; default: 20]"),
        (["session"], "Include intentions that are due now. [default: true]"),
        (["gc"], "Only show what would be archived (default true). --scope"),
        (
            ["keys", "create"],
            "Default: read and write. [repeatable, or separated by commas; at most 3 items]",
        ),
    ],
)
def test_the_help_states_defaults(words: list[str], shown: str) -> None:
    assert shown in " ".join(invoke([*words, "--help"]).stdout.split())


def test_the_example_of_a_folder_at_home_is_left_to_the_shell() -> None:
    assert example_of(registry.operations["sync"]) == "vestige sync ~/shared"


def test_the_root_help_says_what_is_printed() -> None:
    assert "Prints tables on a terminal and JSON in a pipe." in invoke(["--help"]).stdout


@each("operation", OPERATIONS)
def test_the_command_line_of_an_example_says_exactly_the_example(operation: Operation) -> None:
    given = parsed(operation, words_of(operation, operation.example))
    assert operation.parse(given) == operation.parse(operation.example)
    assert given.keys() == operation.example.keys()


@each("operation", OPERATIONS)
def test_every_command_explains_itself_without_opening_a_store(operation: Operation, data_dir: str) -> None:
    shown = invoke([*operation.command, "--help", "--data-dir", data_dir])
    assert (shown.exit_code, shown.stderr) == (0, "")
    assert "Example:" in shown.stdout
    for argument in arguments_of(operation):
        assert (argument.name.upper() if argument.positional else argument.flag) in shown.stdout
    assert not Path(data_dir).exists()


def test_text_that_begins_with_a_dash_survives_being_written_as_a_command_line() -> None:
    operation = registry.operations["smart_ingest"]
    values = {"content": "- buy milk", "source": "-v", "tags": ["-x", "y"], "position": -3}
    given = parsed(operation, words_of(operation, values))
    assert operation.parse(given) == operation.parse(values)


def test_an_answer_is_json_in_a_pipe_and_text_on_request(data_dir: str) -> None:
    stored = answer(invoke(["ingest", "Ada prefers tea.", "--data-dir", data_dir]))
    assert stored["decision"] == "create"
    text = invoke(["memory", "list", "--table", "--data-dir", data_dir])
    assert text.stdout.splitlines()[0] == "1   Ada prefers tea."
    assert stored["nodeId"][-8:] in text.stdout
    listed = answer(invoke(["memory", "list", "--data-dir", data_dir]))
    assert [one["id"] for one in listed["results"]] == [stored["nodeId"]]


@pytest.mark.parametrize(
    "order",
    [
        ["--data-dir", "DIR", "--table", "memory", "list"],
        ["memory", "--data-dir", "DIR", "--table", "list"],
        ["memory", "list", "--data-dir", "DIR", "--table"],
        ["--data-dir", "/nowhere/else", "--json", "memory", "list", "--table", "--data-dir", "DIR"],
    ],
    ids=["before", "between", "after", "the last one wins"],
)
def test_the_options_for_everything_work_wherever_they_stand(order: list[str], data_dir: str) -> None:
    invoke(["ingest", "Ada prefers tea.", "--data-dir", data_dir])
    shown = invoke([data_dir if word == "DIR" else word for word in order])
    assert shown.exit_code == 0
    assert "1 of 1 memory in /." in shown.stdout


def test_config_chooses_the_settings_file(tmp_path: Path, data_dir: str) -> None:
    chosen = tmp_path / "mine.toml"
    chosen.write_text('[memory]\nscope = "/project/tea"\n', encoding="utf-8")
    invoke(["--config", str(chosen), "--data-dir", data_dir, "ingest", "Ada prefers tea."])
    listed = answer(invoke(["memory", "list", "--data-dir", data_dir]))
    assert [one["scope"] for one in listed["results"]] == ["/project/tea"]


def test_a_refusal_of_the_engine_keeps_its_value_and_exit_code(data_dir: str) -> None:
    missing = invoke(["memory", "get", "no-such-id", "--data-dir", data_dir])
    assert missing.exit_code == 1
    assert error(missing)["code"] == "not_found"
    assert error(missing)["hint"]


def test_a_person_gets_the_error_as_two_lines(data_dir: str) -> None:
    shown = invoke(["memory", "get", "no-such-id", "--table", "--data-dir", data_dir])
    first, second = shown.stderr.splitlines()
    assert first == "Error: There is no memory no-such-id."
    assert second.startswith("Hint: ")


@pytest.mark.parametrize(
    ("operation", "shown"), [("memory.get", "ID"), ("connections.chain", "--from"), ("keys.revoke", "ID")]
)
def test_a_missing_argument_is_named_as_the_help_does(operation: str, shown: str, data_dir: str) -> None:
    with pytest.raises(VestigeError) as expected:
        registry.operations[operation].parse({})
    words = operation.split(".")
    refused = invoke([*words, "--data-dir", data_dir])
    assert refused.exit_code == 2
    message = f"`vestige {' '.join(words)}` needs `{shown}`."
    hint = error(refused)["hint"]
    assert hint.startswith(f"For example: `vestige {' '.join(words)} ")
    assert error(refused) == {**expected.value.value(), "message": message, "hint": hint}
    assert shown in invoke([*words, "--help"]).stdout
    assert not Path(data_dir).exists()


def test_a_wrong_value_is_refused_by_the_registry_in_the_words_of_the_command_line(data_dir: str) -> None:
    operation = registry.operations["search"]
    with pytest.raises(VestigeError) as expected:
        operation.parse({"query": "tea", "limit": "1000"})
    message = "`--limit`: expected a whole number from 1 to 100."
    assert error(invoke(["search", "tea", "--limit", "1000"])) == {
        **expected.value.value(),
        "message": message,
    }


def test_hints_and_notes_name_options_and_commands_as_the_command_line_does(data_dir: str) -> None:
    here = ["--data-dir", data_dir]
    memory_id = answer(invoke(["ingest", "Ada prefers tea over `record: false`.", *here]))["nodeId"]
    invoke(["memory", "pin", memory_id, *here])

    assert error(invoke(["purge", memory_id, "--yes", *here]))["hint"] == (
        "Unpin it first, or set `--even-pinned`."
    )
    assert "`vestige tools`" in error(invoke(["tools", "nope", *here]))["hint"]
    assert error(invoke(["intention", "update", "nope", "complete", *here]))["hint"] == (
        "Find the right id with `vestige intention list`."
    )
    # A memory's own words stay.
    assert "`record: false`" in invoke(["search", "tea", "--table", *here]).stdout
    purged = invoke(["purge", memory_id, "--yes", "--even-pinned", "--table", *here])
    assert "search with `--no-record`" in purged.stdout


def test_a_wrong_time_is_explained_once(data_dir: str) -> None:
    refused = error(invoke(["search", "tea", "--as-of", "someday", "--data-dir", data_dir]))

    assert refused["message"].startswith("`--as-of`: expected a date (2026-03-01)")
    assert "hint" not in refused


def test_config_writes_switches_as_the_settings_file_does(data_dir: str) -> None:
    shown = invoke(["config", "--table", "--data-dir", data_dir]).stdout
    (line,) = (line for line in shown.splitlines() if line.startswith("memory.record "))

    assert line.split()[1] == "true"


def test_an_unknown_option_is_refused_with_the_nearest_name() -> None:
    refused = invoke(["search", "tea", "--detail-levle", "full"])
    assert refused.exit_code == 2
    assert error(refused) == {
        "code": "unknown_argument",
        "message": "`vestige search` has no option `--detail-levle`.",
        "hint": "Did you mean `--detail-level`?",
        "details": {"argument": "--detail-levle"},
    }


def test_an_option_that_is_called_otherwise_here_is_refused_with_our_name() -> None:
    assert error(invoke(["serve", "--host", "0.0.0.0"]))["hint"] == "Did you mean `--bind`?"


def test_an_apostrophe_in_an_example_is_written_as_a_person_would() -> None:
    shown = invoke(["keys", "create", "--help"]).stdout
    assert '--label "Ada\'s laptop"' in shown


def test_an_unknown_choice_is_refused_with_the_nearest_one() -> None:
    refused = error(invoke(["search", "tea", "--detail-level", "ful"]))
    assert refused["code"] == "invalid_input"
    assert "'full'" in refused["message"]
    assert refused["details"] == {"argument": "detail_level", "allowed": ["brief", "summary", "full"]}


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["searchx", "tea"], "vestige search"),
        (["memory", "gett"], "vestige memory get"),
        (["promote", "x"], "vestige memory promote"),
        (["rotate"], "vestige keys rotate"),
        (["delete", "x"], "vestige rm"),
        (
            ["undo", "x"],
            "vestige archive undo` or `vestige dedup undo` or `vestige domains undo` or `vestige review undo",
        ),
    ],
)
def test_an_unknown_command_is_refused_with_the_nearest_one(words: list[str], meant: str) -> None:
    refused = invoke(words)
    assert refused.exit_code == 2
    assert error(refused)["hint"] == f"Did you mean `{meant}`?"


def test_words_where_one_value_is_expected_are_refused_with_the_advice_to_quote_them() -> None:
    refused = error(invoke(["domains", "create", "Green", "tea"]))
    assert refused["code"] == "invalid_input"
    assert "quotes" in refused["hint"]


def test_a_mistake_is_shown_in_the_form_that_was_asked_for_even_when_it_stands_first() -> None:
    assert invoke(["search", "--nonsense", "--table"]).stderr.startswith("Error: ")


def test_bytes_that_are_not_text_are_refused_and_can_be_quoted_in_the_refusal() -> None:
    refused = invoke(["\udcff"])
    assert refused.exit_code == 2
    assert error(refused)["details"] == {"command": "\udcff"}


def test_a_bug_is_logged_and_still_answered_with_an_error_value(caplog: pytest.LogCaptureFixture) -> None:
    def broken(_flags: object) -> Any:
        raise RuntimeError("a bug")

    refused = invoke(["status"], open_app=broken)
    assert refused.exit_code == 1
    assert json.loads(refused.stderr)["error"]["code"] == "internal"
    assert "a bug" in caplog.text


def test_a_group_without_a_command_shows_what_it_has() -> None:
    for words, section in (([], "Everyday:"), (["memory"], "Commands:")):
        shown = invoke(words)
        assert shown.exit_code == 0
        assert section in shown.stdout


def test_the_version_is_shown_without_a_store() -> None:
    assert invoke(["--version"]).stdout.startswith("vestige ")
    assert answer(invoke(["version"]))["version"] in invoke(["-V"]).stdout


@pytest.mark.parametrize(
    ("sign", "shown"),
    [("\x1b", "\\x1b"), ("\u202e", "\\u202e"), ("\u2066", "\\u2066"), ("\u2028", "\\u2028")],
)
def test_signs_that_drive_a_terminal_or_turn_the_text_around_are_shown_not_obeyed(
    sign: str, shown: str, data_dir: str
) -> None:
    made = answer(invoke(["ingest", f"alpha{sign}beta is here.", "--data-dir", data_dir]))

    card = invoke(["memory", "get", made["nodeId"], "--data-dir", data_dir, "--table"]).stdout

    assert f"alpha{shown}beta" in card
    assert sign not in card


def test_people_are_told_of_switches_and_of_nothing_to_show(data_dir: str) -> None:
    def told(*words: str) -> str:
        return invoke([*words, "--data-dir", data_dir, "--table"]).stdout

    assert told("archive", "list") == "Nothing is archived.\n"
    assert "nothing to archive" in told("gc")
    rows = Collected(dry_run=True, scope="/", min_retention=0.1, memories=9, candidate_count=1, archived=0,
                     message="")  # fmt: skip
    assert "--no-dry-run" in registry.operations["gc"].render(rows)


@pytest.mark.parametrize(
    ("group", "purpose"),
    [
        ("archive", "Memories archived by `gc`."),
        ("connections", "Follow the links between memories."),
        ("insights", "Insights from dreams."),
        ("index", "The index: rebuild, status."),
        ("memory", "Work with memories by id."),
    ],
)
def test_the_help_of_a_group_says_what_it_is_for(group: str, purpose: str) -> None:
    assert purpose in invoke([group, "--help"]).stdout


def test_the_list_of_commands_cuts_no_sentence() -> None:
    assert "..." not in invoke(["--help"]).stdout.partition("Commands:")[2]


@pytest.mark.parametrize("word", ["search", "list", "read", "resume", "archive", "doctor"])
def test_recall_with_a_word_of_sessions_says_where_sessions_are(word: str) -> None:
    outcome = invoke(["recall", word, "4f0e"])
    assert json.loads(outcome.stdout)["query"] == f"{word} 4f0e"
    assert outcome.stderr == f"`vestige recall` searches memories. Old sessions: `vestige sessions {word}`.\n"
    assert invoke(["recall", "two", "words"]).stderr == ""
    assert invoke(["search", word, "4f0e"]).stderr == ""
