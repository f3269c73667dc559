"""The source keeps the architecture, and every rule of it can be broken (rules: architecture_rules.py)."""

from pathlib import Path

import pytest

from testbed.failures import each
from testbed.project import PROJECT
from tests.project import architecture_rules as rules
from tests.project.architecture_rules import Rule, Violation, read_once, read_tree
from vestige.operations.registry.groups import registry

pytestmark = pytest.mark.slow  # reads every file; `make check` runs it too

SOURCE = PROJECT / "src" / "vestige"
TESTS = PROJECT / "tests"
LONG = "x = 1\n" * 801
LONG_FUNCTION = "def f() -> None:\n" + "    x = 1\n" * 41
FULL_FUNCTION = 'def f() -> None:\n    """One.\n\n    Two.\n    """\n' + "    x = 1\n" * 39
OPERATION = frozenset({"smart_ingest"})


def source() -> list[rules.Module]:
    return read_once(SOURCE)


def no_operation_names(module: rules.Module) -> list[Violation]:
    return list(rules.transports_name_no_operation(module, OPERATION))


@each("rule", rules.RULES, ids=lambda rule: rule.__name__)
def test_the_source_keeps_the_rule(rule: Rule) -> None:
    broken = [violation for module in source() for violation in rule(module)]
    assert not broken, _told(rule.__doc__, broken)


def test_no_transport_names_an_operation() -> None:
    names = frozenset(registry.operations)
    broken = [
        violation for module in source() for violation in rules.transports_name_no_operation(module, names)
    ]
    assert not broken, _told(rules.transports_name_no_operation.__doc__, broken)


def test_tests_benchmarks_and_training_say_why_they_silence_a_check() -> None:
    trees = [TESTS, PROJECT / "benchmarks", PROJECT / "training"]
    broken = [
        violation
        for tree in trees
        for module in read_tree(tree)
        if module.part != "test_architecture"
        for violation in rules.silenced_checks_give_a_reason(module)
    ]
    assert not broken, _told(rules.silenced_checks_give_a_reason.__doc__, broken)


BROKEN: list[tuple[Rule, str, str]] = [
    (rules.imports_downward, "core/models.py", "from vestige.engine.context import Call"),
    (rules.imports_downward, "core/errors.py", "import vestige.engine"),
    (rules.imports_downward, "cognition/fsrs/formulas.py", "from vestige.store.contract import store"),
    (rules.imports_downward, "cognition/fsrs/formulas.py", "from vestige.settings.settings import Settings"),
    (rules.imports_downward, "cognition/fsrs/formulas.py", "from ...engine import recall"),
    (rules.imports_downward, "embed/onnx.py", "from vestige.store.contract.store import Piece"),
    (rules.imports_downward, "store/sqlite/store.py", "from vestige.embed.onnx import OnnxEmbedder"),
    (rules.imports_downward, "store/sqlite/store.py", "from vestige.store.inmemory import InMemoryStore"),
    (rules.imports_downward, "engine/recall/recall.py", "from vestige.store.sqlite.store import SqliteStore"),
    (
        rules.imports_downward,
        "engine/recall/recall.py",
        "def f():\n    from vestige.operations.memory import search",
    ),
    (
        rules.imports_downward,
        "engine/recall/recall.py",
        "import importlib\nimportlib.import_module('vestige.app.app')",
    ),
    (rules.imports_downward, "operations/memory/search.py", "from vestige.transports import cli"),
    (rules.imports_downward, "operations/memory/search.py", "from vestige.app import app"),
    (rules.imports_downward, "transports/cli/main.py", "def f():\n    from vestige.app.app import open_app"),
    (rules.imports_downward, "transports/mcp/stdio.py", "from vestige.app.app import open_app"),
    (rules.imports_downward, "__init__.py", "from vestige.app.app import open_app"),
    (rules.imports_downward, "somewhere.py", "x = 1"),
    (rules.drivers_stay_in_the_store, "engine/care/backup.py", "import sqlite3"),
    (rules.pydantic_stays_at_the_edge, "core/models.py", "from pydantic import BaseModel"),
    (rules.annotations_are_evaluated, "core/models.py", "from __future__ import annotations"),
    (rules.environment_is_read_once, "app/app.py", "import os\nhome = os.environ['HOME']"),
    (rules.environment_is_read_once, "embed/onnx.py", "from os import getenv\ngetenv('HOME')"),
    (rules.environment_is_read_once, "engine/recall/recall.py", "import os as o\nx = o.environ.get('HOME')"),
    (
        rules.time_is_an_argument,
        "cognition/fsrs/formulas.py",
        "from datetime import datetime\ndatetime.now()",
    ),
    (rules.time_is_an_argument, "cognition/fsrs/formulas.py", "import datetime as dt\ndt.datetime.utcnow()"),
    (rules.time_is_an_argument, "store/sqlite/store.py", "import time\ntime.sleep(1)"),
    (rules.time_is_an_argument, "store/sqlite/store.py", "from time import monotonic as m\nx = m"),
    (rules.time_is_an_argument, "operations/memory/search.py", "from datetime import date\ndate.today()"),
    (rules.chance_is_an_argument, "cognition/ranking/stages.py", "import random\nrandom.shuffle([])"),
    (
        rules.chance_is_an_argument,
        "cognition/ranking/stages.py",
        "import numpy as np\nnp.random.default_rng()",
    ),
    (rules.chance_is_an_argument, "store/sqlite/store.py", "import random\nrng = random.Random(7)"),
    (rules.chance_is_an_argument, "store/sqlite/store.py", "from random import Random\nrng = Random()"),
    (rules.chance_is_an_argument, "engine/ingest/ingest.py", "from uuid import uuid4\nuuid4()"),
    (rules.chance_is_an_argument, "engine/ingest/ingest.py", "import secrets\nsecrets.token_hex()"),
    (rules.sql_stays_in_the_store, "engine/care/backup.py", "q = 'SELECT id FROM memories'"),
    (rules.sql_stays_in_the_store, "app/app.py", "q = f'PRAGMA journal_mode = {1}'"),
    (rules.sql_stays_in_the_store, "operations/care/status.py", "q = '''\n  insert into t values (1)'''"),
    (rules.sql_stays_in_the_store, "transports/cli/main.py", "q = 'UPDATE t SET x = 1'"),
    (rules.backends_are_picked_once, "engine/care/backup.py", "def f(s):\n    if s.backend == 'other': ..."),
    (
        rules.backends_are_picked_once,
        "operations/care/status.py",
        "def f(kind): return kind in ('sqlite', 'x')",
    ),
    (rules.backends_are_picked_once, "engine/care/backup.py", "def f(s): return isinstance(s, SqliteStore)"),
    (rules.backends_are_picked_once, "engine/care/backup.py", "match settings.backend:\n    case 'x': ..."),
    (rules.middle_is_plain, "engine/recall/recall.py", "async def recall(): ..."),
    (rules.modules_are_short, "engine/recall/recall.py", LONG),
    (rules.functions_are_short, "engine/recall/recall.py", LONG_FUNCTION),
    (rules.modules_are_named_after_a_thing, "engine/utils.py", "x = 1"),
    (rules.silenced_checks_give_a_reason, "core/models.py", "x = 1  # noqa: E501"),
    (rules.silenced_checks_give_a_reason, "core/models.py", "x = 1  # type: ignore[assignment]"),
]

KEPT: list[tuple[Rule, str, str]] = [
    (rules.imports_downward, "store/sqlite/store.py", "from vestige.embed.protocol import Signature"),
    (rules.imports_downward, "operations/care/status.py", "from vestige import __version__"),
    (rules.imports_downward, "engine/recall/recall.py", "import numpy as np"),
    (rules.imports_downward, "transports/mcp/stdio.py", "def f():\n    from vestige.app.app import open_app"),
    (rules.imports_downward, "app/app.py", "from vestige.transports.cli import run"),
    (rules.drivers_stay_in_the_store, "store/sqlite/store.py", "import sqlite3"),
    (rules.pydantic_stays_at_the_edge, "operations/registry/arguments.py", "from pydantic import Field"),
    (rules.environment_is_read_once, "settings/settings.py", "import os\nhome = os.environ['HOME']"),
    (rules.environment_is_read_once, "engine/recall/recall.py", "def f(os): return os.environ"),
    (rules.time_is_an_argument, "app/app.py", "import time\ntime.sleep(1)"),
    (rules.time_is_an_argument, "store/sqlite/store.py", "from datetime import datetime\nx: datetime"),
    (rules.chance_is_an_argument, "core/clock.py", "import random\ndef f(rng: random.Random): ..."),
    (rules.chance_is_an_argument, "core/clock.py", "from uuid import UUID\nUUID(int=1)"),
    (rules.sql_stays_in_the_store, "store/sqlite/store.py", "q = 'SELECT id FROM memories'"),
    (rules.sql_stays_in_the_store, "operations/care/status.py", "'''Select a memory from the list.'''"),
    (rules.sql_stays_in_the_store, "operations/care/status.py", "x = 'Update the memory.'"),
    (rules.backends_are_picked_once, "app/app.py", "def f(s):\n    if s.backend == 'memory': ..."),
    (rules.middle_is_plain, "transports/http/app.py", "async def serve(): ..."),
    (rules.modules_are_short, "engine/recall/recall.py", "x = 1\n" * 800),
    (rules.functions_are_short, "engine/recall/recall.py", FULL_FUNCTION),
    (rules.silenced_checks_give_a_reason, "core/models.py", "x = 1  # noqa: E501  a URL cannot be broken"),
]


@pytest.mark.parametrize(("rule", "path", "source"), BROKEN)
def test_a_module_that_breaks_the_rule_is_reported_with_its_place(
    rule: Rule, path: str, source: str, tmp_path: Path
) -> None:
    broken = list(rule(_module(tmp_path, path, source)))
    assert broken
    assert all(str(violation).startswith(f"vestige/{path}:{violation.line}: ") for violation in broken)


@pytest.mark.parametrize(("rule", "path", "source"), KEPT)
def test_a_module_that_keeps_the_rule_is_not_reported(
    rule: Rule, path: str, source: str, tmp_path: Path
) -> None:
    assert list(rule(_module(tmp_path, path, source))) == []


def test_a_transport_that_names_an_operation_is_reported(tmp_path: Path) -> None:
    bad = _module(tmp_path, "transports/cli/main.py", "if name == 'smart_ingest':\n    ...")
    assert [violation.line for violation in no_operation_names(bad)] == [1]
    assert not no_operation_names(_module(tmp_path, "operations/memory/ingest.py", "x = 'smart_ingest'"))


def test_every_rule_is_proven_to_fail() -> None:
    proven = {rule for rule, _, _ in BROKEN}
    assert proven == set(rules.RULES)


def test_the_line_reported_is_the_line_at_fault(tmp_path: Path) -> None:
    module = _module(tmp_path, "engine/recall/recall.py", "x = 1\n\nimport vestige.app.app\n")
    assert [str(violation) for violation in rules.imports_downward(module)] == [
        "vestige/engine/recall/recall.py:3: `engine` may not import `vestige.app.app`"
    ]


def _module(root: Path, path: str, source: str) -> rules.Module:
    file = root / "vestige" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(source, encoding="utf-8")
    return next(module for module in read_tree(root / "vestige") if module.path == f"vestige/{path}")


def _told(rule: str | None, broken: list[Violation]) -> str:
    return "\n".join([rule or "", *map(str, broken)])


def test_an_operation_does_not_look_up_another_one() -> None:
    """A command of the command line imports the module of its operation alone."""
    looking = [
        path.relative_to(SOURCE).as_posix()
        for path in (SOURCE / "operations").rglob("*.py")
        if path.parent.name != "registry" and "registry.operations" in path.read_text(encoding="utf-8")
    ]
    assert looking == []
