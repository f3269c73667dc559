"""The diagrams of docs/architecture.md are those of the source."""

import ast
from collections.abc import Mapping
from functools import cache

import pytest

from tests.project.architecture_rules import Module, read_tree
from tests.project.import_graph.diagram import (
    BLOCK,
    PAGE,
    SOURCE,
    WHOLE,
    arrows,
    diagram,
    drawn,
    import_graph,
    layers,
)

pytestmark = pytest.mark.slow  # reads every file; `make check` runs it too


@cache
def source() -> list[Module]:
    return read_tree(SOURCE)


def module(part: str, code: str = "") -> Module:
    name = f"vestige.{part}"
    return Module(path=f"{name}.py", name=name, part=part, source=code, tree=ast.parse(code))


def downward(graph: Mapping[str, set[str]]) -> bool:
    """Whether every import goes to a lower layer."""
    depth = {name: row for row, names in enumerate(layers(graph)) for name in names}
    return all(depth[above] < depth[below] for above in graph for below in graph[above])


def test_the_page_shows_the_imports_of_the_source() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert drawn(page, source()) == page, "run `make docs`"


def test_the_page_has_a_diagram_of_the_whole_and_of_each_package_with_packages_in_it() -> None:
    modules = source()
    named = {name for _, name, _ in BLOCK.findall(PAGE.read_text(encoding="utf-8"))}
    large = {name for name in import_graph(WHOLE, modules) if len(import_graph(name, modules)) > 2}
    assert named == {WHOLE} | large


def test_top_level_packages_import_downward_only() -> None:
    assert downward(import_graph(WHOLE, source()))


def test_an_import_makes_an_arrow_between_packages_and_none_within_one() -> None:
    modules = [
        module(
            "engine.recall.recall", "from vestige.core.errors import NotFound\nimport vestige.engine.notify"
        ),
        module("engine.notify"),
        module("core.errors", "import json\nfrom vestige import __version__"),
    ]
    assert import_graph(WHOLE, modules) == {"engine": {"core"}, "core": set()}
    assert import_graph("engine", modules) == {"recall": {"*.py"}, "*.py": set()}


def test_an_import_that_others_imply_is_not_drawn() -> None:
    graph = {"app": {"engine", "core"}, "engine": {"core"}, "core": set()}
    assert set(arrows(graph)) == {("app", "engine"), ("engine", "core")}
    assert layers(graph) == [["app"], ["engine"], ["core"]]


def test_packages_that_import_each_other_share_a_layer_and_an_arrow() -> None:
    graph = {"care": {"memory", "core"}, "memory": {"care", "core"}, "core": set()}
    assert layers(graph) == [["care", "memory"], ["core"]]
    assert not downward(graph)
    assert "care <--> memory" in diagram(graph)
    assert "care --> core" in diagram(graph)


def test_a_package_named_like_a_word_of_mermaid_gets_another_name_in_the_diagram() -> None:
    drawing = diagram({"fsrs": {"graph"}, "graph": set()})
    assert 'graph_package["graph"]' in drawing
    assert "fsrs --> graph_package" in drawing
