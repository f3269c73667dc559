"""Defects of the reference system for project memory, each as a test; those that have one elsewhere by name.

1  erased text stays searchable: test_durable `..._hard_forgotten_is_in_no_file`
2  forgetting by a query: test_durable `..._needs_an_id_of_this_project`
3  only path and summary are scored, weights of words are lost: here
4  a path is no question: engine/project/test_search `test_a_path_is_a_question_too`
5  scales of vectors are mixed: store/contract/search/test_nearest, store/laws/test_congruence
6  a cap before the limit: engine/project/test_search `test_the_limit_is_kept_and_can_be_reached`, here
7  only ASCII, parts of words count: engine/project/test_search `test_words_of_any_language_are_found`, here
8  constants and functions without a declaration are lost, lines from 0, headings in fences: here
9  a language without a grammar is left out: here
10 long bodies are cut: cognition/code/test_sections_size
11 ignore rules, secrets in files: engine/project/files, engine/project/test_refresh
12 a malformed manifest stops everything: engine/project/test_package
13 a warm-up is over its budget, or knows only the newest: engine/project/test_package, here
14 an export loses fields: test_exchange, here (an import is searchable at once)
15 no locks, a restore deletes first: engine/project/test_refresh, test_exchange
16 an edit revives what was hidden: here
17 a save or a warm-up indexes: engine/project/test_refresh_hostile, here
18 what was superseded is shown: engine/project/test_package, here
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.world import World, open_world
from tests.operations.project.test_index import index_of

Write = Callable[[str, str], None]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    (folder / ".git").mkdir(parents=True)
    return folder


@pytest.fixture
def world(tmp_path: Path, root: Path) -> Iterator[World]:
    with open_world(tmp_path / "data", place=root) as made:
        yield made


@pytest.fixture
def write(world: World, root: Path) -> Write:
    """Writes a file of the project and indexes it."""

    def put(path: str, text: str) -> None:
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
        world.call("project", action="init")

    return put


def hits(world: World, query: str, limit: int = 10) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = world.call("project", action="search", query=query, limit=limit)["hits"]
    return found


def recall(world: World, task: str) -> str:
    return str(world.call("project_recall", task=task)["text"])


def test_3_words_of_the_body_count_and_rare_words_count_more(write: Write, world: World) -> None:
    for number in range(8):
        write(f"plain{number}.py", f"def work{number}(value):\n    return value  # value value value\n")
    write("odd.py", "def work(value):\n    return quetzalcoatl(value)\n")
    assert hits(world, "the value of quetzalcoatl")[0]["path"] == "odd.py"


def test_6_a_search_returns_as_many_as_it_was_asked_for(write: Write, world: World, root: Path) -> None:
    for number in range(60):
        (root / f"tax{number}.py").write_text(f"def tax{number}():\n    return 'invoice'\n", encoding="utf-8")
    write("last.py", "x = 1\n")
    assert len(hits(world, "invoice", limit=50)) == 50


def test_7_a_part_of_a_word_is_no_match(write: Write, world: World) -> None:
    write("parser.py", "def tokenise(text):\n    return text.split()\n")
    assert hits(world, "oken") == []
    assert [one["path"] for one in hits(world, "tokenise")] == ["parser.py"]


def test_8_constants_and_arrow_functions_are_found_with_lines_from_1(write: Write, world: World) -> None:
    write(
        "rates.ts",
        "export const STANDARD_RATE = 0.19;\n"
        "export const roundHalfEven = (n: number) => Math.round(n);\n"
        "export function net(gross: number) {\n  return gross / (1 + STANDARD_RATE);\n}\n",
    )
    for name, line in (("STANDARD_RATE", 1), ("roundHalfEven", 2), ("net", 3)):
        best = hits(world, name)[0]
        assert best["startLine"] <= line <= best["endLine"]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("main.go", "package main\n\nfunc Add(a int, b int) int { return a + b }\n"),
        ("lib.rs", "pub fn add(a: i32, b: i32) -> i32 { a + b }\nstruct Tax(i32);\n"),
        ("sums.py", "def add(a: int, b: str) -> int:\n    return a\n\n\nX = 1\n"),
    ],
)
def test_8_a_few_lines_are_a_few_sections(write: Write, world: World, path: str, text: str) -> None:
    write(path, text)
    assert 1 <= world.call("project", action="status")["sections"] <= 3


def test_8_a_comment_in_a_fence_is_no_heading(write: Write, world: World) -> None:
    write("README.md", "# Set-up\n\n```sh\n# install quetzal first\nmake quetzal\n```\n\nThen run it.\n")
    best = hits(world, "install quetzal")[0]
    assert (best["startLine"], best["symbol"]) == (1, "Set-up")


@pytest.mark.parametrize("path", ["invoice.nim", "invoice.unheardof", "Invoicefile"])
def test_9_a_language_without_a_grammar_is_found_all_the_same(write: Write, world: World, path: str) -> None:
    write(path, "proc totalWithTax(net: float): float =\n  net * 1.19\n")
    assert [one["path"] for one in hits(world, "totalWithTax")] == [path]


def test_13_an_old_constraint_is_in_the_warm_up_after_many_others(write: Write, world: World) -> None:
    write("sums.py", "x = 1\n")
    world.call("project", action="save", content="Sums are never rounded.", kind="constraint", pinned=True)
    for number in range(130):
        world.call("project", action="diary", summary=f"Day {number}: changed the table of rates again.")
    made = world.call("project_warm_up", token_budget=300)
    assert "Sums are never rounded." in made["text"]
    assert made["tokens"] <= 300


def test_14_what_is_imported_is_searchable_at_once_by_words_and_meaning(
    write: Write, world: World, tmp_path: Path
) -> None:
    write("sums.py", "x = 1\n")
    world.call("project", action="save", content="Sums are never rounded.", kind="constraint")
    file = Path(world.call("project", action="export")["file"])
    world.app.close()
    other = tmp_path / "bakery"
    (other / ".git").mkdir(parents=True)
    with open_world(tmp_path / "second", place=other) as second:
        second.call("project", action="init")
        (tmp_path / "second" / "exports").mkdir()
        (tmp_path / "second" / "exports" / file.name).write_bytes(file.read_bytes())
        assert second.call("project", action="import", file=file.name)["embedded"] == 1
        assert second.find("are sums rounded?") == ["Sums are never rounded."]
        assert "never rounded" in recall(second, "round the sums")


def test_16_an_edit_does_not_revive_what_was_hidden(write: Write, world: World) -> None:
    write("sums.py", "x = 1\n")
    saved = world.call("project", action="save", content="Sums are never rounded.", kind="constraint")
    world.call("project", action="forget", id=saved["nodeId"])
    world.call("memory", action="edit", id=saved["nodeId"], content="Sums are never rounded at all.")
    assert "never rounded" not in recall(world, "round the sums")
    assert "never rounded" not in world.call("project_warm_up")["text"]


def test_17_a_save_and_a_warm_up_index_nothing(write: Write, world: World, root: Path) -> None:
    write("sums.py", "x = 1\n")
    before = index_of(root).read_bytes()
    (root / "new.py").write_text("def later():\n    return 1\n", encoding="utf-8")
    world.call("project", action="save", content="Sums are never rounded.")
    world.call("project", action="diary", summary="Wrote sums.")
    world.call("project_warm_up")
    assert index_of(root).read_bytes() == before
    assert world.call("project", action="status")["freshness"]["word"] == "stale"


def test_18_a_superseded_decision_is_not_shown(write: Write, world: World) -> None:
    write("sums.py", "x = 1\n")
    old = world.call("project", action="save", content="The tax rate is 16 percent.", kind="decision")
    world.clock.advance(days=1)
    new = world.call(
        "project", action="save", content="Correction: the tax rate is 19 percent now.", kind="decision"
    )
    assert new["decision"] == "supersede"
    text = recall(world, "change the tax rate")
    assert "19 percent" in text
    assert "16 percent" not in text
    assert world.get(old["nodeId"])["content"] == "The tax rate is 16 percent."
