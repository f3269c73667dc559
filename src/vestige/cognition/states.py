"""A later state of the same thing: what was planned is done, what was open is closed, who lived here left."""

import re
from collections.abc import Sequence
from functools import lru_cache

from vestige.cognition.corrections import any_of
from vestige.cognition.polarity import denied
from vestige.cognition.synonyms import root
from vestige.cognition.wording import Word

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
_CHANGES = _steps("""
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
        for states, steps in (*_ENDINGS, *(_CHANGES if near else ()))
    )
