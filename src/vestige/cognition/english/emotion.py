"""What a text feels like: pleasant or not, calm or rousing, read off its words and signs.

Valence and arousal are the two axes of Russell's circumplex (1980). What is both new and rousing is kept as
a flashbulb memory (Brown & Kulik 1977); that arousal at encoding makes memories last is McGaugh (2004).
"""

import enum
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vestige.cognition.english.polarity import NEGATORS

# -- Words that carry feeling: how pleasant each is, how rousing, and which feeling it tells of.


class Feeling(enum.StrEnum):
    """What a text feels like."""

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


_GROUPS: dict[Feeling, tuple[tuple[float, float, str], ...]] = {
    Feeling.JOY: (
        (0.9, 0.70, "thrilled ecstatic overjoyed elated euphoric jubilant breakthrough triumph"),
        (0.8, 0.55, "married wedding pregnant graduated graduation newborn victory triumphant"),
        (0.8, 0.40, "excited exciting excitement delighted delightful fantastic incredible"),
        (0.7, 0.30, "amazing awesome wonderful brilliant celebrate celebrated celebrating celebration"),
        (0.7, 0.25, "happy happier happiest happiness joy joyful proud won love loved loves loving"),
        (0.5, 0.15, "glad great excellent perfect beautiful grateful thankful relieved relief success"),
        (0.4, 0.10, "good nice enjoy enjoyed enjoys fun favorite favourite pleased thanks lovely cool"),
    ),
    Feeling.FRUSTRATION: (
        (-0.9, 0.85, "catastrophe catastrophic disaster disastrous devastating devastated"),
        (-0.8, 0.75, "furious outraged outrageous enraged infuriating infuriated rage"),
        (-0.8, 0.70, "hate hated hates hatred despise unacceptable nightmare destroyed ruined"),
        (-0.7, 0.60, "horrible horrendous disgusting atrocious outage outages corrupted"),
        (-0.6, 0.50, "angry anger frustrated frustrating frustration awful terrible terribly"),
        (-0.6, 0.50, "crash crashed crashes crashing corruption betrayed betrayal incident"),
        (-0.5, 0.40, "annoyed annoying annoyance irritated irritating upset disappointed"),
        (-0.5, 0.40, "disappointing disappointment embarrassed embarrassing ashamed unfair"),
        (-0.5, 0.40, "fail failed failing fails failure failures lost losing unusable"),
        (-0.4, 0.30, "broken broke breaks breaking stuck blocked blocker regression painful"),
        (-0.3, 0.20, "error errors bug bugs wrong bad worse worst slow tedious flaky mistake"),
    ),
    Feeling.FEAR: (
        (-0.8, 0.75, "terrified terrifying terror panic panicked panicking horrified ransomware"),
        (-0.7, 0.65, "breach breached compromised attacked attacker hacked leaked exploited hijacked"),
        (-0.6, 0.55, "scared scary afraid frightened frightening alarmed alarming dread danger dangerous"),
        (-0.5, 0.45, "threat threats threatened threatening vulnerability vulnerabilities leak leaks"),
        (-0.4, 0.35, "worried worry worries worrying anxious anxiety nervous fear fears unsafe attack"),
        (-0.3, 0.25, "risk risks risky concerned concern concerns insecure careful caution beware"),
    ),
    Feeling.SADNESS: (
        (-0.9, 0.75, "tragedy tragic suicide murdered fatal fatally deadly heartbroken heartbreaking"),
        (-0.8, 0.65, "died dies death funeral grief grieving mourning cancer miscarriage"),
        (-0.6, 0.45, "killed divorce divorced hospital hospitalized hospitalised injured evicted"),
        (-0.6, 0.35, "sad sadly sadness crying cried tears depressed depressing depression hopeless"),
        (-0.5, 0.30, "lonely loneliness miserable regret regrets regretted unhappy homesick sorry"),
    ),
    Feeling.URGENCY: (
        (-0.3, 0.80, "emergency emergencies urgent urgently asap mayday"),
        (-0.1, 0.60, "critical critically crucial crucially vital severe severely imperative"),
        (-0.1, 0.45, "immediately immediate overdue deadline deadlines escalate escalated escalation"),
        (0.0, 0.40, "important importantly essential serious seriously warning warnings hurry"),
        (0.0, 0.25, "must never always mandatory required forbidden priority priorities"),
    ),
    Feeling.SURPRISE: (
        (-0.4, 0.70, "shocked shocking shock stunned appalled unthinkable"),
        (0.2, 0.55, "astonished astonishing astounding unbelievable unprecedented miracle miraculous"),
        (0.1, 0.40, "surprised surprising surprisingly surprise unexpected unexpectedly sudden"),
        (0.1, 0.30, "suddenly wow whoa discovered discovery finally remarkable remarkably"),
    ),
    Feeling.CONFUSION: (
        (-0.3, 0.35, "baffled baffling bewildered bewildering perplexed perplexing inexplicable"),
        (-0.2, 0.25, "confused confusing confusion puzzled puzzling bizarre mysterious mystery"),
        (-0.1, 0.15, "unclear weird strange strangely odd oddly unsure uncertain ambiguous"),
    ),
}  # fmt: skip

LEXICON: dict[str, EmotionWord] = {
    word: EmotionWord(valence=valence, arousal=arousal, feeling=feeling)
    for feeling, groups in _GROUPS.items()
    for valence, arousal, words in groups
    for word in words.split()
}

DEGREES: dict[str, float] = {
    **dict.fromkeys("very extremely incredibly really so totally completely utterly deeply".split(), 1.3),
    **dict.fromkeys("slightly somewhat mildly fairly rather little bit".split(), 0.6),
}
"""By how much the word before a feeling makes it stronger or weaker."""

URGENT_PHRASES = (
    r"as soon as possible",
    r"right (?:now|away)",
    r"drop everything",
    r"without delay",
    r"top priority",
    r"running out of time",
    r"(?:before|until) it (?:is|was) too late",
    r"(?:is|are|was|were|went|goes|still) down",
    r"(?:do not|don't|never) (?:ever )?forget",
    r"whatever you do",
    r"under no circumstances",
    r"at all costs",
)
"""What presses without a word that does, as regular expressions over lower case."""


# -- emotion

READ_CHARS = 2_000
"""Feeling is read off the beginning of a text: a long one is a document."""

CALM = 0.05
"""The arousal of a text without any sign of it."""
FELT_FROM = 0.2
"""Below this arousal a text is neutral."""

BESIDE_SHARES = (1.0, 0.25, 0.125)
"""How much the strongest word counts, the next one, and the one after: a text is as rousing as its
strongest word and little more, however long it is."""

NEGATION_WINDOW = 3
NEGATED_VALENCE = -0.7
"""“Not happy” is unpleasant, but less than “sad” …"""
NEGATED_AROUSAL = 0.5
"""… and “no panic” calmer than “panic”, though not calm."""

URGENCY_STEP, MAX_URGENCY = 0.3, 0.6
EXCLAMATION_STEP, MAX_EXCLAMATION = 0.05, 0.15
SHOUT_STEP, MAX_SHOUT = 0.1, 0.2

FLASHBULB_NOVELTY = 0.7
FLASHBULB_AROUSAL = 0.6
FLASHBULB_GAIN = 0.3

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_URGENT = re.compile(rf"\b(?:{'|'.join(URGENT_PHRASES)})\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Affect:
    """How a text feels: valence -1 to 1, arousal 0 to 1, the feeling that prevails, and what tells so."""

    valence: float
    arousal: float
    feeling: Feeling
    signs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Felt:
    """A word of the lexicon as it is used here."""

    word: str
    valence: float
    arousal: float
    feeling: Feeling


def affect(text: str) -> Affect:
    """What a text feels like, by the lexicon, negation, degree, urgent phrases and signs."""
    read = text[:READ_CHARS].replace("’", "'")
    words = _WORD.findall(read)
    felt = sorted(_felt([word.lower() for word in words]), key=lambda one: -one.arousal)
    urgent = _URGENT.findall(read.lower())
    shouted = [word for word in words if len(word) > 2 and word.isupper() and word.lower() in LEXICON]
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
        signs=tuple(dict.fromkeys((*(one.word for one in felt[: len(BESIDE_SHARES)]), *urgent))),
    )


def is_flashbulb(novelty: float, arousal: float) -> bool:
    """Whether something is kept like a photograph: it was new and it was rousing."""
    return novelty >= FLASHBULB_NOVELTY and arousal >= FLASHBULB_AROUSAL


def flashbulb_factor(arousal: float) -> float:
    """By what a flashbulb's stability is multiplied."""
    return 1.0 + FLASHBULB_GAIN * arousal


def _felt(words: Sequence[str]) -> Iterator[_Felt]:
    for at, word in enumerate(words):
        entry = LEXICON.get(word)
        if entry is not None:
            yield _used(words, at, entry)


def _used(words: Sequence[str], at: int, entry: EmotionWord) -> _Felt:
    """A word with what the words before it make of it."""
    before = words[max(0, at - NEGATION_WINDOW) : at]
    arousal = min(1.0, entry.arousal * DEGREES.get(before[-1] if before else "", 1.0))
    if not any(word in NEGATORS or word.endswith(("n't", "cannot")) for word in before):
        return _Felt(word=words[at], valence=entry.valence, arousal=arousal, feeling=entry.feeling)
    # What is not pleasant is a disappointment; of anything else that is denied, little feeling is left.
    return _Felt(
        word=words[at],
        valence=entry.valence * NEGATED_VALENCE,
        arousal=arousal * NEGATED_AROUSAL,
        feeling=Feeling.FRUSTRATION if entry.feeling is Feeling.JOY else Feeling.NEUTRAL,
    )


def _valence(felt: Sequence[_Felt]) -> float:
    """The mean over the words, the rousing ones counting more."""
    total = sum(one.arousal for one in felt)
    return sum(one.valence * one.arousal for one in felt) / total if total else 0.0


def _prevailing(felt: Sequence[_Felt], urgent: int) -> Feeling:
    """The feeling with most arousal behind it; of equal ones that of the strongest word."""
    weights: dict[Feeling, float] = defaultdict(float)
    for one in felt:
        weights[one.feeling] += one.arousal
    if urgent:
        weights[Feeling.URGENCY] += URGENCY_STEP * urgent
    return max(weights, key=lambda feeling: weights[feeling], default=Feeling.NEUTRAL)
