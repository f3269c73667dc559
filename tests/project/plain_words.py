"""Finds words that docs/contributing/plain-words.md asks not to write.

What is read: docstrings, strings with a space in them (errors, hints, help, descriptions), the files of the
web pages, tables of texts (TOML) and Markdown pages.
"""

import ast
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

_VALUE = "x"
"""Stands for a value inside an f-string, so that the words around it are read as one text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """A forbidden word, and where it is used."""

    path: Path
    line: int
    word: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: `{self.word}`"


def forbidden(page: str) -> re.Pattern[str]:
    """The first column of the table of a page, as one pattern."""
    rows = re.findall(r"^\| (?!do not write|-)(.+?) \|", page, re.MULTILINE)
    words = [word.strip() for row in rows for word in row.split(",")]
    return re.compile(rf"(?<![\w`/.-])(?:{'|'.join(map(re.escape, words))})(?![\w`(/-])", re.IGNORECASE)


def in_source(path: Path, pattern: re.Pattern[str], lists: Collection[str] = ()) -> Iterator[Use]:
    """Uses in the prose of a module, outside its `lists`: constants that are lists of English words."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for statement in tree.body:
        if not _assigned(statement) & set(lists):
            for line, text in _prose(statement):
                for found in pattern.finditer(text):
                    yield Use(path=path, line=line + text[: found.start()].count("\n"), word=found.group())


def constants(path: Path) -> set[str]:
    """The names that a module assigns at its top level."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {name for statement in tree.body for name in _assigned(statement)}


def in_page(path: Path, pattern: re.Pattern[str]) -> Iterator[Use]:
    """Uses in a Markdown page, outside its blocks of code."""
    code = False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        code ^= line.lstrip().startswith("```")
        if not code:
            yield from (Use(path=path, line=number, word=found.group()) for found in pattern.finditer(line))


def _assigned(statement: ast.stmt) -> set[str]:
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    else:
        targets = []
    return {target.id for target in targets if isinstance(target, ast.Name)}


def _prose(node: ast.AST, *, docstring: bool = False) -> Iterator[tuple[int, str]]:
    """The texts below a node with their lines: docstrings, and strings that are more than a name or a key."""
    if isinstance(node, ast.Constant | ast.JoinedStr):
        text = _text(node)
        if docstring or " " in text.strip() or text.endswith("."):
            yield node.lineno, text
    if isinstance(node, ast.JoinedStr):
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                yield from _prose(part.value)
        return
    for child in ast.iter_child_nodes(node):
        yield from _prose(child, docstring=isinstance(node, ast.Expr))


def _text(node: ast.Constant | ast.JoinedStr) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    return "".join(_text(part) if isinstance(part, ast.Constant) else _VALUE for part in node.values)
