"""Writing the generated files brings a project up to date, and leaves alone what people wrote."""

from pathlib import Path

from vestige.operations.registry.groups import registry
from vestige.transports.cli.main import root_command
from vestige.transports.docs import FOLDER, files, stale, write


def test_a_page_that_is_no_longer_generated_goes_and_one_written_by_hand_stays(tmp_path: Path) -> None:
    made = files(registry, root_command())
    write(tmp_path, made)
    by_hand, once = tmp_path / FOLDER / "by-hand.md", tmp_path / FOLDER / "gone.md"
    by_hand.write_text("# Written by a person\n", encoding="utf-8")
    once.write_bytes((tmp_path / FOLDER / "errors.md").read_bytes())

    assert stale(tmp_path, made) == [f"{FOLDER}/gone.md"]
    assert write(tmp_path, made) == [f"{FOLDER}/gone.md"]
    assert by_hand.exists()
    assert not once.exists()
    assert stale(tmp_path, made) == []


def test_the_interface_and_the_client_are_among_the_files() -> None:
    assert {
        "docs/reference/openapi.json",
        "src/vestige/client/operations.py",
        "src/vestige/client/values.py",
    } <= files(registry, root_command()).keys()


def test_options_of_every_command_are_listed_once_at_the_top() -> None:
    page = files(registry, root_command())[f"{FOLDER}/command-line.md"].decode("utf-8")
    top, *sections = page.split("\n## ")[1:]
    everywhere, before = top.split("These options work before the command only.")
    for flag in ("--data-dir", "--config", "--json", "--table"):
        assert f"| `{flag}`" in everywhere
        assert not any(f"| `{flag}`" in section for section in sections)
    assert "`--json`, `--table` of `vestige mcp`" in everywhere
    assert "| `--version`" in before
