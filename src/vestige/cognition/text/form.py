"""The form of a memory (a turn of a conversation, a chunk of a longer text, a note), its speaker, whether it
is about the user, and the pieces that a long text is cut into.

The form is computed when a memory is written and never depends on a query, so that a memory is always ranked
in one way.
"""

import enum
import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from vestige.cognition.gate.change_words import announces
from vestige.cognition.text.analyser import normal, terms
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Memory
from vestige.core.patterns import lazy_pattern

SEARCHED_CHARS, LONGEST_FOUND = 50_000, 200
SHORT_WORDS = 48
"""Up to this length (about 64 word pieces) a text is a turn, if it is in a thread or has a speaker."""

_SPEAKER = lazy_pattern(r"\s*([^\W\d_][\w.'’-]*(?: [\w.'’-]+){0,2}):\s")
_FIRST_PERSON = lazy_pattern(r"\b(?:I|I'm|I've|I'd|I'll|[Mm]y|[Ww]e|[Ww]e've|[Ww]e're)\b")
_HEADINGS = frozenset(
    "note notes decision todo fact facts rule rules tip tips warning bug fix error issue idea plan goal "
    "question answer summary context example preference reminder lesson pattern update fyi ps nb".split()
)
_IN_PERSON = lazy_pattern(r"\b(?:I|[Yy]ou|[Ww]e|[Mm]y|[Yy]our|[Oo]ur)\b")
_SENTENCE = lazy_pattern(r"[^.!?]+(?:[.!?]+[\"”')]*|$)\s*")
_TIMED = lazy_pattern(
    r"\b(?:yesterday|today|tonight|tomorrow|ago|since|recently|weekend|\d{4}|\w+day"
    r"|(?:last|next|this) (?:night|morning|week|weekend|month|year|summer|winter|spring|fall|autumn)"
    r"|january|february|march|april|june|july|august|september|october|november|december)\b",
    re.IGNORECASE,
)


class Form(enum.IntEnum):
    """The form of a memory, by which it is ranked (ranking/relevance.py)."""

    NOTE = 0
    TURN = 1
    CHUNK = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """A memory's form; whether it is in the first person, ends with a question, states a time; and its
    speaker as `name_hash` (0 without one)."""

    form: Form
    first_person: bool
    asks: bool
    timed: bool
    speaker: int


def features(memory: Memory) -> Features:
    """The features of a memory's text and place."""
    name, said = speaker_and_words(memory)
    short = len(terms(memory.content)) <= SHORT_WORDS
    return Features(
        form=_form(memory, short=short, spoken=name is not None, talking=said != memory.content),
        first_person=_has(_FIRST_PERSON, said),
        asks=_ends_asking(said),
        timed=_has(_TIMED, said),
        speaker=name_hash(name) if name else 0,
    )


def _has(pattern: re.Pattern[str], text: str) -> bool:
    """Whether a pattern for a few words occurs in a text. A long text is searched in pieces: a search holds
    the interpreter lock to its end."""
    for start in range(0, max(1, len(text)), SEARCHED_CHARS):
        end = start + SEARCHED_CHARS + LONGEST_FOUND
        found = pattern.search(text, start, end)
        if found and (found.end() < end or end >= len(text)):
            return True
    return False


def is_threaded(memory: Memory) -> bool:
    """Whether a memory is part of something longer: of a thread, or at a position in its source."""
    return memory.thread is not None or (memory.source is not None and memory.position is not None)


def _form(memory: Memory, *, short: bool, spoken: bool, talking: bool) -> Form:
    if is_threaded(memory):
        return Form.TURN if short or spoken else Form.CHUNK
    # An author alone does not make a note a turn.
    return Form.TURN if short and talking else Form.NOTE


def speaker_and_words(memory: Memory) -> tuple[str | None, str]:
    """The speaker (the author, or the name before a first colon) and what is said."""
    named = _SPEAKER.match(memory.content)
    if not named:
        return memory.author, memory.content
    said = memory.content[named.end() :]
    # "Decision: ship it" has a heading; "Mel: I shipped it" has a speaker.
    heading = named[1].casefold() in _HEADINGS and named[1] != memory.author
    if memory.thread is not None or (not heading and _IN_PERSON.search(said)) or named[1] == memory.author:
        return memory.author or named[1], said
    return memory.author, memory.content


@lru_cache(maxsize=4_096)
def name_hash(name: str) -> int:
    """A positive number for a name; its first word counts, letter case and diacritics do not."""
    first = next(iter(normal(name).casefold().split()), "").strip(".,:;-")
    return int.from_bytes(blake2b(first.encode("utf-8", "replace"), digest_size=8).digest(), "big") >> 2 or 1


def _ends_asking(said: str) -> bool:
    """Whether it ends with a question, before a note in brackets such as `[shares a photo]`."""
    said = said.rstrip()
    if said.endswith("]") and "[" in said:
        said = said[: said.rindex("[")].rstrip()
    return said.endswith("?")


def asked(text: str, spans: NDArray[np.int32]) -> NDArray[np.bool_]:
    """For each token, given by its span, whether it is in a question."""
    marks = np.zeros(len(text) + 1, dtype=np.bool_)
    if "?" in text:
        named = _SPEAKER.match(text)  # the speaker is not part of the question
        for sentence in _SENTENCE.finditer(text, named.end() if named else 0):
            if "?" in sentence[0]:
                marks[sentence.start() : sentence.end()] = True
    found: NDArray[np.bool_] = marks[np.minimum(spans[:, 0], len(text))]
    return found


# -- Conversation: words said to another person state nothing for good

# Greetings, thanks and reactions. Words that open a correction as well ("no", "sorry", "oops") are none.
_CALLS = "hey|hi|hiya|hello|bye|goodbye|wow|whoa|yay|yeah|yep|yup|congrats|congratulations|haha\\w*|lol"
_REACTIONS = (
    "yes|sure|okay|ok|cool|nice|great|awesome|amazing|lovely|sweet|absolutely|definitely|totally|exactly|"
    "of course|sounds (?:good|great)|no (?:worries|problem|doubt|way)|good (?:luck|job|night|morning)|"
    "well done|way to go|keep it up|take care|glad to \\w+"
)
_OPENING = lazy_pattern(
    rf"\s*+(?:(?:{_CALLS})\b|(?:thanks|thank you|cheers)\b(?! to\b)|(?:{_REACTIONS})\s*[,!.])", re.IGNORECASE
)
_SPOKEN_BY = lazy_pattern(r"^\s*[^\W\d_][\w.'’-]*:\s+")
_NAME_BEFORE = lazy_pattern(r"\s*[^\W\d_][\w.'’-]*(?: [A-Z][\w.'’-]*)?:\s")
_QUESTION = lazy_pattern(r"\?[\"”')\]]*(?:\s|$)")
_EXCLAMATION = lazy_pattern(r"[^.?!:;]*+!(?:\s|$)")


def is_spoken(text: str, said: str) -> bool:
    """Whether a speaker's name comes before what is said, and not an announcement ("Correction: …")."""
    before = text.removesuffix(said)
    return bool(before and _NAME_BEFORE.fullmatch(before)) and not announces(before)


def is_talk(text: str) -> bool:
    """Whether a text greets, thanks, asks, or begins with an exclamation."""
    said = _SPOKEN_BY.sub("", text, count=1)
    return bool(_OPENING.match(said) or _EXCLAMATION.match(said) or _QUESTION.search(said))


# -- Statements about the user: preferences, habits and facts that hold in every project

USER_CHARS = 300  # A longer text says more than one thing.
_LEAD = lazy_pattern(
    r"(?:(?:please |also |and |but |no, |actually,? |by the way,? |btw,? |correction: |update: |note: |fyi:? "
    r"|preferences?: |user preference: |(?:remember|note) that |i changed my mind[:,;.]? )\s*)*",
    re.IGNORECASE,
)
_FAMILY = (
    "wife|husband|spouse|partner|girlfriend|boyfriend|fianc[ée]e?|mother|mom|mum|father|dad|parents|sister"
    "|brother|siblings|son|daughter|kids?|child(?:ren)?|family|grand(?:mother|father|ma|pa|parents)|aunt|uncle"
    "|cousin|nephew|niece|dogs?|cats?|pets?"
)
_OWN = (
    rf"{_FAMILY}|favou?rite \w+|(?:full |first |last |middle |nick)?name|surname|pronouns|birthday"
    "|date of birth|age|job(?: title)?|salary|home(?: ?town| address)?|address|house|flat|apartment"
    "|phone(?: number)?|e-?mail(?: address)?|time ?zone|native language|mother tongue|hobby|hobbies|diet"
    "|allerg(?:y|ies)|doctor|dentist|therapist|gym|car|bike|bicycle|passport|visa|vacation|holidays?"
    "|work(?:ing)? hours|commute|height|weight|shoe size|blood type|anniversary|wedding|religion|nationality"
    "|degree|university|school|medication|glasses|eyesight"
)
_AT_WORK = (
    r"preferred \w+|boss|manager|editor|keyboard(?: layout)?|shell|terminal|laptop|computer|monitor"
    "|office"
)
_ANSWERS = (
    "answers?|repl(?:y|ies)|responses?|explanations?|examples?|summary|summaries|diffs"
    "|commit messages|commits|pull requests|PRs|reviews|reminders|meetings|emails"
)
_STATE = (
    r"(?:not )?(?:an? (?:[\w-]+ ){0,2}(?:engineer|developer|programmer|designer|student|teacher|nurse|doctor"
    "|manager|scientist|researcher|writer|lawyer|accountant|artist|musician|parent|father|mother|beginner"
    "|expert|speaker|vegetarian|vegan|morning person|night owl|early riser|fan)"
    "|allergic|vegetarian|vegan|left-handed|right-handed|colou?r-?blind|dyslexic|deaf|hard of hearing|from"
    "|based in|born|married|divorced|single|engaged|learning|fluent|fond of|afraid of|new to|good at|bad at"
    r"|\d+ years old|lactose|gluten|diabetic|retired|on a diet|called|named)\b"
)
_TASTE = "prefer|like|love|hate|dislike|enjoy|adore|detest|favou?r"
_LIFE = (
    "live|speak|drink|eat|study|commute|wear|own|go by|suffer from|wake up|get up|go to bed|drive|cycle|swim"
    "|smoke|subscribe to"
)
_CHANGED = (
    r"grew up|was born|(?:moved|relocated) to (?-i:[A-Z])|switched (?:to|from)"
    r"|(?:quit|stopped|gave up|started \w+ing)\b"
)
_PLACED = r"(?:as|at|for|from|in|remotely|part-time|full-time|best|nights|late|early|alone)\b"
_HABIT = (
    "use|write|read|work|run|code|commit|review|test|sleep|start|answer|take|keep|listen|travel|cook|walk|ride"
    "|watch|plan|type|squash|rebase|want|have|go|ask|skip"
)
_OFTEN = "(?:always|never|usually|often|rarely|normally|typically|mostly|tend to|no longer|don't|do not)"
_HOW = (
    "(?:(?:really|generally|usually|always|never|often|rarely|strongly|now|still|also|mostly|normally|typically"
    "|personally|much|no longer|do not|don't|does not|doesn't|can't|cannot|tends? to) )*"
)
_SOME = r"(?:[\w-]+ ){0,3}"
_LIFE_OF_USER = lazy_pattern(
    rf"My (?:{_OWN})\b|I {_HOW}(?:{_LIFE})\b|I(?:'m| am| was| have been|'ve been) {_STATE}"
    rf"|I (?:have|'ve got|have got) {_SOME}(?:{_FAMILY}|allergy|degree|PhD)\b"
    r"|(?:call|address) me (?!when|if|back|at|on|tomorrow|today)\w+",
    re.IGNORECASE,
)
_WAY_OF_USER = lazy_pattern(
    rf"I {_HOW}(?:{_TASTE})\b(?! (?:how|what|where|to see)\b)|I can't stand\b"
    # "I'd rather walk", but not "I'd prefer to merge it"
    r"|I(?:'d| would) (?:rather|prefer)\b(?! (?:to|you|we|not)\b)"
    rf"|I (?:{_CHANGED})|I {_HOW}work {_PLACED}|I {_HOW}play\b|I {_OFTEN} (?:{_HABIT})\b"
    rf"|I {_HOW}(?:want|expect) {_SOME}(?:{_ANSWERS})\b|I {_HOW}use {_SOME}as my\b|My (?:{_AT_WORK})\b"
    rf"|(?:The )?user {_HOW}(?:{_TASTE}|live|speak|drink|eat|commute)s?\b(?! an? )"
    rf"|(?:The )?user (?:{_CHANGED})|(?:The )?user {_HOW}works? {_PLACED}|(?:The )?user (?:is|was) {_STATE}"
    rf"|(?:The )?user writes in\b|(?:The )?user has {_SOME}(?:{_FAMILY}|allergy|degree|PhD)\b"
    rf"|(?:The )?user {_HOW}(?:wants?|expects?) {_SOME}(?:{_ANSWERS})\b"
    rf"|(?:The )?user {_HOW}uses? {_SOME}as (?:their|h\w\w)\b"
    # A record has fields of its user too: "The user's name is stored in Redis."
    rf"|(?:The )?user's (?:{_OWN}|{_AT_WORK}) (?:is|are|was)\b"
    r"(?! (?:\w+ed|kept|sent|shown|set|hidden|unique|optional|null|missing|an?)\b)"
    r"|(?:always )?(?:answer|reply to|talk to) me in\b",
    re.IGNORECASE,
)
_PARTICULAR = lazy_pattern(
    r"`|https?:|\w[/\\][\w-]+(?:[/\\]|\.\w)|[~.]/\w|\b[a-z]\w*_\w+|\b[A-Z][A-Z\d]*_[A-Z]|\b[a-z]{3,}[A-Z][a-z]"
    r"|\w\(\)|\d\.\d|#\d|\b[A-Z]{2,}-\d|\b[a-z_][\w-]{0,60}\.(?:py|jsx?|tsx?|go|rs|java|rb|php|cc?|cpp|h|toml|ya?ml"
    r"|json|md|txt|sql|sh|css|html|lock|cfg|ini)\b"
    r"|\b(?i:we|we're|we've|us|ours?|repo|repository|codebase|branch|sprint|ticket|milestone|deployment|staging"
    r"|production|pipeline|migrations?|endpoint|schema|(?<!each )(?<!every )(?<!any )project)\b"
)
"""What belongs to one project: code, paths, versions, issues, and the team."""
_POINTING = lazy_pattern(
    r"\b(?:this|these|those|here|today|tonight|tomorrow|yesterday|currently|right now|(?:next|last) week"
    r"|it(?! (?:when|if)\b)|the (?!user\b|(?:morning|afternoon|evening|night|weekend)s?\b|command\b"
    r"|terminal\b|keyboard\b|mouse\b|piano\b|guitar\b|violin\b|Netherlands\b|USA?\b|UK\b|city\b|country(?:side)?\b|sea\b"
    r"|Oxford comma\b|explanation\b|answer\b|code\b))",
    re.IGNORECASE,
)
"""One thing at hand, where a preference or a habit is about a kind of thing."""
_AT_HAND = lazy_pattern(r"\b(?:this|these|those|here|today|currently|right now)\b", re.IGNORECASE)
_ERRAND = lazy_pattern(
    rf"\b(?:my|the user's|user's) (?:{_OWN})\b|\b(?:dentist|groceries|birthday|haircut|laundry|passport"
    r"|vacation|mom|mum|dad|grandma|grandpa|dinner|tax return|doctor's appointment)\b",
    re.IGNORECASE,
)


def about_user(text: str) -> str | None:
    """The words by which a text is about the user and not about one project, or None. In doubt it is not: the
    subject must be the user ("I prefer", "My wife", "The user speaks"), and nothing may point to a project, a
    file or, for preferences and habits, one thing at hand."""
    said = text.strip().replace("’", "'")
    if len(said) > USER_CHARS or "\n" in said or "?" in said or _PARTICULAR.search(said):
        return None
    lead = _LEAD.match(said)
    start = lead.end() if lead else 0
    if found := _LIFE_OF_USER.match(said, start):
        return found[0]
    found = _WAY_OF_USER.match(said, start)
    return found[0] if found and not _POINTING.search(said, found.end()) else None


USER_LABELS = frozenset(
    "preference identity habit profile personal about-me user-preference user-profile user-identity".split()
)
"""Node types and tags of what is about the user, in the singular."""


def user_label(labels: Iterable[str], text: str) -> str | None:
    """The label that says that a text is about the user, or None; also None if the text points to a project,
    a file or one thing at hand ("prefer tabs in this repository")."""
    said = text.replace("’", "'")
    if len(said) > USER_CHARS or _PARTICULAR.search(said) or _AT_HAND.search(said):
        return None
    plain = {one: re.sub(r"[\s_]+", "-", one.strip().casefold()) for one in labels}
    return next((one for one, word in plain.items() if {word, word.removesuffix("s")} & USER_LABELS), None)


def is_errand(text: str) -> bool:
    """Whether something to do is the user's own affair: "call my mother", "book the dentist"."""
    said = text.replace("’", "'")
    return _PARTICULAR.search(said) is None and (_ERRAND.search(said) or about_user(said)) is not None


# -- Questions to a speaker: "What did Caroline paint?" becomes "What did you paint?"

_NAMED = lazy_pattern(r"[^\W\d_][\w-]*(['’]s\b|['’](?!\w))?")
_POSSESSIVE = lazy_pattern(r"\b(?:his|her|their)\b", re.IGNORECASE)


def in_second_person(text: str, speakers: frozenset[int]) -> str:
    """The text with the names of these speakers (`form.name_hash`) as "you", and their possessives as
    "your"."""

    def addressed(word: re.Match[str]) -> str:
        owner = word[1] or ""
        if name_hash(word[0].removesuffix(owner)) not in speakers:
            return word[0]
        return "your" if owner else "you"

    spoken = _NAMED.sub(addressed, text)
    return _POSSESSIVE.sub("your", spoken) if spoken != text else text


# -- Pieces: a long text cut so that an embedding model sees each piece whole

MAX_CHARS = 1_200
OVERLAP_CHARS = 120
MAX_TOKENS = 250

# Word pieces by kind of character, the first of a run and each further one: space, letter, digit, sign and
# other scripts. Fitted, on the high side, to chat, issues, transcripts and code with BERT's vocabulary.
_SPACE, _LETTER, _DIGIT, _SIGN, _OTHER = range(5)
_FIRST = np.array([0.0, 0.8, 1.0, 1.0, 1.0])
_FURTHER = np.array([0.0, 0.12, 0.4, 1.0, 1.0])
# From this length on a word is a key, a digest or base64: nothing the vocabulary knows.
_UNBROKEN_CHARS = 20
_UNBROKEN_COST = 0.65

_UNBROKEN = lazy_pattern(rf"[A-Za-z0-9]{{{_UNBROKEN_CHARS},}}")
_PARAGRAPH = lazy_pattern(r"\n[^\S\n]*\n\s*")
_SENTENCE_END = lazy_pattern(r"[.!?][\"')\]]*\s+|[。！？…]|\n")
_WORD = lazy_pattern(r"\s+")


def estimate_tokens(text: str) -> int:
    """An estimate of the number of word pieces of a text, without a model."""
    return math.ceil(float(_costs(text).sum()) - 1e-6)


def cut(text: str, *, max_chars: int = MAX_CHARS, overlap: int = OVERLAP_CHARS) -> list[tuple[int, int]]:
    """The (start, end) spans of a text's pieces, in order; together they hold all but white space. No span is
    longer than `max_chars` or, by estimate, than MAX_TOKENS. A blank text has no pieces."""
    if not 0 <= overlap < max_chars:
        raise ValueError("the overlap must be shorter than a piece")
    if len(text) <= min(max_chars, MAX_TOKENS):
        # Most memories are this short, and no text has more word pieces than characters.
        start = len(text) - len(text.lstrip())
        return [(start, len(text.rstrip()))] if start < len(text) else []
    return _Cutter(text, max_chars, overlap).spans()


class _Cutter:
    """A text and the data by which it is cut."""

    def __init__(self, text: str, max_chars: int, overlap: int) -> None:
        self.text, self.max_chars, self.overlap = text, max_chars, overlap
        self.length = len(text.rstrip())
        self.cost_until = np.concatenate([[0.0], np.cumsum(_costs(text))])
        # Places where a piece may end and the next begin, the best kind first.
        self.borders = [[m.end() for m in kind.finditer(text)] for kind in (_PARAGRAPH, _SENTENCE_END, _WORD)]

    def spans(self) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        start = new = self._skip_space(0)  # `new` is the first character that no piece holds yet
        while new < self.length:
            border = self._border(start, new)
            if border <= new:  # the overlap leaves no room for anything new
                start = new
                continue
            end = start + len(self.text[start:border].rstrip())
            found.append((start, end))
            start, new = self._next_start(start, end), self._skip_space(border)
        return found

    def _border(self, start: int, new: int) -> int:
        """The best border in the second half of what fits and behind `new`, or else all that fits."""
        # Less one: cut off from its word, the first character may count for a whole word piece.
        affordable = self.cost_until[start] + MAX_TOKENS - 1
        limit = min(start + self.max_chars, int(np.searchsorted(self.cost_until, affordable, "right")) - 1)
        if limit >= self.length:
            return self.length
        for borders in self.borders:
            at = bisect_right(borders, limit) - 1
            if at >= 0 and borders[at] > max(new, (start + limit) // 2):
                return borders[at]
        return limit

    def _next_start(self, start: int, end: int) -> int:
        """The first word within the overlap before `end`, but not in the first half of the piece."""
        earliest = max(end - self.overlap, (start + end + 1) // 2)
        words = self.borders[-1]
        at = bisect_left(words, earliest)
        return self._skip_space(words[at] if at < len(words) and words[at] <= end else earliest)

    def _skip_space(self, start: int) -> int:
        while start < self.length and self.text[start].isspace():
            start += 1
        return start


def _costs(text: str) -> NDArray[np.float64]:
    """The estimated word pieces of each character."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    kinds = _KIND_OF_ASCII[np.minimum(codes, 0x80)]
    first = np.diff(kinds, prepend=_SPACE) != 0
    costs: NDArray[np.float64] = np.where(first, _FIRST[kinds], _FURTHER[kinds])
    for run in _UNBROKEN.finditer(text):
        costs[run.start() : run.end()] = np.maximum(costs[run.start() : run.end()], _UNBROKEN_COST)
    return costs


def _kind(code: int) -> int:
    character = chr(code)
    if code >= 0x80:
        return _OTHER
    if character.isalpha():
        return _LETTER
    if character.isdigit():
        return _DIGIT
    return _SPACE if code <= ord(" ") else _SIGN


_KIND_OF_ASCII = np.array([_kind(code) for code in range(0x81)])
