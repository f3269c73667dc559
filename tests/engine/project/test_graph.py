"""The graph of a project: what belongs to what, found in the files as they are now."""

from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.world import World
from vestige.core.errors import NotFound
from vestige.engine.context import Call
from vestige.engine.project.graph.links import Neighbourhood, neighbourhood
from vestige.engine.project.graph.nodes import CodeNode
from vestige.engine.project.graph.taxonomy import Taxonomy, taxonomy
from vestige.engine.project.place import current_project, new_project
from vestige.engine.project.refresh import refresh

Write = Callable[..., Path]


@pytest.fixture(autouse=True)
def shop(write: Write, call: Call, root: Path) -> None:
    (root / ".git").mkdir()
    write("README.md", "# Shop\n\nSells things. See `total_price`.\n")
    write(
        "pyproject.toml",
        '[project]\nname = "shop"\ndependencies = ["rich>=13"]\n[project.scripts]\nshop = "shop.cli:main"\n',
    )
    write("shop/__init__.py", '"""A small shop."""\n')
    write(
        "shop/money.py",
        '"""Amounts of money."""\n\nimport rich\n\n\ndef total_price(lines):\n    return sum(lines)\n',
    )
    write(
        "shop/cli.py", "from shop.money import total_price\n\n\ndef main():\n    print(total_price([1, 2]))\n"
    )
    write(
        "tests/test_money.py",
        "from shop.money import total_price\n\n\ndef test_it():\n    assert total_price([]) == 0\n",
    )
    refresh(call, new_project(call))


def around(call: Call, name: str) -> Neighbourhood:
    project = current_project(call)
    with call.engine.code_indexes.reading(project.index) as index:
        return neighbourhood(call, project, index, name)


def overview(call: Call, depth: int = 2) -> Taxonomy:
    project = current_project(call)
    with call.engine.code_indexes.reading(project.index) as index:
        return taxonomy(call, project, index, depth=depth)


def links(call: Call, name: str) -> set[tuple[str, str, str]]:
    """Kind of link, its direction and the other end."""
    return {
        (one.kind, ">" if one.outgoing else "<", _other_end(one.node)) for one in around(call, name).links
    }


def _other_end(node: CodeNode) -> str:
    if node.kind in ("package", "command", "memory"):
        return f"{node.kind} {node.name}"
    return node.name if node.kind == "symbol" else node.path


def test_a_file_has_what_it_defines_imports_and_is_used_by(call: Call) -> None:
    found = links(call, "shop/money.py")
    assert {
        ("contains", "<", "shop"),
        ("defines", ">", "total_price"),
        ("imports", ">", "package rich>=13"),
        ("imports", "<", "shop/cli.py"),
        ("imports", "<", "tests/test_money.py"),
        ("references", "<", "shop/cli.py"),
        ("references", "<", "README.md"),
    } <= found
    assert ("imports", ">", "shop/money.py") in links(call, "shop/cli.py")


def test_a_symbol_has_its_file_and_its_callers(call: Call) -> None:
    found = around(call, "total_price")
    assert (found.node.kind, found.node.place) == ("symbol", "shop/money.py:1-7")
    assert ("references", "<", "main") in links(call, "total_price")
    # Callers in code come before those in tests.
    callers = [one.at.split(":")[0] for one in found.links if one.kind == "references" and not one.outgoing]
    assert callers.index("shop/cli.py") < callers.index("tests/test_money.py")
    assert ("references", ">", "total_price") in links(call, "main")


def test_a_folder_contains_and_a_package_is_imported(call: Call) -> None:
    assert {("contains", ">", "shop/cli.py"), ("contains", "<", ".")} <= links(call, "shop/")
    assert around(call, "shop/").node.about == "A small shop."
    assert {("imports", "<", "shop/money.py"), ("imports", "<", "pyproject.toml")} <= links(call, "rich")


def test_a_command_leads_to_its_program(call: Call) -> None:
    (command,) = [one for one in around(call, "pyproject.toml").links if one.node.kind == "command"]
    assert (command.kind, command.node.name, command.node.about) == ("defines", "shop", "shop.cli:main")
    found = overview(call)
    assert [one.name for one in found.commands] == ["shop"]


def test_an_edit_that_is_not_indexed_counts_and_takes_no_links_of_others(call: Call, write: Write) -> None:
    write("shop/cli.py", "from shop import money\n\n\ndef main():\n    pass\n")
    found = links(call, "shop/money.py")
    assert ("imports", "<", "shop/cli.py") in found
    write("shop/money.py", '"""Amounts."""\n\n\ndef total_price(lines):\n    return max(lines)\n')
    refresh(call, current_project(call))
    assert ("references", "<", "tests/test_money.py") in links(call, "shop/money.py")


def test_a_memory_applies_to_the_code_it_cites(world: World, call: Call, root: Path) -> None:
    with_place = {"path": str(root)}
    rule = world.call(
        "project", action="save", content="Prices are whole cents.", kind="constraint",
        cites=["shop/money.py:6-7"], **with_place,
    )  # fmt: skip
    note = world.call(
        "project", action="save", content="The command line is a sketch.", kind="fact", cites=["shop/cli.py"],
        **with_place,
    )  # fmt: skip
    project = current_project(call, str(root))
    with call.engine.code_indexes.reading(project.index) as index:
        ends = {
            name: {(one.kind, one.node.name) for one in neighbourhood(call, project, index, name).links}
            for name in ("shop/money.py", "total_price", "shop/cli.py", rule["nodeId"])
        }
        counts = taxonomy(call, project, index, depth=1).memories
    assert ("applies_to", rule["nodeId"]) in ends["shop/money.py"] & ends["total_price"]
    assert ("concerns", note["nodeId"]) in ends["shop/cli.py"]
    assert ("applies_to", rule["nodeId"]) not in ends["shop/cli.py"]
    assert "applies_to" in {kind for kind, _ in ends[rule["nodeId"]]}
    assert counts == {"constraint": 1, "fact": 1}


def test_the_overview_counts_folders_languages_and_symbols(call: Call) -> None:
    found = overview(call, depth=1)
    assert {(one.folder, one.files): dict(one.roles) for one in found.folders} == {
        (".", 6): {"source": 4, "package": 1, "test": 1},
        ("shop", 3): {"source": 2, "package": 1},
        ("tests", 1): {"test": 1},
    }
    assert found.packages == ("rich>=13",)
    assert [one.path for one in found.documents] == ["README.md"]
    assert found.languages["python"] == 4


def test_the_overview_counts_only_files_with_text(call: Call, write: Write) -> None:
    before = overview(call)
    write("shop/picture.py", "\0\0")
    refresh(call, current_project(call))
    assert overview(call) == before


def test_an_unknown_name_is_refused(call: Call) -> None:
    with pytest.raises(NotFound, match="no file, folder, symbol"):
        around(call, "nothing_like_this")
