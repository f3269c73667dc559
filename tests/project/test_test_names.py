"""A test file is named after the module it tests, in the folder of the same path."""

from collections.abc import Iterator
from pathlib import Path

from testbed.project import PROJECT

TESTS = PROJECT / "tests"
SOURCE = PROJECT / "src" / "vestige"

BEHAVIOURS = frozenset({
    "embed/test_extras.py",
    "embed/test_real_model.py",
    "engine/domains/test_migration.py",
    "engine/test_event_scopes.py",
    "exchange/importers/test_laws.py",
    "exchange/importers/tools/test_stores.py",
    "exchange/portable/test_roundtrip.py",
    "operations/project/test_reference_defects.py",
    "store/postgres/server/test_repeats.py",
    "store/postgres/server/test_restart.py",
    "store/postgres/server/test_round_trips.py",
    "store/postgres/test_concurrency.py",
    "store/postgres/test_installation.py",
    "store/postgres/test_past.py",
    "store/postgres/test_purge.py",
    "store/postgres/test_upgrade.py",
    "store/sqlite/file/test_copies.py",
    "store/sqlite/test_older_labels.py",
    "store/sqlite/test_purge.py",
    "store/sqlite/test_upgrade.py",
    "store/test_leader.py",
    "store/test_upgrade_logins.py",
    "store/transfer/test_documents.py",
    "transports/bridge/test_process.py",
    "transports/bridge/test_terminal.py",
    "transports/cli/test_doctor.py",
    "transports/cli/test_process.py",
    "transports/connect/test_formats.py",
    "transports/http/auth/test_leaks.py",
    "transports/http/auth/test_privacy.py",
    "transports/http/limits/test_disconnects.py",
    "transports/http/mcp/test_process.py",
    "transports/http/openapi/test_page.py",
    "transports/http/test_nginx.py",
    "transports/mcp/test_process.py",
})  # fmt: skip
"""Test files that are named after a behaviour of several modules."""


DATABASES = ("sqlite", "postgres")


def strays(tests: Path, source: Path) -> Iterator[str]:
    """Test files that are named after no module or package of their folder in the source."""
    for path in sorted(tests.rglob("test_*.py")):
        folder = path.parent.relative_to(tests)
        if (source / folder).is_dir() and not _is_named_after(path.stem[5:], _names(source, folder)):
            yield path.relative_to(tests).as_posix()


def _is_named_after(name: str, nouns: set[str]) -> bool:
    """Whether a name is one of these nouns, or one with an aspect of it: `stages`, `stages_context`."""
    return any(name == noun or name.startswith(f"{noun}_") for noun in nouns)


def _names(source: Path, folder: Path) -> set[str]:
    """The package itself, and its modules and packages. SQL that both databases share is tested on each."""
    beside = [folder]
    if folder.parts[:1] == ("store",) and folder.parts[1:2] and folder.parts[1] in DATABASES:
        beside.append(Path("store", "sql", *folder.parts[2:]))
    inside = {path.relative_to(source).as_posix() for one in beside for path in (source / one).rglob("*")}
    stems = {Path(name).stem.strip("_") for name in inside if Path(name).suffix in ("", ".py")}
    return {folder.name, *stems} - {"init", "pycache", ""}


def test_a_test_file_is_named_after_the_module_it_tests() -> None:
    assert [path for path in strays(TESTS, SOURCE) if path not in BEHAVIOURS] == []


def test_files_named_after_a_behaviour_are_there_and_no_module_has_their_name() -> None:
    assert sorted(BEHAVIOURS - set(strays(TESTS, SOURCE))) == []


def test_a_test_file_of_a_module_that_is_gone_is_reported(tmp_path: Path) -> None:
    tests, source = tmp_path / "tests", tmp_path / "src"
    for path in (source / "engine" / "recall", tests / "engine" / "recall", tests / "project"):
        path.mkdir(parents=True)
    (source / "engine" / "recall" / "hits.py").touch()
    for name in ("test_hits.py", "test_hits_folded.py", "test_recall.py", "test_answers.py", "harness.py"):
        (tests / "engine" / "recall" / name).touch()
    (tests / "project" / "test_anything.py").touch()
    assert list(strays(tests, source)) == ["engine/recall/test_answers.py"]
