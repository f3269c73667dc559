"""The warm-up of a session: what a project is, from its own words, in a text that stays the same.

It has no clock and no order that depends on chance: the same files and memories give the same bytes. Purposes
come from README and docstrings, the rest from names; no language model is asked.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from vestige.cognition.code.languages import language_of, languages_of
from vestige.cognition.code.manifests import NAMES, PackageManifest, is_manifest, manifest_of
from vestige.cognition.code.roles import role_of
from vestige.core.models import Filter
from vestige.engine.context import Call
from vestige.engine.ingest.orders import without_orders
from vestige.engine.project.git import commits_of
from vestige.engine.project.memory.team_file import shared_by
from vestige.engine.project.package import KINDS, BudgetWriter, PackagePart, TokenCounter, one_line
from vestige.engine.project.place import Project
from vestige.engine.project.search import FileTexts
from vestige.store.contract.code_index import CodeIndex, FileRow

MODULES = 24
EXPORTS = 6
GUIDANCE = 12
COMMITS = 5
DEPENDENCIES = 30
PURPOSE_CHARS = 400
_ENTRY_NAMES = frozenset({
    "__main__.py", "main.py", "main.go", "main.rs", "main.ts", "main.c", "main.cpp", "main.rb", "main.swift",
    "app.py", "cli.py", "index.js", "index.ts", "server.js", "server.ts", "manage.py", "program.cs",
    "main.java", "main.kt", "makefile", "dockerfile",
})  # fmt: skip


def warm_up_text(
    call: Call, project: Project, index: CodeIndex, tokens: TokenCounter, *, budget: int
) -> tuple[str, int]:
    """The text, and how many parts of it did not fit."""
    texts = FileTexts(project=project)
    files = {path: row for path, row in index.files().items() if not row.skip}
    manifest = _manifest(texts, files)
    writer = BudgetWriter(tokens=tokens, budget=budget)
    for piece in (
        *_project_pieces(project, files, manifest),
        *_guidance_pieces(call, project),
        *_module_pieces(index, files),
        *_entry_pieces(files, manifest),
        *_dependency_pieces(manifest),
        *_commit_pieces(project),
    ):
        call.check()
        writer.add(piece)
    return writer.text, writer.left_out


def _project_pieces(
    project: Project, files: Mapping[str, FileRow], manifest: PackageManifest
) -> Iterator[PackagePart]:
    readme = next(
        (row.summary for path, row in files.items() if path.lower().startswith("readme") and row.summary), ""
    )
    purpose = one_line(manifest.description)[:PURPOSE_CHARS] or readme
    languages = languages_of(path for path in files if language_of(path))
    most = ", ".join(
        f"{name} ({number})"
        for name, number in sorted(languages.items(), key=lambda one: (-one[1], one[0]))[:6]
    )
    heading = f"Project {one_line(project.name)}"
    yield PackagePart(heading=heading, forms=(purpose or "No description.",))
    if readme and readme != purpose:
        yield PackagePart(heading=heading, forms=(readme,))
    yield PackagePart(heading=heading, forms=(f"{len(files)} files: {most}.",))


def _guidance_pieces(call: Call, project: Project) -> Iterator[PackagePart]:
    """Current constraints, decisions and preferences of the project, the most binding first."""
    where = Filter(
        scope=project.scope, node_types=KINDS, valid_at=call.engine.now(), include_suppressed=False
    )
    current = [
        record
        for record in call.engine.store.find(where, access=call.access, limit=500)
        if record.memory.superseded_by is None
    ]
    found = [record.memory for record in without_orders(call, current)]
    found.sort(
        key=lambda memory: (not memory.pinned, KINDS.index(memory.node_type), memory.created_at, memory.id)
    )
    for memory in found[:GUIDANCE]:
        text = " ".join(memory.content.split())[:400]
        line = f"- {memory.node_type}: {text}{shared_by(memory)}"
        yield PackagePart(heading="Decisions and constraints", forms=(line,))


def _module_pieces(index: CodeIndex, files: Mapping[str, FileRow]) -> Iterator[PackagePart]:
    """Each folder of source with its purpose and what it declares; the largest first."""
    folders: defaultdict[str, list[str]] = defaultdict(list)
    for path in files:
        if language_of(path) and role_of(path) in ("source", "package"):
            folders[str(PurePosixPath(path).parent)].append(path)
    order = sorted(folders, key=lambda folder: (-len(folders[folder]), folder))[:MODULES]
    for folder in sorted(order):
        paths = folders[folder]
        purpose = next((files[path].summary for path in _spokesmen(paths) if files[path].summary), "")
        exports = _exports(index, paths)
        number = f"{len(paths)} file{'s' * (len(paths) != 1)}"
        head = f"- {one_line(folder)}/ ({number})" if folder != "." else f"- root ({number})"
        full = f"{head}: {purpose}" if purpose else head
        yield PackagePart(
            heading="Modules",
            forms=(f"{full} Declares {one_line(', '.join(exports))}." if exports else full, full, head),
        )


def _spokesmen(paths: Sequence[str]) -> list[str]:
    """The files of a folder that may say what it is for: those that stand for it, one of its name, its only
    one. Any other speaks for itself."""
    first = ("readme", "__init__.", "mod.rs", "lib.rs", "index.", "doc.go", "package-info.")
    named = [path for path in paths if PurePosixPath(path).name.lower().startswith(first)]
    same = [path for path in paths if PurePosixPath(path).stem == PurePosixPath(path).parent.name]
    return [*named, *same] or (list(paths) if len(paths) == 1 else [])


def _exports(index: CodeIndex, paths: Sequence[str]) -> list[str]:
    """Names that the files of a folder declare at their outermost level; classes first, long names before
    short ones of the same kind."""
    found = [
        one
        for sections in index.sections(paths[:40]).values()
        for one in sections
        if one.name and "." not in one.symbol_path and not one.name.startswith("_")
        and one.kind in ("class", "interface", "type", "function", "module")
    ]  # fmt: skip
    found.sort(key=lambda one: (one.kind == "function", one.path, one.start_line))
    return list(dict.fromkeys(one.name for one in found))[:EXPORTS]


def _entry_pieces(files: Mapping[str, FileRow], manifest: PackageManifest) -> Iterator[PackagePart]:
    for name in sorted(manifest.commands)[:12]:
        what = one_line(manifest.commands[name])[:120]
        line = f"- {one_line(name)[:60]}: {what}" if what else f"- {one_line(name)[:60]}"
        yield PackagePart(heading="Entry points", forms=(line,))
    named = sorted(path for path in files if PurePosixPath(path).name.lower() in _ENTRY_NAMES)
    for path in sorted(named, key=lambda path: (path.count("/"), path))[:6]:
        yield PackagePart(heading="Entry points", forms=(f"- {one_line(path)}",))
    tests = Counter(path.split("/")[0] for path in files if role_of(path) == "test")
    if tests:
        listed = ", ".join(f"{one_line(name)} ({number})" for name, number in sorted(tests.items())[:6])
        yield PackagePart(heading="Tests", forms=(f"- {listed}",))


def _dependency_pieces(manifest: PackageManifest) -> Iterator[PackagePart]:
    names = manifest.dependencies
    if names:
        yield PackagePart(
            heading="Dependencies",
            forms=(f"- {one_line(', '.join(names[:DEPENDENCIES]))}", f"- {len(names)}"),
        )


def _commit_pieces(project: Project) -> Iterator[PackagePart]:
    for commit in commits_of(project.root, most=COMMITS):
        line = f"- {commit.commit[:10]} {commit.day} {one_line(commit.subject)[:120]}"
        yield PackagePart(heading="Recent commits", forms=(line,))


def _manifest(texts: FileTexts, files: Mapping[str, FileRow]) -> PackageManifest:
    """What the manifests in the root say together; of two, the one that names a package counts first."""
    order = {name: number for number, name in enumerate(NAMES)}
    roots = sorted(
        (path for path in files if "/" not in path and is_manifest(path)),
        key=lambda path: (order.get(path.lower(), len(order)), path),
    )
    sources = ((path, texts.source(path)) for path in roots)
    found = [
        made
        for path, source in sources
        if source is not None and source.skip is None and (made := manifest_of(path, source.text))
    ]
    return PackageManifest(
        path=found[0].path if found else "",
        name=next((one.name for one in found if one.name), ""),
        description=next((one.description for one in found if one.description), ""),
        commands=next((one.commands for one in found if one.commands), {}),
        dependencies=next((one.dependencies for one in found if one.dependencies), ()),
    )
