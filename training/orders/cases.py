"""The labelled texts of the authors, and the ordinary notes beside them."""

import ast
import json
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"
ROOT = Path(__file__).parents[2]
AUTHORS = ("author-1", "author-2", "author-3", "author-4")
"""The authors of the texts that the model is fitted on."""
BLIND = ("author-5", "author-6")
"""The authors of whose texts only totals are looked at."""
ORDINARY = ("ordinary-1", "ordinary-2")
"""The authors of ordinary texts of many genres, without orders."""
CHAT = "chat-1"
"""The author of turns of private talks, half of them with a request or advice."""
FUNCTION_LINES, MOST_FUNCTIONS = range(4, 31), 1_200
EARLIER = ("poisoned", "benign", "later")
"""The texts of the tests of the rules. Those of the half `blind` are not fitted on."""
NOTES = {"development": ("freight", "practice"), "blind": ("lab", "product")}
"""The authors of the benchmark of notes, by half."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderCase:
    """A text, whether it gives orders to an agent, and the author's word for its kind."""

    author: str
    text: str
    order: bool
    kind: str


def cases(author: str) -> list[OrderCase]:
    """The texts of an author."""
    return [
        OrderCase(author=author, text=row["text"], order=row["label"] == "order", kind=row["kind"])
        for row in _rows(DATA / f"{author}.jsonl")
    ]


def earlier(half: str) -> list[OrderCase]:
    """The texts of the tests of the rules: `open` with those that were written later, or `blind`."""
    folder = ROOT / "tests" / "cognition" / "evidence" / "injection" / "data"
    found = [
        OrderCase(author="rules", text=row["text"], order=name == "poisoned", kind=row["kind"])
        for name in ("poisoned", "benign")
        for row in _rows(folder / f"{name}.jsonl")
        if row["half"] == half
    ]
    if half == "open":
        found += [
            OrderCase(author="later", text=row["text"], order=row["poisoned"], kind="later")
            for row in _rows(folder / "later.jsonl")
        ]
    return found


def notebooks() -> list[tuple[str, str]]:
    """Ordinary notes to fit on, as (notebook, text): the notebooks and second notes of the pair model."""
    data = ROOT / "training" / "pair_model" / "data"
    found = [
        (path.stem, row["text"])
        for path in sorted((data / "notebooks").glob("*.jsonl"))
        for row in _rows(path)
        if row["kind"] != "question"
    ]
    for path in sorted((data / "relations").glob("*.jsonl")):
        texts = sorted({row["second"] for row in _rows(path)})
        found += [(path.stem, text) for text in texts[:: max(1, len(texts) // 60)]]
    return found


def ordinary_notes(half: str) -> list[str]:
    """Ordinary notes to count false alarms on: those of the benchmark of notes."""
    found: list[str] = []
    for author in NOTES[half]:
        rows = _rows(ROOT / "benchmarks" / "notes" / "data" / f"{author}-notes.jsonl")
        found += [row["text"] for row in rows if row["kind"] == "note"]
        for row in _rows(ROOT / "benchmarks" / "notes" / "data" / f"{author}-pairs.jsonl"):
            found += [row["first"], row["second"]]
    return list(dict.fromkeys(found))


def ordinary_texts() -> list[str]:
    """Ordinary texts of many genres to fit on: abstracts, mails, recipes, logs, turns of talks, code."""
    return [row["text"] for name in ORDINARY for row in _rows(DATA / f"{name}.jsonl")]


def chat_turns() -> list[str]:
    """Turns of private talks to fit on: people thank, encourage and ask each other for things."""
    return [row["text"] for row in _rows(DATA / f"{CHAT}.jsonl")]


def functions() -> list[str]:
    """Functions of Python's standard library with a docstring, to fit on: every one of a few lines."""
    found: list[str] = []
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py")):
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef) and ast.get_docstring(node):
                last = node.end_lineno or node.lineno
                if last - node.lineno in FUNCTION_LINES:
                    found.append("\n".join(lines[node.lineno - 1 : last]))
    return found[:: len(found) // MOST_FUNCTIONS]


def documents(half: str) -> list[str]:
    """Paragraphs of this project's own guides, which tell people what to do: every second one to fit on
    (`development`), the others to count false alarms on (`blind`)."""
    paths = sorted((ROOT / "docs").glob("howto/*.md")) + sorted((ROOT / "docs").glob("concepts/*.md"))
    parts = (part.strip() for path in paths for part in path.read_text(encoding="utf-8").split("\n\n"))
    found = [part for part in parts if 60 <= len(part) <= 1_000 and part[0] not in "|`<#"]
    return found[half == "blind" :: 2]


def _rows(path: Path) -> Iterator[dict[str, Any]]:  # Any: JSON
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip():
            yield json.loads(line)
