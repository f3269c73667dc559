"""Times that never come are told from those that do, and from what is no time."""

from hypothesis import given
from hypothesis import strategies as st

from testbed.failures import each
from vestige.cognition.intentions.impossible_time import never_comes


@each(
    ("text", "words"),
    [
        ("pay rent every February 30", "every February 30"),
        ("remind me on February 30 to pay rent", "on February 30"),
        ("remind me to pay rent every year on feb 30th at 9", "every year on feb 30th"),
        ("pay rent every 31st of April", "every 31st of April"),
        ("Pay rent the 31st of April.", "the 31st of April"),
        ("Call Bob on 31 June", "on 31 June"),
        ("Call Bob on 29 February 2027", "on 29 February 2027"),
        ("Finish it by February 30, 2028", "by February 30, 2028"),
        ("call Bob on may 0", "on may 0"),
        ("on 2026-02-31 call Bob", "on 2026-02-31"),
        ("call Bob 2026-02-29", "2026-02-29"),
        ("Call Bob at 2026-13-40T10:00", "at 2026-13-40T10:00"),
        ("Call Bob at 2026-03-01T25:00", "at 2026-03-01T25:00"),
        ("Stretch every day starting 2026-06-31", "starting 2026-06-31"),
        ("at 25:00 call Bob", "at 25:00"),
        ("At 24:00: call Bob", "At 24:00"),
        ("URGENT: at 24:30 call Bob", "at 24:30"),
        ("remind me to call Bob at 9:60", "at 9:60"),
        ("call Bob at 25:00 every day", "at 25:00"),
        ("call Bob at 13 pm", "at 13 pm"),
        ("call Bob at 13:30pm!", "at 13:30pm"),
        ("call Bob by 0am", "by 0am"),
        ("water plants every 0 days", "every 0 days"),
        ("Every zero weeks: water plants", "Every zero weeks"),
        ("pay every month on day 32", "every month on day 32"),
        ("pay every month on the 0th", "every month on the 0th"),
        ("pay on the 32nd of every month", "on the 32nd of every month"),
    ],
)
def test_a_time_that_never_comes_is_named(text: str, words: str) -> None:
    assert never_comes(text) == words


@each(
    "text",
    [
        "pay rent every February 29",
        "pay rent on 29 February 2028",
        "pay rent on the 31st of every month",
        "every month on day 31 pay rent",
        "pay rent by 31 May",
        "call Bob on 2026-02-28",
        "call Bob at 2026-03-01 10:00+02:00",
        "call Bob at 23:59",
        "call Bob at 12am",
        "call Bob at 7.30",
        "stretch every 10 days",
        "stretch every 3rd day",
        "Explain why on February 30 nothing ran",
        "Ask what happens at 25:00 when the clock overflows",
        "Fix the crash on 2026-02-31 in the date parser tests",
        "Remove every 0 bytes file",
        "Watch the talk from 75:30",
        "Read RFC 2026-02-31-draft",
        "Plan the march of 40 people",
        "x" * 600 + " at 25:00",
        "",
    ],
)
def test_what_comes_and_what_is_no_time_is_left_alone(text: str) -> None:
    assert never_comes(text) is None


words = st.sampled_from(
    "remind me on at every 0 31 25:00 of february 2026-02-31 days 99th month , to pay".split()
)


@given(text=st.lists(words, max_size=10).map(" ".join) | st.text(max_size=80))
def test_what_is_named_was_said(text: str) -> None:
    named = never_comes(text)
    assert named is None or named in " ".join(text.split())
