"""The limits of the tree of files: rules over all modules together.

`test_tree.py` holds the source and the tests to them, and proves that each can fail.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from tests.project.architecture_rules import GENERATED, Module

MAX_ENTRIES = 15
WARN_LINES = 500
SMALL_LINES = 60

IGNORED = frozenset({"__pycache__"})
DATA_FOLDERS = frozenset({"data", "migrations", "old", "static"})
"""Folders of data or of generated files: each entry is one of a series."""

NOUNS = frozenset({
    "briefing", "derived", "embedding", "fastembed", "forgetting", "hashing", "opening",
    "ranking", "reembed", "testing_effect",
})  # fmt: skip
"""File names that end like a participle and are nouns of the field."""
_PARTICIPLE = re.compile(r"(?:^|_)[a-z]{2,}(?:ing|[^e]ed)(?:_|$)")


def crowded_folders(root: Path) -> Iterator[str]:
    """A folder has at most 15 entries."""
    for folder in sorted({root, *(path for path in root.rglob("*") if path.is_dir())}):
        if any(part in IGNORED | DATA_FOLDERS for part in folder.relative_to(root).parts):
            continue
        entries = sum(path.name not in IGNORED for path in folder.iterdir())
        if entries > MAX_ENTRIES:
            yield f"{folder.name}/ has {entries} entries; at most {MAX_ENTRIES}"


def participles(names: Iterable[str]) -> Iterator[str]:
    """A file is named by a noun, never by a participle."""
    for name in names:
        stem = Path(name).stem
        if stem not in NOUNS and _PARTICIPLE.search(stem):
            yield f"{name}: a participle; name the file by a noun"


def repeated_classes(modules: Sequence[Module]) -> Iterator[str]:
    """The name of a class exists once; the generated client repeats the views of operations."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for module in modules:
        if module.part not in GENERATED:
            for node in ast.walk(module.tree):
                if isinstance(node, ast.ClassDef):
                    found[node.name].append(module.part)
    for name, parts in sorted(found.items()):
        if len(parts) > 1:
            yield f"{name}: {', '.join(parts)}"


def lonely_modules(modules: Sequence[Module], reasons: Mapping[str, str]) -> Iterator[str]:
    """A module under 60 lines with one importer, in its own folder, is merged into it."""
    importers: defaultdict[str, set[str]] = defaultdict(set)
    for module in modules:
        for target in _imported(module):
            importers[target].add(module.part)
    for module in modules:
        small = len(module.source.splitlines()) < SMALL_LINES
        if not small or module.path.endswith("__init__.py") or module.part in reasons:
            continue
        importing = importers[module.part]
        if len(importing) == 1:
            (only,) = importing
            if only.rpartition(".")[0] == module.part.rpartition(".")[0]:
                yield f"{module.part} is only imported by {only}; merge them, or say why not"


def _imported(module: Module) -> Iterator[str]:
    """The parts that a module imports, as dotted names below the package."""
    package = module.name.split(".")[0]
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == package:
            inner = node.module[len(package) + 1 :]
            yield inner
            yield from (f"{inner}.{alias.name}".lstrip(".") for alias in node.names)
