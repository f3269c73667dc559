"""Words that carry feeling: how pleasant each is, how rousing, and which feeling it tells of.

A small list of our own, in groups that share their values: chosen by hand for what people and agents write
down, not measured on readers. Forms are listed as they are written, because stems mislead: "wonderful" has
the stem of "I wonder", "pleased" that of "please".
"""

import enum
from dataclasses import dataclass


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
class Entry:
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

LEXICON: dict[str, Entry] = {
    word: Entry(valence=valence, arousal=arousal, feeling=feeling)
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
