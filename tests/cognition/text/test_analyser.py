"""The analyser: what finds what, and what an index can take back."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.effort import effort
from testbed.failures import each
from vestige.cognition.text import analyser
from vestige.cognition.text.analyser import (
    MAX_TERM_CHARS,
    STOP_WORDS,
    fingerprint,
    memory_terms,
    query_terms,
    query_words,
    searchable,
    terms,
    text_hash,
)
from vestige.core.models import Memory
from vestige.store.sql.search import pool

LAW = settings(deadline=None, max_examples=effort(75, nightly=1500))
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)

# Text that looks like what people and programs write, with every kind of trouble between the words.
texts = st.one_of(
    st.text(),
    st.text(st.sampled_from("aBé9東がไส한हि_-./\\:@&',#+ \n\u00a0\u0301\u200d🎉")),
    st.lists(
        st.sampled_from(
            [
                "getUserName",
                "3.11",
                "1,000",
                "don’t",
                "O'Brien",
                "C++",
                "src/a_b.py",
                "東京都",
                "½",
                "ab*",
                "x" * 90,
            ]
        )
        | st.text(max_size=5),
        max_size=8,
    ).map(" ".join),
)


@LAW
@given(st.text(st.sampled_from("aBZ019_-./\\:@&',#+* \n"), max_size=30))
def test_the_pattern_for_ascii_finds_what_the_one_for_all_texts_finds(text: str) -> None:
    both = (analyser._CHUNK, analyser._ASCII_CHUNK)
    found, in_ascii = ([one.span() for one in pattern.finditer(text)] for pattern in both)
    assert found == in_ascii


def test_the_sets_of_characters_are_those_of_an_index() -> None:
    """Written as what they leave out, because a large range takes long to compile."""
    term = re.compile(r"[a-z0-9_\x80-\ud7ff\ue000-\U0010ffff]")
    word = re.compile(r"[A-Za-z0-9\x80-\U0010ffff]")
    for one in map(chr, range(0x110000)):
        assert bool(term.match(one)) == bool(pool.TERM.match(one))
        assert bool(word.match(one)) == bool(analyser._WORD.match(one))


def memory(
    content: str,
    *,
    phrasings: tuple[str, ...] = (),
    tags: tuple[str, ...] = (),
    occurred_at: datetime | None = None,
) -> Memory:
    return Memory(
        id="m",
        content=content,
        created_at=NOON,
        updated_at=NOON,
        phrasings=phrasings,
        tags=tags,
        occurred_at=occurred_at,
    )


def matches(query_term: str, index_term: str) -> bool:
    if query_term.endswith("*"):
        return index_term.startswith(query_term[:-1])
    return query_term == index_term


# -- terms ---------------------------------------------------------------------------------------


@each(
    ("text", "expected"),
    [
        ("Running runners ran", ["run", "runner", "ran"]),
        ("Café naïve Ёлка Łódź Tromsø", ["cafe", "naiv", "елка", "lodz", "tromso"]),
        ("STRASSE straße", ["strass", "strass"]),
        ("don't DON’T dont", ["dont", "dont", "dont"]),
        ("Alice's users' it's we'll", ["alic", "user", "it", "we"]),
        ("O'Brien", ["obrien", "o", "brien"]),
        ("PostgreSQL 16", ["postgresql", "postgr", "sql", "16"]),
        ("3.11", ["3_11", "3", "11"]),
        ("2026-01-05 10:30", ["2026_01_05", "2026", "01", "05", "10_30", "10", "30"]),
        ("1,000", ["1000", "1", "000"]),
        ("20GB", ["20gb", "20", "gb"]),
        ("python3.11", ["python3_11", "python3", "python", "3", "11"]),
        ("getUserName", ["getusernam", "get", "user", "name"]),
        ("get_user_name", ["getusernam", "get", "user", "name"]),
        ("get-user-name", ["getusernam", "get", "user", "name"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("APIs and IDs", ["api", "and", "id"]),
        ("iOS aGVsbG8gd29ybGQ", ["io", "agvsbg8gd29ybgq"]),
        ("GitHub-flavored", ["githubflavor", "github", "git", "hub", "flavor"]),
        ("src/store.py", ["srcstorepi", "src", "storepi", "store", "py"]),
        ("bob@example.com", ["bobexamplecom", "bob", "examplecom", "exampl", "com"]),
        ("C++ C# c", ["cplusplu", "csharp", "c"]),
        ("os as is", ["os", "as", "is"]),
        ("fast—slow soft\u00adware", ["fastslow", "fast", "slow", "softwar"]),
        ("東京都", ["東京", "京都"]),
        ("猫 cat", ["猫", "cat"]),
        ("Python入門", ["python", "入門"]),
        ("한국어", ["한국", "국어"]),
        ("हिन्दी", ["हिन्दी"]),
        ("ｆｕｌｌ １６ ١٦", ["full", "16", "16"]),
        ("🎉 €5", ["🎉", "€", "5"]),
        ("... -- '' §", []),
        ("", []),
    ],
)
def test_a_text_has_these_terms(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


@each(
    ("query", "text"),
    [
        ("github", "We host it on GitHub"),
        ("GitHub", "moved to github"),
        ("username", "the user_name column"),
        ("user name", "getUserName()"),
        ("e-mail", "her email address"),
        ("email", "her e-mail address"),
        ("postgres", "we chose PostgreSQL"),
        ("store.py", "see src/vestige/store.py:12"),
        ("dont", "I don’t like mornings"),
        ("don't", "i dont like mornings"),
        ("alice", "Alice's birthday"),
        ("ecole", "à l'école"),
        ("gpt4", "GPT-4 answered"),
        ("10000", "10,000 rows"),
        ("200", "100,200,300"),
        ("がき", "ながきた"),
        ("東京", "先週東京都に行った"),
        ("ΣΊΣΥΦΟΣ", "σίσυφος"),
        ("café", "cafe\u0301"),
        ("istanbul", "İSTANBUL"),
        ("猫", "うちの猫が好き"),
        ("post*", "we chose PostgreSQL"),
        ("deploy*", "it was deployed"),
        ("deploy*", "a deployment"),
        ("test_*", "run test_everything"),
        ("src/st*", "see src/store.py"),
        ("Ёлк*", "елка"),
    ],
)
def test_a_query_finds_a_text_written_in_another_way(query: str, text: str) -> None:
    assert any(matches(one, other) for one in query_terms(query) for other in terms(text))


@pytest.mark.parametrize(
    ("one", "other"),
    [("3.11", "311"), ("がき", "かき"), ("10.5", "105"), ("C++", "C#"), ("C++", "C"), ("1:30", "130")],
)
def test_texts_that_mean_different_things_have_different_terms(one: str, other: str) -> None:
    assert terms(one)[0] != terms(other)[0]


def test_a_very_long_word_is_cut_but_still_told_from_another_with_the_same_beginning() -> None:
    [one], [other] = terms("x" * 200 + "1x1"), terms("x" * 200 + "2x2")
    assert len(one) == len(other) == MAX_TERM_CHARS
    assert one != other


@pytest.fixture(scope="module")
def fts() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("CREATE VIRTUAL TABLE words USING fts5(body, tokenize = \"ascii tokenchars '_'\")")
        database.execute("CREATE VIRTUAL TABLE tokens USING fts5vocab(words, instance)")
        yield database


@LAW
@given(text=texts)
def test_the_full_text_index_takes_every_term_back_as_one_token(fts: sqlite3.Connection, text: str) -> None:
    expected = terms(text)
    fts.execute("DELETE FROM words")
    fts.execute("INSERT INTO words (body) VALUES (?)", (" ".join(expected),))
    assert [row[0] for row in fts.execute("SELECT term FROM tokens ORDER BY offset")] == expected


@LAW
@given(texts)
def test_terms_are_never_empty_spaced_or_long_and_hold_no_ascii_signs(text: str) -> None:
    for term in terms(text):
        assert re.fullmatch(r"(?:[a-z0-9_]|[^\x00-\x7f\s])+", term)
        assert len(term) <= MAX_TERM_CHARS


@LAW
@given(texts, texts)
def test_the_terms_of_two_paragraphs_are_those_of_each(one: str, other: str) -> None:
    assert terms(f"{one}\n{other}") == terms(one) + terms(other)


@LAW
@given(texts)
def test_a_query_finds_the_text_it_was_copied_from(text: str) -> None:
    found, held = query_terms(text), terms(text)
    assert all(any(matches(one, other) for other in held) for one in found)
    assert len(found) == len(set(found))
    assert bool(found) == bool(held)


# -- queries -------------------------------------------------------------------------------------


def test_a_query_drops_stop_words_and_repeats() -> None:
    assert query_terms("What does Caroline like about the dog's dog?") == ["carolin", "dog"]


def test_a_query_drops_contracted_stop_words() -> None:
    assert query_terms("What's the reason they don't and couldn’t deploy?") == ["reason", "deploi"]


def test_a_query_drops_stop_words_inside_of_joined_words() -> None:
    assert query_terms("up-to-date howTo.md") == ["uptod", "date", "howtomd", "howto", "md"]
    assert query_terms("and/or") == ["andor"]
    assert query_terms("a first-use key") == ["firstus", "first", "us", "kei"]


def test_a_query_of_nothing_but_stop_words_keeps_them() -> None:
    assert query_terms("to be or not to be") == ["to", "be", "or", "not"]


@each(
    ("query", "expected"),
    [
        ("post*", ["post*"]),
        ("deploy*", ["deploi", "deploy*"]),
        ("Café*", ["cafe*"]),
        ("src/st*", ["src", "st", "srcst*"]),
        ("(blue* OR green)", ["blue*", "green"]),
        ("猫", ["猫*"]),
        ("猫*", ["猫*"]),
        ("東京*", ["東京"]),
    ],
)
def test_a_star_after_a_word_asks_for_all_that_begins_so(query: str, expected: list[str]) -> None:
    assert query_terms(query) == expected


@each(
    "query", ["*", "**bold**", "*bold*", "7*bold", "bold*7", "bold *", "x*", "C++ *", "x" * 64 + "*", "*bold"]
)
def test_other_stars_are_noise(query: str) -> None:
    assert "*" not in "".join(query_terms(query))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ('"red fox" AND (blue OR NOT green)', ["red", "fox", "blue", "green"]),
        ('NEAR("red fox", 3)', ["near", "red", "fox", "3"]),
        ("^red -blue +green {col}: red", ["red", "blue", "green", "col"]),
        ("body:red", ["bodyr", "bodi", "red"]),
        ('"unclosed', ["unclos"]),
        ("'; DROP INDEX words; --", ["drop", "index", "word"]),
    ],
)
def test_the_operators_of_an_index_are_words_or_noise(query: str, expected: list[str]) -> None:
    assert query_terms(query) == expected


def test_the_words_of_a_query_know_their_places_in_it() -> None:
    query = "Where’s the cafe\u0301 — ﬃx, ｆｕｌｌ½ 先週Python3本 in C++?"
    words = query_words(query)
    assert [query[word.start : word.end] for word in words] == [
        "Where’s", "the", "cafe\u0301", "ﬃx", "ｆｕｌｌ½", "½", "先週", "Python3", "本", "in", "C++",
    ]  # fmt: skip
    assert [word.terms[0] for word in words] == [
        "where", "the", "cafe", "ffix", "full1", "2", "先週", "python3", "本*", "in", "cplusplu",
    ]  # fmt: skip
    assert [query[word.start : word.end] for word in words if word.stop] == ["Where’s", "the", "in"]


@LAW
@given(texts)
def test_the_places_of_words_lie_inside_the_query_in_order(text: str) -> None:
    words = query_words(text)
    assert all(0 <= word.start < word.end <= len(text) for word in words)
    assert [(word.start, word.end) for word in words] == sorted((word.start, word.end) for word in words)


@LAW
@given(texts.filter(lambda text: "½" not in text and "*" not in text))
def test_a_word_cut_out_of_a_query_has_the_same_terms(text: str) -> None:
    for word in query_words(text):
        alone = [term for one in query_words(text[word.start : word.end]) for term in one.terms]
        assert set(word.terms) <= set(alone)


def test_words_that_tell_memories_apart_are_no_stop_words() -> None:
    assert not STOP_WORDS & {"never", "always", "may", "go", "first", "last"}


# -- memories ------------------------------------------------------------------------------------


def test_a_memory_is_found_by_its_content_its_phrasings_and_its_tags() -> None:
    told = memory("We deploy on Fridays.", phrasings=("It ships at the end of the week.",), tags=("dev-ops",))
    assert searchable(told) == "We deploy on Fridays.\nIt ships at the end of the week."
    assert {"fridai", "ship", "devop"} <= set(memory_terms(told))


@pytest.mark.parametrize(
    "query", ["8 May 2023", "May 8th", "a Monday in May", "last Monday", "in 2023", "may 2023"]
)
def test_a_memory_is_found_by_the_day_it_happened(query: str) -> None:
    told = memory("We moved house.", occurred_at=datetime(2023, 5, 8, 23, 59, tzinfo=UTC))
    assert set(query_terms(query)) & set(memory_terms(told))


def test_the_day_a_memory_happened_adds_its_four_words_and_no_others() -> None:
    told = memory("We moved.", occurred_at=datetime(2023, 5, 8, tzinfo=UTC))
    assert memory_terms(told) == ["we", "move", "mondai", "8", "mai", "2023"]
    assert memory_terms(memory("We moved.")) == ["we", "move"]
    assert text_hash(told) == text_hash(memory("We moved."))


def test_the_text_hash_changes_with_the_text_and_not_with_the_tags() -> None:
    plain = text_hash(memory("a fact"))
    assert text_hash(memory("a fact", tags=("x",))) == plain
    assert text_hash(memory("a fact", phrasings=("the same",))) != plain
    assert text_hash(memory("a Fact")) != plain
    assert re.fullmatch("[0-9a-f]{32}", plain)


# -- fingerprints --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("We use Rust.", "we  use\nrust"),
        ('"We use Rust."', "We use Rust"),
        ("“We use Rust”.", "We use Rust"),
        ("Ｗｅ use Rust…", "We use Rust"),
        ("東京に住む。", "東京に住む"),
        ("cafe\u0301", "café"),
    ],
)
def test_texts_that_differ_in_form_only_are_identical(one: str, other: str) -> None:
    assert fingerprint(one) == fingerprint(other)


@each(
    ("one", "other"),
    [
        ("Always use tabs", "Never use tabs"),
        ("PostgreSQL 16", "PostgreSQL 14"),
        ("It is 5 degrees", "It is -5 degrees"),
        ("x > 5", "x < 5"),
        ("It works", "It works?"),
        ("It works", "It doesn't work"),
        ("10² rows", "102 rows"),
        ("1½ cups", "11⁄2 cups"),
        ("cd ..", "cd"),
        ("rm -rf .", "rm -rf"),
        (".env", "env"),
        ("C++", "C"),
        ('"a" or "b"', 'a" or "b'),
        ('""', "''"),
        ("1.5", "15"),
        ("cafe", "café"),
    ],
)
def test_texts_that_differ_in_meaning_are_not_identical(one: str, other: str) -> None:
    assert fingerprint(one) != fingerprint(other)


@LAW
@given(texts)
def test_a_fingerprint_does_not_depend_on_space_around_the_text(text: str) -> None:
    assert fingerprint(f"\n {text}\t") == fingerprint(text)
