"""Porter's stemmer against the Snowball project's own."""

import pytest
import snowballstemmer
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.effort import effort
from vestige.cognition.text.analyser import STEP_2, STEP_3, STEP_4, stem, stem_variants

ORACLE = snowballstemmer.stemmer("porter")

REAL_WORDS_TEXT = """
abilities able academically accommodate accounted activation activities adjustable adjustment adoption agreed
airliner allowance analogously angularity announcing argued arguments bandaged bled boring bowling boxes
bravery buzzed callousness caresses cats cease cherries classes committed communism communities
conditionally conferencing conformably connected connecting connection connections containers controlled
conversational copies crying database databases debugging decidedly decisiveness defensible deleted
dependencies dependent deployed deploying deployment die died differently digitizer disabled documented
dying easily effective electrical electricity embeddings emitted enabled evaluation exactly failing falling
families feed feelings feudalism filing fizzed flies formality formalize formative generally generalization
generalizations goodness gyroscopic happiness happy hesitancy hissing homologous homeless hopefulness hoping
hopping inference installed installing irritant issues itemization kindly knives logically logging maintained
matting meetings memories memory meshed migrated migrating motivational motoring multiplied nationally
necessary notebooks observation operators optimization organizer owed packages painting parsing password
permissions plastered policies ponies preferences prefers preventing probabilities probate programming
properties quantization queries queried radically rate ratings rational refused relational relatively
remembered remembering replacement replied requirements retrieval retrieved reviewing revival roll rolling
running scheduler scheduling schemas searches searching sensational sensibility sensitivity shared sing
sitting sized sky skies spies standardization storage stored stories stress studied studies switching syzygy
tanned tested testing ties timezone toying tried triplicate tries troubled typescript typing unable uploading
used useful user uses using utilities valency variables vectors versions vietnamization vileness visiting
weekly wheezing wished writing yesterday yields yoyo years zipping
"""
REAL_WORDS = REAL_WORDS_TEXT.split()


def test_real_words_stem_as_snowball_stems_them() -> None:
    assert {word: stem(word) for word in REAL_WORDS} == {word: ORACLE.stemWord(word) for word in REAL_WORDS}


@pytest.mark.parametrize("endings", [STEP_2, STEP_3, STEP_4], ids=["step 2", "step 3", "step 4"])
def test_every_rule_fires_as_in_snowball_behind_roots_of_every_measure(endings: dict[str, str]) -> None:
    roots = (
        "",
        "b",
        "y",
        "by",
        "tr",
        "tree",
        "oat",
        "trouble",
        "oaten",
        "private",
        "syl",
        "cabs",
        "habit",
        "eyet",
    )
    words = [
        root + ending + tail for root in roots for ending in endings for tail in ("", "s", "ed", "ing", "ly")
    ]
    assert {word: stem(word) for word in words} == {word: ORACLE.stemWord(word) for word in words}


@settings(deadline=None, max_examples=effort(250, nightly=5000))
@given(
    st.text("abcdegilmnosty", max_size=7),
    st.sampled_from(
        ["", "s", "es", "ies", "ed", "eed", "ing", "y", "ly", "ll", "e", "ion", *STEP_2, *STEP_3, *STEP_4]
    ),
    st.sampled_from(["", "s", "ed", "ing", "ly", "ness", "al"]),
)
def test_invented_words_stem_as_snowball_stems_them(root: str, middle: str, ending: str) -> None:
    word = root + middle + ending
    assert stem(word) == ORACLE.stemWord(word)


@pytest.mark.parametrize("pair", [
    ("simplify", "simplifications"), ("verified", "verification"), ("notifying", "notification"),
    ("classify", "classification"), ("identified", "identification"),
])  # fmt: skip
def test_the_two_stems_of_a_family_find_each_other(pair: tuple[str, str]) -> None:
    one, other = map(stem, pair)
    assert one != other  # else nothing is needed
    assert set(stem_variants(one)) == set(stem_variants(other)) == {one, other}


@pytest.mark.parametrize("word", ["gif", "wifi", "test", "sci-fi", "if"])
def test_other_words_have_one_stem(word: str) -> None:
    assert stem_variants(stem(word)) == (stem(word),)
