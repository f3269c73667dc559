"""What people see: the table of every operation at 80 columns, and that no line is wider than its terminal.

The clock and the ids are injected. After a change of the output on purpose, run with
`VESTIGE_TEST_SNAPSHOTS=write` and read the difference of `tables.txt`.
"""

import os
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import pytest

from testbed.planting import Planting
from testbed.world import HandClock
from tests.transports.cli.harness import invoke
from tests.transports.parity.example_store import planted
from tests.transports.parity.transports import Lent
from vestige.operations.registry.groups import registry
from vestige.operations.registry.registry import Operation
from vestige.operations.shared.text import MARKS, width_of
from vestige.transports.arguments import words_of

pytestmark = pytest.mark.slow

SNAPSHOTS = Path(__file__).with_name("tables.txt")
HEAD = "=== "
SAY_WHERE = (
    "backup", "doctor", "export", "import", "index.rebuild", "index.status", "installation.backups",
    "keys.create", "keys.rotate",
    "project.backup", "project.export", "project.import", "project.restore", "project.status", "rebuild",
    "sessions.archive", "sessions.doctor", "sync", "system_settings", "system_status",
)  # fmt: skip
"""Their text has paths, sizes, versions or random values of this run: of these only the width is checked."""


@pytest.fixture(scope="module")
def planting(tmp_path_factory: pytest.TempPathFactory) -> Planting:
    folder, clock = tmp_path_factory.mktemp("planted") / "data", HandClock()
    with planted(folder, clock=clock):
        pass
    return Planting(folder=folder, clock=clock)


def shown(planting: Planting, operation: Operation, folder: Path, columns: int) -> str:
    """What the example of an operation prints on a terminal of this width."""
    example = {
        name: value.removeprefix("~/") if isinstance(value, str) else value
        for name, value in operation.example.items()
    }
    yes = ["--yes"] if operation.effect == "delete" else []
    words = words_of(operation, example)
    path, rest = words[: len(operation.command)], words[len(operation.command) :]
    with planting.copied(folder) as world, chdir(folder):
        outcome = invoke(
            [*path, "--table", *yes, *rest],
            open_app=lambda _: Lent(world.app.engine),
            environ={"COLUMNS": str(columns), "TZ": "UTC"},
        )
    assert outcome.stderr == ""
    return outcome.stdout


def kept() -> dict[str, str]:
    parts = SNAPSHOTS.read_text(encoding="utf-8").split(HEAD)[1:] if SNAPSHOTS.exists() else []
    return dict(part.split("\n", 1) for part in parts)


@pytest.fixture(scope="module")
def written() -> Iterator[dict[str, str]]:
    """The snapshots; those put into it are written at the end, where that was asked for."""
    snapshots = kept()
    yield snapshots
    if os.environ.get("VESTIGE_TEST_SNAPSHOTS") == "write":
        text = "".join(f"{HEAD}{name}\n{snapshots[name]}" for name in sorted(snapshots))
        SNAPSHOTS.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("name", list(registry.operations))
def test_every_table_fits_its_terminal_and_is_as_it_was(
    name: str, planting: Planting, written: dict[str, str], tmp_path: Path
) -> None:
    operation = registry.operations[name]
    for columns in (80, 140):
        text = shown(planting, operation, tmp_path / str(columns), columns)
        assert [line for line in text.splitlines() if width_of(line) > columns] == []
        assert not set(text) & set(MARKS.values())
        if columns == 80 and name not in SAY_WHERE:
            if os.environ.get("VESTIGE_TEST_SNAPSHOTS") == "write":
                written[name] = text
            assert text == written.get(name), "run with VESTIGE_TEST_SNAPSHOTS=write if this is meant"


def test_the_snapshots_are_those_of_the_operations() -> None:
    assert kept().keys() == registry.operations.keys() - set(SAY_WHERE)
