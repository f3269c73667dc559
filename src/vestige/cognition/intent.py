"""What somebody wants to know: a cause, a history, a comparison, whether it is true, or all there is.

Read off whole words and phrases: "indifferent" compares nothing, "because" alone asks for no cause.
"""

import enum
import re


class Intent(enum.StrEnum):
    """What kind of answer is wanted."""

    ROOT_CAUSE = "RootCause"
    TIMELINE = "Timeline"
    COMPARISON = "Comparison"
    FACT_CHECK = "FactCheck"
    SYNTHESIS = "Synthesis"


# In this order: "Why did it change over time?" asks for the cause of a change.
_PHRASES = {
    Intent.ROOT_CAUSE: r"why|how come|root causes?|what(?:'s| is| was)? caus(?:ed|es|ing)|causes? of"
    r"|because of|reasons? (?:for|behind|why|that)|led to|due to what",
    Intent.TIMELINE: r"timeline|chronolog(?:y|ical|ically)|history of|over time|evol(?:ution|ved?|ving)"
    r"|sequence of|when (?:did|was|were|has|have)|since when|used to"
    r"|how (?:has|have|did)\b.*\bchanged?|what (?:has |have )?changed",
    Intent.COMPARISON: r"differ(?:s|ed|ent|ence|ences|ently)?|compar(?:e|es|ed|ing|ison|isons)|versus|vs"
    r"|changed from|(?:better|worse|faster|slower|older|newer) than|pros and cons",
    Intent.FACT_CHECK: r"is (?:it|this|that) (?:true|correct|right|so)|did (?:i|we)|was there|were there"
    r"|verify|confirm|double-check|should (?:i|we)|still (?:true|valid|correct|the case)",
}
_PATTERNS = {
    intent: re.compile(rf"\b(?:{phrases})\b", re.IGNORECASE | re.DOTALL)
    for intent, phrases in _PHRASES.items()
}
# "Does Ada eat fish?" wants to be checked, whatever else it says.
_YES_OR_NO = re.compile(
    r"^\s*(?:is|are|am|was|were|do|does|did|has|have|had|can|could|will|would|should|must)\b.*\?\s*$",
    re.IGNORECASE | re.DOTALL,
)


def intent_of(text: str) -> Intent:
    """The first intent whose words the text has; a question for yes or no checks a fact; else synthesis."""
    for intent, pattern in _PATTERNS.items():
        if pattern.search(text):
            return intent
    return Intent.FACT_CHECK if _YES_OR_NO.match(text) else Intent.SYNTHESIS
