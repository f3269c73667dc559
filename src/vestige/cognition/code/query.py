"""What a question to code search asks for: a symbol or a sentence, and which of its words weigh most."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping

from vestige.cognition.code.languages import language_of
from vestige.cognition.code.tokens import KEYWORDS, tokens_of_word
from vestige.cognition.text.analyser import stem
from vestige.cognition.text.word_lists import sections, words
from vestige.core.lazy_dataclass import dataclass
from vestige.core.patterns import lazy_pattern

LONGEST_QUERY = 20_000
"""An issue with its log is read up to here."""
LONG_QUERY = 400
"""From this many characters on, a query is a report: what it names weighs over its prose."""
MOST_TERMS = 200
MOST_QUALIFIED = 50

# What the parts of a report weigh, and how much a word gains that is repeated.
PROSE = CODE = 0.5
SPAN = TRACE = 1.0
TITLE = 1.5
REPEATS = 0.6

STOP_WORDS = words(sections("vestige.cognition.code", "stop_words")[""])

HISTORY_WORDS = frozenset(
    map(stem, "changelog history release released releases version versions news".split())
)
"""Stems of words by which a question asks for the history of a project."""

_SPAN = lazy_pattern(r"`([^`\n]{1,300})`")
_FENCE = lazy_pattern(r"^[ \t]{0,3}(?:```|~~~)")
_FRAME = lazy_pattern(
    r'File "([^"\n]{1,300})", line \d+(?:, in (\w{1,100}))?|\bat ([\w.$]{3,200})\(([\w.]{1,100}):\d+'
)
_TOKEN = lazy_pattern(r"[\w./\\$-]+")
_IDENTIFIER = lazy_pattern(r"[^\W\d][\w$]*(?:(?:\.|::|->|#)[^\W\d][\w$]*)*")
_SEPARATOR = lazy_pattern(r"\.|::|->|#")
_CAMEL = lazy_pattern(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]")
_SYMBOL = lazy_pattern(r"[^\W\d][\w$]*(?:(?:\.|::|->|#|/)[^\W\d][\w$]*)*[?!]?(?:\(\))?")
_ERRORS = ("Error", "Exception", "Warning", "panicked", "Traceback", "error:", "fatal:")


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeQuery:
    """A question, read.

    `terms` are the tokens to look for with their weights, as `tokens_of` writes them. `symbols` are
    identifiers, in lower case, whose definition may be what is asked for, with their weights. `words` are
    the plain words, for the names of files. `paths` are files that the question names, as far as it names
    them. `qualified` are the names of symbols that are named with what they are in, in lower case and from
    the outside in, such as `session`, `send`. `of_history` is whether it asks what changed, and when.
    """

    text: str
    is_symbol: bool
    is_report: bool
    terms: Mapping[str, float]
    symbols: Mapping[str, float]
    words: tuple[str, ...]
    paths: tuple[str, ...]
    qualified: tuple[tuple[str, ...], ...] = ()
    of_history: bool = False


def analyse(text: str) -> CodeQuery:
    """What a question asks for."""
    text = text[:LONGEST_QUERY].strip()
    if _SYMBOL.fullmatch(text):
        return _symbol_query(text)
    report = len(text) >= LONG_QUERY or text.count("\n") >= 5
    weights = _report_weights(text) if report else [(text, 1.0)]
    terms: dict[str, float] = {}
    symbols: dict[str, float] = {}
    counts: Counter[str] = Counter()
    qualified: dict[tuple[str, ...], None] = {}
    for part, weight in weights:
        for whole in _IDENTIFIER.findall(part):
            _add(whole, weight, terms, symbols, counts)
            names = _SEPARATOR.split(whole.lower())
            if len(names) > 1:
                qualified[tuple(names)] = None
    for term, times in counts.items():
        terms[term] *= 1.0 + REPEATS * math.log(times)
    plain = tuple(word for word in terms if word.isalpha())
    kept = dict(sorted(terms.items(), key=lambda item: -item[1])[:MOST_TERMS])
    return CodeQuery(
        text=text,
        is_symbol=False,
        is_report=report,
        terms=kept,
        symbols=symbols,
        words=plain,
        paths=tuple(dict.fromkeys(_paths(text))),
        qualified=tuple(qualified)[:MOST_QUALIFIED],
        of_history=not report and not HISTORY_WORDS.isdisjoint(plain),
    )


def _symbol_query(text: str) -> CodeQuery:
    terms: dict[str, float] = {}
    symbols: dict[str, float] = {}
    names = [name for name in _SEPARATOR.split(text.rstrip("?!()").replace("/", ".")) if name]
    for place, name in enumerate(names, 1):
        own = 1.0 if place == len(names) else 0.5
        symbols[name.lower()] = own
        for term in tokens_of_word(name):
            terms[term] = max(terms.get(term, 0.0), own)
    return CodeQuery(
        text=text,
        is_symbol=True,
        is_report=False,
        terms=terms,
        symbols=symbols,
        words=tuple(terms),
        paths=tuple(_paths(text)),
        qualified=(tuple(name.lower() for name in names),) if len(names) > 1 else (),
        of_history=not HISTORY_WORDS.isdisjoint(terms),
    )


def _add(
    whole: str, weight: float, terms: dict[str, float], symbols: dict[str, float], counts: Counter[str]
) -> None:
    """Counts an identifier, its names and their parts."""
    names = _SEPARATOR.split(whole)
    for name in names:
        lower = name.lower()
        if lower in STOP_WORDS and len(names) == 1:
            continue
        if len(name) > 1 and (looks_like_symbol(name) or len(names) > 1):
            symbols[lower] = max(symbols.get(lower, 0.0), weight)
        for term in tokens_of_word(name):
            terms[term] = max(terms.get(term, 0.0), weight)
            counts[term] += 1


def looks_like_symbol(word: str) -> bool:
    """Whether a word is written as programs write names: with an underscore, or capitals inside."""
    return word.lower() not in KEYWORDS and ("_" in word.strip("_") or bool(_CAMEL.search(word)))


def _report_weights(text: str) -> Iterator[tuple[str, float]]:
    """The parts of a report with their weights: its title, code spans, errors and traces over prose."""
    fenced = False
    for row, line in enumerate(text.split("\n")):
        if _FENCE.match(line):
            fenced = not fenced
            continue
        for match in _FRAME.finditer(line):
            yield " ".join(part for part in match.groups() if part), TRACE
        if any(word in line for word in _ERRORS):
            yield line, TRACE
        elif row == 0:
            yield line, TITLE
        else:
            yield line, CODE if fenced else PROSE
        for span in _SPAN.findall(line):
            yield span, SPAN


def _paths(text: str) -> Iterator[str]:
    """Files that a text names: with a slash, or with an ending that a language has."""
    for token in _TOKEN.findall(text):
        token = token.replace("\\", "/").strip("./-")
        if 3 < len(token) <= 300 and language_of(token):
            yield token
        elif (
            "." in token
            and "/" not in token
            and 3 < len(token) <= 300
            and token.replace(".", "").isidentifier()
        ):
            yield token.replace(".", "/")  # A module, such as `package.module`.
