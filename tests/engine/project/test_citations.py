"""Cited code is followed through edits: the verdict says what became of it."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from vestige.core.errors import InvalidInput
from vestige.core.models import Memory
from vestige.engine.context import Call
from vestige.engine.project import citations
from vestige.engine.project.citations import (
    MOST_CITATIONS,
    Citation,
    Verdict,
    anchored,
    checked,
    cited_in,
    line_hashes,
    of_memory,
    to_metadata,
)
from vestige.engine.project.place import new_project
from vestige.engine.project.refresh import refresh
from vestige.engine.project.search import FileTexts

Write = Callable[..., Path]


def function(name: str, lines: int, rng: random.Random) -> str:
    body = "".join(f"    value_{name}_{n} = {rng.randint(1, 10**6)} + other({n})\n" for n in range(lines))
    return f"def {name}(other):\n{body}    return value_{name}_0\n\n\n"


class Cited:
    """A project with one file of functions, of which the third is cited."""

    def __init__(self, call: Call, write: Write, rng: random.Random) -> None:
        self.call, self.write = call, write
        self.parts = [function(f"f{n}", rng.randint(3, 12), rng) for n in range(6)]
        write("src/parts.py", "".join(self.parts))
        self.project = new_project(call)
        refresh(call, self.project)
        self.start = "".join(self.parts[:2]).count("\n") + 1
        self.end = self.start + self.parts[2].rstrip("\n").count("\n")
        with call.engine.code_indexes.reading(self.project.index) as index:
            texts = FileTexts(project=self.project)
            self.citation = anchored(texts, index, "src/parts.py", self.start, self.end)

    def verdict(self) -> tuple[Verdict, str | None]:
        with self.call.engine.code_indexes.reading(self.project.index) as index:
            found = checked(self.citation, self.project, FileTexts(project=self.project), index)
        return found.verdict, found.now.place if found.now else None


def edited(kind: str, cited: Cited, rng: random.Random) -> tuple[Verdict, str | None]:
    """Edit the project; the verdict that is right, and the place if it is exact."""
    parts, path = list(cited.parts), "src/parts.py"
    length = cited.end - cited.start
    expected: tuple[Verdict, str | None]
    match kind:
        case "other function edited":
            parts[4] = parts[4].replace("other(", "another(")
            expected = Verdict.FRESH, f"{path}:{cited.start}-{cited.end}"
        case "lines before":
            parts.insert(0, function("new", rng.randint(1, 9), rng))
            start = cited.start + parts[0].count("\n")
            expected = Verdict.MOVED, f"{path}:{start}-{start + length}"
        case "order changed":
            parts.append(parts.pop(2))
            start = "".join(parts[:-1]).count("\n") + 1
            expected = Verdict.MOVED, f"{path}:{start}-{start + length}"
        case "file renamed":
            (cited.project.root / path).unlink()
            path = "lib/parts.py"
            expected = Verdict.MOVED, f"{path}:{cited.start}-{cited.end}"
        case "indented":
            parts[2] = "".join(f"    {line}\n" if line else "\n" for line in parts[2].split("\n")[:-1])
            expected = Verdict.FRESH, f"{path}:{cited.start}-{cited.end}"
        case "one line changed":
            lines = parts[2].split("\n")
            at = rng.randrange(1, length)
            lines[at] = "    something = else_()"
            parts[2] = "\n".join(lines)
            expected = Verdict.CHANGED, None
        case "lines added inside":
            lines = parts[2].split("\n")
            lines[2:2] = ["    print(1)", "    print(2)"]
            parts[2] = "\n".join(lines)
            expected = Verdict.CHANGED, None
        case "rewritten":
            parts[2] = "def f2(other):\n    return 1\n\n\n"
            expected = Verdict.CHANGED, None
        case "deleted":
            del parts[2]
            expected = Verdict.GONE, None
        case _:
            (cited.project.root / path).unlink()
            return Verdict.GONE, None
    cited.write(path, "".join(parts))
    return expected


KINDS = [
    "other function edited", "lines before", "order changed", "file renamed", "indented", "one line changed",
    "lines added inside", "rewritten", "deleted", "file deleted",
]  # fmt: skip


def test_verdicts_are_right_in_95_of_100_generated_edits(call: Call, write: Write) -> None:
    rng, right, wrong = random.Random(24), 0, list[str]()
    for number in range(100):
        kind = KINDS[number % len(KINDS)]
        for old in (new_project(call).root / "lib", new_project(call).root / "src"):
            for file in old.glob("*.py"):
                file.unlink()
        cited = Cited(call, write, rng)
        expected, place = edited(kind, cited, rng)
        refresh(call, cited.project)
        verdict, now = cited.verdict()
        if verdict is expected and place in (None, now):
            right += 1
        else:
            wrong.append(f"{kind}: {verdict} {now}, not {expected} {place}")
    assert right >= 95, wrong


def test_edits_that_are_not_indexed_yet_count_too(call: Call, write: Write) -> None:
    cited = Cited(call, write, random.Random(1))
    cited.write("src/parts.py", "import os\n" + "".join(cited.parts))
    assert cited.verdict() == (Verdict.MOVED, f"src/parts.py:{cited.start + 1}-{cited.end + 1}")


def test_a_citation_without_lines_cannot_be_verified(call: Call, write: Write) -> None:
    cited = Cited(call, write, random.Random(1))
    cited.citation = Citation(path="src/parts.py")
    assert cited.verdict() == (Verdict.UNVERIFIABLE, None)


def test_a_text_cites_paths_lines_and_symbols(call: Call, write: Write) -> None:
    write("src/parts.py", "def one():\n    return 1\n\n\ndef two():\n    return 2\n")
    write("src/other.py", "def one():\n    return 3\n")
    project = new_project(call)
    refresh(call, project)
    text = "See parts.py:5-6 and src/other.py; `two` matters, `one` is ambiguous, none.py is not there."
    with call.engine.code_indexes.reading(project.index) as index:
        found = cited_in(text, FileTexts(project=project), index)
    assert {one.place.split(":")[0] for one in found} == {"src/parts.py", "src/other.py"}
    assert "src/parts.py:5-6" in [one.place for one in found]


def test_citations_go_through_metadata_unchanged(call: Call, write: Write) -> None:
    cited = Cited(call, write, random.Random(1))
    now = call.engine.now()
    memory = Memory(
        id="m", content="x", created_at=now, updated_at=now, metadata=to_metadata([cited.citation])
    )
    assert of_memory(memory) == [cited.citation]


LONG = {"path": "src/parts.py", "start": 1, "end": 401, "lines": "0" * 8 * 401}


def test_a_file_that_is_named_often_is_read_once(
    call: Call, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("src/parts.py", "def one():\n    return 1\n" * 100)
    project = new_project(call)
    refresh(call, project)
    read: list[str] = []

    def counted(text: str) -> list[str]:
        read.append(text)
        return line_hashes(text)

    monkeypatch.setattr(citations, "line_hashes", counted)
    text = " ".join(f"src/parts.py:{number % 150 + 1} parts.py" for number in range(500))
    with call.engine.code_indexes.reading(project.index) as index:
        texts = FileTexts(project=project)
        found = cited_in(text, texts, index)
        for one in found:
            assert checked(one, project, texts, index).verdict == Verdict.FRESH
    assert len(found) == MOST_CITATIONS
    assert len(read) == 1


@pytest.mark.parametrize(
    "kept", [[LONG], None, "x", [1], [{"path": 3}], [{"path": "a", "lines": 3}], {"path": "a"}]
)
def test_malformed_citations_are_left_out(call: Call, kept: object) -> None:
    now = call.engine.now()
    memory = Memory(id="m", content="x", created_at=now, updated_at=now, metadata={"citations": kept})
    assert of_memory(memory) == []


def test_lines_that_are_not_there_cannot_be_cited(call: Call, write: Write) -> None:
    cited = Cited(call, write, random.Random(1))
    with cited.call.engine.code_indexes.reading(cited.project.index) as index:
        texts = FileTexts(project=cited.project)
        for path, start in (("missing.py", 1), ("src/parts.py", 10_000), ("../../etc/passwd", 1)):
            with pytest.raises(InvalidInput):
                anchored(texts, index, path, start)
