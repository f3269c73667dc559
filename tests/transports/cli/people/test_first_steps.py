"""What a new user sees who tries things: answers fit 80 columns and name commands, not tools."""

import re
import shlex
from pathlib import Path

import pytest

from testbed.failures import each
from testbed.world import open_world
from tests.transports.cli.harness import Outcome, invoke
from vestige.engine.care.backup import WORTH_A_BACKUP
from vestige.operations.registry.groups import registry
from vestige.operations.shared.text import width_of

UNKNOWN = "0197a000-0000-7000-8000-00000000c0de"
NOTES = (
    'add "Harbour runs on PostgreSQL 14." --tags database',
    'add "Ada prefers TypeScript over JavaScript." --tags preference',
    'add "The harbour deploy needs two approvals."',
)
TRIED = (
    "status", "ls", "search hello", "search hello --as-of 2020-01-01", "search hello --scope /x --tags a",
    'search "What is the capital of France?"', 'ask "Which database does Harbour use?"', "session",
    "timeline", "graph", "connections associations --from ID", "connections chain ID ID", "contradictions",
    "predict",
    "insights list", "insights runs", "insights dismiss ID --yes", "changelog", "codebase structure",
    "codebase get-context", "codebase remember-decision x", "importance-score hello", "show ID", "show @9",
    "edit ID new", "rm ID --yes", "memory state ID", "memory tag ID --add x", "memory promote ID",
    "memory link ID ID", "memory get-batch ID", "memory list --order wrong", "memory list --limit 1000",
    "intention list", "intention check", "intention update ID complete", "remind",
    'remind "x yesterday at 9"', "review ID", "suppress ID", "dedup plan ID ID",
    "dedup apply ID", "dedup undo ID", "find-duplicates",
    "archive list", "archive undo ID", "purge ID --yes", "health", "dream", "gc", "scan", "keys list",
    "keys revoke abc", "import /nonexistent", "restore nope.db", "search x --as-of nonsense", "add", "sync",
    'add "password is hunter2hunter2 for the vault"', "db info", "search --port 3", "due", "backups",
)  # fmt: skip
_QUOTED = re.compile(r"`([^`]+)`")
_OF_AGENTS = re.compile(rf"\b[a-z]+_[a-z_]+|(?:{'|'.join({*registry.tools} - {'vestige'})})(?: \w+)?")
"""A tool or an argument as agents write it."""


def tried(folder: Path, line: str) -> Outcome:
    words = [word.replace("ID", UNKNOWN) for word in shlex.split(line)]
    return invoke(
        ["--data-dir", str(folder / "data"), "--table", *words],
        environ={"COLUMNS": "80", "TZ": "America/New_York", "HOME": str(folder)},
    )


@pytest.mark.slow
@pytest.mark.parametrize("notes", [(), NOTES], ids=["empty", "small"])
def test_every_answer_to_a_new_user_fits_and_speaks_of_commands(
    tmp_path: Path, notes: tuple[str, ...]
) -> None:
    for note in notes:
        assert tried(tmp_path, note).exit_code == 0

    wrong: list[str] = []
    for line in TRIED:
        outcome = tried(tmp_path, line)
        text = outcome.stdout + outcome.stderr
        told = " ".join(text.split())
        wide = [one for one in text.splitlines() if width_of(one) > 80]
        agents = [one for one in _QUOTED.findall(told) if _OF_AGENTS.fullmatch(one)]
        if wide or agents or not text.strip() or "bug" in told:
            wrong.append(f"{line}: {wide} {agents} {text[:60]!r}")

    assert not wrong, "\n".join(wrong)


@each(
    ("typed", "meant"),
    [
        ("find tea", "`vestige search`"),
        ("delete x", "`vestige rm`"),
        ("remove x", "`vestige rm`"),
        ("get x", "`vestige show`"),
        ("new x", "`vestige add`"),
        ("info", "`vestige status`"),
        ("serch x", "`vestige search`"),
        ("reminders", "`vestige remind`"),
        ("snooze x", "`vestige intention`"),
    ],
)
def test_a_word_of_another_program_leads_to_the_command(
    tmp_path_factory: pytest.TempPathFactory, typed: str, meant: str
) -> None:
    outcome = tried(tmp_path_factory.mktemp("typed"), typed)

    assert f"Did you mean {meant}?" in outcome.stderr


def test_a_sentence_needs_no_quotes(tmp_path: Path) -> None:
    assert tried(tmp_path, "add Ada drinks green tea --tags drink").exit_code == 0
    assert tried(tmp_path, "remember Ben drinks coffee").exit_code == 0
    shown = tried(tmp_path, "search green tea -n 1").stdout
    assert "Ada drinks green tea" in shown
    assert "Ben" not in shown
    assert tried(tmp_path, "edit @1 Ada drinks black tea").exit_code == 0
    assert "Ada drinks black tea" in tried(tmp_path, "ls").stdout
    assert "call Bob" in tried(tmp_path, "remind call Bob tomorrow at 10").stdout


def test_one_text_is_not_the_rest_of_the_words_where_a_path_is_expected(tmp_path: Path) -> None:
    refused = tried(tmp_path, "import one two")
    assert refused.exit_code == 2
    assert "unexpected extra argument" in refused.stderr


def test_an_empty_text_is_still_reported_as_empty(tmp_path: Path) -> None:
    assert "The content is empty." in tried(tmp_path, "add ''").stderr
    assert "expected a text of 1" in tried(tmp_path, "search ''").stderr


def test_someone_who_pipes_a_text_learns_how(tmp_path: Path) -> None:
    assert "To read the text from standard input, write `-`." in " ".join(
        tried(tmp_path, "add").stderr.split()
    )


def test_a_search_of_nothing_says_that_there_is_nothing(tmp_path: Path) -> None:
    assert tried(tmp_path, "search anything").stdout == "Nothing found.\nThere are no memories yet.\n"


def test_the_time_in_a_context_is_that_of_the_user(tmp_path: Path) -> None:
    tried(tmp_path, NOTES[0])
    shown = tried(tmp_path, "search Harbour --explain").stdout
    context = shown[shown.index("Context of the first result") :]
    assert "UTC" not in context
    assert re.search(r"\((EST|EDT)\)", context)


def test_the_status_does_not_list_the_command_that_asks(tmp_path: Path) -> None:
    shown = tried(tmp_path, "status").stdout
    assert "used by" not in shown
    assert "embedded" not in shown


def test_help_is_a_command_too(tmp_path: Path) -> None:
    whole, one = tried(tmp_path, "help"), tried(tmp_path, "help search")

    assert (whole.exit_code, one.exit_code) == (0, 0)
    assert "Everyday:" in whole.stdout
    assert one.stdout.startswith("Usage: vestige search")


def test_status_and_session_agree_on_the_backup(tmp_path: Path) -> None:
    with open_world(tmp_path / "data", provider="off", template=False) as world:
        for number in range(WORTH_A_BACKUP):
            world.remember(f"Note {number}.", force_create=True)
    before = _backup_is_due(tmp_path)
    tried(tmp_path, "backup")

    assert [before, _backup_is_due(tmp_path)] == [(True, True), (False, False)]


def _backup_is_due(folder: Path) -> tuple[bool, bool]:
    """What `status` and `session` say."""
    status, session = (tried(folder, line).stdout for line in ("status", "session"))
    return "vestige backup" in status, "backup" in session.partition("**Needs:**")[2].partition("\n")[0]


def test_a_new_memory_is_as_strong_everywhere(tmp_path: Path) -> None:
    tried(tmp_path, NOTES[0])
    shown = [
        tried(tmp_path, line).stdout for line in ("ls", "show @1", "health", "memory state @1", "status")
    ]

    assert all("100 %" in text for text in shown)
    assert not any("73 %" in text for text in shown)


def test_a_graph_says_what_is_linked_to_what(tmp_path: Path) -> None:
    for note in NOTES:
        tried(tmp_path, note)
    alone = tried(tmp_path, "graph").stdout
    tried(tmp_path, "ls")
    tried(tmp_path, "memory link @1 @3")
    linked = tried(tmp_path, "graph").stdout

    assert "`vestige memory link @1 @2` links two" in " ".join(alone.split())
    assert "among 5 or more" in " ".join(alone.split())
    rows = {line.split()[0]: line for line in linked.splitlines() if "%" in line}
    assert ("@2" in rows["1"], "@1" in rows["2"]) == (True, True)


def test_a_wrong_value_names_the_option_as_it_is_typed(tmp_path: Path) -> None:
    assert tried(tmp_path, "ls --order newst").stderr.startswith("Error: `--order`: 'newst' is not one of")
    assert tried(tmp_path, "serve --port 99999").stderr.startswith(
        "Error: `--port`: 99999 is not in the range"
    )


def test_a_wrong_setting_is_not_named_like_an_option(tmp_path: Path) -> None:
    done = invoke(["--table", "ls"], environ={"VESTIGE_TIMEZONE": "Nope", "HOME": str(tmp_path)})
    assert done.stderr.startswith("Error: The setting `timezone` is invalid")


def test_one_weaker_match_is_shown_as_one(tmp_path: Path) -> None:
    for note in NOTES[:2]:
        tried(tmp_path, note)
    assert (
        "1 weaker match left out (`--all` shows it)." in tried(tmp_path, 'search "Harbour PostgreSQL"').stdout
    )


def test_help_does_not_end_in_the_middle_of_a_list() -> None:
    said = invoke(["memory", "--help"], environ={"COLUMNS": "80"}).stdout
    assert "Pin a memory.\n" in said
    assert "Change many memories at once.\n" in said
