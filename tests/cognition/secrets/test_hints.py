"""The hints that a text has are those that a plain search finds."""

from hypothesis import given
from hypothesis import strategies as st

from vestige.cognition.secrets.find import DETECTORS
from vestige.cognition.secrets.hints import HintSet
from vestige.cognition.secrets.provider_keys import SHAPES

FIXED = sorted({shape.hint for shape in SHAPES} | {hint for _, hints in DETECTORS for hint in hints})
HINTS = HintSet(FIXED)
PLAIN = [one for one in FIXED if not one.startswith("<")]


@given(st.lists(st.one_of(st.sampled_from(PLAIN), st.text(max_size=5)), max_size=6).map("".join))
def test_hints_are_found_wherever_they_stand(text: str) -> None:
    found = HINTS.found(text)
    assert [one for one in PLAIN if found & HINTS.mask([one])] == [one for one in PLAIN if one in text]


def test_a_word_by_itself_is_no_part_of_another() -> None:
    hints = HintSet(["<pin>"])
    assert hints.found("the pin: 1234") & hints.mask(["<pin>"])
    assert not hints.found("pins, mapping and pin_code") & hints.mask(["<pin>"])
