"""Is a text something said to somebody? Such words are kept as they were said, and state nothing for good."""

import re

from vestige.cognition.corrections import announces

# Greetings, thanks and reactions. Words that open a correction as well ("no", "sorry", "oops") are none.
_CALLS = "hey|hi|hiya|hello|bye|goodbye|wow|whoa|yay|yeah|yep|yup|congrats|congratulations|haha\\w*|lol"
_REACTIONS = (
    "yes|sure|okay|ok|cool|nice|great|awesome|amazing|lovely|sweet|absolutely|definitely|totally|exactly|"
    "of course|sounds (?:good|great)|no (?:worries|problem|doubt|way)|good (?:luck|job|night|morning)|"
    "well done|way to go|keep it up|take care|glad to \\w+"
)
_OPENING = re.compile(
    rf"\s*(?:(?:{_CALLS})\b|(?:thanks|thank you|cheers)\b(?! to\b)|(?:{_REACTIONS})\s*[,!.])", re.IGNORECASE
)
_SPEAKER = re.compile(r"^\s*[^\W\d_][\w.'’-]*:\s+")
_NAME = re.compile(r"\s*[^\W\d_][\w.'’-]*(?: [A-Z][\w.'’-]*)?:\s")
_QUESTION = re.compile(r"\?[\"”')\]]*(?:\s|$)")
_EXCLAMATION = re.compile(r"[^.?!:;]*!(?:\s|$)")


def is_spoken(text: str, said: str) -> bool:
    """Whether the name of a speaker comes before what is said, and no announcement ("Correction: …")."""
    before = text.removesuffix(said)
    return bool(before and _NAME.fullmatch(before)) and not announces(before)


def is_talk(text: str) -> bool:
    """Whether a text greets, thanks, asks, or begins by calling out."""
    said = _SPEAKER.sub("", text, count=1)
    return bool(_OPENING.match(said) or _EXCLAMATION.match(said) or _QUESTION.search(said))
