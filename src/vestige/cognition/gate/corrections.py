"""Wording that announces a correction or a change, and what it rejects."""

import re
from collections.abc import Sequence
from functools import lru_cache

from vestige.cognition.english.polarity import NEGATORS, contrasted, denied
from vestige.cognition.english.words import Word, root

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


# -- A later state of the same thing: what was planned is done, what was open is closed, who lived here
# left.

# What is under way or still to come …
_UNDER_WAY = (
    r"(?:is|are|am|was|were|i'm|we're|they're|he's|she's|it's)(?: (?:currently|still|now|busy))? "
    r"(?!during|nothing|something|anything|everything|morning|evening|spring|string)\w{2,}ing"
)
_TO_COME = any_of(
    r"""
    plan(?:s|ning|ned)? (?:to|for|on); going to; about to; will; shall; (?:intend|want|hope|aim)s? to
    scheduled; planned; proposed; upcoming; pending; open; unpaid; unfinished; unresolved; unanswered
    unsold; unread; incomplete; ongoing; for sale; until; till; not yet; yet to; to-?do; draft; expected
    in progress; in (?:staging|review|beta|alpha|development|testing|draft|preview|transit|hospital)
    in (?:training|talks|negotiations?|the works); under \w+; on (?:hold|order|loan|probation|sale)
    on (?:\w+ )?leave; on \w+ way; out of date
    on (?:vacation|holiday|tour|a trip); out of (?:stock|order|office); away; abroad
    at the (?:repair|garage|doctor|vet|hospital|shop|cleaner|mechanic)\w*
    waiting; awaiting; considering; looking; interviewing; blocked; broken; missing; leaking; queued
    closed for; starts?; begins?; due; up for \w+; pregnant; engaged; dating; candidate; trial
    temporar(?:y|ily); (?:in|on) the backlog; so far; needs? (?:to|an?|the|more|new); to be \w+ed; wip; stuck
    on the (?:waiting list|list|roadmap|agenda|table); for (?:renewal|repairs?|review|approval|inspection)
    in (?:kindergarten|school|high school|college|university|\w+ grade); ordered; booked
    behind a(?: \w+)? flag; rollout; internship; interim; provisional(?:ly)?; paused; frozen
    suspended; (?:is|are) (?:down|offline); injured; trying to; hoping to; preparing; applying
    for now; for the time being; at the moment; \d+ ?%(?: \w+)? (?:done|complete|finished|ready)
    """
)
# "Interviewing candidates" and "…, arriving Thursday" leave out who or what does.
_ELIDED = r"^\w{3,}ing|, (?:arriving|coming|starting|ending|closing)"
_OPEN = re.compile(rf"\b(?:{_UNDER_WAY}|{_TO_COME}|{_ELIDED})\b", re.IGNORECASE)

# … and what is over, or has come about.
_OVER = any_of(
    r"""
    finished; completed?; done; (?:is|are|was) over; released; shipped; deployed; launched; merged; fixed
    resolved; closed; paid; signed; sold; cancell?ed; delivered; hired; approved; rejected; accepted
    declined; published; archived; removed; retired; installed; reopened; repaired; restored; settled
    submitted; sent; landed; arrived; returned; started; begun; began; opened; moved; left; joined; quit
    got; became; bought; found; graduated; passed; died; married; divorced; born; broke up; ran; won; lost
    came (?:home|back); (?:is|are) back; went live; is live; is out; had (?:her|his|their|a|the) \w+
    adopted; replaced; migrated; switched; upgraded; renamed; transferred; reassigned; rescheduled
    postponed; converted; refunded; recovered; discharged; promoted; fired; resigned; stopped; ended
    expired; dropped; enrolled; agreed; decided; chose; picked; selected; confirmed; rolled (?:out|back)
    turned (?:on|off); picked up; filled; brought; assembled; resumed; unblocked; lifted; cleared; activated
    set up; wrapped up; went through; got into; took place; handed (?:in|over); awarded
    (?:is|are) (?:complete|up|available|ready|operational|working|effective); made it; in place; given birth
    (?:has|have|had|'s|'ve) (?:already |now |since |finally |just |been )*\w{2,}(?:ed|en|wn|ne)
    (?:was|were|been) (?:already |finally |just |successfully )*\w{2,}(?:ed|en|wn|ne|ut|ld|ought)
    """
)
_DONE = re.compile(rf"\b(?:{_OVER})\b", re.IGNORECASE)


def _stems(words: str) -> frozenset[str]:
    return frozenset(root(word) for word in words.split())


def _steps(lines: str) -> tuple[tuple[frozenset[str], frozenset[str]], ...]:
    """States and the steps that end or begin them, a line each."""
    sides = (line.split(" > ") for line in lines.strip().splitlines())
    return tuple((_stems(states), _stems(steps)) for states, steps in sides)


# Steps that end a state by themselves …
_ENDINGS = _steps("""
    live reside base home stay flat apartment house > move relocate emigrate settle
    date single engage relationship partner boyfriend girlfriend > marry divorce separate wed
    pregnant expect due > baby birth born
    missing miss lost disappear > found find return recover
    sale list market > sell sold
    hospital sick ill injure leave away > recover discharge home heal return back
    noise noisy leak drip crack fault faulty stuck > repair fix replace solve
    open broken bug fail crash block outage > fix resolve close repair restore reopen
    staging beta alpha review draft progress > release ship merge publish launch approve reject
    expire end due > renew extend prolong
    assign > reassign
    kindergarten school grade student intern junior apprentice candidate trainee > promote graduate become
    vacant vacancy empty > fill hire occupy
    order ship transit backorder > arrive deliver receive
    cast crutches injury sick flu fever covid > heal recover
    freeze suspend pause hold > resume lift unfreeze restart
    deprecate legacy > remove retire
    negotiate talk > sign agree
    pend wait await > arrive approve receive grant
    vacation holiday trip travel abroad away > return back
""")
# … and steps that may be about something else, unless the statements share more than their subject.
_STATE_CHANGES = _steps("""
    work job employ engineer intern freelance nurse > join leave left quit retire resign fire hire start
    use run rely host register write store deploy build test track > switch migrate move replace transfer
    use run rely host register write store deploy build test track > adopt drop upgrade convert rewrite port
    drive own have ride rent > sell sold buy bought replace swap trade
    member play sing train volunteer sit serve > left leave quit resign retire
    look search seek hunt wait apply > find found hire accept sign buy bought choose get got
    read watch train write prepare learn practice > finish complete publish submit pass qualify
    train prepare practice > run ran
    rent tenant lease > buy bought
    owe debt loan mortgage > pay repay
    trial evaluate consider propose plan > adopt choose drop reject cancel
    construct construction renovate renovation > open complete finish
    study student grade school university college > graduate finish drop enrol transfer
    lead manage head chair report run role position > replace promote succeed step hand resign become appoint
""")


def is_later(new: str, old: str) -> bool:
    """Whether a text tells what became of something the other tells as open, by their wording alone."""
    return bool(_opened(old) - _opened(new)) and bool(_over(new) - _over(old))


# A text is compared with several others.
@lru_cache(maxsize=256)
def _opened(text: str) -> frozenset[str]:
    return frozenset(found.lower() for found in _OPEN.findall(text))


@lru_cache(maxsize=256)
def _over(text: str) -> frozenset[str]:
    return frozenset(found.lower() for found in _DONE.findall(text))


def ends_state(new: Sequence[Word], old: Sequence[Word], *, near: bool) -> bool:
    """Whether a text tells of a step that ends what the other says: "lives in", "moved to".

    `near`: the two share more than who or what they are about.
    """
    if any(denied(old)):
        return False  # what is not so cannot end
    ours, theirs = {word.key for word in new}, {word.key for word in old}
    return any(
        theirs & states and (ours - theirs) & steps and not theirs & (steps - states)
        for states, steps in (*_ENDINGS, *(_STATE_CHANGES if near else ()))
    )
