"""Saying the same in other words, with a likeness of words as a model would give it."""

import numpy as np
import pytest

from testbed.failures import each
from vestige.cognition.english.words import words_of
from vestige.cognition.gate.paraphrase import Likeness, could_restate, restates, word_likeness


def likeness(new: str, old: str, **alike: str) -> Likeness:
    """1 for the same word, .9 for those named as pairs, else 0."""
    pairs = {frozenset(pair) for pair in alike.items()}
    return np.array(
        [
            [
                1.0 if one.key == other.key else 0.9 * (frozenset((one.text, other.text)) in pairs)
                for other in words_of(old)
            ]
            for one in words_of(new)
        ],
        dtype=np.float32,
    )


def test_every_word_with_a_counterpart_is_the_same_in_other_words() -> None:
    new, old = "Every Thursday the app is released", "The app ships every Thursday"
    assert restates(new, old, 0.85, likeness(new, old, released="ships"))
    assert not restates(new, old, 0.85, likeness(new, old))
    assert not restates(new, old, 0.6, likeness(new, old, released="ships"))


@each(
    ("old", "new"),
    [
        ("Ada manages Bob.", "Bob manages Ada."),
        ("The cat is chasing the dog.", "The dog is chasing the cat."),
        ("Deploy before lunch.", "Deploy after lunch."),
        ("The left lamp is broken.", "The right lamp is broken."),
        ("Lunch is at 12:30.", "Lunch is at 13:00."),
        ("The flag is set.", "The flag is not set."),
        ("Restart the node.", "Restart the node only if it hangs."),
        ("The laptop is at the repair shop.", "The laptop came back from the repair shop."),
        ("The cheetah is running behind its prey.", "The prey is running behind the cheetah."),
        ("Joan studied physics at Leeds.", "Joan studied philosophy at Leeds as well."),
        ("All services log to Loki.", "Most services log to Loki."),
        ("The rollout is running.", "The rollout is still running."),
        ("The margin is high.", "Finance restated the margin: it is high."),
    ],
)
def test_what_no_wording_changes_is_never_the_same(old: str, new: str) -> None:
    everything = np.ones((len(words_of(new)), len(words_of(old))), dtype=np.float32)
    assert not restates(new, old, 0.99, everything)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Ada manages Bob.", "Bob is managed by Ada."),
        ("Ada leads the platform team.", "The platform team is led by Ada."),
        ("Water the ficus once a week.", "The ficus gets watered weekly."),
        ("The shop closes at 6:45 in the evening.", "At 18:45 the shop shuts."),
        ("Run the linter before every commit.", "Prior to each commit, run the linter."),
    ],
)
def test_voice_order_and_forms_of_words_change_nothing(old: str, new: str) -> None:
    assert restates(new, old, 0.95, likeness(new, old))


def test_one_word_for_another_must_be_alike_wherever_they_stand() -> None:
    old, new = (
        "In winter the boat lies in the northern harbour.",
        "The boat lies in the small harbour in winter.",
    )
    assert not restates(new, old, 0.9, likeness(new, old))
    assert restates(new, old, 0.9, likeness(new, old, small="northern"))


def test_words_said_of_a_thing_must_be_nearly_the_same() -> None:
    old, new = "Remote work is encouraged on Fridays.", "Remote work is discouraged on Fridays."
    alike = likeness(new, old)
    assert not restates(new, old, 0.96, np.maximum(alike, 0.8, dtype=np.float32))


def test_of_a_very_short_text_every_word_needs_a_counterpart() -> None:
    old, new = "The boats Ada sails.", "Ada repairs wooden boats."
    assert not restates(new, old, 0.9, likeness(new, old, wooden="boats"))
    longer = f"{old[:-1]} in Kiel.", f"{new[:-1]} in Kiel."
    assert restates(longer[1], longer[0], 0.9, likeness(longer[1], longer[0], wooden="boats"))


def test_another_name_is_another_thing_however_alike_a_model_finds_it() -> None:
    new, old = "The bucket is in eu-west-1", "The bucket is in eu-central-1"
    everything = np.ones((len(words_of(new)), len(words_of(old))), dtype=np.float32)
    assert not restates(new, old, 0.97, everything)


def test_a_sentence_without_a_counterpart_is_not_lost_in_a_long_text() -> None:
    shared = "the parser reads every file of the folder and keeps a table of all names it has found there"
    new, old = f"{shared}. Rain fell.", f"{shared}. Boats left."
    assert not restates(new, old, 0.95, likeness(new, old))


def test_without_a_likeness_it_takes_the_same_words_in_the_same_order() -> None:
    assert restates("The servers were restarted", "The server was restarted", 0.9, None)
    assert not restates("The servers were rebooted", "The server was restarted", 0.9, None)


def test_a_text_of_another_length_is_not_worth_comparing() -> None:
    long = "Ada keeps bees behind the house and sells honey, candles and wax at the market"
    assert could_restate("Ada sells honey at the market", "Ada sells her honey at the market", 0.9)
    assert not could_restate("Ada sells", long, 0.9)


def test_words_are_as_alike_as_the_tokens_they_consist_of() -> None:
    new, old = words_of("red bus"), words_of("blue bus")
    spans = np.array([[0, 3], [4, 7]], dtype=np.int32), np.array([[0, 4], [5, 8]], dtype=np.int32)
    states = np.eye(3, dtype=np.float32)
    found = word_likeness(new, spans[0], states[[0, 1]], old, spans[1], states[[2, 1]])
    assert found.tolist() == [[0.0, 0.0], [0.0, 1.0]]
    nothing = np.empty((0, 2), dtype=np.int32), np.empty((0, 3), dtype=np.float32)
    assert word_likeness(new, *nothing, old, spans[1], states[[2, 1]]).tolist() == [[0.0, 0.0], [0.0, 0.0]]
