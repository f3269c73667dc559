"""Help in sections, short names, and suggestions."""

import click
import pytest

from tests.transports.cli.harness import invoke
from vestige.operations.registry.command_names import SECTIONS, SHORT_NAMES
from vestige.operations.registry.groups import registry
from vestige.transports.cli import builtin
from vestige.transports.cli.main import root_command

EVERYDAY = 10


def test_the_ten_everyday_commands_come_first() -> None:
    lines = invoke([]).stdout.splitlines()
    start = lines.index("Everyday:")
    assert [line.split()[0] for line in lines[start + 1 : start + 1 + EVERYDAY]] == list(SECTIONS["Everyday"])
    assert start < lines.index("Options:")


def test_every_line_of_the_help_fits_80_columns() -> None:
    for words in ([], ["memory"], ["search", "--help"], ["add", "--help"]):
        assert [line for line in invoke(words).stdout.splitlines() if len(line) > 80] == []


def test_no_summary_ends_in_the_middle_of_a_sentence() -> None:
    root = root_command()
    for words in ([], *([name] for name in root.subgroups())):
        lines = invoke(words, environ={"COLUMNS": "80"}).stdout.splitlines()
        assert [line for line in lines if line.endswith("…")] == []
        assert [line for line in lines if len(line) > 80] == []


def test_an_example_with_an_id_names_a_row_of_the_last_list() -> None:
    assert "vestige memory delete @1\n" in invoke(["rm", "--help"]).stdout
    assert "vestige dedup plan @1 @2\n" in invoke(["dedup", "plan", "--help"]).stdout
    assert "For example: `vestige rm @1`" in invoke(["rm", "--table"]).stderr


def test_every_command_is_in_one_section() -> None:
    listed = [name for names in SECTIONS.values() for name in names]
    assert len(listed) == len(set(listed))
    meant = {
        registry.operations[SHORT_NAMES[name]].command[0] if name in SHORT_NAMES else name for name in listed
    }
    commands = {one.command[0] for one in registry.operations.values()} | {
        path[0] for path in builtin.COMMANDS
    }
    assert commands <= meant
    assert "Other:" not in invoke([]).stdout


@pytest.mark.parametrize(("short", "operation"), SHORT_NAMES.items())
def test_a_short_name_is_the_command_it_means(short: str, operation: str) -> None:
    shown = invoke([short, "--help"]).stdout
    assert shown.startswith(f"Usage: vestige {short} ")
    full = invoke([*registry.operations[operation].command, "--help"]).stdout
    assert shown.partition("\n")[2].split() == full.partition("\n")[2].split()


def test_no_short_name_hides_a_command() -> None:
    root = root_command()
    assert not SHORT_NAMES.keys() & set(root.list_commands(click.Context(root)))


@pytest.mark.parametrize(("typed", "meant"), [("serach", "search"), ("ad", "add"), ("remembr", "remember")])
def test_a_mistyped_name_is_answered_with_the_nearest_one(typed: str, meant: str) -> None:
    assert f"Did you mean `vestige {meant}`?" in invoke([typed, "x", "--table"]).stderr
