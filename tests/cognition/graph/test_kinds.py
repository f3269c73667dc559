"""Kinds of links, and what time does to them."""

from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vestige.cognition.graph.kinds import (
    FADE_EVERY_DAYS,
    HALF_LIFE_DAYS,
    KINDS,
    LEARNED,
    REINFORCEMENT,
    SILENT,
    faded,
    fading_days,
    reinforced,
)
from vestige.operations.memory.connections import LinkType

ages = st.floats(0, 5_000)


def test_what_was_said_or_tells_of_the_past_never_fades() -> None:
    assert set(LEARNED) == {"semantic", "temporal", "co_access", "shared_concepts", "complementary"}
    assert {"contradicts", "supersedes", "merges", "user_defined"}.isdisjoint(LEARNED)


def test_activation_does_not_go_back_into_the_past() -> None:
    assert {"supersedes", "merges"} == SILENT


def test_people_may_make_the_kinds_that_time_does_not_take_away_and_that_are_no_history() -> None:
    assert set(get_args(LinkType)) == KINDS.keys() - set(LEARNED) - SILENT


def test_half_is_left_after_the_half_life() -> None:
    assert faded([0.8, 0.4], [HALF_LIFE_DAYS, 0.0]).tolist() == pytest.approx([0.4, 0.4])


@given(st.floats(0, 1))
def test_use_makes_a_link_stronger_and_never_more_than_full(weight: float) -> None:
    assert min(1.0, weight + REINFORCEMENT) == reinforced(weight)


@given(st.lists(ages, min_size=1, max_size=6).map(sorted))
def test_however_often_links_fade_it_comes_to_the_same(moments: list[float]) -> None:
    in_steps = sum(float(fading_days(now, then)) for then, now in zip([0.0, *moments], moments, strict=False))

    assert in_steps == float(fading_days(moments[-1], 0.0))


@given(ages)
def test_a_link_never_fades_for_longer_than_it_has_lived(age: float) -> None:
    assert age - FADE_EVERY_DAYS < float(fading_days(age, -1.0)) <= age


def test_a_link_made_after_the_last_run_fades_from_its_own_beginning() -> None:
    due = fading_days(np.array([70.0, 10.0, 70.0]), np.array([-5.0, -90.0, 65.0]))

    assert due.tolist() == [60.0, 0.0, 0.0]
