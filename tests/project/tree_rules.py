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
DATA_FOLDERS = frozenset({"data", "migrations", "static"})
"""Names of folders of data: each entry is one of a series, and none is a module."""

NOUNS = frozenset({
    "as_known", "briefing", "derived", "embed", "embedding", "fading", "fastembed", "hashing", "lost_files",
    "opening", "ranking", "reasoning", "reembed", "shared", "testbed", "testing_effect",
})  # fmt: skip
"""Names of files and folders that look like a participle: nouns of the field, and a few that stay. Only the
names of files that exist may be here."""
_IRREGULAR = (
    "broken|built|chosen|done|drawn|found|given|gone|held|hidden|kept|known|left|lost|made|met|paid|said|seen"
    "|sent|shown|sold|spent|taken|thought|told|understood|won|written"
)
_PARTICIPLE = re.compile(rf"(?:^|_)(?:[a-z]{{2,}}(?:ing|[^e]ed)|{_IRREGULAR})(?:_|$)")


def crowded_folders(root: Path) -> Iterator[str]:
    """A folder has at most 15 entries."""
    for folder in sorted({root, *(path for path in root.rglob("*") if path.is_dir())}):
        if IGNORED & set(folder.relative_to(root).parts) or _is_data(folder, root):
            continue
        entries = sum(path.name not in IGNORED for path in folder.iterdir())
        if entries > MAX_ENTRIES:
            yield f"{folder.name}/ has {entries} entries; at most {MAX_ENTRIES}"


def _is_data(folder: Path, root: Path) -> bool:
    named = DATA_FOLDERS & set(folder.relative_to(root).parts)
    return bool(named) and not any(folder.rglob("*.py"))


def participles(names: Iterable[str]) -> Iterator[str]:
    """A file or folder is named by a noun, never by a participle."""
    wrong = {part for name in names for part in _parts(name) if _PARTICIPLE.search(part)}
    for part in sorted(wrong - NOUNS):
        yield f"{part}: a participle; name the file or folder by a noun"


def unused_nouns(names: Iterable[str]) -> set[str]:
    """Exceptions that no file needs any more."""
    return set(NOUNS) - {part for name in names for part in _parts(name) if _PARTICIPLE.search(part)}


def _parts(name: str) -> tuple[str, ...]:
    return Path(name).with_suffix("").parts


def long_modules(modules: Sequence[Module]) -> Iterator[str]:
    """A module over 500 lines is worth a warning; `MAX_MODULE_LINES` is the error."""
    for module in modules:
        lines = len(module.source.splitlines())
        if module.part not in GENERATED and lines > WARN_LINES:
            yield f"{module.path} has {lines} lines; think of splitting it above {WARN_LINES}"


PUBLIC = frozenset({("Memory", "app.library")})
"""Classes with the name that programs import, although a value of ours has it too."""


def repeated_classes(modules: Sequence[Module]) -> Iterator[str]:
    """The name of a class exists once; the generated client repeats the views of operations."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for module in modules:
        if module.part not in GENERATED:
            for node in ast.walk(module.tree):
                if isinstance(node, ast.ClassDef) and (node.name, module.part) not in PUBLIC:
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
        if isinstance(node, ast.Import):
            whole = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            whole = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            whole = []
        yield from (name[len(package) + 1 :] for name in whole if name.startswith(f"{package}."))
