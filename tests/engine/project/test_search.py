"""Searching code: hits are the lines as they are now."""

from collections.abc import Callable
from pathlib import Path

from vestige.engine.context import Call
from vestige.engine.project.place import Project, new_project
from vestige.engine.project.refresh import refresh
from vestige.engine.project.search import CodeHit, search_code

Write = Callable[..., Path]

INVOICE = '''"""Invoices of the shop."""


def total_with_tax(lines, rate):
    """The sum of all lines, with tax."""
    return sum(lines) * (1 + rate)
'''


def found(call: Call, project: Project, question: str, limit: int = 5) -> list[CodeHit]:
    with call.engine.code_indexes.reading(project.index) as index:
        return search_code(call, project, index, question, limit=limit)


def test_a_symbol_is_found_where_it_is_defined(call: Call, write: Write) -> None:
    write("shop/invoice.py", INVOICE)
    write("shop/report.py", "from shop.invoice import total_with_tax\n\nprint(total_with_tax([1], 2))\n")
    project = new_project(call)
    refresh(call, project)
    best = found(call, project, "total_with_tax")[0]
    assert best.path == "shop/invoice.py"
    assert "def total_with_tax" in best.text
    assert not best.reread


def test_a_path_is_a_question_too(call: Call, write: Write) -> None:
    write("src/database/schema.ts", "export const tables = 3;\n")
    write("src/other.ts", "export const schema = 'database';\n")
    project = new_project(call)
    refresh(call, project)
    assert found(call, project, "src/database/schema.ts")[0].path == "src/database/schema.ts"


def test_words_of_any_language_are_found(call: Call, write: Write) -> None:
    write("notes.md", "# Überblick\n\nДокументация о скидках для клиентов.\n")
    write("other.md", "# Other\n\nNothing here.\n")
    project = new_project(call)
    refresh(call, project)
    assert found(call, project, "скидках")[0].path == "notes.md"
    assert found(call, project, "Überblick")[0].path == "notes.md"


def test_a_hit_whose_lines_changed_is_read_again(call: Call, write: Write) -> None:
    write("shop/invoice.py", INVOICE)
    project = new_project(call)
    refresh(call, project)
    write("shop/invoice.py", "import math\n\n\n" + INVOICE.replace("sum(lines)", "math.fsum(lines)"))
    best = found(call, project, "total_with_tax")[0]
    assert best.reread
    assert "math.fsum" in best.text
    assert best.start_line <= 7 <= best.end_line


def test_a_file_that_is_gone_is_no_hit(call: Call, write: Write) -> None:
    write("shop/invoice.py", INVOICE)
    write("shop/other.py", "total = 1\n")
    project = new_project(call)
    refresh(call, project)
    (project.root / "shop/invoice.py").unlink()
    assert [hit.path for hit in found(call, project, "total with tax")] == ["shop/other.py"]


def test_a_hit_shows_no_secret(call: Call, write: Write) -> None:
    key = "AKIA" + "Q7R2ZK5N3JV8XWTM"
    write("settings.py", f'def connect():\n    return "{key}"\n')
    project = new_project(call)
    refresh(call, project)
    assert [key in hit.text for hit in found(call, project, "connect")] == [False]
    assert found(call, project, key) == []


def test_a_question_without_words_finds_nothing(call: Call, write: Write) -> None:
    write("a.py", INVOICE)
    project = new_project(call)
    refresh(call, project)
    for question in ("?", "zebra", "  ", '"'):
        assert found(call, project, question) == []


def test_the_limit_is_kept_and_can_be_reached(call: Call, write: Write) -> None:
    for number in range(60):
        write(f"m{number}.py", f"def order_{number}():\n    return order\n")
    project = new_project(call)
    refresh(call, project)
    assert len(found(call, project, "order", limit=50)) == 50
