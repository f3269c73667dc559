"""The graph of a project: `project.graph`."""

from collections import Counter
from typing import Annotated, Literal

from pydantic import Field

from vestige.engine.context import Call
from vestige.engine.project.freshness import freshness
from vestige.engine.project.graph.links import CodeLink, LinkKind, Neighbourhood, neighbourhood
from vestige.engine.project.graph.nodes import CodeNode, NodeKind
from vestige.engine.project.graph.taxonomy import Taxonomy, taxonomy
from vestige.engine.project.place import current_project
from vestige.operations.project.view import (
    EXAMPLE_PATH,
    FreshnessView,
    ProjectPath,
    freshness_text,
    freshness_view,
)
from vestige.operations.registry.arguments import Wire
from vestige.operations.registry.registry import registry
from vestige.operations.shared.text import clip, styled, table

MOST_NAMED = 20


class CodeNodeView(Wire):
    """Something of the project. `name` is an id for a memory; `about` is its first sentence or signature."""

    kind: NodeKind
    name: str
    path: str | None = None
    start_line: int | None = None
    end_line: int | None = None
    about: str | None = None


class CodeLinkView(Wire):
    """A link of the node: `outgoing` from it, or `incoming` to it. `at` is where it is written, or what
    became of cited code; `names` make a reference."""

    type: LinkKind
    direction: Literal["outgoing", "incoming"]
    node: CodeNodeView
    at: str | None = None
    names: list[str] = []


class FolderView(Wire):
    """A folder, with the number of its files by role: source, test, manual, package …"""

    folder: str
    files: int
    roles: dict[str, int]
    about: str | None = None


class CodeGraph(Wire):
    """The links of one node, or, without a name, what the project has.

    `total` counts all links by type, of which `links` are the first of each. `others` have the same name.
    """

    node: CodeNodeView | None = None
    others: list[CodeNodeView] = []
    total: dict[str, int] = {}
    links: list[CodeLinkView] = []
    folders: list[FolderView] = []
    languages: dict[str, int] = {}
    symbols: dict[str, int] = {}
    memories: dict[str, int] = {}
    packages: list[str] = []
    commands: list[CodeNodeView] = []
    documents: list[CodeNodeView] = []
    freshness: FreshnessView


def render_graph(found: CodeGraph) -> str:
    parts = _node_parts(found) if found.node is not None else _taxonomy_parts(found)
    return "\n\n".join([*parts, f"The index is {freshness_text(found.freshness)}."])


def _node_parts(found: CodeGraph) -> list[str]:
    assert found.node is not None
    head = _shown(found.node)
    parts = [f"{head}  {found.node.about}" if found.node.about else head]
    rows = (
        (
            "→" if one.direction == "outgoing" else "←",
            one.type,
            _shown(one.node),
            clip(one.at or ", ".join(one.names) or one.node.about or "", 60),
        )
        for one in found.links
    )
    parts.append(table(("", "link", "to", "at"), rows) if found.links else "It has no links.")
    more = {kind: number for kind, number in found.total.items() if number}
    shown = Counter(f"{one.type} {one.direction}" for one in found.links)
    left = [f"{number - shown[kind]} {kind}" for kind, number in more.items() if number > shown[kind]]
    if left:
        parts.append(f"Not shown: {', '.join(left)}.")
    if found.others:
        parts.append(f"Of the same name: {', '.join(_shown(one) for one in found.others)}.")
    return parts


def _taxonomy_parts(found: CodeGraph) -> list[str]:
    rows = (
        (one.folder, one.files, ", ".join(f"{number} {role}" for role, number in one.roles.items()),
         clip(one.about or "", 60))
        for one in found.folders
    )  # fmt: skip
    parts = [table(("folder", "files", "roles", "about"), rows)]
    for name, counts in (
        ("Languages", found.languages), ("Symbols", found.symbols), ("Memories", found.memories),
    ):  # fmt: skip
        if counts:
            parts.append(f"{name}: {', '.join(f'{number} {kind}' for kind, number in counts.items())}.")
    for name, listed in (
        ("Packages", found.packages),
        ("Commands", [one.name for one in found.commands]),
        ("Documents", [one.path or one.name for one in found.documents]),
    ):
        if listed:
            more = f" and {len(listed) - MOST_NAMED} more" if len(listed) > MOST_NAMED else ""
            parts.append(f"{name}: {', '.join(listed[:MOST_NAMED])}{more}.")
    return parts


def _shown(node: CodeNodeView) -> str:
    place = f"{node.path}:{node.start_line}-{node.end_line}" if node.start_line else node.path
    match node.kind:
        case "file" | "document" | "folder":
            return styled("link", f"{place}/" if node.kind == "folder" else place or node.name)
        case "symbol":
            return f"{node.name} {styled('link', place or '')}"
        case _:
            return f"{node.kind} {node.name}"


@registry.operation(
    "project.graph",
    permission="read",
    example={"name": "greeting", "path": EXAMPLE_PATH},
    positional=("name",),
    title="Graph of the project",
    render=render_graph,
)
def project_graph(
    call: Call,
    name: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=1000,
            description="A path, a symbol such as Class.method, a package, a command, or the id of a memory. "
            "Default: an overview of the project.",
        ),
    ] = None,
    limit: Annotated[int, Field(ge=1, le=200, description="Maximum number of links of each type.")] = 20,
    depth: Annotated[int, Field(ge=1, le=6, description="Levels of folders in the overview.")] = 2,
    path: ProjectPath = None,
) -> CodeGraph:
    """What belongs to what in the project: what a file defines, imports and refers to, what uses it, which
    decisions apply; without a name, its folders, packages, commands and documents.

    Links between code follow names, not types: one that several symbols have may lead to the wrong one.
    """
    project = current_project(call, path)
    with call.engine.code_indexes.reading(project.index) as index:
        if name is None:
            seen = taxonomy(call, project, index, depth=depth)
            return _overview(seen, freshness_view(freshness(call, project, index)))
        found = neighbourhood(call, project, index, name)
        return _around(found, limit, freshness_view(freshness(call, project, index)))


def _overview(seen: Taxonomy, fresh: FreshnessView) -> CodeGraph:
    return CodeGraph(
        folders=[
            FolderView(folder=one.folder, files=one.files, roles=dict(one.roles), about=one.about or None)
            for one in seen.folders[:500]
        ],
        languages=dict(seen.languages),
        symbols=dict(seen.symbols),
        memories=dict(seen.memories),
        packages=list(seen.packages[:500]),
        commands=[_node(one) for one in seen.commands[:200]],
        documents=[_node(one) for one in seen.documents[:200]],
        freshness=fresh,
    )


def _around(found: Neighbourhood, limit: int, fresh: FreshnessView) -> CodeGraph:
    total: Counter[str] = Counter()
    links = []
    for link in found.links:
        kind = f"{link.kind} {_direction(link)}"
        total[kind] += 1
        if total[kind] <= limit:
            links.append(link)
    return CodeGraph(
        node=_node(found.node),
        others=[_node(one) for one in found.others[:limit]],
        total=dict(total),
        links=[_link(one) for one in links],
        freshness=fresh,
    )


def _direction(link: CodeLink) -> Literal["outgoing", "incoming"]:
    return "outgoing" if link.outgoing else "incoming"


def _link(link: CodeLink) -> CodeLinkView:
    return CodeLinkView(
        type=link.kind,
        direction=_direction(link),
        node=_node(link.node),
        at=link.at or None,
        names=list(link.names),
    )


def _node(node: CodeNode) -> CodeNodeView:
    return CodeNodeView(
        kind=node.kind,
        name=node.name,
        path=node.path or None,
        start_line=node.start_line or None,
        end_line=node.end_line or None,
        about=node.about or None,
    )
