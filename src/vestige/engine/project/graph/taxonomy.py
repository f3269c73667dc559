"""A project from above: its folders, languages, packages, commands and documents."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from vestige.cognition.code.languages import languages_of
from vestige.cognition.code.roles import role_of
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Filter
from vestige.engine.context import Call
from vestige.engine.project.graph.nodes import MOST_MEMORIES, CodeNode, ProjectNodes, is_document
from vestige.engine.project.place import Project
from vestige.store.contract.code_index import CodeIndex


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderCount:
    """A folder with the number of files in it, by their role."""

    folder: str
    files: int
    roles: Mapping[str, int]
    about: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Taxonomy:
    """What kinds of things a project has: folders down to a depth, languages, and counts."""

    folders: tuple[FolderCount, ...]
    languages: Mapping[str, int]
    packages: tuple[str, ...]
    commands: tuple[CodeNode, ...]
    documents: tuple[CodeNode, ...]
    symbols: Mapping[str, int]
    memories: Mapping[str, int]


def taxonomy(call: Call, project: Project, index: CodeIndex, *, depth: int) -> Taxonomy:
    """The project from above."""
    graph = ProjectNodes(call, project, index)
    files = [path for path, row in graph.files.items() if not row.skip]
    inside: defaultdict[str, list[str]] = defaultdict(list)
    for path in files:
        inside["."].append(path)
        folders = path.split("/")[:-1]
        for number in range(1, min(depth, len(folders)) + 1):
            inside["/".join(folders[:number])].append(path)
    kinds: Counter[str] = Counter()
    for sections in index.sections(files).values():
        kinds.update(one.kind for one in sections if one.name and one.kind not in ("text", "key", "heading"))
    where = Filter(scope=project.scope, valid_at=call.engine.now(), include_suppressed=False)
    memories = call.engine.store.find(where, access=call.access, limit=MOST_MEMORIES)
    return Taxonomy(
        folders=tuple(
            FolderCount(
                folder=folder,
                files=len(paths),
                roles=_counted(role_of(path) for path in paths),
                about=graph.about_folder("" if folder == "." else folder),
            )
            for folder, paths in sorted(inside.items())
        ),
        languages=_sorted_counts({name or "other": number for name, number in languages_of(files).items()}),
        packages=tuple(sorted({name for one in graph.manifests for name in one.dependencies})),
        commands=tuple(graph.command(one, name) for one in graph.manifests for name in one.commands),
        documents=tuple(graph.file(path) for path in files if is_document(path)),
        symbols=_sorted_counts(kinds),
        memories=_counted(record.memory.node_type for record in memories),
    )


def _counted(names: Iterable[str]) -> dict[str, int]:
    return _sorted_counts(Counter(names))


def _sorted_counts(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda one: (-one[1], one[0])))
