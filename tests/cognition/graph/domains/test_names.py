"""Names of domains: the words that tell a group apart, as people write them."""

from collections import Counter

import numpy as np

from tests.cognition.graph.domains.test_discovery import blobs
from vestige.cognition.graph.domains.names import exemplars, label_of, slug, top_terms, with_tags

SHEETS = [f"How do I sum column {one} in Excel with VBA" for one in "ABCDEFGH"]
ROUTES = [f"The BGP session to peer {one} flaps when the route table changes" for one in "ABCDEFGH"]
STUDIO = [f"Visual Studio shows error {one} when the project is built" for one in "ABCDEFGH"]


def test_words_that_only_one_group_has_come_first_and_short_technical_ones_are_kept() -> None:
    sheets, routes, _ = top_terms([SHEETS, ROUTES, STUDIO])
    assert {"Excel", "VBA"} <= set(sheets)
    assert "BGP session" in routes or "BGP" in " ".join(routes)


def test_a_pair_that_is_always_written_together_is_one_term() -> None:
    *_, studio = top_terms([SHEETS, ROUTES, STUDIO])
    assert "Visual Studio" in studio
    assert "Visual" not in studio
    assert "Studio" not in studio


def test_a_word_of_one_or_two_members_never_names_a_group() -> None:
    secret = [*SHEETS, "hunter2 opens the Excel vault", "hunter2 again"]
    found, *_ = top_terms([secret, ROUTES, STUDIO])
    assert not any("hunter2" in term for term in found)


def test_a_word_in_a_third_of_all_texts_names_no_group() -> None:
    groups = [[f"{text} today" for text in group] for group in (SHEETS, ROUTES, STUDIO)]
    assert not any("today" in term.split() for terms in top_terms(groups) for term in terms)


def test_numbers_times_and_common_verbs_name_a_group_only_if_nothing_else_does() -> None:
    baking = [f"Needs {one} minutes: sourdough in three hours" for one in "ABCD"]
    clocks = [f"Took {one} minutes, then three hours in August" for one in "ABCD"]
    found, times = top_terms([baking, clocks])
    assert found[0] == "sourdough"
    assert label_of(found) == "sourdough"
    assert set(times) >= {"August", "Took"}


def test_names_depend_on_the_texts_only() -> None:
    assert top_terms([SHEETS, ROUTES, STUDIO]) == top_terms([SHEETS, ROUTES, STUDIO])
    assert top_terms([]) == []
    assert top_terms([["", "  ", "…"]]) == [[]]


def test_a_tag_of_most_members_that_is_rare_elsewhere_is_the_first_term() -> None:
    tags = [["sheets", "work"]] * 5 + [["work"]] * 3
    everywhere = Counter({"sheets": 6, "work": 90})
    assert with_tags(["Excel", "VBA"], tags, everywhere) == ["sheets", "Excel", "VBA"]
    assert label_of(["sheets", "Excel", "VBA"]) == "sheets, Excel"


def test_an_id_is_made_of_plain_characters() -> None:
    assert slug("Visual Studio, C#") == "visual-studio-c"
    assert slug("日本語") == ""


def test_exemplars_are_near_the_middle_and_differ_from_each_other() -> None:
    vectors = blobs(30, spread=1.5)
    same = np.concatenate((vectors[:1], vectors))
    chosen = exemplars(same)
    assert len(chosen) == 3
    assert not {0, 1} <= set(chosen)
    assert exemplars(vectors[:0]) == []
