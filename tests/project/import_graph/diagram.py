"""Draws the packages of the source and their imports as Mermaid diagrams into docs/architecture.md.

`python -m tests.project.import_graph.diagram` writes them (`make docs` does so); `test_diagram.py` compares.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from testbed.project import PROJECT
from tests.project.architecture_rules import LAZY_EXCEPTIONS, Module, imported_names, read_tree

PAGE = PROJECT / "docs" / "architecture.md"
SOURCE = PROJECT / "src" / "vestige"
RESERVED = frozenset({"end", "flowchart", "graph", "style", "subgraph"})
"""Words of Mermaid: a box of such a name breaks the whole diagram."""
BLOCK = re.compile(r"(<!-- import graph: (\w+) -->\n).*?(<!-- end of import graph -->)", re.DOTALL)
"""A generated block. Its name is a top-level package, or `vestige` for all of them."""

WHOLE = "vestige"
OWN_MODULES = "*.py"
"""The box for the modules that are directly in a package."""

Graph = Mapping[str, set[str]]
"""Every box, with the boxes that it imports from."""


def drawn(page: str, modules: Sequence[Module]) -> str:
    """The page, with every block drawn from these modules."""
    return BLOCK.sub(lambda block: f"{block[1]}{diagram(import_graph(block[2], modules))}{block[3]}", page)


def diagram(graph: Graph) -> str:
    """A graph in Mermaid: importers above what they import."""
    lines = ["```mermaid", "flowchart TB"]
    for number, names in enumerate(layers(graph), 1):
        boxes = [f'    {_id(name)}["{name}"]' for name in names]
        lines += [f'  subgraph layer{number}[" "]', "    direction LR", *boxes, "  end"]
    pairs = set(arrows(graph))
    for source, target in sorted(pairs):
        if (target, source) not in pairs:
            lines.append(f"  {_id(source)} --> {_id(target)}")
        elif source < target:
            lines.append(f"  {_id(source)} <--> {_id(target)}")
    return "\n".join([*lines, "```", ""])


def import_graph(package: str, modules: Sequence[Module]) -> Graph:
    """The packages below a package, or all top-level ones, and the imports between them."""
    folders = {parent for module in modules for parent in _parents(module.part)}
    graph: dict[str, set[str]] = {}
    for module in modules:
        source = _box(package, module.part, folders)
        if source:
            targets = {_box(package, target, folders) for target in _targets(module)}
            graph.setdefault(source, set()).update(one for one in targets if one and one != source)
    return graph


def layers(graph: Graph) -> list[list[str]]:
    """The boxes from top to bottom. Boxes that import each other are side by side."""
    reached = {name: _reached(graph, name) for name in graph}
    depths: dict[str, int] = {}
    for name in sorted(graph, key=lambda one: len(reached[one])):
        ring = {one for one in reached[name] if name in reached[one]}
        below = {target for one in ring for target in graph[one]} - ring
        depths[name] = 1 + max((depths[one] for one in below), default=0)
    rows = sorted(set(depths.values()), reverse=True)
    return [sorted(name for name in depths if depths[name] == row) for row in rows]


def arrows(graph: Graph) -> Iterator[tuple[str, str]]:
    """The imports to draw: those that a way over a lower box does not imply."""
    reached = {name: _reached(graph, name) for name in graph}
    for source, targets in graph.items():
        for target in targets:
            lower = (one for one in targets - {target} if source not in reached[one])
            if not any(target in reached[one] for one in lower):
                yield source, target


def _reached(graph: Graph, start: str) -> set[str]:
    seen, waiting = {start}, [start]
    while waiting:
        new = graph[waiting.pop()] - seen
        seen |= new
        waiting += new
    return seen


def _targets(module: Module) -> Iterator[str]:
    """Names of our package that a module imports, without `vestige.`; the exceptions upward are left out."""
    for target in imported_names(module):
        upward = any(module.name == who and target.startswith(what) for who, what in LAZY_EXCEPTIONS)
        if target.startswith(f"{WHOLE}.") and not upward:
            yield target.removeprefix(f"{WHOLE}.")


def _box(package: str, part: str, folders: set[str]) -> str | None:
    """The box that a dotted name belongs to; None if the diagram does not show it."""
    names = part.split(".")
    if package == WHOLE:
        return names[0] if names[0] in folders else None
    if names[0] != package or len(names) == 1:
        return None
    return names[1] if f"{package}.{names[1]}" in folders else OWN_MODULES


def _parents(part: str) -> Iterator[str]:
    names = part.split(".")
    yield from (".".join(names[:count]) for count in range(1, len(names)))


def _id(name: str) -> str:
    if name in RESERVED:
        return f"{name}_package"
    return "own_modules" if name == OWN_MODULES else name


def main() -> None:
    """Write the page."""
    PAGE.write_text(drawn(PAGE.read_text(encoding="utf-8"), read_tree(SOURCE)), encoding="utf-8")


if __name__ == "__main__":
    main()
