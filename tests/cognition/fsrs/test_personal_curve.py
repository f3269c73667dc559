"""Fitting the curve of forgetting to reviews."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vestige.cognition.fsrs import personal_curve
from vestige.cognition.fsrs.formulas import W20, retrievability
from vestige.cognition.fsrs.personal_curve import Reviews, fit, lacking, reviews_in, surprise
from vestige.cognition.fsrs.strength import StrengthLine, fold
from vestige.core.models import Evidence

START = datetime(2026, 1, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
LAW = settings(deadline=None, max_examples=30)

curves = st.floats(0.1, 0.4)
seeds = st.integers(0, 2**32 - 1)


def of_somebody(w20: float, count: int, seed: int) -> Reviews:
    """Reviews of a person who forgets on this curve, mostly when they are due or later."""
    rng = np.random.default_rng(seed)
    stability = np.exp(rng.normal(1.5, 1.2, count))
    elapsed = np.maximum(stability * np.exp(rng.normal(0.5, 1.0, count)), personal_curve.LEAST_DAYS)
    chance = retrievability(elapsed, stability, curve=w20)
    return Reviews(
        elapsed_days=elapsed, stability=stability, level=np.ones(count), recalled=rng.random(count) < chance
    )


def with_failures(count: int, failures: int) -> Reviews:
    return replace(of_somebody(W20, count, 1), recalled=np.arange(count) >= failures)


@settings(
    deadline=None, max_examples=15, derandomize=True
)  # the bound is about luck: the same people each time
@given(curves, seeds)
def test_a_known_curve_is_recovered_from_many_reviews(w20: float, seed: int) -> None:
    fitted = fit(of_somebody(w20, 10_000, seed))
    at = np.array([0.5, 2.0, 10.0, 30.0])
    # The luck of ten thousand reviews moves the far end of the curve: by .068 in the worst of many people.
    assert retrievability(at, 1.0, curve=fitted) == pytest.approx(
        retrievability(at, 1.0, curve=w20), abs=0.09
    )


@pytest.mark.parametrize("w20", [0.1, W20, 0.25, 0.4])
def test_few_reviews_are_not_taken_at_their_word(w20: float) -> None:
    """On average over a hundred people with a hundred reviews each, the fit predicts better than the default
    curve does, and where that one is right little worse."""
    at = np.exp(np.random.default_rng(0).normal(1.0, 1.2, 100))
    real = retrievability(at, 1.0, curve=w20)
    wrong = [
        np.abs(retrievability(at, 1.0, curve=fit(of_somebody(w20, 100, seed))) - real).mean()
        for seed in range(100)
    ]
    by_default = np.abs(retrievability(at, 1.0) - real).mean()
    assert np.mean(wrong) < max(0.02, by_default)


def test_a_hundred_reviews_of_ordinary_people_leave_their_curves_ordinary() -> None:
    fitted = np.sort([fit(of_somebody(W20, 100, seed)) for seed in range(200)])
    assert (fitted > personal_curve.FLATTEST).all()
    assert 0.09 < fitted[4] < fitted[-5] < 0.25


@pytest.mark.parametrize("failing", [0.3, 0.5, 0.8])
def test_failing_early_and_often_is_not_taken_for_flat_forgetting(failing: float) -> None:
    """Whoever fails before one stability has shorter ones. The flattest curve foretells such failures too,
    but then that little more is forgotten ever after."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        ordinary = of_somebody(W20, 100, seed)
        early = ordinary.stability * rng.uniform(0.2, 1.0, 100)
        told = replace(ordinary, elapsed_days=early, recalled=rng.random(100) >= failing)
        assert fit(told) > 0.1


@LAW
@given(curves, seeds, st.integers(100, 1_000))
def test_the_fit_is_the_lowest_point_of_the_loss(w20: float, seed: int, count: int) -> None:
    reviews = of_somebody(w20, count, seed)
    everywhere = np.arange(personal_curve.FLATTEST, personal_curve.STEEPEST, 0.005)
    lowest = min(surprise(reviews, float(one)) for one in everywhere)
    assert surprise(reviews, fit(reviews)) <= lowest + 0.01


@LAW
@given(seeds, st.booleans())
def test_whatever_the_reviews_say_the_curve_stays_within_its_bounds(seed: int, recalled: bool) -> None:
    reviews = of_somebody(W20, 500, seed)
    told = replace(reviews, recalled=np.full(500, recalled))
    assert personal_curve.FLATTEST <= fit(told) <= personal_curve.STEEPEST


def test_a_person_who_forgets_faster_after_the_due_date_gets_a_steeper_curve() -> None:
    flat, steep = (fit(of_somebody(w20, 1_000, 5)) for w20 in (0.1, 0.4))
    assert flat < W20 < steep


def test_one_impossible_surprise_moves_the_fit_little() -> None:
    reviews = of_somebody(W20, 1_000, 3)
    stability = reviews.stability.copy()
    recalled = reviews.recalled.copy()
    stability[0], recalled[0] = 36_500.0, False
    assert fit(replace(reviews, stability=stability, recalled=recalled)) == pytest.approx(
        fit(reviews), abs=0.02
    )


@pytest.mark.parametrize(
    ("count", "failures", "why"),
    [
        (99, 50, "There are 99 reviews"),
        (100, 4, "Only 4 of 100 reviews failed"),
        (1_000, 0, "Only 0 of 1000 reviews failed"),
        (100, 96, "Only 4 of 100 reviews succeeded"),
    ],
)
def test_too_little_to_go_by_is_refused_with_the_reason(count: int, failures: int, why: str) -> None:
    assert (lacking(with_failures(count, failures)) or "").startswith(why)


@pytest.mark.parametrize(("count", "failures"), [(100, 5), (100, 95), (1_000, 400)])
def test_enough_of_both_lacks_nothing(count: int, failures: int) -> None:
    assert lacking(with_failures(count, failures)) is None


def test_reviews_within_a_day_do_not_count() -> None:
    reviews = of_somebody(W20, 150, 1)
    elapsed = reviews.elapsed_days.copy()
    elapsed[:60] = 0.5
    usable = replace(reviews, elapsed_days=elapsed).usable()
    assert len(usable.recalled) == 90
    assert (usable.stability == reviews.stability[60:]).all()


def test_the_newest_thousand_count() -> None:
    reviews = of_somebody(W20, 1_200, 1)
    usable = reviews.usable()
    assert (usable.recalled == reviews.recalled[200:]).all()
    assert usable.failures == np.count_nonzero(~reviews.recalled[200:])


def test_reviews_at_the_same_time_stay_in_the_order_they_were_told() -> None:
    """However many there are, which of them count as the newest does not depend on how they went."""
    at = START + 30 * DAY
    seen = [StrengthLine(evidence=one, at=at) for one in (Evidence.GOOD, Evidence.AGAIN)]
    reviews = reviews_in([(START, [one]) for one in seen * 2])
    assert reviews.recalled.tolist() == [True, False, True, False]
    assert reviews.elapsed_days.tolist() == [30.0] * 4


def test_a_review_predicts_from_what_was_known_before_it() -> None:
    history = [
        StrengthLine(evidence=Evidence.EXPOSED, at=START + 5 * DAY),
        StrengthLine(evidence=Evidence.DEMOTED, at=START + 10 * DAY),
        StrengthLine(evidence=None, at=START + 15 * DAY),
        StrengthLine(evidence=Evidence.GOOD, at=START + 20 * DAY, curve=0.3),
        StrengthLine(evidence=Evidence.REINFORCED, at=START + 25 * DAY, curve=0.3),
        StrengthLine(evidence=Evidence.AGAIN, at=START + 60 * DAY, curve=0.3),
    ]
    reviews = reviews_in([(START, history)])
    states = [fold(START, history[:count], 0.3) for count in (3, 5)]
    assert reviews.recalled.tolist() == [True, False]
    assert reviews.stability.tolist() == [one.stability for one in states]
    assert reviews.level.tolist() == [0.7, 1.0]
    days = [(START + n * DAY - one.decay_from) / DAY for n, one in zip((20, 60), states, strict=True)]
    assert reviews.elapsed_days.tolist() == pytest.approx(days)


def test_no_reviews_lack_something() -> None:
    assert lacking(reviews_in([]).usable()) is not None
