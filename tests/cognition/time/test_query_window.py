"""Time in queries: which words make a window or an anchor, which do not, and what a window must contain."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from testbed.effort import effort
from testbed.failures import each
from vestige.cognition.time.calendar import EARLIEST, LATEST, MONTHS
from vestige.cognition.time.expressions import Basis
from vestige.cognition.time.query_window import Window, time_asked

LAW = settings(deadline=None, max_examples=effort(75, nightly=1500))
NOW = datetime(2026, 3, 11, 15, 30, tzinfo=UTC)  # a Wednesday

RELATIVE = [
    "today", "tonight", "this morning", "last night", "yesterday", "the day before yesterday", "tomorrow",
    "3 days ago", "two weeks ago", "a month ago", "a couple of years ago", "a few days ago", "5 hours ago",
    "last week", "this month", "next quarter", "previous year", "last weekend", "past week", "the last month",
    "last 7 days", "the past two weeks", "next three months", "the last 24 hours", "last Monday",
    "this Friday", "next Sunday", "last summer", "this winter", "next fall", "last March", "next June",
]  # fmt: skip
ABSOLUTE = [
    "in March 2023", "8 May 2023", "May 8th, 2023", "2026-03-01", "29 February 2024", "8-12 May 2023",
    "in 2023", "Q3 2025", "2025 Q3", "summer of 2023", "in Dec 1999",
]  # fmt: skip
YEARLESS = ["in March", "on 8 May", "in Q3", "on 29 February", "during August", "on 31 December"]

# Any moment, with the first and the last years of the calendar met often.
moments = st.one_of(
    st.datetimes(timezones=st.just(UTC)),
    st.integers(0, 10**8).map(lambda seconds: EARLIEST + timedelta(seconds=seconds)),
    st.integers(0, 10**8).map(lambda seconds: LATEST - timedelta(seconds=seconds)),
)
ordinary = st.integers(0, 150 * 365 * 86_400).map(
    lambda seconds: datetime(1950, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
)
words = st.sampled_from(
    "since before after until by between from to and of the last past next this in on ago a 2 29 9999 0 days "
    "weeks months years quarter weekend monday may May march 2023 Q4 summer winter yesterday today 31 "
    "2024-02-30 2023-05-08 february feb. release's , ? - –".split()
)
texts = st.one_of(st.text(), st.lists(words | st.text(max_size=3), max_size=12).map(" ".join))


def window(text: str, now: datetime = NOW) -> Window:
    found = time_asked(text, now).window
    assert found is not None
    return found


def days_of(text: str, now: datetime = NOW) -> tuple[str, str]:
    """The first and the last day of the window of a text."""
    found = window(text, now)
    return found.start.date().isoformat(), (found.end - timedelta(microseconds=1)).date().isoformat()


# -- windows -------------------------------------------------------------------------------------


@each(
    ("text", "first", "last"),
    [
        ("what did I do today", "2026-03-11", "2026-03-11"),
        ("plans for tonight", "2026-03-11", "2026-03-11"),
        ("what I said this morning", "2026-03-11", "2026-03-11"),
        ("Yesterday's meeting", "2026-03-10", "2026-03-10"),
        ("the day before yesterday", "2026-03-09", "2026-03-09"),
        ("what is on tomorrow?", "2026-03-12", "2026-03-12"),
        ("3 days ago", "2026-03-08", "2026-03-08"),
        ("Two weeks ago", "2026-02-23", "2026-03-01"),
        ("a month ago", "2026-02-01", "2026-02-28"),
        ("a couple of months ago", "2026-01-01", "2026-01-31"),
        ("a few days ago", "2026-03-06", "2026-03-09"),
        ("ten years ago", "2016-01-01", "2016-12-31"),
        ("last week", "2026-03-02", "2026-03-08"),
        ("notes from yesterday's meeting", "2026-03-10", "2026-03-10"),
        ("last week's report", "2026-03-02", "2026-03-08"),
        ("this week", "2026-03-09", "2026-03-15"),
        ("next week", "2026-03-16", "2026-03-22"),
        ("past week", "2026-03-04", "2026-03-11"),
        ("over the last week", "2026-03-04", "2026-03-11"),
        ("the past two weeks", "2026-02-25", "2026-03-11"),
        ("the last 7 days", "2026-03-04", "2026-03-11"),
        ("last 2 months", "2026-01-11", "2026-03-11"),
        ("the last 24 hours", "2026-03-10", "2026-03-11"),
        ("the next two weeks", "2026-03-11", "2026-03-25"),
        ("last weekend", "2026-03-07", "2026-03-08"),
        ("this past weekend", "2026-03-07", "2026-03-08"),
        ("this weekend", "2026-03-14", "2026-03-15"),
        ("last month", "2026-02-01", "2026-02-28"),
        ("this quarter", "2026-01-01", "2026-03-31"),
        ("last quarter", "2025-10-01", "2025-12-31"),
        ("next year", "2027-01-01", "2027-12-31"),
        ("last Monday", "2026-03-09", "2026-03-09"),
        ("last Wednesday", "2026-03-04", "2026-03-04"),
        ("this Monday", "2026-03-09", "2026-03-09"),
        ("this Friday", "2026-03-13", "2026-03-13"),
        ("next Wednesday", "2026-03-18", "2026-03-18"),
        ("this coming Friday", "2026-03-13", "2026-03-13"),
        ("the coming summer", "2026-06-01", "2026-08-31"),
        ("the coming week", "2026-03-16", "2026-03-22"),
        ("previous Monday", "2026-03-09", "2026-03-09"),
        ("last summer", "2025-06-01", "2025-08-31"),
        ("last winter", "2025-12-01", "2026-02-28"),
        ("this spring", "2026-03-01", "2026-05-31"),
        ("next fall", "2026-09-01", "2026-11-30"),
        ("in summer 2021", "2021-06-01", "2021-08-31"),
        ("the winter of 2024", "2024-12-01", "2025-02-28"),
        ("in March", "2026-03-01", "2026-03-31"),
        ("in may", "2025-05-01", "2025-05-31"),
        ("in early Feb", "2026-02-01", "2026-02-28"),
        ("last March", "2025-03-01", "2025-03-31"),
        ("last January", "2026-01-01", "2026-01-31"),
        ("this May", "2026-05-01", "2026-05-31"),
        ("next March", "2027-03-01", "2027-03-31"),
        ("coming May", "2026-05-01", "2026-05-31"),
        ("in March 2023", "2023-03-01", "2023-03-31"),
        ("may 2023", "2023-05-01", "2023-05-31"),
        ("at the beginning of November, 2022", "2022-11-01", "2022-11-30"),
        ("on 8 May", "2025-05-08", "2025-05-08"),
        ("on 8 May 2023", "2023-05-08", "2023-05-08"),
        ("on the 8th of May, 2023", "2023-05-08", "2023-05-08"),
        ("May 8", "2025-05-08", "2025-05-08"),
        ("March 11", "2026-03-11", "2026-03-11"),
        ("October 13, 2023", "2023-10-13", "2023-10-13"),
        ("may 8th", "2025-05-08", "2025-05-08"),
        ("29 February", "2024-02-29", "2024-02-29"),
        ("8-12 May 2023", "2023-05-08", "2023-05-12"),
        ("between 8 and 12 May", "2025-05-08", "2025-05-12"),
        ("May 8 to 12, 2023", "2023-05-08", "2023-05-12"),
        ("on 2026-03-01", "2026-03-01", "2026-03-01"),
        ("2026-03-01T10:00:00Z", "2026-03-01", "2026-03-01"),
        ("in 2023", "2023-01-01", "2023-12-31"),
        ("in 2023 was it?", "2023-01-01", "2023-12-31"),
        ("Q3 2025", "2025-07-01", "2025-09-30"),
        ("2025-Q3", "2025-07-01", "2025-09-30"),
        ("in Q4", "2025-10-01", "2025-12-31"),
        ("in Q1", "2026-01-01", "2026-03-31"),
        ("between March and May 2023", "2023-03-01", "2023-05-31"),
        ("between November and February", "2025-11-01", "2026-02-28"),
        ("between November 2024 and February", "2024-11-01", "2026-02-28"),
        ("from 2020 to 2022", "2020-01-01", "2022-12-31"),
        ("March – April 2023", "2023-03-01", "2023-04-30"),
        ("from last Monday to yesterday", "2026-03-09", "2026-03-10"),
        ("between today and yesterday", "2026-03-10", "2026-03-11"),
        ("since March", "2026-03-01", "2026-03-11"),
        ("since Monday", "2026-03-09", "2026-03-11"),
        ("since 2020", "2020-01-01", "2026-03-11"),
        ("until last Friday", "0001-01-01", "2026-03-06"),
        ("by July 10, 2022", "0001-01-01", "2022-07-10"),
        ("before 2020", "0001-01-01", "2019-12-31"),
        ("prior to 8 May 2023", "0001-01-01", "2023-05-07"),
        ("after 8 May 2023", "2023-05-09", "9999-12-31"),
        ("the week before August 3, 2023", "2023-07-27", "2023-08-02"),
        ("two weeks before August 11, 2023", "2023-07-28", "2023-08-10"),
        ("the day after 8 May 2023", "2023-05-09", "2023-05-10"),
        ("the Sunday before October 25, 2022", "2022-10-18", "2022-10-24"),
        ("what she finished last Friday on 23 January, 2022", "2022-01-23", "2022-01-23"),
        ("31 June 2023 or yesterday", "2026-03-10", "2026-03-10"),
    ],
)
def test_a_query_asks_about_these_days(text: str, first: str, last: str) -> None:
    assert days_of(text) == (first, last)


def test_last_night_spans_midnight() -> None:
    found = window("last night")
    assert (found.start.hour, found.end.hour) == (12, 12)
    assert found.start < datetime(2026, 3, 11, tzinfo=UTC) < found.end <= NOW


def test_hours_ago_are_about_as_many() -> None:
    found = window("2 hours ago")
    assert found.start < NOW - timedelta(hours=2) < found.end < NOW


@pytest.mark.parametrize(
    "text", ["notes about yesterday, please", "日本で yesterday 何を", "é\u0301 since 8 May 2023?"]
)
def test_a_window_knows_the_words_that_ask_for_it(text: str) -> None:
    found = window(text)
    assert text[slice(*found.span)] in ("yesterday", "since 8 May 2023")


@each(
    ("text", "basis"),
    [
        ("in July", Basis.GUESSED_YEAR),
        ("on 8 May", Basis.GUESSED_YEAR),
        ("since Q3", Basis.GUESSED_YEAR),
        ("last July", Basis.NOW),
        ("last week", Basis.NOW),
        ("in July 2023", Basis.CALENDAR),
        ("between March and May 2023", Basis.CALENDAR),
        ("in 2023", Basis.CALENDAR),
    ],
)
def test_a_window_tells_how_sure_it_is(text: str, basis: Basis) -> None:
    assert window(text).basis is basis


@each(
    "text",
    [
        "",
        "what is today's date",
        "may I march with you",
        "5 may be enough",
        "section 8 may apply",
        "may 10 users log in at once?",
        "March 10 miles a day",
        "this may break",
        "the last may be wrong",
        "wait a second",
        "the second time",
        "The Last of Us",
        "the last time we met",
        "the last day of school",
        "the last week of May",
        "the last two weeks of the project",
        "sit next to me",
        "the next week she left",
        "in 10 minutes",
        "in the next 10 minutes",
        "for two weeks",
        "three days later",
        "in the past",
        "half past ten",
        "Python 3.11 in 3.11",
        "v2025.1 and 2023.4.1",
        "in 2000 rows",
        "after 2000 iterations",
        "by 1999 people",
        "room 2023",
        "commit 2023abc",
        "MCP 2025-11-25",
        "the 2025-11-25 protocol",
        "backup-2026-03-01.tar",
        "2026-03-01-final",
        "2023-13-01",
        "31 June 2023",
        "12-8 May 2023",
        "in May's email",
        "in June's house",
        "does June like April?",
        "on Fridays",
        "is it safe to deploy on Friday?",
        "every Monday",
        "Spring Boot",
        "the last spring boot release",
        "what do you do in summer?",
        "9999 years ago",
        "a long time ago",
        "Q5 2025",
        "Q3",
    ],
)
def test_other_words_make_no_window(text: str) -> None:
    assert time_asked(text, NOW).window is None


def test_nothing_is_before_the_first_day_of_the_calendar() -> None:
    assert time_asked("before today", EARLIEST).window is None
    assert time_asked("on 8 May", EARLIEST).window is None
    assert time_asked("today", LATEST).window is None


@pytest.mark.parametrize(("now", "year"), [("1904-02-10", 1896), ("2000-02-29", 2000), ("2023-03-01", 2020)])
def test_the_leap_day_is_that_of_the_latest_leap_year(now: str, year: int) -> None:
    assert window("on 29 February", datetime.fromisoformat(f"{now}T00:00+00:00")).start.year == year


# -- anchors -------------------------------------------------------------------------------------


@each(
    ("text", "relation", "event"),
    [
        ("what broke before the release?", "before", "the release"),
        ("After the migration, what broke", "after", "the migration"),
        ("after the migration what broke", "after", "the migration"),
        ("prior to our launch", "before", "our launch"),
        ("until the v2.0 cut. Then", "before", "the v2.0 cut"),
        ("what changed since the outage?", "after", "the outage"),
        ("What did she do after her move to Tampa?", "after", "her move to Tampa"),
        ("before Alice's wedding", "before", "Alice's wedding"),
        ("before last week's release", "before", "last week's release"),
        ("before version 2.0.1 came out", "before", "version 2.0.1 came out"),
        ("five days before the release", "before", "the release"),
    ],
)
def test_an_event_is_an_anchor(text: str, relation: str, event: str) -> None:
    asked = time_asked(text, NOW)
    assert asked.window is None
    assert asked.anchor is not None
    assert (asked.anchor.relation, asked.anchor.event) == (relation, event)
    assert text[slice(*asked.anchor.span)].endswith(event)


@each(
    "text",
    [
        "look after the dog",
        "who is named after the river",
        "after all these",
        "before long",
        "after a while",
        "after the fact",
        "the day after",
        "what comes before Alice",
        "where did I live before I moved",
        "what must be ready before we start?",
        "what to check before deploying",
        "what runs before starting the server",
        "after Caroline moved to Tampa",
        "before Docker restarts",
        "after April called me",
        "before it rains",
        "since we use SQLite, why not",
        "since the server is down, what now",
        "after hours",
        "After Effects plugin",
        "before?",
        "since the end",
    ],
)
def test_other_words_make_no_anchor(text: str) -> None:
    assert time_asked(text, NOW).anchor is None


def test_a_date_needs_no_anchor() -> None:
    asked = time_asked("after the migration in May 2023", NOW)
    assert asked.window is not None
    assert asked.anchor is None


# -- laws ----------------------------------------------------------------------------------------


@LAW
@given(texts, moments)
def test_any_text_at_any_time_gives_an_answer_that_makes_sense(text: str, now: datetime) -> None:
    asked = time_asked(text, now)
    assert asked.window is None or asked.anchor is None
    if asked.window:
        assert asked.window.start < asked.window.end
        assert 0 <= asked.window.span[0] < asked.window.span[1] <= len(text)
        assert asked.window.start.utcoffset() == asked.window.end.utcoffset() == timedelta(0)
    if asked.anchor:
        assert asked.anchor.event in text
        assert asked.anchor.event.strip() == asked.anchor.event != ""


@LAW
@given(st.sampled_from(RELATIVE + ABSOLUTE + YEARLESS), moments)
def test_every_expression_is_read_or_left_alone_at_the_ends_of_the_calendar(text: str, now: datetime) -> None:
    found = time_asked(text, now).window
    if 10 < now.year < 9990:
        assert found is not None
    assert found is None or EARLIEST <= found.start < found.end <= LATEST


@LAW
@given(st.integers(0, 400), st.sampled_from([("day", 1), ("week", 7)]), ordinary)
def test_so_long_ago_contains_the_moment_so_long_ago(
    count: int, unit: tuple[str, int], now: datetime
) -> None:
    name, days = unit
    found = window(f"{count} {name}s ago", now)
    assert found.start <= now - timedelta(days=count * days) < found.end
    assert found.end - found.start == timedelta(days=days)


@LAW
@given(st.integers(1, 40), st.sampled_from(["days", "weeks", "months", "quarters", "years"]), ordinary)
def test_the_last_so_many_contain_now_and_what_fewer_contain(count: int, unit: str, now: datetime) -> None:
    found, fewer = window(f"the last {count + 1} {unit}", now), window(f"the last {count} {unit}", now)
    assert found.start < fewer.start <= now < fewer.end == found.end


@LAW
@given(st.sampled_from(["week", "month", "quarter", "year"]), ordinary)
def test_last_this_and_next_touch_and_now_is_in_this(unit: str, now: datetime) -> None:
    last, this, next_one = (window(f"{which} {unit}", now) for which in ("last", "this", "next"))
    assert last.end == this.start <= now < this.end == next_one.start


@LAW
@given(ordinary)
def test_weeks_start_on_monday_and_end_with_their_weekend(now: datetime) -> None:
    week, weekend = window("this week", now), window("this weekend", now)
    assert week.start.weekday() == 0
    assert weekend.start.weekday() == 5
    assert weekend.end == week.end


@LAW
@given(st.sampled_from(["Monday", "Thursday", "Sunday"]), ordinary)
def test_last_weekday_is_in_the_seven_days_before_today_and_next_in_those_after(
    name: str, now: datetime
) -> None:
    today = window("today", now).start
    assert timedelta(days=1) <= today - window(f"last {name}", now).start <= timedelta(days=7)
    assert timedelta(days=1) <= window(f"next {name}", now).start - today <= timedelta(days=7)
    assert window(f"last {name}", now).start.strftime("%A") == name


@LAW
@given(st.sampled_from(MONTHS), ordinary)
def test_a_month_without_a_year_is_the_latest_that_has_begun(name: str, now: datetime) -> None:
    found = window(f"in {name}", now)
    assert found.start <= now < found.start + timedelta(days=366)
    assert MONTHS[found.start.month - 1] == name
    assert (found.end - timedelta(days=1)).month == found.start.month


@LAW
@given(st.sampled_from(["summer", "winter", "spring", "autumn"]), ordinary)
def test_last_season_is_over_and_next_season_is_to_come(name: str, now: datetime) -> None:
    last, next_one = window(f"last {name}", now), window(f"next {name}", now)
    assert last.end <= now < next_one.start
    assert next_one.start - last.start <= timedelta(days=732)


@LAW
@given(st.sampled_from(ABSOLUTE + RELATIVE), ordinary)
def test_before_and_after_a_time_leave_out_exactly_it(text: str, now: datetime) -> None:
    bare = text.removeprefix("in ")
    assume("night" not in text or bare == text)
    itself, before, after = window(text, now), window(f"before {bare}", now), window(f"after {bare}", now)
    assert (before.start, before.end) == (EARLIEST, itself.start)
    assert (after.start, after.end) == (itself.end, LATEST)


@LAW
@given(st.sampled_from(ABSOLUTE + RELATIVE), st.sampled_from(ABSOLUTE + RELATIVE), ordinary)
def test_between_two_times_contains_both(one: str, other: str, now: datetime) -> None:
    whole = window(f"between {one.removeprefix('in ')} and {other.removeprefix('in ')}", now)
    parts = window(one, now), window(other, now)
    assert whole.start == min(part.start for part in parts)
    assert whole.end == max(part.end for part in parts)


@LAW
@given(st.sampled_from([*YEARLESS, "last week", "in 1949", "3 days ago"]), ordinary)
def test_since_a_time_that_has_begun_contains_now(text: str, now: datetime) -> None:
    found = window(f"since {text.removeprefix('in ').removeprefix('on ').removeprefix('during ')}", now)
    assert found.start <= now < found.end


@each(
    "unit",
    ["last ", "the ", "1 ", "a ", "before ", "before the ", "since ", "in ", "may ", "8 ",
     "between march and ", " ", "2026-", "early ", "the next ", "a couple of ", "1 to ", "before the a "],
)  # fmt: skip
def test_a_long_query_of_one_thing_is_read(unit: str) -> None:
    asked = time_asked((unit * 10_000)[:10_000], NOW)
    assert asked.window is None or asked.window.start < asked.window.end


# -- the past ------------------------------------------------------------------------------------


@each(
    ("text", "kind", "words", "successor"),
    [
        ("Who was the CTO in February?", "then", "February", ""),
        ("which version did the orders database have in 2023", "then", "2023", ""),
        ("What was last year's budget?", "then", "last year", ""),
        ("Where was the office until last summer?", "then", "until last summer", ""),
        ("Who maintained billing two years ago?", "then", "two years ago", ""),
        ("release notes of last week", "then", "last week", ""),
        ("When were we allowed to release back in winter?", "then", "in winter", ""),
        ("Who was the CTO before Omar?", "before", "before Omar", "Omar"),
        ("Before Omar, who was the CTO?", "before", "Before Omar", "Omar"),
        ("Who taught Jonah prior to Mr. Tanaka?", "before", "prior to Mr. Tanaka", "Mr. Tanaka"),
        ("Where did CI run before we moved it?", "before", "before we moved it", "we moved it"),
        ("Where did the band originally practise?", "first", "originally", ""),
        ("What was the original limit?", "first", "original", ""),
        ("How did we deploy back then?", "earlier", "back then", ""),
        ("Where did Ada use to live?", "earlier", "did Ada use to", ""),
        ("Which team used to own billing?", "earlier", "Which team used to", ""),
        ("What was our office formerly called?", "earlier", "formerly", ""),
        ("Who is the former CTO?", "earlier", "former", ""),
        ("Who led QA when we still used Jenkins?", "earlier", "when we still", ""),
        ("What was the rule before that?", "earlier", "before that", ""),
        ("Where were we before?", "earlier", "before", ""),
    ],
)
def test_a_question_about_the_past_says_which_time_it_means(
    text: str, kind: str, words: str, successor: str
) -> None:
    past = time_asked(text, NOW).past
    assert past is not None
    assert (past.kind, past.words, past.successor) == (kind, words, successor)


@each(
    "text",
    [
        "Who is the CTO?",
        "Who was the CTO?",
        "What must I do before a deploy?",
        "What do we check before we release?",
        "checklist before release",
        "Which ports are allowed before login?",
        "Who is on vacation in February?",
        "tea in July",
        "What is planned for next year?",
        "What did we decide this week?",
        "What has changed since March 2025?",
        "How do we configure beans in Spring?",
        "What grows in spring?",
        "Where is the original contract?",
        "What is the original file called?",
        "previous meeting notes",
        "tool used to deploy",
        "Which tool is used to deploy?",
        "What is left from last week's retro?",
        "Is the server still down?",
        "Which alerts fire when the disk is still full?",
        "How long until the release?",
        "Until when is the shop open?",
        "What was the latest decision in February?",
        "in the past week",
    ],
)
def test_any_other_question_is_not_about_the_past(text: str) -> None:
    assert time_asked(text, NOW).past is None


@LAW
@given(text=texts, now=moments)
def test_a_past_time_is_over_and_is_in_the_words_of_the_query(text: str, now: datetime) -> None:
    asked = time_asked(text, now)
    if asked.past is not None:
        assert asked.past.words in text
        assert asked.window is None or asked.window.end <= now
