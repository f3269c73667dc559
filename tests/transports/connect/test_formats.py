"""JSON and TOML edited as text: what is written reads back, and nothing else moves."""

import json
import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.failures import each
from vestige.transports.connect import jsonc, toml_text
from vestige.transports.connect.clients import Entry, Json

NAMES = st.text(min_size=1, max_size=6)
SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
VALUES: st.SearchStrategy[Json] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
OBJECTS: st.SearchStrategy[Entry] = st.dictionaries(NAMES, VALUES, max_size=4)
INDENTS = st.sampled_from([None, 0, 2, 4, "\t"])


@settings(max_examples=50)
@given(OBJECTS, INDENTS)
def test_what_the_standard_library_writes_reads_the_same(values: Entry, indent: int | str | None) -> None:
    assert jsonc.read(json.dumps(values, indent=indent)) == values


@settings(max_examples=50)
@given(OBJECTS, INDENTS, NAMES, VALUES)
def test_a_value_that_is_put_reads_back_and_can_be_taken_out(
    values: Entry, indent: int | str | None, key: str, value: Json
) -> None:
    text = json.dumps(values, indent=indent, ensure_ascii=False)
    after = jsonc.put(text, (key,), value)
    assert json.loads(after) == {**values, key: value}  # and it is JSON that everybody can read
    without = {name: one for name, one in values.items() if name != key}
    assert json.loads(jsonc.take(after, (key,))) == without


@settings(max_examples=50)
@given(OBJECTS, INDENTS, st.sampled_from(["// c\n", "/* c */", " /* a\nb */ "]), NAMES)
def test_comments_and_trailing_commas_survive(
    values: Entry, indent: int | str | None, comment: str, key: str
) -> None:
    pieces = (f"{json.dumps(name)}{comment}:{json.dumps(one, indent=indent)}" for name, one in values.items())
    text = f"{comment}{{{comment}{f',{comment}'.join(pieces)}{',' if values else ''}{comment}}}{comment}"
    assert jsonc.read(text) == values
    after = jsonc.put(text, (key,), {"command": "x"})
    assert jsonc.read(after) == {**values, key: {"command": "x"}}
    if key not in values:
        assert after.count(comment.strip()) == text.count(comment.strip())
    without = {name: one for name, one in values.items() if name != key}
    assert jsonc.read(jsonc.take(after, (key,))) == without


@each(
    ("text", "where"),
    [
        ('{"a": 1', "ends too early"),
        ('{\n  "a": 1\n  "b": 2\n}', "line 3, column 3"),
        ('{"a": 1,, "b": 2}', "line 1, column 9"),
        ('{"a": [1 2]}', "line 1, column 10"),
        ("{'a': 1}", "line 1, column 2"),
        ('{"a" 1}', "line 1, column 6"),
        ('{"a": "\n"}', "line 1, column 7"),
        ('{"a": "\\x"}', "line 1, column 7"),
        ('{"a": NaN}', "line 1, column 7"),
        ('{"a": 1} x', "line 1, column 10"),
        ('{"a": 1 /* no end }', "line 1, column 9"),
        ("[1]", "not an object"),
        ('{"a":' + "[" * 100_000, "too deeply"),
    ],
)
def test_what_is_not_json_is_refused_with_its_place(text: str, where: str) -> None:
    with pytest.raises(ValueError, match=where):
        jsonc.read(text)


def test_an_entry_is_written_in_the_manner_of_the_file() -> None:
    assert jsonc.put('{"a": {}}', ("a", "b"), {"c": [1, 2]}) == '{"a": {"b": {"c": [1, 2]}}}'
    tabs = '{\n\t"a": {\n\t\t"x": 1 // one\n\t}\n}'
    assert jsonc.put(tabs, ("a", "b"), {"c": 2}) == (
        '{\n\t"a": {\n\t\t"x": 1, // one\n\t\t"b": {\n\t\t\t"c": 2\n\t\t}\n\t}\n}'
    )
    assert jsonc.put("{}", ("a",), 1) == '{\n  "a": 1\n}'
    assert jsonc.put("\ufeff", ("a",), 1) == '\ufeff{\n  "a": 1\n}\n'
    assert jsonc.put("// mine", ("a",), 1) == '// mine\n{\n  "a": 1\n}\n'


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ('{"a": 1, "b": 2, "c": 3}', '{"a": 1, "c": 3}'),
        ('{"b": 2, "c": 3}', '{"c": 3}'),
        ('{"a": 1, "b": 2}', '{"a": 1}'),
        ('{\n  // c\n  "b": 2, "c": 3\n}', '{\n  // c\n  "c": 3\n}'),
        ('{\n  "a": 1, // one\n  "b": 2\n}', '{\n  "a": 1 // one\n}'),
        ('{\n  "a": 1,\n  "b": 2,\n}', '{\n  "a": 1,\n}'),
        ('{\n  "b": 2\n}', "{}"),
    ],
)
def test_a_member_goes_with_its_comma_and_its_line(text: str, after: str) -> None:
    assert jsonc.take(text, ("b",)) == after


TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
PLAIN: st.SearchStrategy[Json] = st.booleans() | st.integers(-(2**62), 2**62) | TEXTS
TABLES: st.SearchStrategy[Entry] = st.dictionaries(TEXTS, PLAIN | st.lists(PLAIN, max_size=3), max_size=4)


@settings(max_examples=50)
@given(TABLES, TEXTS)
def test_a_table_that_is_put_reads_back_and_can_be_taken_out(table: Entry, name: str) -> None:
    before = 'a = """\n[x]\n"""\n\n[t.other] # c\nb = [1, # ]\n 2]\nc = {d = "}"}'
    after = toml_text.put(before, ("t", name + "x"), table)
    expected = tomllib.loads(before)
    expected["t"][name + "x"] = table
    assert tomllib.loads(after) == expected
    assert after.startswith(before)
    assert toml_text.take(after, ("t", name + "x")) == before + "\n"


def test_pairs_of_a_table_are_changed_added_and_taken_out_one_by_one() -> None:
    text = '[a]\nx = 1 # one\n# mine\n"y z" = """\n= [b]\n"""\n\n[b]\nx = 3\n'
    assert toml_text.put(text, ("a", "x"), "new") == text.replace("x = 1", 'x = "new"')
    assert toml_text.put(text, ("a", "y z"), []) == text.replace('"""\n= [b]\n"""', "[]")
    assert toml_text.put(text, ("a", "w"), {"k-1": True, "k 2": 1.5}) == text.replace(
        "\n\n[b]", '\nw = { k-1 = true, "k 2" = 1.5 }\n\n[b]'
    )
    assert toml_text.take(text, ("a", "x")) == text.replace("x = 1 # one\n", "")
    assert toml_text.take(text, ("b",)) == text.replace("\n[b]\nx = 3\n", "")
    with pytest.raises(KeyError):
        toml_text.take(text, ("c",))


def test_toml_in_a_form_that_is_not_edited_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be edited"):
        toml_text.put("a.b.c = 1\n", ("a", "b"), {"d": 1})
    with pytest.raises(ValueError, match="cannot be edited"):
        toml_text.put("a = 1\n", ("b", "c"), 1)
