"""What typography changes nothing, and what is no typography."""

from hypothesis import given
from hypothesis import strategies as st

from testbed.failures import each
from vestige.cognition.gate.paraphrase import bare, same_words


@each(
    ("left", "right"),
    [
        ("- **Use** `tabs`, not spaces.", "use tabs not spaces"),
        ("# Title", "Title"),
        ("> “Never push to main!”", "Never push to main"),
        ("zero\u200bwidth", "zerowidth"),
        ("Meeting notes go in Notion – one page", "Meeting notes go in Notion - one page"),
        ("Mei can’t stand it", "Mei can't stand it"),
        ("left-handed", "left handed"),
        ("1,000 users", "1000 users"),
        ("(see the docs).", "see the docs"),
        ("ＡＢＣ！", "abc"),
        ("my_var is _big_", "my_var is big"),
        ("Jose\u0301", "José"),
    ],
)
def test_typography_makes_no_other_text(left: str, right: str) -> None:
    assert same_words(left, right)


@each(
    ("left", "right"),
    [
        ("1.5 GB", "15 GB"),
        ("It is -5 °C", "It is 5 °C"),
        ("10² m", "102 m"),
        ("Ignore *.py", "Ignore .py"),
        ("Is it done?", "Is it done"),
        ("Use C++", "Use C"),
        ("f() is slow", "f is slow"),
        ("cd ..", "cd"),
        ("2 * 3 * 4", "2 3 4"),
        ("~~Ada~~ Bob leads", "Ada Bob leads"),
        ("first second", "second first"),
        ("!!!", "..."),
    ],
)
def test_signs_points_operators_and_order_make_another_text(left: str, right: str) -> None:
    assert not same_words(left, right)


@given(st.text(max_size=80))
def test_what_is_bare_stays_as_it_is_in_case_and_spacing(text: str) -> None:
    assert same_words(text, f"  {text}\n") or not bare(text)
