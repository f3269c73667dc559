"""Wording that announces a correction or a change, and what it rejects."""

import re
from collections.abc import Sequence
from functools import lru_cache

from vestige.cognition.polarity import NEGATORS, contrasted, denied
from vestige.cognition.wording import Word

_MONTHS = "january|february|march|april|may|june|july|august|september|october|november|december"
_DAYS = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"


def any_of(phrases: str) -> str:
    """A pattern for any of the phrases, one or more on a line, apart from each other by a semicolon."""
    return "|".join(phrase.strip() for line in phrases.strip().splitlines() for phrase in line.split(";"))


# What says outright that something said before was wrong or is over …
_RETRACTED = any_of(
    r"""
    actual+l?y; in (?:fact|reality|truth); corrections?; turns? out; turned out; after all; contrary to; typo
    (?:correct(?:ed|ing|s)?|amend(?:ed|ing)?) (?:me|us|myself|it|that|this|the|my|our|his|her|their|to)
    amended
    (?:stands?|is|was|been|now) corrected; corrected (?:value|version|figure|number|date|name|note|entry)
    (?:i |i'd |we )?meant; should (?:read|say|have (?:been|said|read))
    (?:the )?(?:right|correct|real|actual) one
    (?:the|its|his|her|their) (?:right|correct|real|actual) \w+ (?:is|are|was|were|should)
    recounted(?=[:,;]); re-?(?:stated|checked|measured|calculated|computed|verified|examined|read it|assessed)
    (?:looked|checked|counted|read|measured|asked|tested|verified)(?: \w+){0,4} again; double[- ]checked
    on (?:second thought|closer \w+|reflection|review|inspection); set(?:ting)? the record straight
    (?:is|are|was|were|be|'s) (?:wrong|mistaken|incorrect|inaccurate|void|outdated|a mistake|an error|off by)
    (?:is|was|'s) (?:not|n't) (?:true|correct|right|accurate|the case); isn't (?:true|correct|right|so)
    mistaken(?:ly)?; by mistake; in error; my (?:mistake|bad|error|fault|apologies); apologies
    not quite right
    (?:got|had|have|has|put|wrote|gave|told)(?: \w+){1,4} (?:wrong|backwards|mixed up|confused|reversed)
    mix(?:ed|ing)(?: \w+)? up; mix-up; wrong (?:number|date|name|one|day|time|path|value|person|place)
    (?:confused|confusing|conflated|mistook)(?: \w+){1,3} (?:with|for); supposedly; contradicting
    mis(?:read|heard|remembered|spoke|typed|stated|noted|understood|quoted|labell?ed|recorded|counted|reported)
    mis(?:calculated|judged|identified|attributed|spelled|spelt|placed|recalled)
    (?:scratch|strike) that; never ?mind; ignore (?:what|that|my|the|previous); forget (?:what|that)
    disregard
    (?:i|we) (?:previously |earlier |originally |first )?(?:said|wrote|noted|told you)
    (?:i|we) (?:previously |earlier |originally |first )?(?:thought|assumed|believed|claimed)
    (?:i|we) (?:had )?(?:blamed|wrongly|falsely|erroneously); (?:in|from) my (?:notes?|last message)
    change of plans?; to (?:correct|clarify|be precise)
    (?:earlier|previous|last|first|old) (?:note|info|information|message|entry|statement|claim) (?:was|is)
    to (?:\w+ )?(?:earlier|previous|last|first|old) (?:note|info|information|message|entry|statement|claim)
    updated? (?:programme|program|info|information|plan|schedule|note|figure); all along
    no longer; any ?more; as of now; from now on
    """
)
_EXCLAIMED = any_of("correction; fix; edit; erratum; wrong; oops; sorry; no; nope; wait; whoops; hm+; ah; oh")
_RETRACTIONS = re.compile(
    rf"\b(?:{_RETRACTED})\b|^(?:{_EXCLAIMED})\b\s*[,:;.!–—-]|\bs/[^/\s]+/[^/\s]+/", re.IGNORECASE
)

# … and what tells of a change, which may also be the plain content of a statement.
_CHANGED = any_of(
    rf"""
    (?:changed|switched|migrated|moved|transferred|relocated|reassigned)(?: \w+){{0,3}} (?:to|from|into)
    (?:rescheduled|postponed|upgraded|downgraded|renamed|converted|updated?|bumped) (?:to|from|into)
    (?:raised|lowered|increased|reduced|promoted|handed over|pushed(?: back)?|extended|dropped|down) to
    (?:is|are|was|were|been|got) (?:replaced|superseded|renamed|moved|dropped|retired|removed|deprecated)
    replaced (?:by|with|\w+ (?:by|with)); superseded
    used to (?:be|have|use|live|work|run); stepped down; gave up; given up; stopped \w+ing; took over
    taken over; (?:has|have) left; left (?:the|his|her|their|our)
    resigned; quit; shut down; switched off; phased out; (?:is|are) now
    now (?:uses?|prefers?|lives?|works?|runs?|drives?|has|is|costs?|takes?|requires?|goes|reports?|owns?)
    now (?:leads?|manages?|starts?|points?)
    since (?:{_MONTHS}|{_DAYS}|spring|summer|autumn|winter|last|this|yesterday|then|the \w+|(?:19|20)\d\d)
    as of; starting (?:in|on|from|next|this|today|tomorrow|monday)
    from (?:today|tomorrow|next|{_DAYS}|{_MONTHS}) on
    """
)
# "Update:" announces news about something, not that what is known of anything like it was wrong.
_CHANGES = re.compile(rf"\b(?:{_CHANGED})\b|^updated?\b\s*[,:;.!–—-]", re.IGNORECASE)

_ANNOUNCEMENT = any_of(
    r"""
    (?:small |minor |quick )?(?:correction|update|fix|edit|erratum)(?: to [^:,–—]{1,40})?
    actually; oops; sorry; no; nope; wait; (?:scratch|strike) that; (?:it )?turns out(?: that)?
    my (?:mistake|bad); i was (?:wrong|mistaken)(?: about [^:,–—]{1,40})?; that was wrong; in fact
    (?:according|contrary) to [^:,–—]{1,40}; as of now; from now on; on second thought
    """
)
_PREAMBLE = re.compile(rf"^\s*(?:{_ANNOUNCEMENT})\b\s*[,:;.!–—-]*\s*", re.IGNORECASE)
_FIRST_CLAUSE = re.compile(r"(.+?)(?:[:;,.–—]+\s+|\s+and\s+)(\S+\s+\S+\s+\S.*)", re.DOTALL)
_ATTRIBUTION = re.compile(
    r"^(?:\S+\s+){1,3}(?:says|said|told me|confirms|confirmed|mentioned|wrote|explained)(?:\s+that)?\s+",
    re.IGNORECASE,
)
_ADJUNCT = re.compile(
    r"^(?:since|after|following|as of|starting(?: from| in| on)?)\s+(?:(?:the|our|this|last|next|my) )?[\w-]+"
    r"(?: (?:in|of|on) [\w-]+)?(?:,\s+|\s+(?=(?:the|our|my|we|i|he|she|they|it|[A-Z]\w*)\b))",
    re.IGNORECASE,
)
"""A phrase of time before the statement itself: "Since the reorg Ada leads the team"."""


def retracts(new: str, old: str) -> bool:
    """Whether a text says outright that something said before was wrong or is over."""
    return not _retractions(new) <= _retractions(old)


def tells_of_change(new: str, old: str) -> bool:
    """Whether a text tells of a change and the old one did not."""
    return _changes(new) and not _changes(old)


def announces(text: str) -> bool:
    """Whether a text says that it takes something back, whatever that is."""
    return bool(_retractions(text))


def without_preamble(text: str) -> str:
    """The text without the words at its beginning that only announce a correction."""
    before = None
    while before != text:
        before, text = text, _PREAMBLE.sub("", text, count=1) or text
    clause = _FIRST_CLAUSE.match(text)
    if clause and _RETRACTIONS.search(clause[1]):
        text = clause[2]
    if _RETRACTIONS.search(text):
        text = _ATTRIBUTION.sub("", text, count=1)
    return _ADJUNCT.sub("", text, count=1)


# A text is compared with several others.
@lru_cache(maxsize=256)
def _retractions(text: str) -> frozenset[str]:
    return frozenset(found.lower() for found in _RETRACTIONS.findall(text))


@lru_cache(maxsize=256)
def _changes(text: str) -> bool:
    return bool(_CHANGES.search(text))


def rejected(words: Sequence[Word]) -> set[int]:
    """The places of telling words said not to be so: "not X but Y", "instead of X", "switched from X"."""
    flags = denied(words, NEGATORS)
    return contrasted(words) | {at for at, word in enumerate(words) if word.telling and flags[at]}
