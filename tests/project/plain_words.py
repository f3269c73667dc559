"""Finds words that docs/contributing/plain-words.md asks not to write.

What is read: docstrings, strings with a space in them (errors, hints, help, descriptions) and Markdown pages.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


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


def in_source(path: Path, pattern: re.Pattern[str]) -> Iterator[Use]:
    """Uses in the prose of a module: docstrings, and strings of more than one word."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value.strip():
            for found in pattern.finditer(node.value):
                line = node.lineno + node.value[: found.start()].count("\n")
                yield Use(path=path, line=line, word=found.group())


def in_page(path: Path, pattern: re.Pattern[str]) -> Iterator[Use]:
    """Uses in a Markdown page, outside its blocks of code."""
    code = False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        code ^= line.lstrip().startswith("```")
        if not code:
            yield from (Use(path=path, line=number, word=found.group()) for found in pattern.finditer(line))
