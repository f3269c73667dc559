"""Where the subject of a statement ends and what it says begins. A guess by word classes, no parser."""

from collections.abc import Sequence

from vestige.cognition.verbs import (
    ARTICLES,
    AUXILIARIES,
    MANY_VALUED,
    OWNERS,
    PAST_EVENTS,
    PREPOSITIONS,
    PRONOUNS,
    ROLES,
    SETTINGS,
    SINGLE_VALUED,
)
from vestige.cognition.wording import TEMPORAL, Word

_KNOWN = SINGLE_VALUED | MANY_VALUED | ROLES | SETTINGS
_BEFORE_NOUNS = ARTICLES | OWNERS | PREPOSITIONS


def verb_at(words: Sequence[Word]) -> int | None:
    """The place of the main verb; 0 for an imperative, None where none is recognised."""
    if _is_elided(words):
        return 0
    for at in range(1, len(words)):
        if words[at].text in AUXILIARIES or _is_verb(words, at):
            return at
    if words and words[0].key in _KNOWN:
        return 0
    if words and words[0].text in PRONOUNS:
        return next((at for at, word in enumerate(words) if word.telling), None)
    endings = (
        at
        for at in range(1, len(words))
        if words[at].kind == "word"
        and words[at].text.endswith(("s", "ed"))
        and not words[at].text.endswith(("ss", "us"))
        and words[at - 1].text not in _BEFORE_NOUNS
    )
    return next(endings, None)


def _is_elided(words: Sequence[Word]) -> bool:
    """Whether a note begins with what is or was done: "Interviewing candidates", "Ordered a desk"."""
    if len(words) < 2 or words[0].kind != "word" or not words[0].text.endswith(("ing", "ed")):
        return False
    first = words[0].clause
    return not any(
        word.text in AUXILIARIES or _is_verb(words, at)
        for at, word in enumerate(words[:6])
        if at and word.clause == first
    )


def _is_verb(words: Sequence[Word], at: int) -> bool:
    word, before = words[at], words[at - 1]
    if before.text in _BEFORE_NOUNS or word.kind != "word":
        return False
    if word.text in PAST_EVENTS:
        return True
    inflected = word.text.endswith(("s", "ed")) or before.text in PRONOUNS or before.text.endswith("s")
    return word.key in _KNOWN and inflected


def subject(words: Sequence[Word]) -> list[Word]:
    """The telling words before the main verb; "since March" is not what a statement is about."""
    verb = verb_at(words)
    if verb is None:
        return []
    return [word for word in words[:verb] if word.telling and word.unit not in TEMPORAL]


def speaker(words: Sequence[Word]) -> str:
    """The pronoun a statement without any other subject is about; nothing for an imperative."""
    return next((word.text for word in words[: verb_at(words)] if word.text in PRONOUNS), "")
