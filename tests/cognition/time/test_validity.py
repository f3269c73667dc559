"""Validity in words: which sentences give themselves a window, which do not, and what a window must be."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.effort import effort
from testbed.failures import each
from vestige.cognition.time.calendar import EARLIEST, LATEST
from vestige.cognition.time.validity import stated_validity

LAW = settings(deadline=None, max_examples=effort(75, nightly=1500))
NOW = datetime(2026, 3, 11, 15, 30, tzinfo=UTC)  # a Wednesday

# What is said, the first day on which it is true and the last.
TOLD = [
    ("As of 2026-03-01, the rate limit is 100 requests a minute.", "2026-03-01", None),
    ("The rate limit is 100 requests a minute as of 1 March 2026.", "2026-03-01", None),
    ("As of March the team uses Rust.", "2026-03-01", None),
    ("Ada has lived in Berlin since March 2024.", "2024-03-01", None),
    ("Since March, the team uses Rust.", "2026-03-01", None),
    ("Since 2019 Ada has been the lead of the data team.", "2019-01-01", None),
    ("The staging server has been down since Monday.", "2026-03-09", None),
    ("Bob is on parental leave since last week.", "2026-03-02", None),
    ("The build is red since yesterday.", "2026-03-10", None),
    ("We use Python 3.12 since 3 weeks ago.", "2026-02-16", None),
    ("From 5 May on, tickets cost 20 EUR.", "2026-05-05", None),
    ("From 5 May the office is closed.", "2026-05-05", None),
    ("The office is closed from Monday onwards.", "2026-03-16", None),
    ("Starting Monday, standup is at 10:00.", "2026-03-16", None),
    ("Standup is at 10:00 starting next Monday.", "2026-03-16", None),
    ("Effective 1 Jan, the price is 20 EUR.", "2026-01-01", None),
    ("The new travel policy applies effective 2026-04-01.", "2026-04-01", None),
    ("The contract is valid from 2026-01-01.", "2026-01-01", None),
    ("The freeze is on until Friday.", None, "2026-03-13"),
    ("Until Friday, deploys are frozen.", None, "2026-03-13"),
    ("Deploys are frozen until Wednesday.", None, "2026-03-11"),
    ("Ada works at IBM until June.", None, "2026-06-30"),
    ("Ada is on call until the end of the week.", None, "2026-03-15"),
    ("The office is closed until next Monday.", None, "2026-03-16"),
    ("Code freeze through the end of June.", None, "2026-06-30"),
    ("The discount is valid till 2027.", None, "2027-12-31"),
    ("Valid till 2027.", None, "2027-12-31"),
    ("Tickets cost 20 EUR until 15 April.", None, "2026-04-15"),
    ("Tickets cost 20 EUR until 1 February.", None, "2027-02-01"),
    ("Python 3.10 is supported until October 2026.", None, "2026-10-31"),
    ("Bob will be on vacation until 2026-03-20.", None, "2026-03-20"),
    ("I'm out of office until tomorrow.", None, "2026-03-12"),
    ("We're using the old API through Q2 2026.", None, "2026-06-30"),
    ("On leave until Monday.", None, "2026-03-16"),
    ("Office closed until Monday.", None, "2026-03-16"),
    ("Note: the VPN is down until Friday evening.", None, "2026-03-13"),
    ("The freeze has been extended until 20 March.", None, "2026-03-20"),
    ("Writes to the cluster must go through Bob until Friday.", None, "2026-03-13"),
    ("The `main` branch is frozen until Friday.", None, "2026-03-13"),
    ("The museum is closed due to repairs until May.", None, "2026-05-31"),
    ("There is a hiring freeze until the end of 2026.", None, "2026-12-31"),
    ("The road is closed between March and June 2026.", "2026-03-01", "2026-06-30"),
    ("Ada is on leave from 5 May to 9 May.", "2026-05-05", "2026-05-09"),
    ("Ada is on leave from 10 to 20 May.", "2026-05-10", "2026-05-20"),
    ("The sale runs from 2026-02-01 to 2026-03-15.", "2026-02-01", "2026-03-15"),
    ("The lease is valid from 2025-01-01 until 2027-12-31.", "2025-01-01", "2027-12-31"),
    ("The shop is closed from 28 December 2025 to 14 March 2026.", "2025-12-28", "2026-03-14"),
    ("Bob has been on sick leave since Monday.", "2026-03-09", None),
    ("From tomorrow until Friday the lift is out of order.", "2026-03-12", "2026-03-13"),
    ("As of June our office is on Harbour Road.", "2026-06-01", None),
    ("Since the summer of 2023 Ada leads the data team.", "2023-06-01", None),
    ("Bob is acting manager from April 1 through June 30, 2026.", "2026-04-01", "2026-06-30"),
    ("Meetings are remote until the end of this month.", None, "2026-03-31"),
    ("The sauna is closed until mid January.", None, "2027-01-20"),
    ("The sauna is closed until mid-January.", None, "2027-01-20"),
    ("The pool is closed until the beginning of June.", None, "2026-06-10"),
    ("We use the trial licence until mid 2027.", None, "2027-08-31"),
    ("The API requires a token since mid February.", "2026-02-10", None),
    ("The road is closed from mid March to early May.", "2026-03-11", "2026-05-10"),
    ("Discounts apply until the end of Q3.", None, "2026-09-30"),
    ("Bob is on leave for the next two weeks.", None, "2026-03-25"),
    ("For the next 10 days the lift is out of order.", None, "2026-03-21"),
    ("The branch is frozen for the rest of the week.", None, "2026-03-15"),
    ("Orders go through Lena until the end of November.", None, "2026-11-30"),
    ("Starting in May the office is on Harbour Road.", "2026-05-01", None),
    ("From January 2027 the rent is 1200 EUR.", "2027-01-01", None),
    ("Tickets cost 20 EUR from May 2027.", "2027-05-01", None),
]

# What happened.
PAST = [
    "Ada worked at IBM from 2019 to 2021.",
    "Ada was at IBM until 2020.",
    "We worked until Friday.",
    "Ada used to live in Paris until 2020.",
    "Bob led the team from March 2024 to June 2026.",
    "The office was closed until Friday.",
    "The freeze was on between March and June 2026.",
    "As of 2026-03-01, 40 tests were failing.",
    "Ada swam and ran until Friday.",
    "They sang through March.",
    "I stayed in Rome until last Monday.",
    "The outage lasted from Monday until Tuesday.",
    "Ada lived in Berlin since 2019.",
    "The sale ended, having run until Friday.",
    "We had a freeze until Friday.",
    "She let him stay until Sunday.",
]
# An end that was past when it was said.
OVER = [
    "Ada works at IBM from 2019 to 2021.",
    "The certificate is valid until 2020.",
    "The lease is valid till 2025-12-31.",
    "The licence is valid until last Friday.",
]
# Asked, supposed, reported, quoted, wanted, due.
UNSURE = [
    "Is the freeze on until Friday?",
    "is the freeze on until friday",
    "When is the office closed until June?",
    "If the freeze is on until Friday, we ship on Monday.",
    "If it lasts until Friday, call Bob.",
    "The freeze is probably on until Friday.",
    "The office might be closed until Monday.",
    "Maybe Ada is on leave until Friday.",
    "Ada says the office is closed until Friday.",
    "According to Bob the office is closed until Friday.",
    'The sign says "closed until Friday".',
    "“Closed until Friday” is on the door.",
    "I hope the freeze is on until Friday.",
    "Finish the report by Friday.",
    "Remind me until Friday.",
    "You have until Friday to respond.",
    "The deadline is extended until Friday.",
    "The report is due by 1 May.",
    "Keep the branch until Friday.",
    "Wait until Friday.",
    "The launch is postponed until Friday.",
    "Do not deploy until Friday.",
    "Ada is at least until Friday on leave.",
    "The office is closed at least until Friday.",
    "The release is not until Friday.",
    "The shop does not open until Monday.",
    "Ada won't be back until Friday.",
    "By then the office is closed.",
    "It is three weeks until Friday.",
    "There are 5 days until 1 May.",
    "The meeting is moved until Friday.",
    "We have to use the old API until June.",
]
# What comes again, is of a time without being true only then, or is the time of something else.
OTHERWISE = [
    "The office is open from Monday to Friday.",
    "The pool is open from May to September.",
    "Every year the road is closed until June.",
    "The library is usually open until Friday.",
    "The shop is open until 9pm.",
    "We are in the office for 3 hours until midnight.",
    "The logs from 2019 to 2027 are archived.",
    "The notes from March are in the drawer.",
    "We keep the invoices from 2024.",
    "The freeze is on until Friday's release.",
    "The API is frozen until the March release.",
    "Sales have doubled since 2020.",
    "It has been a long time since 2020.",
    "This is the highest price since March 2020.",
    "Since the server is down, we use the backup.",
    "Since we moved in March, we use Rust.",
    "We may march until we drop.",
    "Ada runs through 2000 rows.",
    "Ada is from 2019 Berlin.",
    "Since the March release the API is slow.",
    "The fair is from 5-9 May 2026.",
    "MCP version 2025-11-25 is supported.",
    "The data is from 2019 to 2021.",
    "The roof is fine until it rains.",
    "Ada is from Oslo.",
    "The app runs on Windows until version 2023.",
    "The lift is closed until further notice.",
    "Logs are kept until deleted.",
    "The door is open until the last person leaves.",
    "The lift is out of order for two weeks.",
    "The wine is from May 2024.",
]
# More than one thing is said; only one of them ends.
SEVERAL = [
    "Ada is the lead. She is on leave until Friday.",
    "Ada leads the data team and is on leave until Friday.",
    "Ada, who leads the data team, is on leave until Friday.",
    "Ada (on leave until Friday) leads the data team.",
    "The office is closed until Friday and the lab until Monday.",
    "Ada works at IBM until June, then she moves to Google.",
    "Ada is on leave until Friday but Bob is in.",
    "The office is closed until Friday.\nThe kitchen is on the left.",
    "Bob is on call until Friday; Ada is the lead.",
]
MACHINE = [
    "2026-03-01 12:00:01 INFO cache is valid until 2026-05-01",
    "[info] lock is held until 2026-05-01",
    "if (token.valid) { return; } // is valid until 2027",
    "retry_until = 2027-01-01  # is valid until 2027",
    "The page is https://example.org/closed/until/2026-05-01",
    "ERROR: certificate is valid until 2027-01-01",
    "$ lease is held until 2026-05-01",
    "`the cache is valid until 2027-01-01`",
]
UNTOLD = [*PAST, *OVER, *UNSURE, *OTHERWISE, *SEVERAL, *MACHINE]


def days_of(text: str, said_at: datetime = NOW) -> tuple[str | None, str | None]:
    """The first and the last day of what a text tells; None for an open side."""
    told = stated_validity(text, said_at)
    assert told is not None
    start, end = told.valid_from, told.valid_until
    last = end - timedelta(microseconds=1) if end else None
    return (start.date().isoformat() if start else None), (last.date().isoformat() if last else None)


@each(("text", "first", "last"), TOLD)
def test_a_statement_says_since_when_and_until_when(text: str, first: str | None, last: str | None) -> None:
    assert days_of(text) == (first, last)


@each("text", UNTOLD)
def test_anything_else_says_nothing(text: str) -> None:
    assert stated_validity(text, NOW) is None


def test_the_words_that_say_so_are_told_as_they_were_written() -> None:
    told = stated_validity("The lease is valid from 1 Jan. 2025 till Dec.", NOW)
    assert told is not None
    assert told.words == "from 1 Jan. 2025 till Dec"


@pytest.mark.parametrize(
    ("said_at", "last"),
    [("2026-03-13", "2026-03-13"), ("2026-03-14", "2026-03-20"), ("2024-05-01", "2024-05-03")],
)
def test_a_weekday_to_come_is_the_next_one_from_the_day_it_is_said(said_at: str, last: str) -> None:
    assert days_of("The freeze is on until Friday.", datetime.fromisoformat(f"{said_at}T23:59+00:00")) == (
        None,
        last,
    )


def test_a_start_to_come_is_told_but_not_kept() -> None:
    plan = stated_validity("Starting Monday, standup is at 10:00.", NOW)
    leave = stated_validity("Ada is on leave from 5 May to 9 May.", NOW)
    assert plan is not None
    assert leave is not None

    assert plan.by(NOW) is None
    assert plan.by(NOW + timedelta(days=5)) == plan
    assert leave.by(NOW) == replace(leave, valid_from=None)


# -- laws ----------------------------------------------------------------------------------------

moments = st.one_of(
    st.datetimes(timezones=st.just(UTC)),
    st.integers(0, 10**8).map(lambda seconds: EARLIEST + timedelta(seconds=seconds)),
    st.integers(0, 10**8).map(lambda seconds: LATEST - timedelta(seconds=seconds)),
)
words = st.sampled_from(
    "The freeze is on Ada works has been will be closed valid since as of from until through between to and "
    "the end of week year starting effective Monday Friday May March june 2026 2019 Q4 5 29 31 February "
    "9999-12-31 0001-01-01 2026-05-01 tomorrow last next summer , . : ( ) ' \" ? on".split()
)
texts = st.one_of(
    st.text(),
    st.lists(words | st.text(max_size=3), max_size=12).map(" ".join),
    st.lists(words, max_size=6).map(lambda said: " ".join(["The freeze is on", *said])),
)


@LAW
@given(text=texts, said_at=moments)
def test_any_text_at_any_time_has_a_sound_window_or_none(text: str, said_at: datetime) -> None:
    told = stated_validity(text, said_at)
    if told is None:
        return
    assert told.valid_from is not None or told.valid_until is not None
    assert told.valid_until is None or told.valid_until > said_at
    assert told.valid_from is None or told.valid_until is None or told.valid_from < told.valid_until
    assert all(words in text for words in told.words.split(" … "))


@LAW
@given(at=st.integers(0, len(TOLD) - 1), said_at=moments)
def test_what_is_kept_never_hides_a_text_when_it_is_said(at: int, said_at: datetime) -> None:
    told = stated_validity(TOLD[at][0], said_at)
    kept = told.by(said_at) if told else None
    if kept is not None:
        assert kept.valid_from is None or kept.valid_from <= said_at
        assert kept.valid_until is None or kept.valid_until > said_at
