"""Literals: which parts of a query must occur as they are, and which are prose."""

from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.effort import effort
from testbed.failures import each
from vestige.cognition.query.literals import MAX_LITERAL_CHARS, literals

LAW = settings(deadline=None, max_examples=effort(75, nightly=1500))
pieces = st.sampled_from(
    [
        "a_b",
        '"',
        "'",
        "`",
        "“",
        "”",
        "/",
        ".",
        "src/a.py",
        "getUserName",
        "https://x.y",
        "東京",
        "E1234",
        "-",
        "=",
        "::",
    ]
)
texts = st.text() | st.lists(pieces | st.text(max_size=4), max_size=12).map("".join)


def found(text: str) -> list[str]:
    return [literal.text for literal in literals(text)]


@each(
    ("text", "expected"),
    [
        ('the book "Becoming Nicole"?', ["Becoming Nicole"]),
        ("the book “Becoming Nicole” and «Le Monde»", ["Becoming Nicole", "Le Monde"]),
        ("what is 'Becoming Nicole' about", ["Becoming Nicole"]),
        ("run `git stash pop` first", ["git stash pop"]),
        ("彼は「引用文」と言った", ["引用文"]),
        ("memory 0192f0c1-7b1e-7000-8000-0123456789ab", ["0192f0c1-7b1e-7000-8000-0123456789ab"]),
        ("see https://example.com/a?b=c,d.", ["https://example.com/a?b=c,d"]),
        ("(https://example.com)", ["https://example.com"]),
        ("www.example.com", ["www.example.com"]),
        ("write to bob@example.com's box", ["bob@example.com"]),
        ("in /etc/hosts and ~/.bashrc", ["/etc/hosts", "~/.bashrc"]),
        ("./run.sh ../x C:\\Users\\me", ["./run.sh", "../x", "C:\\Users\\me"]),
        ("fix src/vestige/app.py:12, please", ["src/vestige/app.py"]),
        ("src\\app.py:3:7", ["src\\app.py"]),
        ("docs/adr/drafts", ["docs/adr/drafts"]),
        ("what does get_user_name do?", ["get_user_name"]),
        ("call getUserName() on userId", ["getUserName", "userId"]),
        ("__init__ and _private_name", ["__init__", "_private_name"]),
        ("VESTIGE_HOME=/tmp/x", ["VESTIGE_HOME", "/tmp/x"]),
        ("set $HOME", ["$HOME"]),
        ("vestige.cognition.text, store.py", ["vestige.cognition.text", "store.py"]),
        ("main.c, .gitignore", ["main.c", ".gitignore"]),
        ("std::vector<int>", ["std::vector"]),
        ("gpt-4o CVE-2024-3094 ORA-00942 utf-8", ["gpt-4o", "CVE-2024-3094", "ORA-00942", "utf-8"]),
        ("pip --no-deps", ["--no-deps"]),
        ("error E1234: TS2345 42P01 ERR_FOO", ["E1234", "TS2345", "42P01", "ERR_FOO"]),
        ("0x80070005 at 59b00e2", ["0x80070005", "59b00e2"]),
        ("error e1234, sha256 and 42p01", ["e1234", "sha256", "42p01"]),
        ("ticket 48213, order 1234567.", ["48213", "1234567"]),
        ("3.11.4 v2 1.2.3-rc1 127.0.0.1:3927", ["3.11.4", "1.2.3-rc1", "127.0.0.1:3927"]),
        ("v2.3.1 and v2.3", ["2.3.1", "v2.3"]),
        ("PR #1234 or PR #12", ["1234", "#12"]),
        ("関数getUserNameを使う", ["getUserName"]),
        ("YouTube PostgreSQL iPhone", ["YouTube", "PostgreSQL", "iPhone"]),
        ("“**store.py**”", ["**store.py**"]),
    ],
)  # fmt: skip
def test_these_must_occur_as_they_are(text: str, expected: list[str]) -> None:
    assert found(text) == expected


@each(
    "text",
    [
        "",
        "What did Caroline's mother say?",
        "don't stop the dogs' bowl and the cats' bowl",
        "rock 'n' roll in the '80s and '90s",
        "and/or, 24/7, 12/25/2023, he/she",
        "e.g. i.e. U.S. U.S.A. Ph.D. a.m.",
        "3.5 hours at 10:30, 10AM, 100MB, 1,000, 48,213, 3.14159, $1234",
        "well-known state-of-the-art T-shirt",
        "mid-2023 pre-2020 9-year-old",
        "NASA and APIs, B12 and MP3",
        "deadbeef",
        "in 1999 and 2023, may2023, 5000 steps, 120000 rows, 999 more",
        "24x7 and 9to5",
        'a "b" c',
        '"??"',
        '"unclosed quote',
        "... -- / ~ _ __ ' '' `",
        "_emphasis_ *bold*",
        "#1 reason, $100",
        "x" * (MAX_LITERAL_CHARS + 1) + "_y",
        '"' + "long " * 100 + '"',
    ],
)
def test_prose_has_no_literals(text: str) -> None:
    assert found(text) == []


def test_words_of_prose_with_humps_are_marked_as_plain() -> None:
    assert [literal.plain for literal in literals("YouTube iPhone getUserName store.py")] == [
        True,
        True,
        False,
        False,
    ]


@LAW
@given(texts)
def test_a_literal_stands_in_the_text_where_it_says(text: str) -> None:
    last = 0
    for literal in literals(text):
        assert last <= literal.start < literal.end <= len(text)
        assert literal.text in text[literal.start : literal.end]
        assert 2 <= len(literal.text) <= MAX_LITERAL_CHARS
        last = literal.end


@each(
    "unit",
    [
        "[",
        '"',
        "“",
        "'",
        "'a ",
        "`",
        "a.",
        "a/",
        "_",
        "a_",
        "a-",
        "::",
        "a@",
        "0f",
        "aA",
        "http://",
        "--a-",
        "1.",
    ],
)
def test_a_long_query_of_one_thing_is_read(unit: str) -> None:
    assert all(len(literal) <= MAX_LITERAL_CHARS for literal in found((unit * 10_000)[:10_000]))
