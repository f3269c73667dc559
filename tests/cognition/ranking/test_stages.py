"""The stages of recall: each changes what it is about, a little, and nothing else."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cognition.ranking.pools import NOW, traits
from vestige.cognition.ranking.stages import (
    FADED_NOTE,
    IN_CONTEXT,
    IN_TIME,
    INHERITED,
    STAGES,
    Ranking,
    StageInputs,
    accessibility,
    competition,
    context,
    nearness,
    rank,
    scope,
    spreading,
    stages_without,
    temporal,
    utility,
)

DAY = 86_400.0


def ranking(*scores: float) -> Ranking:
    return Ranking(ids=tuple(f"m{number:03}" for number in range(len(scores))), scores=np.array(scores))


def situation(count: int, *, about: dict[str, Any] | None = None, **given: Any) -> StageInputs:
    at_rest: dict[str, Any] = {
        "now": NOW,
        "traits": traits(count, **(about or {})),
        "window": None,
        "latest": False,
        "context": np.zeros(count),
        "replaced_by": np.full(count, -1),
        "newer": np.full(count, -1),
        "activation": np.zeros(count),
        "lent": np.zeros(count),
        "home": np.zeros(count),
    }
    return StageInputs(**(at_rest | given))


def test_of_rivals_the_one_told_last_goes_first_with_the_best_score_of_them() -> None:
    about = {"created": [NOW, NOW + 1, NOW + 2, NOW]}
    after = rank(ranking(0.9, 0.8, 0.7, 0.85), situation(4, about=about, newer=np.array([1, 2, -1, -1])))
    assert after.best() == [2, 1, 0, 3]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_where_nothing_sets_candidates_apart_the_stages_keep_their_order(scores: list[float]) -> None:
    before = ranking(*scores)
    assert rank(before, situation(len(scores))).best() == before.best()


def test_what_a_stage_has_put_behind_a_rival_is_told() -> None:
    after = rank(ranking(0.9, 0.8, 0.7), situation(3, newer=np.array([1, -1, -1])))
    assert after.lowered_by("competition") == {"m000"}
    assert after.lowered_by("context") == after.lowered_by("no such stage") == frozenset()


def test_a_mechanism_that_is_switched_off_has_no_stage_but_suppression_counts_all_the_same() -> None:
    stages = stages_without(["decay", "context", "competition"])
    faded = {"stability": [0.1, 100.0], "decay_from": [NOW - 99 * DAY] * 2, "suppressions": [0, 1]}
    after = rank(ranking(1.0, 1.0), situation(2, about=faded, context=np.ones(2)), stages)
    assert [name for name, _ in after.steps] == ["temporal", "accessibility", "spreading", "utility"]
    assert after.scores.tolist() == pytest.approx([1.0, 0.85])


def test_every_stage_leaves_its_scores_behind() -> None:
    after = rank(ranking(0.5, 0.4), situation(2, home=np.array([0.0, 1.0])))
    assert [name for name, _ in after.steps] == [stage.__name__ for stage in STAGES.values()]


def test_ties_go_by_id() -> None:
    assert ranking(0.5, 0.7, 0.5).best() == [1, 0, 2]


def test_what_happened_in_the_time_asked_for_gains_and_creation_stands_in_where_nothing_was_told() -> None:
    happened = [NOW - 10 * DAY, np.nan, NOW - 100 * DAY]
    given_ = situation(
        3,
        about={"happened": happened, "created": [NOW, NOW - 9 * DAY, NOW - 10 * DAY]},
        window=(NOW - 14 * DAY, NOW - 7 * DAY),
    )

    scores = temporal(ranking(0.5, 0.5, 0.5), given_).scores

    assert scores == pytest.approx([0.5 * (1 + IN_TIME), 0.5 * (1 + IN_TIME), 0.5])


def test_being_new_counts_only_where_the_latest_is_asked_for() -> None:
    about = {"created": [NOW - 300 * DAY, NOW]}

    assert temporal(ranking(0.5, 0.5), situation(2, about=about)).best() == [0, 1]
    assert temporal(ranking(0.5, 0.5), situation(2, about=about, latest=True)).best() == [1, 0]


def test_among_equals_the_better_remembered_comes_first_and_a_better_answer_is_never_buried() -> None:
    about = {"decay_from": [NOW - 3_000 * DAY, NOW]}

    assert accessibility(ranking(0.5, 0.5), situation(2, about=about)).best() == [1, 0]
    better = 0.5 / (1 - FADED_NOTE) + 0.001
    assert accessibility(ranking(better, 0.5), situation(2, about=about)).best() == [0, 1]


def test_a_suppressed_memory_falls_far() -> None:
    scores = accessibility(ranking(0.5, 0.5), situation(2, about={"suppressions": [3, 0]})).scores
    assert scores[0] < 0.7 * scores[1]


def test_what_shares_the_callers_topics_gains() -> None:
    scores = context(ranking(0.5, 0.5), situation(2, context=np.array([1.0, 0.5]))).scores
    assert scores == pytest.approx([0.5 * (1 + IN_CONTEXT), 0.5 * (1 + IN_CONTEXT / 2)])


def test_what_was_replaced_stands_right_behind_what_replaced_it() -> None:
    after = competition(ranking(0.9, 0.6, 0.5), situation(3, replaced_by=np.array([1, -1, -1])))
    assert after.best() == [1, 0, 2]


def test_what_was_replaced_and_ranks_lower_anyway_stays_where_it_is() -> None:
    after = competition(ranking(0.2, 0.6), situation(2, replaced_by=np.array([1, -1])))
    assert after.scores == pytest.approx([0.2, 0.6])


def test_links_to_the_best_and_thanks_from_before_lift_a_memory_among_equals() -> None:
    assert spreading(ranking(0.5, 0.5), situation(2, activation=np.array([0.0, 0.7]))).best() == [1, 0]
    helped = situation(2, about={"useful": [0, 4], "retrieved": [5, 5]})
    assert utility(ranking(0.5, 0.5), helped).best() == [1, 0]


def test_a_link_lends_a_share_of_the_best_score_but_not_to_a_superseded_memory() -> None:
    lent: dict[str, Any] = {"activation": np.array([0.0, 0.7, 0.7]), "lent": np.array([0.0, 0.7, 0.7])}
    after = spreading(ranking(0.5, 0.1, 0.1), situation(3, **lent, replaced_by=np.array([-1, -1, 0])))

    assert after.scores[1] == pytest.approx(0.7 * 0.5)
    assert after.scores[2] == pytest.approx(0.1, rel=0.05)


def test_an_empty_pool_goes_through_all_stages() -> None:
    assert rank(ranking(), situation(0, latest=True)).best() == []


def test_the_current_project_wins_among_equals_and_never_hides_a_better_answer() -> None:
    scopes = np.array(["/project/b", "/user/ada", "/project/a/sub", "/"], dtype=np.object_)
    near = nearness(scopes, "/project/a")
    assert near.tolist() == [0.0, INHERITED, 1.0, INHERITED]
    equal = scope(ranking(0.5, 0.5, 0.5, 0.5), situation(4, home=near))
    assert equal.best() == [2, 1, 3, 0]
    better = scope(ranking(0.6, 0.5, 0.5, 0.5), situation(4, home=near))
    assert better.best()[0] == 0


def test_outside_any_project_no_scope_is_preferred() -> None:
    near = nearness(np.array(["/", "/project/a"], dtype=np.object_), "/")
    assert near.tolist() == [0.0, 0.0]
    before = ranking(0.5, 0.4)
    assert scope(before, situation(2, home=near)) is before
