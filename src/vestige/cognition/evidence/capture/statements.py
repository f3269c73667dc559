"""Decisions with their reason, preferences and corrections in what was said.

People correct an agent in passing ("no man, that's not true, we …"), so greetings and sighs before a sentence
are passed over. What an agent decided is read in its last message before the user speaks again: before that
it states plans. What only points at something ("I don't want that test") says nothing to a later reader.
"""

import re
from collections.abc import Iterator, Sequence

from vestige.cognition.evidence.capture.turns import (
    MOST_CHARS,
    Proposal,
    ProposalKind,
    Speaker,
    Turn,
    sentences,
)
from vestige.core.patterns import lazy_pattern

LEAST_WORDS = 3
CORRECTING = 3
"""The most sentences at the beginning of an answer among which a correction is looked for."""

_MACHINE = lazy_pattern(
    r"\s{0,20}(?:implement the following plan|this session is being continued|base directory for this skill"
    r"|caveat:|\[request interrupted|\[image|full transcript available|operation stopped by hook"
    r"|your task is to|unknown skill)",
    re.IGNORECASE,
)
_DENIAL = lazy_pattern(r"(?:no|nope|nah|wrong)(?=\s{0,3}[,.:;!…]| man\b| dude\b)", re.IGNORECASE)
_OPENER = lazy_pattern(
    r"(?:(?:nope|nah|ok|okay|k|h+m+|mm+k?|uh+|um+|ye(?:ah|p|s)|yup|well|also|again|oh|ah|man|dude|sorry"
    r"|but|and|thanks"
    r"|(?:no|wrong|so|wait|look|right|good|great|cool|now|then|hey|y)(?=\s{0,3}[,.:;!…]| man\b"
    r"| dude\b))(?![\w'-])[\s,.:;!…]{0,9}){1,6}",
    re.IGNORECASE,
)
_NEVER_MIND = lazy_pattern(r"\bnever ?mind\b|\bnm\b", re.IGNORECASE)
_ASKS = lazy_pattern(
    r"^(?:can|could|would|will|do) you\b|^[\"“]|\?[\"')*]{0,3}$|\b(?:right|no|yes|yeah|correct)\?",
    re.IGNORECASE,
)

# -- Preferences

_PREFERENCE = lazy_pattern(
    r"\b(?:i (?:really |strongly |always )?prefer|i (?:hate|dislike)"
    r"|i(?:'d| would) (?:rather|prefer)|from now on|going forward|as a rule|by convention"
    r"|for future reference|please (?:always|never)|don't ever|do not ever|never again|every time you"
    r"|whenever you"
    r"|(?:always|never) (?:use|run|write|add|put|commit|push|keep|start|ask|include|format|call|mock|create"
    r"|make|check|test|verify|apply|show|update|prefer|answer|reply|respond|explain|work|edit|touch"
    r"|delete)"
    r"|(?:must|should) (?:always|never)|you should(?: not|n't) (?:be \w{2,20}ing|ever)"
    r"|(?:everywhere|in every file), always|keep (?:your )?(?:answers|replies|commits|comments) \w+"
    r"|like we do (?:everywhere|elsewhere|in (?:all|every))|preferred (?:approach|way|style)"
    r"|we (?:always|usually|typically) (?!have|had|be|been|need|get|got|see)\w+)\b",
    re.IGNORECASE,
)
_UNWANTED = lazy_pattern(
    r"\b(?:i|we) (?:(?:do not|don't|never) (?:ever )?want|want no)\b(?P<object>.{0,400})", re.IGNORECASE
)
_ORDERED = lazy_pattern(
    r"^(?:please )?(?:keep (?:our|all|all the|your|every) \w"
    r"|use [^,;.]{2,80} (?:instead of|rather than|and not) \w|[^?]{8,200}, (?:always|every time)\W{0,3}$)",
    re.IGNORECASE,
)
_ONCE = lazy_pattern(
    r"\b(?:this time|just (?:this|for now|once)|for (?:this|now)\b|today only|temporarily|yet\b|until|anymore"
    r"|for the moment|at this point|right now)",
    re.IGNORECASE,
)
_FOR_NOW = lazy_pattern(r"\b(?:yet|this time|for now|just once|temporarily)\b", re.IGNORECASE)
_POINTING = lazy_pattern(
    r"\s{0,3}(?:to \w+ |you to \w+ )?(?:this|that|these|those|it|them|any of|either|one|ones|you)\b",
    re.IGNORECASE,
)
_POINTING_END = lazy_pattern(r"(?: \w{1,20})? (?:this|that|it|them)\W{0,3}$", re.IGNORECASE)

# -- Decisions

_CHOICE = lazy_pattern(
    r"^decision: |\b(?:let's|let us|we(?:'ll| will| should| want to| need to|'ve| have)?|i(?:'ve| have)?)"
    r" (?:not |all |always |just )?(?:go with|use|using|choose|chose|take|stick with|stick to"
    r"|keep(?! \w{1,20}ing)|allow"
    r"|call|put"
    r"|have|avoid|drop|support|store|name|require|prefer|decided (?:to|on|for|against|that|not))\b"
    r"|\b(?:option|approach|plan|variant) [\"'(]?\w{1,12}[\"')]? (?:is|seems) (?:the )?(?:better|best|right)"
    r"|\bwe should(?: not|n't)? (?!be\b|see\b|get\b|just\b|also\b|check\b|look\b|have\b|test\b)\w+",
    re.IGNORECASE,
)
_MADE = lazy_pattern(
    r"\b(?:i|we)(?:'ve| have)? (?:\w+ly )?(?:put|kept|left|moved|switched|used|chose|picked|went with"
    r"|added|removed|made|skipped|avoided|decided|dropped|replaced|stayed with|stuck with)\b"
    r"|^\W{0,4}(?:kept|left|moved|switched|used|chose|picked|added|removed|skipped|avoided|dropped"
    r"|replaced)\b"
    r"|\b(?:was|were|is|are) (?:deliberately |intentionally |kept |left )(?!to\b)",
    re.IGNORECASE,
)
_ASIDE = lazy_pattern(
    r"\b(?:you (?:didn't|did not|asked|can|could)|say the word|if you (?:want|prefer|like)|let me know"
    r"|want me to"
    r"|scope|myself|unnecessary|unused|unreachable|redundant|dead code|no longer needed|duplicated?|typo"
    r"|leftover"
    r"|(?:added|updated|wrote|rewrote|replaced|removed) (?:a |an |the |some |two |three )?(?:\w{1,20} ){0,2}"
    r"(?:comments?|tests?|docstrings?|assertions?))\b",
    re.IGNORECASE,
)
"""Asides of an agent about its task, and tidying: not what a later session needs."""
_WHY = lazy_pattern(
    r"\b(?:because|so that|due to|(?:doesn't|does not) matter|(?:not|n't) worth|as it|as they|in order to"
    r"|to avoid"
    r"|since(?! (?:then|v?\d|last|yesterday|it was|the (?:last|first|start|beginning|previous|commit))))\b",
    re.IGNORECASE,
)
_OVER = lazy_pattern(r"\b(?:rather than|instead of|and not)\b|, not\b", re.IGNORECASE)
_SETTLED = lazy_pattern(r"\b(?:that's|that is|it's|is) (?:decided|settled)\b", re.IGNORECASE)
_THEREFORE = lazy_pattern(r"[,.;…]\s{0,3}(?:and )?so,?\s|\bso, ", re.IGNORECASE)
_CHORE = lazy_pattern(
    r"^(?:let's|let us|we should|we need to|i(?:'ll| will)) (?:now |just |also |first )?(?:run|look|see|check"
    r"|start|try|continue|commit|test|review|fix|address|move on|do|wait|find|explore|revert|restart|begin"
    r"|talk|discuss)\b",
    re.IGNORECASE,
)

# -- Corrections

_CORRECTION = lazy_pattern(
    r"^(?:wrong[,.:]|that(?:'s| is) (?:wrong|not (?:right|correct|true))"
    r"|actually\b(?!,? (?:can|could|please|let))|you (?:got (?:that|it) wrong|misunderstood|are wrong)"
    r"|not quite[,.:])[ ,:;.]{0,9}(?P<rest>.+)",
    re.IGNORECASE,
)
_UNTRUE = lazy_pattern(
    r"\b(?:(?:is|was|'s|are|were|seems)(?: (?:simply|just|also|still|really|quite|actually|definitely)){0,2}"
    r" (?:not|in)(?: quite| really)? ?(?:correct|right|true|accurate)|(?:isn't|wasn't|aren't|not)"
    r"(?: (?:simply|quite|really|actually)){0,2}"
    r" (?:correct|right|true|accurate|what (?:i|we) (?:want|wanted|meant|asked))"
    r"|(?:is|'s|was) (?:wrong|incorrect|backwards|a hallucination|an invention))\b",
    re.IGNORECASE,
)
_CONTRAST = lazy_pattern(
    r"(?:\b(?:is|are|was|were|does|do|should)(?:n't| not)\b (?:[^,;.?]|\.(?=\w)){2,120}[,;]"
    r" (?:it|they|that|this|we)(?:'s|'re| is| are) (?!not\b)|^not [^,;.?]{2,100},? but )",
    re.IGNORECASE,
)
_KNOWN = lazy_pattern(
    r"\bwe (?:already|no longer) \w|\bwe (?:do not|don't) (?!want\b)[^.,;]{2,80}"
    r" (?:anymore|any more|any longer)\b",
    re.IGNORECASE,
)
_POINTS_FIRST = lazy_pattern(r"(?:\w{1,20} )?(?:it|this|that|these|those|there)\b", re.IGNORECASE)
_PARTICULAR = lazy_pattern(r"[\d`\"“@/_]|[A-Z]\w|\w\.\w|we \w")
_STATES = lazy_pattern(
    r"\b(?:are|were|have|go|use|report|listen|run|need|must|should|want|don't|doesn't|\w+s)\b"
)
_REFUSAL = lazy_pattern(
    r"^(?:thanks?|thank you|stop|leave|not (?:now|needed)|skip|wait|don't|do not|let'?s|let me|we were"
    r"|we are|just|tell|show"
    r"|give|go|it's (?:fine|ok|okay|good)|that's (?:fine|ok|okay|good|all)|i\b"
    r"|(?:can|could|would|will|do) you|why|what|how|where|re-?read|read|same|still|you|(?:this|that"
    r"|it)(?:'s| is) (?:all|so|just|still))\b",
    re.IGNORECASE,
)


def stated(turns: Sequence[Turn]) -> Iterator[Proposal]:
    """Decisions, preferences and corrections in what was said."""
    answered = False
    for position, turn in enumerate(turns):
        answered = answered or turn.role is not Speaker.USER
        if turn.role is Speaker.TOOL or len(turn.text) > MOST_CHARS or _MACHINE.match(turn.text):
            continue
        if turn.role is Speaker.USER:
            found = _by_user(sentences(turn.text), answers=answered)
        else:
            last = position + 1 == len(turns) or turns[position + 1].role is Speaker.USER
            found = _by_agent(sentences(turn.text), last=last)
        for kind, content in found:
            yield Proposal(kind=kind, content=content, position=position)


def _by_agent(said: Sequence[str], *, last: bool) -> Iterator[tuple[ProposalKind, str]]:
    for one in said:
        if one.endswith(("?", ":")) or len(one.split()) < LEAST_WORDS:
            continue
        if _decides(one) or (last and _made(one)):
            yield ProposalKind.DECISION, one


def _decides(sentence: str) -> bool:
    """Whether an agent says outright that it decided, and why."""
    words = sentence.lower()
    named = "decided" in words or "decision" in words or "chose" in words
    return named and _follows(_CHOICE, _WHY, sentence)


def _made(sentence: str) -> bool:
    """Whether an agent says what it did and why."""
    return _follows(_MADE, _WHY, sentence) and _ASIDE.search(sentence) is None


def _by_user(said: Sequence[str], *, answers: bool) -> Iterator[tuple[ProposalKind, str]]:
    denied = False
    for number, sentence in enumerate(said):
        denied = bool(_DENIAL.match(sentence)) or denied
        opener = _OPENER.match(sentence)
        bare = sentence[opener.end() :] if opener else sentence
        if not bare:
            continue  # "No man…": what is right comes in the next sentence
        kind = _kind(bare, correcting=answers and number < CORRECTING, denied=denied)
        denied = False
        if kind is not None:
            yield kind, _content(kind, bare)


def _kind(sentence: str, *, correcting: bool, denied: bool) -> ProposalKind | None:
    asks = _ASKS.search(sentence) or sentence.endswith(":")
    if asks or len(sentence.split()) < LEAST_WORDS or _NEVER_MIND.search(sentence):
        return None
    if correcting and _corrects(sentence, denied=denied) and _stands_alone(sentence):
        return ProposalKind.CORRECTION
    if _is_decision(sentence):
        return ProposalKind.DECISION
    if _prefers(sentence) and not _ONCE.search(sentence):
        return ProposalKind.PREFERENCE
    return None


def _corrects(sentence: str, *, denied: bool) -> bool:
    found = _CORRECTION.search(sentence)
    if found is not None:
        return _states(found["rest"])
    untrue = _UNTRUE.search(sentence)
    if untrue is not None:
        rest = f"{sentence[: untrue.start()]} {sentence[untrue.end() :]}"
        return len(rest.split()) > 2 * LEAST_WORDS and _states(rest)
    if denied and _states(sentence):
        return True
    return _CONTRAST.search(sentence) is not None or _KNOWN.search(sentence) is not None


def _stands_alone(sentence: str) -> bool:
    """Whether a correction says something to a later reader: one that begins with "it" or "that" must name
    something, such as a value, a file or a name."""
    if _FOR_NOW.search(sentence):
        return False
    return _POINTS_FIRST.match(sentence) is None or _PARTICULAR.search(sentence, 1) is not None


def _states(text: str) -> bool:
    return not _REFUSAL.search(text) and len(text.split()) >= LEAST_WORDS and _STATES.search(text) is not None


def _is_decision(sentence: str) -> bool:
    if _CHORE.search(sentence):
        return False
    if _follows(_CHOICE, _WHY, sentence) or _SETTLED.search(sentence):
        return True
    chosen = _CHOICE.search(sentence)
    if chosen is None:
        return False
    therefore = _THEREFORE.search(sentence)
    over = _OVER.search(sentence, chosen.end())
    return over is not None or (therefore is not None and therefore.start() < chosen.start())


def _follows(first: re.Pattern[str], second: re.Pattern[str], sentence: str) -> bool:
    """Whether the second is found behind the first."""
    found = first.search(sentence)
    return found is not None and second.search(sentence, found.end()) is not None


def _prefers(sentence: str) -> bool:
    unwanted = _UNWANTED.search(sentence)
    if unwanted is not None:
        named = unwanted["object"]
        return _POINTING.match(named) is None and len(named.split()) >= LEAST_WORDS
    preferred = _PREFERENCE.search(sentence)
    if preferred is not None:
        return _POINTING_END.match(sentence, preferred.end()) is None
    return _ORDERED.search(sentence) is not None


def _content(kind: ProposalKind, sentence: str) -> str:
    if kind is not ProposalKind.CORRECTION:
        return _begun(sentence)
    found = _CORRECTION.search(sentence)
    return f"Correction by the user: {_begun(found['rest'].strip() if found else sentence)}"


def _begun(sentence: str) -> str:
    """The sentence with a capital, unless it begins with a name of code."""
    first = sentence.split(maxsplit=1)[0].rstrip(",;:'")
    return f"{sentence[0].upper()}{sentence[1:]}" if first.isalpha() else sentence
