"""Question types (English): the kind of answer a question wants, and its intent.

A list or a judgement is put together from several memories that share few words with the question, so ranking
then gives words less weight (ranking/relevance.py).
"""

import enum
import re


class QuestionKind(enum.StrEnum):
    """The kind of answer. Everything else is OTHER."""

    LIST = "list"
    INFERENCE = "inference"
    WHEN = "when"
    OTHER = "other"


# "When did she move?", "How long have they known each other?", "What year was it?"
_WHEN = re.compile(r"^\s*when\b|\bhow long\b|\bwhat (?:date|day|month|year|time)\b", re.IGNORECASE)

_WHICH = (
    r"^\s*(?:what|which|whose|in what|in which|on what|at what|for what|from what|to which|around which)\b"
)
_VERB = r"(?:has|have|had|does|do|did|are|is|were|was|might|would|could|can|both|that)\b"
_NO_PLURAL = r"(?!his\b|this\b|was\b|is\b|has\b|does\b|as\b|its\b|\w+ss\b|\w+us\b|\w+['’]s\b)"
# "What books has Melanie read?", "In which countries did they meet?", "Which outdoor games does she like?"
_WHAT_THINGS = re.compile(
    rf"{_WHICH}(?:\s+[\w'’-]+){{0,4}}?\s+{_NO_PLURAL}(?:\w{{2,}}s|people|children|music|food|media)\s+{_VERB}",
    re.IGNORECASE,
)
# "Where has Maria made friends?", "What has he tried so far?"; not "How does …" and "How long has …"
_HAS_DONE = re.compile(
    r"^\s*(?:what|which|who|where|how(?! (?:long|has|have|did|does|do)\b)|in what|in which)\b"
    r".*?\b(?:has|have)\s+\w",
    re.IGNORECASE,
)
# "How many children does she have?"
_HOW_MANY = re.compile(r"\bhow many\b", re.IGNORECASE)
# "What do Jon and Gina both like?", "What do they have in common?"
_IN_COMMON = re.compile(r"\b(?:both|in common|each other|all the)\b", re.IGNORECASE)
_LISTS = (_WHAT_THINGS, _HAS_DONE, _HOW_MANY, _IN_COMMON)
# "What kind of car does she drive?" wants one answer, however it is put.
_ONE_KIND = re.compile(r"\b(?:kinds?|types?|sorts?) of\b", re.IGNORECASE)

# "Would she enjoy a classical concert?", "What might Melanie ascribe it to?"
_SUPPOSING = re.compile(
    r"\b(?:would|might|likely|considered|probably|personality|traits?|attributes?)\b", re.IGNORECASE
)
# "Is Oscar her pet?", "Did they get married?"
_YES_OR_NO = re.compile(
    r"^\s*(?:is|are|was|were|do|does|did|has|have|can|could|should|will)\b", re.IGNORECASE
)
_JUDGEMENTS = (_SUPPOSING, _YES_OR_NO)

# A question that names its time wants what happened then.
_DATED = re.compile(
    r"\b(?:january|february|march|april|in may|may,? \d{1,2}|june|july|august|september|october|november"
    r"|december|(?:19|20)\d\d)\b",
    re.IGNORECASE,
)


def kind_of(text: str) -> QuestionKind:
    """The kind of a question; the first that fits, in the order of `QuestionKind`."""
    if not _DATED.search(text):
        if any(pattern.search(text) for pattern in _LISTS) and not _ONE_KIND.search(text):
            return QuestionKind.LIST
        if any(pattern.search(text) for pattern in _JUDGEMENTS):
            return QuestionKind.INFERENCE
    return QuestionKind.WHEN if _WHEN.search(text) else QuestionKind.OTHER


def supposes(text: str) -> bool:
    """Whether a question is hypothetical: it may name things that no memory mentions."""
    return bool(_SUPPOSING.search(text))


# -- intent: a cause, a history, a comparison, a check, or a synthesis ------------------------------


class Intent(enum.StrEnum):
    """The intent of a question."""

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
_ASKS_WHETHER = re.compile(
    r"^\s*(?:is|are|am|was|were|do|does|did|has|have|had|can|could|will|would|should|must)\b.*\?\s*$",
    re.IGNORECASE | re.DOTALL,
)


def intent_of(text: str) -> Intent:
    """The first intent whose words the text has; a yes-or-no question is a fact check; else synthesis."""
    for intent, pattern in _PATTERNS.items():
        if pattern.search(text):
            return intent
    return Intent.FACT_CHECK if _ASKS_WHETHER.match(text) else Intent.SYNTHESIS
