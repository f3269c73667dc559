"""How well two contexts fit, and the cues that bring one back."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vestige.cognition.evidence.codebase import Pattern, text_of
from vestige.cognition.ranking.stages import NOWHERE, Context, hints
from vestige.core.models import Memory, MemoryContext

SUNDAY = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
MOMENTS = st.timedeltas(timedelta(days=-20_000), timedelta(days=20_000)).map(lambda apart: SUNDAY + apart)


def memory(content: str = "Ada drinks tea.", **facts: Any) -> Memory:
    return Memory(**{"id": "a", "content": content, "created_at": SUNDAY, "updated_at": SUNDAY, **facts})


def fit(context: Context, one: Memory) -> float:
    return float(context.matches([MemoryContext.of(one)])[0])


def test_a_context_of_which_nothing_is_told_fits_nothing() -> None:
    assert not NOWHERE.is_known
    assert not Context(topics=(" ", "…")).is_known
    assert fit(NOWHERE, memory(tags=("tea",), session_id="s")) == 0.0


def test_topics_count_by_the_share_of_them_among_the_tags_whatever_the_letter_case() -> None:
    about = Context(topics=("Tea", "trains"))
    assert about.is_known
    assert fit(about, memory(tags=("tea", "TRAINS", "other"))) == 1.0
    assert fit(about, memory(tags=("tea",))) == 0.5
    assert fit(about, memory(tags=("ships",))) == fit(about, memory()) == 0.0


def test_the_same_session_counts_most_of_the_place_then_codebase_and_file() -> None:
    here = Context(session_id="s1", codebase="vestige", file="src/app.py")
    note = text_of(Pattern(name="Clock", description="Pass it in.", files=("src/app.py",)))
    assert fit(here, memory(session_id="s1")) == 1.0
    assert fit(here, memory(note, session_id="s2", tags=("codebase:vestige",))) == 1.0
    assert fit(here, memory(session_id="s2", scope="/project/vestige")) == 0.6
    assert fit(here, memory(source="src/app.py")) == 0.4
    assert fit(here, memory(session_id="s2")) == 0.0


def test_what_is_not_known_of_a_memory_does_not_count_against_it() -> None:
    here = Context(topics=("tea",), session_id="s1")
    assert fit(here, memory(tags=("tea",))) == 1.0
    assert fit(here, memory(session_id="s1")) == 1.0
    assert fit(here, memory(tags=("tea",), session_id="s2")) == pytest.approx(0.4 / 0.65)
    assert fit(here, memory(tags=("ships",), session_id="s1")) == pytest.approx(0.25 / 0.65)


@pytest.mark.parametrize(
    ("apart", "expected"),
    [
        (timedelta(0), 1.0),
        (timedelta(hours=5), 0.5 + 0.15 + 0.2),
        (timedelta(days=-1), 0.5 + 0.3 + 0.1),
        (timedelta(days=7), 0.25 + 0.3 + 0.2),
        (timedelta(days=13), 0.3 + 0.1),
        (timedelta(days=12, hours=12), 0.0),
    ],
)
def test_times_are_alike_by_distance_time_of_day_and_weekday(apart: timedelta, expected: float) -> None:
    assert fit(Context(moment=SUNDAY + apart), memory()) == pytest.approx(expected)


def test_the_time_of_an_event_is_when_it_happened() -> None:
    long_ago = SUNDAY - timedelta(days=700)
    assert fit(Context(moment=long_ago), memory(occurred_at=long_ago)) == 1.0


@given(moment=MOMENTS, made=MOMENTS, topic=st.sampled_from(["tea", "ships"]), session=st.booleans())
def test_a_fit_is_between_none_and_all(moment: datetime, made: datetime, topic: str, session: bool) -> None:
    here = Context(topics=(topic,), session_id="s" if session else None, moment=moment)
    one = memory(tags=("tea",), session_id="s", created_at=made, updated_at=made)
    assert 0.0 <= fit(here, one) <= 1.0


def test_a_memory_is_found_again_by_when_where_and_about_what_it_was() -> None:
    cues = hints(
        memory(
            tags=("tea", "codebase:vestige"),
            session_id="s1",
            agent_id="scribe",
            scope="/project/vestige",
            occurred_at=datetime(2026, 3, 2, 19, 30, tzinfo=UTC),
        )
    )
    assert cues.temporal == "Monday evening, 2026-03-02 (UTC)"
    assert cues.topical == "tea, codebase:vestige"
    assert cues.session == "session s1, agent scribe, codebase vestige, scope /project/vestige"


def test_a_memory_of_which_nothing_else_is_known_is_found_again_by_its_time() -> None:
    cues = hints(memory())
    assert (cues.temporal, cues.topical, cues.session) == ("Sunday morning, 2026-03-01 (UTC)", None, None)
