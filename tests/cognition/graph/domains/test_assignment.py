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
    own_part,
)

NAMES = "abcdef"
names = st.sampled_from(NAMES)
APART = dict(zip(("infra", "dev", "home", "music", "food", *NAMES), np.eye(11), strict=True))
"""Centroids that have nothing in common."""
scores = st.dictionaries(names, st.floats(-1, 1), max_size=6)


def test_a_score_must_pass_the_cut_of_its_domain_and_lie_near_the_best() -> None:
    cuts = {"infra": 0.4, "dev": 0.3, "home": 0.1}
    assert assigned({"infra": 0.5, "dev": 0.35, "home": 0.2}, cuts, APART) == ("infra", "dev")
    assert assigned({"infra": 0.39, "dev": 0.29, "home": 0.05}, cuts, APART) == ()
    assert assigned({}, {}, {}) == ()


def test_what_every_domain_scores_does_not_bring_a_memory_nearer_to_another() -> None:
    cuts = dict.fromkeys(("infra", "dev", "home", "music", "food"), 0.1)
    apart = {"infra": 0.6, "dev": 0.5, "home": 0.1, "music": 0.1, "food": 0.1}
    assert assigned(apart, cuts, APART) == ("infra", "dev")
    alike = apart | {"home": 0.45, "music": 0.45, "food": 0.45}
    assert assigned(alike, cuts, APART) == ("infra",)
    assert assigned({"infra": 0.6, "dev": 0.58}, cuts, APART) == ("infra", "dev")


def between(one: float) -> dict[str, np.ndarray]:
    """Centroids of two domains with this cosine."""
    return {"infra": np.array([1.0, 0.0]), "dev": np.array([one, (1.0 - one**2) ** 0.5])}


def test_a_further_domain_is_judged_without_what_the_first_one_explains() -> None:
    cuts = {"infra": 0.4, "dev": 0.4}
    overlap = between(0.8)
    # A text about infrastructure alone scores .8 of it for its neighbour, a text about both scores more.
    assert assigned({"infra": 0.6, "dev": 0.48}, cuts, overlap) == ("infra",)
    assert assigned({"infra": 0.81, "dev": 0.8}, cuts, overlap) == ("infra", "dev")
    assert own_part("dev", ["infra"], {"infra": 0.6, "dev": 0.48}, overlap) == pytest.approx(0.0, abs=1e-3)
    assert own_part("dev", ["infra"], {"infra": 0.6, "dev": 0.48}, between(0.0)) == pytest.approx(0.48)


def test_equal_domains_explain_equal_parts() -> None:
    scores_of_both = {"infra": 0.6, "dev": 0.6}
    assert own_part("dev", ["infra"], scores_of_both, between(1.0)) == pytest.approx(0.3, abs=1e-3)
    assert assigned(scores_of_both, {"infra": 0.6, "dev": 0.6}, between(1.0)) == ("dev",)


def test_a_memory_stays_in_its_home_and_further_domains_are_judged_beside_it() -> None:
    cuts = {"infra": 0.4, "dev": 0.4}
    near = {"infra": 0.4, "dev": 0.4}
    assert assigned(near, cuts, between(0.9), home="dev") == ("dev",)
    assert assigned(near, cuts, between(0.0), home="infra") == ("infra", "dev")
    assert assigned({"infra": 0.1, "dev": 0.1}, cuts, between(0.8), home="dev") == ("dev",)


def test_a_text_on_two_topics_belongs_to_both() -> None:
    one, other = blobs(40, seed=1), blobs(40, seed=2)
    middles = {"dev": centroid(one), "infra": centroid(other)}
    cuts = {
        "dev": member_range(one, middles["dev"]).cut - 0.3,
        "infra": member_range(other, middles["infra"]).cut - 0.3,
    }
    mixed = centroid(np.array([middles["dev"], middles["infra"]]))
    found = assigned({name: float(mixed @ middle) for name, middle in middles.items()}, cuts, middles)
    assert set(found) == {"dev", "infra"}


@given(scores, st.floats(-1, 1), st.floats(0, 1))
def test_a_higher_cut_never_assigns_more(given_scores: dict[str, float], low: float, more: float) -> None:
    lower = assigned(given_scores, dict.fromkeys(given_scores, low), APART)
    higher = assigned(given_scores, dict.fromkeys(given_scores, low + more), APART)
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
