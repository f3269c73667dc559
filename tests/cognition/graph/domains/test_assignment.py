"""Assignment: a domain's own threshold decides, near the best one, three at most."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cognition.graph.domains.test_discovery import blobs
from vestige.cognition.graph.domains.assignment import (
    MOST_BOOST,
    MOST_BOOSTS,
    assigned,
    boosts,
    centroid,
    clamped,
    context_priors,
    member_range,
)

names = st.sampled_from("abcdef")
scores = st.dictionaries(names, st.floats(-1, 1), max_size=6)


def test_a_score_must_pass_the_cut_of_its_domain_and_lie_near_the_best() -> None:
    cuts = {"infra": 0.4, "dev": 0.3, "home": 0.1}
    assert assigned({"infra": 0.5, "dev": 0.35, "home": 0.2}, cuts) == ("infra", "dev")
    assert assigned({"infra": 0.39, "dev": 0.29, "home": 0.05}, cuts) == ()
    assert assigned({}, {}) == ()


def test_what_every_domain_scores_does_not_bring_a_memory_nearer_to_another() -> None:
    cuts = dict.fromkeys(("infra", "dev", "home", "music", "food"), 0.1)
    apart = {"infra": 0.6, "dev": 0.5, "home": 0.1, "music": 0.1, "food": 0.1}
    assert assigned(apart, cuts) == ("infra", "dev")
    alike = apart | {"home": 0.45, "music": 0.45, "food": 0.45}
    assert assigned(alike, cuts) == ("infra",)
    assert assigned({"infra": 0.6, "dev": 0.58}, cuts) == ("infra", "dev")


def test_a_text_on_two_topics_belongs_to_both() -> None:
    one, other = blobs(40, seed=1), blobs(40, seed=2)
    middles = {"dev": centroid(one), "infra": centroid(other)}
    cuts = {
        "dev": member_range(one, middles["dev"]).cut - 0.3,
        "infra": member_range(other, middles["infra"]).cut - 0.3,
    }
    mixed = centroid(np.array([middles["dev"], middles["infra"]]))
    found = assigned({name: float(mixed @ middle) for name, middle in middles.items()}, cuts)
    assert set(found) == {"dev", "infra"}


@given(scores, st.floats(-1, 1), st.floats(0, 1))
def test_a_higher_cut_never_assigns_more(given_scores: dict[str, float], low: float, more: float) -> None:
    lower = assigned(given_scores, dict.fromkeys(given_scores, low))
    higher = assigned(given_scores, dict.fromkeys(given_scores, low + more))
    assert set(higher) <= set(lower)
    assert len(lower) <= 3


def test_the_cut_is_the_cosine_that_all_but_a_twentieth_of_the_members_reach() -> None:
    vectors = blobs(200)
    middle = centroid(vectors)
    found = member_range(vectors, middle)
    assert float(((vectors @ middle) >= found.cut).mean()) == pytest.approx(0.95, abs=0.01)
    assert found.cut == found.low < found.high


def test_a_repository_speaks_for_domains_about_code_and_stays_within_its_limit() -> None:
    terms = {"dev": ["Rust compiler", "crate"], "home": ["garden"], "tools": ["vscode"]}
    assert context_priors({"git_repo": "vestige"}, terms, 0.05, 0.05) == {"dev": 0.05}
    assert context_priors({"editor": "vim"}, terms, 0.05, 0.05) == {"tools": 0.05}
    assert context_priors({"git_repo": "vestige"}, terms, 5.0, 0.05) == {"dev": MOST_BOOST}
    assert context_priors({"cwd": "/etc"}, terms, 0.05, 0.05) == {}
    assert clamped(0.99 + MOST_BOOST) == 1.0


@given(st.lists(st.dictionaries(names, st.floats(-10, 10), max_size=3), max_size=4))
def test_context_never_changes_a_score_by_more_than_its_limit(sources: list[dict[str, float]]) -> None:
    assert all(abs(delta) <= MOST_BOOSTS for delta in boosts(sources).values())


def test_vectors_that_cancel_out_have_no_direction() -> None:
    one = blobs(1)
    assert not centroid(np.concatenate((one, -one))).any()
