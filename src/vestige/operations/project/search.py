"""Searching the code of a project: `project.search`."""

from typing import Annotated, Literal

from pydantic import Field

from vestige.engine.context import Call
from vestige.engine.project.freshness import freshness
from vestige.engine.project.place import current_project
from vestige.engine.project.search import CodeHit, search_code
from vestige.operations.project.view import (
    EXAMPLE_PATH,
    FreshnessView,
    ProjectPath,
    freshness_text,
    freshness_view,
)
from vestige.operations.registry.arguments import Wire
from vestige.operations.registry.registry import registry
from vestige.operations.shared.text import styled

LINES_SHOWN = 12

Detail = Literal["places", "signatures", "lines"]


class CodeHitView(Wire):
    """Lines of a file. `matched` is the share of the question's words that they have, by weight; `reread` is
    set if they changed since they were indexed, and were read again."""

    path: str
    start_line: int
    end_line: int
    kind: str
    symbol: str | None = None
    signature: str | None = None
    score: float
    matched: float
    reread: bool | None = None
    text: str | None = None


class CodeFound(Wire):
    """Sections of the project's files, best first."""

    query: str
    total: int
    hits: list[CodeHitView]
    freshness: FreshnessView
    message: str | None = None


def render_found(found: CodeFound) -> str:
    parts = []
    for hit in found.hits:
        head = styled("link", f"{hit.path}:{hit.start_line}-{hit.end_line}")
        named = f"  {hit.kind} {hit.symbol}" if hit.symbol else ""
        shown = (hit.text or hit.signature or "").rstrip("\n")
        lines = shown.split("\n") if shown else []
        more = [f"    … {len(lines) - LINES_SHOWN} more lines"] if len(lines) > LINES_SHOWN else []
        parts.append("\n".join([f"{head}{named}", *(f"    {line}" for line in lines[:LINES_SHOWN]), *more]))
    # Places alone are a list; lines of code need space between them.
    between = "\n\n" if any(hit.text or hit.signature for hit in found.hits) else "\n"
    parts.append(f"{found.message or ''} The index is {freshness_text(found.freshness)}.".strip())
    return between.join(parts)


@registry.operation(
    "project.search",
    permission="read",
    example={"query": "greeting", "path": EXAMPLE_PATH},
    positional=("query",),
    render=render_found,
)
def project_search(
    call: Call,
    query: Annotated[
        str,
        Field(
            min_length=1,
            max_length=100_000,
            description="What to look for: a symbol, a sentence, an error with its trace, or a whole issue.",
        ),
    ],
    limit: Annotated[int, Field(ge=1, le=100, description="Maximum number of sections.")] = 10,
    detail: Annotated[
        Detail, Field(description="What each hit shows: lines (all of them), signatures, or places only.")
    ] = "lines",
    path: ProjectPath = None,
) -> CodeFound:
    """Find code of the project: sections of its files, best first, with path and lines.

    Lines are read from the files at once, so they are current even if the index is stale.
    """
    project = current_project(call, path)
    with call.engine.code_indexes.reading(project.index) as index:
        hits = search_code(call, project, index, query, limit=limit)
        found = freshness(call, project, index)
    return CodeFound(
        query=query[:200],
        total=len(hits),
        hits=[_view(hit, detail) for hit in hits],
        freshness=freshness_view(found),
        message=None if hits else "Nothing found.",
    )


def _view(hit: CodeHit, detail: Detail) -> CodeHitView:
    return CodeHitView(
        path=hit.path,
        start_line=hit.start_line,
        end_line=hit.end_line,
        kind=hit.kind,
        symbol=hit.symbol_path or None,
        signature=hit.signature if detail == "signatures" and hit.signature else None,
        score=round(hit.score, 4),
        matched=round(hit.matched, 4),
        reread=True if hit.reread else None,
        text=hit.text if detail == "lines" else None,
    )
