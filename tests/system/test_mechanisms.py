"""No inert mechanism: each has a page that tells of it, and a test that sees its effect after a restart."""

import ast
import re
from pathlib import Path

import pytest

from testbed.failures import each
from testbed.project import PROJECT
from vestige.operations.registry.groups import registry
from vestige.settings.sections import MechanismSettings

PAGES = PROJECT / "docs" / "concepts"
TESTS = PROJECT / "tests" / "system" / "mechanisms"

MECHANISMS = (
    "archive", "autopilot", "capture", "competition", "consolidation", "context", "decay", "dreams",
    "emotion", "exploration", "importance", "intentions", "links", "personal-curve", "prediction", "purge",
    "reconsolidation", "spreading", "states", "suppression", "testing-effect",
)  # fmt: skip
HEADINGS = ("## Paper", "## Formula", "## State", "## What you see")
TOOLS = {
    "archive", "consolidate", "dream", "explore_connections", "gc", "importance_score", "intention",
    "memory_graph", "predict", "suppress",
}  # fmt: skip
"""The tools that exist for a mechanism."""
OPENED_AGAIN = "living.restart("
TOOL_CALLS = (".call(", ".find(", ".get(", ".remember(")


def page(name: str) -> str:
    return (PAGES / f"{name}.md").read_text(encoding="utf-8")


def file_of(name: str) -> Path:
    return next(TESTS.glob(f"*/test_{name.replace('-', '_')}.py"))


def functions(path: Path) -> dict[str, ast.FunctionDef]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def written_out(name: str, known: dict[str, ast.FunctionDef]) -> str:
    """A test, and after each line of it the functions of its file that the line calls."""
    lines = []
    for line in ast.unparse(known[name]).splitlines():
        called = [one for one in known if one != name and re.search(rf"\b{one}\(", line)]
        lines += [line, *(ast.unparse(known[one]) for one in called)]
    return "\n".join(lines)


def uses_a_tool_on_what_was_opened_again(source: str) -> bool:
    """Whether a store is opened again and a tool is called after that: engine internals are no proof."""
    opened = source.find(OPENED_AGAIN)
    return opened >= 0 and any(tool in source[opened:] for tool in TOOL_CALLS)


@pytest.mark.parametrize(
    ("source", "proof"),
    [
        ("world = living.restart()\nassert world.get(one)", True),
        ("assert living.restart().call('memory', action='get')", True),
        ("living.world.remember(text)\nliving.restart()\nassert encodings(living.world.app.engine)", False),
        ("assert living.world.find(text)", False),
    ],
)
def test_only_what_a_tool_says_after_the_restart_is_a_proof(source: str, proof: bool) -> None:
    assert uses_a_tool_on_what_was_opened_again(source) is proof


@each("name", MECHANISMS)
def test_a_mechanism_has_a_page_with_paper_formula_state_and_effect(name: str) -> None:
    told = page(name)
    assert [heading for heading in HEADINGS if f"\n{heading}\n" not in told] == []


@each("name", MECHANISMS)
def test_the_test_its_page_names_exists_uses_the_tools_and_opens_the_store_again(name: str) -> None:
    path = file_of(name)
    named = re.findall(rf"{path.relative_to(PROJECT).as_posix()}::(test_\w+)", page(name))
    known = functions(path)
    assert named
    assert set(named) <= known.keys()
    proofs = [one for one in named if "living" in {argument.arg for argument in known[one].args.args}]
    assert any(uses_a_tool_on_what_was_opened_again(written_out(one, known)) for one in proofs)
    assert all("assert " in written_out(one, known) for one in named)


def test_every_mechanism_that_can_be_switched_off_is_among_them_and_its_test_does_it() -> None:
    switches = {name.replace("_", "-") for name in MechanismSettings.model_fields}
    assert switches <= set(MECHANISMS)
    for name in switches:
        assert f"mechanisms__{name.replace('-', '_')}=False" in file_of(name).read_text(encoding="utf-8")


def test_there_is_no_test_and_no_page_of_a_mechanism_that_is_not_listed() -> None:
    tested = {path.stem.removeprefix("test_").replace("_", "-") for path in TESTS.glob("*/test_*.py")}
    described = {path.stem for path in PAGES.glob("*.md") if f"\n{HEADINGS[0]}\n" in page(path.stem)}
    assert tested == set(MECHANISMS)
    assert described == set(MECHANISMS)


def test_every_tool_of_a_mechanism_is_explained_on_a_page_of_one() -> None:
    known = set(registry.tools)
    assert known >= TOOLS
    told = "\n".join(page(name) for name in MECHANISMS)
    assert sorted(tool for tool in TOOLS if f"`{tool}" not in told) == []
