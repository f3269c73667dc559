"""Vector index files: `index.status`, `index.rebuild`."""

from vestige.engine.context import Call
from vestige.operations.registry.arguments import Wire
from vestige.operations.registry.registry import registry
from vestige.operations.shared.text import advice, count, fields, size, styled, warning


class IndexView(Wire):
    """The vectors in index files; others are read from the store itself."""

    path: str | None = None
    vectors: int
    indexed: int
    segments: int
    dead: int
    size_bytes: int
    problems: dict[str, str]


def render_index(view: IndexView) -> str:
    text = fields(
        (
            ("vectors", f"{view.vectors:,}"),
            # Without a folder it is the database's own index.
            ("in files", f"{view.indexed:,} in {count(view.segments, 'file')}" if view.path else None),
            ("dead in files", f"{view.dead:,}" if view.path else None),
            ("indexed", None if view.path else f"{view.indexed:,}"),
            ("size", size(view.size_bytes)),
            ("folder", styled("link", view.path or "")),
        )
    )
    notes = [warning(f"{name} is not used: {problem}.") for name, problem in view.problems.items()]
    steps = [advice("Run `vestige index rebuild` to write it again.")] if notes else []
    return "\n".join([text, *notes, *steps])


@registry.operation(
    "index.status",
    permission="admin",
    effect="none",
    example={},
    title="Index status",
    long=True,
    command_only=True,
    render=render_index,
)
def index_status(call: Call) -> IndexView:
    """Check the index files and report what they hold.

    A small store has none. Index files only save time and memory: searches return the same results without
    them. PostgreSQL has its own index instead.
    """
    return IndexView.of(call.engine.store.index_status())


@registry.operation(
    "index.rebuild",
    permission="admin",
    example={},
    title="Rebuild the index",
    long=True,
    command_only=True,
    render=render_index,
)
def index_rebuild(call: Call) -> IndexView:
    """Rewrite index files that are damaged, missing or mostly dead.

    Intact files stay; memories and vectors are only read.
    """
    status = call.engine.store.rebuild_index()
    call.engine.store.rebuild_neighbours()
    return IndexView.of(status)
