"""The order of sections for a question."""

from collections import Counter
from collections.abc import Mapping

from vestige.cognition.code.query import analyse
from vestige.cognition.code.ranking import (
    Candidate,
    IndexTotals,
    RankedSection,
    file_summary,
    rank,
    search_tokens,
)
from vestige.cognition.code.sections import sections_of


def found(files: Mapping[str, str], question: str, limit: int = 10) -> list[RankedSection]:
    """The ranking of all sections of some files, as an index would supply them."""
    query = analyse(question)
    sections = [(path, section) for path, text in files.items() for section in sections_of(path, text)]
    tokens = [search_tokens(path, section) for path, section in sections]
    frequencies = Counter(term for one in tokens for term in set(one))
    corpus = IndexTotals(
        sections=len(sections),
        mean_length=sum(map(len, tokens)) / len(tokens),
        frequencies={term: frequencies[term] for term in query.terms},
    )
    candidates = [
        Candidate(
            key=key,
            path=path,
            definitions=section.definitions,
            counts={term: times for term, times in Counter(tokens[key]).items() if term in query.terms},
            length=len(tokens[key]),
            symbol_path=section.symbol_path,
            signature=section.signature,
        )
        for key, (path, section) in enumerate(sections)
    ]
    return rank(query, candidates, corpus, limit)


def paths(files: Mapping[str, str], question: str) -> list[str]:
    return [one.path for one in found(files, question)]


def test_the_definition_of_a_symbol_comes_before_its_uses() -> None:
    use = "from pool import Pool\n\ndef run():\n    Pool()\n    Pool()\n    return Pool\n"
    files = {"run.py": use, "pool.py": "class Pool:\n    size = 3\n", "other.py": use.replace("run", "walk")}
    assert paths(files, "Pool")[0] == "pool.py"


def test_data_with_one_word_of_the_question_in_its_name_comes_after_the_program() -> None:
    data = '{"text": "an expired login, lead back to the page"}\n'
    files = {
        "notes/team-lead.jsonl": data,
        "login.py": "def expired_login(page):\n    back = page\n    return redirect(back)\n",
    }
    assert paths(files, "make the expired login lead back to the page")[0] == "login.py"
    assert paths(files, "expired login in the notes of the team lead")[0] == "notes/team-lead.jsonl"


def test_source_comes_before_its_test() -> None:
    text = "def parse_header(line):\n    return line.split()\n"
    assert (
        paths({"tests/test_header.py": text, "src/header.py": text}, "parse a header")[0] == "src/header.py"
    )


def test_the_name_of_a_file_counts() -> None:
    text = "def handle(request):\n    return request\n"
    assert (
        paths({"a.py": text, "cookies.py": text, "b.py": text}, "how are cookies stored")[0] == "cookies.py"
    )


def test_further_sections_of_a_file_give_way_to_other_files() -> None:
    body = "".join(f"def retry_{n}(retry):\n    # {'retry ' * 80}\n    return retry\n\n" for n in range(12))
    files = {"many.py": body, "one.py": "def once(retry):\n    return retry\n", "none.py": "x = 1\n"}
    assert "one.py" in paths(files, "what does a retry do")[:4]


def test_equal_sections_keep_an_order_that_does_not_depend_on_the_input() -> None:
    files = {f"{name}.py": "def same():\n    pass\n" for name in "dbca"}
    backwards = dict(reversed(list(files.items())))
    assert paths(files, "same thing") == paths(backwards, "same thing") == ["a.py", "b.py", "c.py", "d.py"]


def test_a_file_that_the_question_names_comes_first() -> None:
    text = "def handle(request):\n    return request\n"
    files = {"app/a/views.py": text, "app/b/views.py": text, "app/request.py": text}
    assert paths(files, "why does handle fail in b/views.py")[0] == "app/b/views.py"


def test_a_module_is_named_by_its_dots() -> None:
    text = "def handle(request):\n    return request\n"
    files = {"app/a.py": text, "app/views/__init__.py": text, "app/b.py": text}
    assert paths(files, "handle in app.views returns the request")[0] == "app/views/__init__.py"


def test_of_a_file_the_section_that_matches_is_shown_first() -> None:
    filler = "".join(f"def other_{n}(x):\n    '''{'words ' * 60}'''\n    return x\n\n\n" for n in range(9))
    text = f"{filler}def parse_header(line):\n    '''{'Splits it. ' * 30}'''\n    return line.split()\n"
    best = found({"http.py": text, "b.py": "x = 1\n"}, "parse_header")[0]
    section = sections_of("http.py", text)[best.key]
    assert section.definitions == ("parse_header",)


def test_the_vector_of_a_file_decides_between_equal_ones() -> None:
    query = analyse("where is it kept")
    candidates = [
        Candidate(key=key, path=path, definitions=(), counts={"kept": 1}, length=9, similarity=near)
        for key, (path, near) in enumerate({"a.py": 0.1, "b.py": 0.9, "c.py": None}.items())
    ]
    totals = IndexTotals(sections=3, mean_length=9.0, frequencies={"kept": 3})
    assert [one.path for one in rank(query, candidates, totals)] == ["b.py", "a.py", "c.py"]


MEMBERS = "".join(f"    def part_{n}(self):\n        return {n}\n\n" for n in range(40))
"""Enough for a class to be in sections of its own members."""


def member(files: Mapping[str, str], question: str) -> str:
    """The symbol path of the section that comes first."""
    key = found(files, question)[0].key
    sections = [section for path, text in files.items() for section in sections_of(path, text)]
    return sections[key].symbol_path


def test_a_member_is_found_by_the_name_of_its_class() -> None:
    send = "    def send(self, request):\n        return self.connection.send(request)\n\n"
    classes = (f"class {name}:\n{send}{MEMBERS}" for name in ("BaseAdapter", "PoolAdapter", "LastAdapter"))
    files = {"adapters.py": "\n".join(classes), "sessions.py": f"class Session:\n{send * 3}{MEMBERS}"}
    for name in ("BaseAdapter", "PoolAdapter", "LastAdapter", "Session"):
        assert member(files, f"{name}.send") == f"{name}.send"
        assert member(files, f"{name}::send") == f"{name}.send"
        assert member(files, f"How does {name}.send fail?") == f"{name}.send"


def test_a_member_outside_of_its_class_is_found_by_its_signature() -> None:
    text = "func (a *{}) Send(request string) error {{\n\treturn a.send(request)\n}}\n"
    files = {"one.go": text.format("Session"), "two.go": text.format("Adapter")}
    assert paths(files, "Adapter.Send")[0] == "two.go"
    assert paths(files, "Session.Send")[0] == "one.go"


def test_a_page_of_changes_comes_after_what_explains() -> None:
    change = "- A redirect to another host drops the authorization header of a request.\n"
    code = "def rebuild(request):\n    # a redirect drops authorization\n    return request.headers\n"
    files = {"HISTORY.md": change * 6, "AUTHORS.md": change, "src/sessions.py": code}
    assert paths(files, "when does a redirect drop the authorization header?")[0] == "src/sessions.py"
    assert paths(files, "what does the history say of redirect and authorization?")[0] == "HISTORY.md"
    assert paths(files, "in which release did a redirect drop authorization?")[0] == "HISTORY.md"
    assert paths(files, "authors of the authorization of a redirect")[0] == "AUTHORS.md"


def test_a_copy_in_another_folder_gives_way_to_other_files() -> None:
    page = "# Manual\n\nA big number is converted to a decimal number, and loses digits.\n"
    code = "def convert(value):\n    # a number to a decimal\n    return float(value)\n"
    files = {f"docs/v{version}/manual.md": page for version in range(5)} | {"src/value.py": code}
    found_paths = paths(files, "where is a big number converted to a decimal?")
    assert found_paths[:3].count("src/value.py") == 1
    assert sorted(found_paths) == sorted(files)


def test_without_candidates_nothing_is_found() -> None:
    assert rank(analyse("x"), [], IndexTotals(sections=0, mean_length=0.0, frequencies={})) == []


def test_the_summary_of_a_file_has_its_path_beginning_and_signatures() -> None:
    text = '"""Routes of the shop."""\n\n\ndef add_route(path):\n    table.append(path)\n'
    summary = file_summary("shop/routes.py", sections_of("shop/routes.py", text))
    assert summary.startswith("shop routes.py\n")
    assert "Routes of the shop." in summary
    assert "def add_route(path)" in summary
