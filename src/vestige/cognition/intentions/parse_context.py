"""Contexts in English: `when I work on auth.py`, `when in codebase shop`, `when we talk about billing`."""

import re

from vestige.cognition.intentions.triggers import ContextTrigger
from vestige.core.patterns import lazy_pattern

_NAME = r"[\w.-]+"
_KIND = r"(?:codebase|project|repo(?:sitory)?)"
_CODEBASE = rf"(?:the )?(?:{_KIND} (?P<codebase>{_NAME})|(?P<other>{_NAME}) {_KIND})"
_WITHIN = lazy_pattern(rf"(?:^| )in(?:side)? {_CODEBASE}$", re.IGNORECASE)
_WHOLE_CODEBASE = lazy_pattern(_CODEBASE, re.IGNORECASE)
_DOING = lazy_pattern(
    r"(?:(?:i|we|you)(?: ?['’](?:m|re)| am| are)? )?"
    r"(?:(?:work|working|back) (?:on|in|with|at)|(?:open|edit|touch|chang|refactor|review|modify)(?:e|ing)?|"
    r"(?:look|looking) at|(?:go|going|get|getting|switch|switching|come|coming) (?:back )?(?:in)?to) ",
    re.IGNORECASE,
)
_TALKING = lazy_pattern(
    r"(?:(?:i|we|you)(?: ?['’](?:m|re)| am| are)? )?"
    r"(?:(?:talk|talking|discuss|discussing|ask|asking|think|thinking)(?: about)?|(?:the )?topic is|"
    r"about(?: topic)?) "
    r"(?P<topic>.+)|(?P<upcoming>.+?) (?:comes|come|is brought) up",
    re.IGNORECASE,
)
_PRESENT = lazy_pattern(r"(?:(?:i|we|you)(?: ?['’](?:m|re)| am| are)? )?in(?:side)? (?:the )?", re.IGNORECASE)
_FILE = lazy_pattern(
    r"(?:an? |any |the )?(?:files? )?(?P<pattern>\S*(?:[*?/\\]|\.[a-z]\w{0,9}$|"
    r"\.[a-z]\w{0,9}(?= ))\S*)(?: files?)?",
    re.IGNORECASE,
)


def context_in(clause: str) -> ContextTrigger | None:
    """The context that a clause after `when` names; None for any other clause."""
    clause = clause.strip(" ,.;!")
    talking = _TALKING.fullmatch(clause)
    if talking is not None:
        return ContextTrigger(topic=(talking["topic"] or talking["upcoming"]).strip("\"'“” "))
    doing = _DOING.match(clause)
    if doing is not None:
        return _busy_with(clause[doing.end() :])
    present = _PRESENT.match(clause)
    if present is None:
        return None
    place = clause[present.end() :]
    # What one is in, rather than works on, is a codebase unless it is a file: `when I'm in shop`.
    bare = re.fullmatch(_NAME, place) is not None and _FILE.fullmatch(place) is None
    return ContextTrigger(codebase=place) if bare else _busy_with(place)


def _busy_with(thing: str) -> ContextTrigger:
    """A file, a codebase or both; anything else is a topic."""
    whole, within = _WHOLE_CODEBASE.fullmatch(thing), _WITHIN.search(thing)
    found = whole or within
    codebase = (found["codebase"] or found["other"]) if found else None
    rest = "" if whole else thing[: within.start()].strip() if within else thing.strip()
    if not rest:
        return ContextTrigger(codebase=codebase)
    file = _FILE.fullmatch(rest)
    if file is not None:
        return ContextTrigger(codebase=codebase, file_pattern=_pattern(file["pattern"]))
    topic = re.sub(r"^(?:the|topic) ", "", rest, flags=re.IGNORECASE)
    return ContextTrigger(codebase=codebase, topic=topic.strip("\"'“” "))


def _pattern(written: str) -> str:
    """The file pattern: `.sql` files are `*.sql`, dotfiles excepted."""
    plain = written.strip("\"'`“”")
    return f"*{plain}" if re.fullmatch(r"\.\w{1,5}", plain) else plain
