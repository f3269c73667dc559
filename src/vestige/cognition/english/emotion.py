"""The emotion of a text: valence and arousal, computed from its words and punctuation.

Valence and arousal are the two axes of Russell's circumplex (1980). A text that is both new and arousing
becomes a flashbulb memory (Brown & Kulik 1977); arousal at encoding makes memories last (McGaugh 2004).
"""

import enum
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from vestige.cognition.english.polarity import NEGATORS
from vestige.cognition.text.word_lists import sections
from vestige.core.lazy_dataclass import dataclass
from vestige.core.patterns import lazy_pattern

# -- Lexicon


class Feeling(enum.StrEnum):
    JOY = "joy"
    FRUSTRATION = "frustration"
    FEAR = "fear"
    SADNESS = "sadness"
    URGENCY = "urgency"
    SURPRISE = "surprise"
    CONFUSION = "confusion"
    NEUTRAL = "neutral"


@dataclass(frozen=True, slots=True, kw_only=True)
class EmotionWord:
    """A word's valence (-1 unpleasant to 1 pleasant), arousal (0 calm to 1 rousing) and feeling."""

    valence: float
    arousal: float
    feeling: Feeling


_LISTS = sections("vestige.cognition.english", "emotion")


@cache
def lexicon() -> dict[str, EmotionWord]:
    """The words of feeling, read when a text is judged first."""
    return {
        word: EmotionWord(valence=float(valence), arousal=float(arousal), feeling=feeling)
        for feeling in Feeling
        for valence, arousal, *words in map(str.split, _LISTS.get(feeling, ()))
        for word in words
    }


DEGREES: dict[str, float] = {
    word: float(factor) for factor, *words in map(str.split, _LISTS["degrees"]) for word in words
}
"""The factor by which the word before a feeling makes it stronger or weaker."""

URGENT_PHRASES = tuple(_LISTS["urgent_phrases"])


# -- Emotion of a text

READ_CHARS = 2_000  # Only the beginning of a text is read: a long one is a document.

CALM = 0.05  # The arousal of a text without any sign of emotion.
FELT_FROM = 0.2  # Below this arousal a text is neutral.

BESIDE_SHARES = (1.0, 0.25, 0.125)
"""The weights of the strongest word, the second and the third: a text is about as arousing as its strongest
word, whatever its length."""

NEGATION_WINDOW = 3
NEGATED_VALENCE = -0.7
"""“Not happy” is unpleasant, but less than “sad” …"""
NEGATED_AROUSAL = 0.5  # … and “no panic” calmer than “panic”, though not calm.

URGENCY_STEP, MAX_URGENCY = 0.3, 0.6
EXCLAMATION_STEP, MAX_EXCLAMATION = 0.05, 0.15
SHOUT_STEP, MAX_SHOUT = 0.1, 0.2

FLASHBULB_NOVELTY = 0.7
FLASHBULB_AROUSAL = 0.6
FLASHBULB_GAIN = 0.3

_WORD = lazy_pattern(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_URGENT = lazy_pattern(rf"\b(?:{'|'.join(URGENT_PHRASES)})\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Affect:
    """The emotion of a text: valence -1 to 1, arousal 0 to 1, the prevailing feeling, and the words that show
    it."""

    valence: float
    arousal: float
    feeling: Feeling
    signs: tuple[str, ...] = ()


def affect(text: str) -> Affect:
    """The emotion of a text by the lexicon, negation, degree, urgent phrases and punctuation."""
    read = text[:READ_CHARS].replace("’", "'")
    words = _WORD.findall(read)
    plain = [word.lower() for word in words]
    known = lexicon()
    used = [(word, _used(plain, at, known[word])) for at, word in enumerate(plain) if word in known]
    used.sort(key=lambda one: -one[1].arousal)
    felt = [one for _, one in used]
    urgent = _URGENT.findall(read.lower())
    shouted = [word for word in words if len(word) > 2 and word.isupper() and word.lower() in known]
    arousal = (
        sum(share * one.arousal for share, one in zip(BESIDE_SHARES, felt, strict=False))
        + min(URGENCY_STEP * len(urgent), MAX_URGENCY)
        + min(EXCLAMATION_STEP * read.count("!"), MAX_EXCLAMATION)
        + min(SHOUT_STEP * len(shouted), MAX_SHOUT)
    )
    arousal = min(1.0, max(CALM, arousal))
    return Affect(
        valence=_valence(felt),
        arousal=arousal,
        feeling=_prevailing(felt, len(urgent)) if arousal >= FELT_FROM else Feeling.NEUTRAL,
        signs=tuple(dict.fromkeys((*(word for word, _ in used[: len(BESIDE_SHARES)]), *urgent))),
    )


def is_flashbulb(novelty: float, arousal: float) -> bool:
    """Whether a memory is a flashbulb memory: new and arousing."""
    return novelty >= FLASHBULB_NOVELTY and arousal >= FLASHBULB_AROUSAL


def flashbulb_factor(arousal: float) -> float:
    return 1.0 + FLASHBULB_GAIN * arousal


def _used(words: Sequence[str], at: int, entry: EmotionWord) -> EmotionWord:
    """A word of the lexicon, adjusted by the words before it."""
    before = words[max(0, at - NEGATION_WINDOW) : at]
    arousal = min(1.0, entry.arousal * DEGREES.get(before[-1] if before else "", 1.0))
    if not any(word in NEGATORS or word.endswith(("n't", "cannot")) for word in before):
        return replace(entry, arousal=arousal)
    # A denied joy is a disappointment; any other denied feeling leaves little.
    return EmotionWord(
        valence=entry.valence * NEGATED_VALENCE,
        arousal=arousal * NEGATED_AROUSAL,
        feeling=Feeling.FRUSTRATION if entry.feeling is Feeling.JOY else Feeling.NEUTRAL,
    )


def _valence(felt: Sequence[EmotionWord]) -> float:
    """The mean valence of the words, weighted by arousal."""
    total = sum(one.arousal for one in felt)
    return sum(one.valence * one.arousal for one in felt) / total if total else 0.0


def _prevailing(felt: Sequence[EmotionWord], urgent: int) -> Feeling:
    """The feeling with the highest total arousal; ties go to the strongest word."""
    weights: dict[Feeling, float] = defaultdict(float)
    for one in felt:
        weights[one.feeling] += one.arousal
    if urgent:
        weights[Feeling.URGENCY] += URGENCY_STEP * urgent
    return max(weights, key=lambda feeling: weights[feeling], default=Feeling.NEUTRAL)
