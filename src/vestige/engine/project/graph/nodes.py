"""The nodes of a project's graph: folders, files, symbols, packages, commands, documents and memories."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from vestige.cognition.code.imports import ModuleFinder
from vestige.cognition.code.languages import language_of
from vestige.cognition.code.manifests import PackageManifest, is_manifest, manifest_of
from vestige.cognition.code.roles import role_of
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Memory, covers
from vestige.engine.context import Call
from vestige.engine.project.package import one_line
from vestige.engine.project.place import Project
from vestige.engine.project.search import FileTexts
from vestige.store.contract.code_index import CodeIndex, FoundSection

MOST_REFERRING = 400
MOST_MEMORIES = 1_000
MOST_MANIFESTS = 40
PREVIEW_CHARS = 120

NodeKind = Literal["folder", "file", "document", "symbol", "package", "command", "memory"]

_DOCUMENTS = frozenset({"markdown", "rst"})
_MEMORY_ID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
_NAME = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeNode:
    """Something of a project."""

    kind: NodeKind
    name: str
    path: str = ""
    start_line: int = 0
    end_line: int = 0
    about: str = ""

    @property
    def place(self) -> str:
        return f"{self.path}:{self.start_line}-{self.end_line}" if self.start_line else self.path


class ProjectNodes:
    """The nodes of one project, for one answer."""

    def __init__(self, call: Call, project: Project, index: CodeIndex) -> None:
        self.call, self.project, self.index = call, project, index
        self.files = index.files()
        self.texts = FileTexts(project=project)
        self._manifests: list[PackageManifest] | None = None
        self._finder: ModuleFinder | None = None

    def named(self, name: str) -> list[CodeNode]:
        """Everything that is called so, the most exact first."""
        if _MEMORY_ID.fullmatch(name):
            return [self.memory(one) for one in self.memories_by_id([name])]
        path = name.removeprefix("./").rstrip("/")
        if path in self.files:
            return [self.file(path)]
        if path in ("", ".") or self._inside(path):
            return [self.folder(path)]
        found = [self.file(one) for one in self.files if one.endswith(f"/{path}")]
        found += self._symbols(name)
        found += [
            self.command(one, command)
            for one in self.manifests
            for command in one.commands
            if command == name
        ]
        found += [self.package(one) for one in self.package_names() if bare(one) == bare(name)]
        return found

    def file(self, path: str) -> CodeNode:
        row = self.files.get(path)
        return CodeNode(
            kind="document" if is_document(path) else "file",
            name=path.rpartition("/")[2],
            path=path,
            about=one_line(row.summary) if row else "",
        )

    def folder(self, path: str) -> CodeNode:
        path = "" if path == "." else path
        name = path.rpartition("/")[2] or self.project.name
        return CodeNode(kind="folder", name=name, path=path or ".", about=self.about_folder(path))

    def about_folder(self, folder: str) -> str:
        """The first sentence of the file that speaks for a folder."""
        first = ("readme", "__init__.", "mod.rs", "lib.rs", "index.", "doc.go", "package-info.")
        speakers = [path for path in self.children(folder)[1] if last_part(path).lower().startswith(first)]
        return next((one_line(self.files[path].summary) for path in speakers if self.files[path].summary), "")

    def symbol(self, section: FoundSection) -> CodeNode:
        if not section.name:
            return self.file(section.path)
        return CodeNode(
            kind="symbol",
            name=section.symbol_path or section.name,
            path=section.path,
            start_line=section.start_line,
            end_line=section.end_line,
            about=one_line(" ".join(section.signature.split()))[:PREVIEW_CHARS],
        )

    def package(self, name: str) -> CodeNode:
        return CodeNode(kind="package", name=name)

    def command(self, manifest: PackageManifest, name: str) -> CodeNode:
        about = one_line(manifest.commands[name])[:PREVIEW_CHARS]
        return CodeNode(kind="command", name=one_line(name), path=manifest.path, about=about)

    def memory(self, memory: Memory) -> CodeNode:
        text = " ".join(memory.content.split())[:PREVIEW_CHARS]
        return CodeNode(kind="memory", name=memory.id, about=f"{memory.node_type}: {text}")

    # -- what they are made of

    @property
    def finder(self) -> ModuleFinder:
        if self._finder is None:
            names = [one.name for one in self.manifests if last_part(one.path) == "go.mod"]
            self._finder = ModuleFinder(self.files, names)
        return self._finder

    @property
    def manifests(self) -> list[PackageManifest]:
        if self._manifests is None:
            paths = sorted(
                (
                    path
                    for path in self.files
                    if is_manifest(path) and role_of(path) not in ("test", "vendored")
                ),
                key=lambda path: (path.count("/"), path),
            )[:MOST_MANIFESTS]
            sources = ((path, self.texts.source(path)) for path in paths)
            read = (manifest_of(path, source.text) for path, source in sources if source is not None)
            self._manifests = [one for one in read if one is not None]
        return self._manifests

    def package_names(self) -> list[str]:
        return sorted({name for one in self.manifests for name in one.dependencies})

    def sections_named(self, name: str) -> list[FoundSection]:
        return self.index.defining([name], limit=MOST_REFERRING)

    def _symbols(self, name: str) -> list[CodeNode]:
        """The sections that declare a symbol; of `Class.name`, those in that class."""
        last = last_name(name)
        if not last:
            return []
        sections = self.sections_named(last)
        wanted = [part.lower() for part in _NAME.findall(name)]
        exact = [one for one in sections if names_of(one.symbol_path)[-len(wanted) :] == wanted]
        near = [
            one
            for one in sections
            if set(wanted[:-1]) <= {*names_of(one.symbol_path), *names_of(one.signature)}
        ]
        found = exact or near
        # A class comes before what is in it, and code before its tests.
        found.sort(key=lambda one: (one.name != last, role_of(one.path) == "test", one.path, one.start_line))
        complete = {
            (one.path, one.symbol_path): one
            for path in dict.fromkeys(one.path for one in found)
            for one in whole(self.index.sections([path])[path])
        }
        # Of small symbols that share a section the first has its name.
        made = (
            self.symbol(complete.get((one.path, one.symbol_path), one))
            if one.name == last
            else replace(self.symbol(one), name=last, about="")
            for one in found
        )
        return list(dict.fromkeys(made))

    def memories_by_id(self, ids: Sequence[str]) -> list[Memory]:
        found = self.call.engine.store.get_many(list(ids), access=self.call.access)
        return [one.memory for one in found if covers(self.project.scope, one.memory.scope)]

    def _inside(self, folder: str) -> bool:
        return any(path.startswith(f"{folder}/") for path in self.files)

    def children(self, folder: str) -> tuple[list[str], list[str]]:
        """The folders and the files that are directly in a folder."""
        start = f"{folder}/" if folder else ""
        folders: dict[str, None] = {}
        files = []
        for path in self.files:
            if path.startswith(start):
                first, slash, _ = path[len(start) :].partition("/")
                if slash:
                    folders[f"{start}{first}"] = None
                else:
                    files.append(path)
        return list(folders), files


def whole(sections: Sequence[FoundSection]) -> list[FoundSection]:
    """The sections of a file, with the pieces of a long symbol as one."""
    found: list[FoundSection] = []
    for one in sections:
        last = found[-1] if found else None
        is_piece = (
            last is not None and one.name and (last.symbol_path, last.kind) == (one.symbol_path, one.kind)
        )
        if last is not None and is_piece and last.end_line + 1 == one.start_line:
            found[-1] = replace(last, end_line=one.end_line)
        else:
            found.append(one)
    return found


def last_part(path: str) -> str:
    return path.rpartition("/")[2]


def last_name(name: str) -> str:
    return next(reversed(_NAME.findall(name)), "")


def names_of(text: str) -> list[str]:
    return [name.lower() for name in _NAME.findall(text)]


def bare(name: str) -> str:
    """The name of a package without its version, in one form."""
    return re.split(r"[ \[=<>!~;]", name.strip())[0].lower().replace("_", "-").removeprefix("node:")


def is_document(path: str) -> bool:
    return language_of(path) in _DOCUMENTS and role_of(path) not in ("history", "credits")
