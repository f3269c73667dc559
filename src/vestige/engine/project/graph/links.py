"""The graph of a project: folders, files, symbols, packages, commands, documents and memories, and how they
belong together.

Nothing of it is stored. The index keeps names, so links are found when they are asked for, from the files as
they are now: a file that changed cannot lose the links of others.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from vestige.cognition.code.imports import ImportedModule, imports_of
from vestige.cognition.code.languages import is_code
from vestige.cognition.code.roles import role_of
from vestige.cognition.graph.kinds import SUPERSEDES
from vestige.core.errors import NotFound
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Filter, Memory
from vestige.engine.context import Call
from vestige.engine.ingest.orders import without_orders
from vestige.engine.project.citations import checked, of_memory
from vestige.engine.project.extraction import extracted
from vestige.engine.project.graph.nodes import (
    MOST_MEMORIES,
    MOST_REFERRING,
    CodeNode,
    ProjectNodes,
    bare,
    last_name,
    last_part,
    whole,
)
from vestige.engine.project.place import Project
from vestige.store.contract.code_index import CodeIndex, FoundSection, SectionQuestion, SectionRow

FEW = 3
"""A name that more sections declare than this says nothing about which one is meant."""
MOST_IMPORTERS = 120
"""How many files are read to see whether they import one."""

LinkKind = Literal["contains", "defines", "imports", "references", "concerns", "applies_to", "supersedes"]

_BINDING = frozenset({"constraint", "preference"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeLink:
    """A link of the node that was asked for: from it if it is `outgoing`, else to it. `at` is where it is
    written, `names` are the names that make it."""

    kind: LinkKind
    outgoing: bool
    node: CodeNode
    at: str = ""
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbourhood:
    """Everything that a name may mean, and the links of the first one."""

    node: CodeNode
    others: tuple[CodeNode, ...]
    links: tuple[CodeLink, ...]


def neighbourhood(call: Call, project: Project, index: CodeIndex, name: str) -> Neighbourhood:
    """The node of a name, and its links. NotFound if there is nothing of that name."""
    graph = _ProjectLinks(call, project, index)
    found = graph.named(name.strip())
    if not found:
        raise NotFound(
            f"{name[:100]!r} is no file, folder, symbol, package, command or memory of this project.",
            hint="`project search` finds what is called otherwise.",
            details={"name": name[:200]},
        )
    links = {(link.kind, link.outgoing, link.node.kind, link.node.name, link.node.place): link
             for link in graph.links(found[0])}  # fmt: skip
    return Neighbourhood(node=found[0], others=tuple(found[1:]), links=tuple(links.values()))


class _ProjectLinks(ProjectNodes):
    """The links of one node."""

    def __init__(self, call: Call, project: Project, index: CodeIndex) -> None:
        super().__init__(call, project, index)
        self._rows: dict[str, tuple[SectionRow, ...]] = {}

    def links(self, node: CodeNode) -> Iterator[CodeLink]:
        match node.kind:
            case "folder":
                yield from self._folder_links(node)
            case "file" | "document":
                yield from self._file_links(node)
            case "symbol":
                yield from self._symbol_links(node)
            case "package":
                yield from self._package_links(node)
            case "command":
                yield from self._command_links(node)
            case "memory":
                yield from self._memory_links(node)

    def _folder_links(self, node: CodeNode) -> Iterator[CodeLink]:
        path = "" if node.path == "." else node.path
        if path:
            yield CodeLink(kind="contains", outgoing=False, node=self.folder(path.rpartition("/")[0]))
        folders, files = self.children(path)
        for folder in folders:
            yield CodeLink(kind="contains", outgoing=True, node=self.folder(folder))
        for file in files:
            yield CodeLink(kind="contains", outgoing=True, node=self.file(file))
        yield from self._importers(node.path)
        yield from self._concerning(lambda cited: not path or cited.startswith(f"{path}/"))

    def _file_links(self, node: CodeNode) -> Iterator[CodeLink]:
        path = node.path
        yield CodeLink(kind="contains", outgoing=False, node=self.folder(path.rpartition("/")[0]))
        yield from self._concerning(lambda cited: cited == path)
        for section in whole(self.index.sections([path])[path]):
            if section.name and section.kind not in ("text", "key", "heading", "statement", "cell"):
                yield CodeLink(kind="defines", outgoing=True, node=self.symbol(section))
        manifest = next((one for one in self.manifests if one.path == path), None)
        if manifest is not None:
            for name in manifest.commands:
                yield CodeLink(kind="defines", outgoing=True, node=self.command(manifest, name))
            for name in manifest.dependencies:
                yield CodeLink(kind="imports", outgoing=True, node=self.package(name), at=path)
        yield from self._imported(path)
        yield from self._importers(path)
        yield from self._files_referred_to(path)
        yield from self._files_referring(path)

    def _symbol_links(self, node: CodeNode) -> Iterator[CodeLink]:
        yield CodeLink(kind="defines", outgoing=False, node=self.file(node.path))
        yield from self._concerning(
            lambda cited: cited == node.path, lines=(node.start_line, node.end_line), symbol=node.name
        )
        last = last_name(node.name)
        own = {(one.path, one.start_line) for one in self.sections_named(last)}
        referring = [
            one
            for one in self.index.referring([last], limit=MOST_REFERRING)
            if (one.path, one.start_line) not in own
        ]
        near = node.path.rpartition("/")[0]
        referring.sort(
            key=lambda one: (
                role_of(one.path) == "test", one.path != node.path, not one.path.startswith(near), one.path,
                one.start_line,
            )
        )  # fmt: skip
        for one in referring:
            yield CodeLink(
                kind="references", outgoing=False, node=self.symbol(one), at=_place(one), names=(last,)
            )
        names = [
            name
            for row in self._sections_of(node.path)
            if row.start_line <= node.end_line and node.start_line <= row.end_line
            for name in row.references
        ]
        for name, sections in self._definers(names, node.path).items():
            for section in sections:
                yield CodeLink(kind="references", outgoing=True, node=self.symbol(section), names=(name,))

    def _package_links(self, node: CodeNode) -> Iterator[CodeLink]:
        for manifest in self.manifests:
            if node.name in manifest.dependencies:
                yield CodeLink(
                    kind="imports", outgoing=False, node=self.file(manifest.path), at=manifest.path
                )
        wanted = bare(node.name)
        names = {wanted, wanted.replace("-", "_"), *re.split(r"[/:.-]", wanted)} - {""}
        for path in self._candidates(sorted(names)):
            for module in self._modules(path):
                first = bare(module.name.replace("::", "/"))
                if first == wanted or first.startswith((f"{wanted}/", f"{wanted}.")):
                    yield CodeLink(
                        kind="imports", outgoing=False, node=self.file(path), at=f"{path}:{module.line}"
                    )
                    break

    def _command_links(self, node: CodeNode) -> Iterator[CodeLink]:
        yield CodeLink(kind="defines", outgoing=False, node=self.file(node.path), at=node.path)
        text = next((one.commands[node.name] for one in self.manifests if node.name in one.commands), "")
        folder = node.path.rpartition("/")[0]
        for word in re.findall(r"[\w./-]+", text)[:50]:
            path = word.removeprefix("./")
            path = path if path in self.files else f"{folder}/{path}"
            if path in self.files:
                yield CodeLink(kind="references", outgoing=True, node=self.file(path))
        # An entry point such as `shop.cli:main`.
        module, colon, name = text.partition(":")
        if colon and re.fullmatch(r"[\w.]+", module):
            named = ImportedModule(name=module, line=1, parts=tuple(module.split(".")))
            target = self.finder.find(f"{folder}/x.py".lstrip("/"), named)
            if target in self.files:
                yield CodeLink(kind="references", outgoing=True, node=self.file(str(target)), names=(name,))

    def _memory_links(self, node: CodeNode) -> Iterator[CodeLink]:
        for memory in self.memories_by_id([node.name]):
            for citation in of_memory(memory):
                found = checked(citation, self.project, self.texts, self.index)
                now = found.now or citation
                target = CodeNode(
                    kind="symbol" if now.symbol else "file",
                    name=now.symbol or last_part(now.path),
                    path=now.path,
                    start_line=now.start,
                    end_line=now.end,
                )
                yield CodeLink(kind=_about(memory), outgoing=True, node=target, at=found.text)
            edges = self.call.engine.store.edges([memory.id], access=self.call.access)
            other = {
                edge.target_id if edge.source_id == memory.id else edge.source_id: edge.source_id == memory.id
                for edge in edges
                if edge.kind == SUPERSEDES
            }
            for one in self.memories_by_id(sorted(other)):
                yield CodeLink(kind="supersedes", outgoing=other[one.id], node=self.memory(one))

    # -- imports

    def _imported(self, path: str) -> Iterator[CodeLink]:
        seen: set[str] = set()
        for module in self._modules(path):
            target = self.finder.find(path, module)
            at = f"{path}:{module.line}"
            if target is not None and target != path and target not in seen:
                seen.add(target)
                node = self.file(target) if target in self.files else self.folder(target)
                yield CodeLink(kind="imports", outgoing=True, node=node, at=at, names=(module.name,))
            elif target is None and module.level is None:
                package = self._package_of(module.name)
                if package and package not in seen:
                    seen.add(package)
                    yield CodeLink(kind="imports", outgoing=True, node=self.package(package), at=at)

    def _importers(self, path: str) -> Iterator[CodeLink]:
        stem = last_part(path).split(".")[0]
        folder = last_part(path.rpartition("/")[0])
        for other in self._candidates(sorted({stem, folder if path in self.files else stem} - {""})):
            if other == path:
                continue
            for module in self._modules(other):
                if self.finder.find(other, module) == path:
                    yield CodeLink(
                        kind="imports", outgoing=False, node=self.file(other), at=f"{other}:{module.line}"
                    )
                    break

    def _candidates(self, names: Sequence[str]) -> list[str]:
        """Files that have one of these names, those that refer to it first."""
        paths = [one.path for one in self.index.referring(names, limit=MOST_REFERRING)]
        question = SectionQuestion(terms=[name.lower() for name in names])
        paths += [one.section.path for one in self.index.gather(question, limit=MOST_REFERRING).found]
        return [path for path in dict.fromkeys(paths) if is_code(path)][:MOST_IMPORTERS]

    def _modules(self, path: str) -> list[ImportedModule]:
        self.call.check()
        source = self.texts.source(path)
        return [] if source is None or source.skip is not None else imports_of(path, source.text)

    def _package_of(self, module: str) -> str:
        """The dependency that a module is of, by its name."""
        plain = bare(module.replace("::", "/"))
        fits = [
            name for name in self.package_names() if plain == bare(name) or plain.startswith(
                (f"{bare(name)}/", f"{bare(name)}."))
        ]  # fmt: skip
        return max(fits, key=len, default="")

    # -- references

    def _sections_of(self, path: str) -> tuple[SectionRow, ...]:
        """The sections of a file as it is now."""
        if path not in self._rows:
            source = self.texts.source(path)
            skipped = source is None or source.skip is not None
            self._rows[path] = () if source is None or skipped else extracted(source, 0).sections
        return self._rows[path]

    def _definers(self, names: Sequence[str], path: str) -> dict[str, list[FoundSection]]:
        """For each name the few sections that declare it, in a language of the file's kind; those of the file
        itself if there are any."""
        wanted = list(dict.fromkeys(names))
        by_name: defaultdict[str, list[FoundSection]] = defaultdict(list)
        for one in self.index.defining(wanted, limit=20 * MOST_REFERRING):
            if one.name in wanted:
                by_name[one.name].append(one)
        found = {}
        for name in wanted:
            sections = [
                one for one in by_name[name] if role_of(one.path) != "test" or role_of(path) == "test"
            ]
            own = [one for one in sections if one.path == path]
            if sections and len(own or sections) <= FEW:
                found[name] = own or sections
        return found

    def _files_referred_to(self, path: str) -> Iterator[CodeLink]:
        names = [name for row in self._sections_of(path) for name in row.references]
        files: defaultdict[str, list[str]] = defaultdict(list)
        for name, sections in self._definers(names, path).items():
            for target in dict.fromkeys(one.path for one in sections):
                if target != path:
                    files[target].append(name)
        for target in sorted(files, key=lambda one: (-len(files[one]), one)):
            yield CodeLink(
                kind="references", outgoing=True, node=self.file(target), names=tuple(files[target][:8])
            )

    def _files_referring(self, path: str) -> Iterator[CodeLink]:
        own = [name for row in self._sections_of(path) for name in row.definitions]
        defined = self._definers(own, path)
        sure = [name for name in defined if len(self.sections_named(name)) <= FEW]
        files: defaultdict[str, list[str]] = defaultdict(list)
        for name in sure[:100]:
            for one in self.index.referring([name], limit=MOST_REFERRING):
                if one.path != path and name not in files[one.path]:
                    files[one.path].append(name)
        for other in sorted(files, key=lambda one: (role_of(one) == "test", -len(files[one]), one)):
            yield CodeLink(
                kind="references", outgoing=False, node=self.file(other), names=tuple(files[other][:8])
            )

    # -- memories

    def _concerning(
        self, is_cited: Callable[[str], bool], *, lines: tuple[int, int] | None = None, symbol: str = ""
    ) -> Iterator[CodeLink]:
        """Memories that cite these files, or these lines of one."""
        where = Filter(scope=self.project.scope, valid_at=self.call.engine.now(), include_suppressed=False)
        found = self.call.engine.store.find(where, access=self.call.access, limit=MOST_MEMORIES)
        citing = [one for one in found if any(is_cited(cited.path) for cited in of_memory(one.memory))]
        for record in without_orders(self.call, citing):
            memory = record.memory
            for citation in of_memory(memory):
                check = checked(citation, self.project, self.texts, self.index)
                now = check.now or citation
                inside = lines is None or (now.start <= lines[1] and lines[0] <= now.end) or (
                    bool(symbol) and now.symbol == symbol
                )  # fmt: skip
                if is_cited(now.path) and inside:
                    yield CodeLink(
                        kind=_about(memory), outgoing=False, node=self.memory(memory), at=check.text
                    )
                    break


def _about(memory: Memory) -> LinkKind:
    """A rule applies to code, everything else concerns it."""
    return "applies_to" if memory.node_type in _BINDING else "concerns"


def _place(section: FoundSection) -> str:
    return f"{section.path}:{section.start_line}-{section.end_line}"
