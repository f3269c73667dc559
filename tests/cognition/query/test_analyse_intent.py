"""What a question is after, by its words."""

import pytest

from testbed.failures import each
from vestige.cognition.query.analyse import Intent, intent_of


@each(
    ("text", "intent"),
    [
        ("Why did the deploy fail?", Intent.ROOT_CAUSE),
        ("What caused the outage in March?", Intent.ROOT_CAUSE),
        ("the reason for choosing SQLite", Intent.ROOT_CAUSE),
        ("root cause of the memory leak", Intent.ROOT_CAUSE),
        ("When did we move to Postgres?", Intent.TIMELINE),
        ("history of the auth module", Intent.TIMELINE),
        ("How has the team's opinion changed?", Intent.TIMELINE),
        ("Where did Ada use to live? She used to be in Rome.", Intent.TIMELINE),
        ("Postgres vs. SQLite", Intent.COMPARISON),
        ("difference between the two caches", Intent.COMPARISON),
        ("Compare tabs and spaces", Intent.COMPARISON),
        ("Is it true that Bob left?", Intent.FACT_CHECK),
        ("Should we use tabs?", Intent.FACT_CHECK),
        ("Does Ada eat fish?", Intent.FACT_CHECK),
        ("please verify the port of the proxy", Intent.FACT_CHECK),
        ("Ada's favourite food", Intent.SYNTHESIS),
        ("What do we know about the proxy?", Intent.SYNTHESIS),
        ("When is the standup?", Intent.SYNTHESIS),
    ],
)
def test_the_intent_follows_from_words_and_phrases(text: str, intent: Intent) -> None:
    assert intent_of(text) is intent


@pytest.mark.parametrize(
    "text",
    [
        "What makes Ada indifferent?",
        "the because-clause in the parser",
        "unverified accounts",
        "prehistory ofs",
        "the whyever module",
        "isotopes in the sample",
    ],
)
def test_parts_of_words_mean_nothing(text: str) -> None:
    assert intent_of(text) is Intent.SYNTHESIS


def test_the_cause_of_a_change_is_a_cause() -> None:
    assert intent_of("Why has it changed over time?") is Intent.ROOT_CAUSE
