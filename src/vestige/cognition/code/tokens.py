"""The words of source code: identifiers whole and in their parts, and the names that code refers to."""

import re
from functools import lru_cache
from itertools import chain

from vestige.cognition.text.analyser import stem
from vestige.core.patterns import lazy_pattern

_WORD = lazy_pattern(r"\w+")
_PART = lazy_pattern(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[^\W\dA-Z_]+|[A-Z]+|\d+")
_CALLED = lazy_pattern(r"\b([^\W\d]\w*)[!?]?\(|\b([A-Z][a-z0-9]+[A-Z]\w*|[A-Z]\w*[a-z]\w*)")
_IMPORT = lazy_pattern(
    r"^\s{0,40}(?:from|import|use|using|require|include|#include|open|alias)\b(.*)$", re.MULTILINE
)
_NAME = lazy_pattern(r"[^\W\d]\w*")
_SET_AS_CODE = lazy_pattern(r"`(?:[\w.:#]{0,100}[.:#~])?([^\W\d]\w{1,79})(?:\([^`\n]{0,80}\))?`")

MOST_READ = 50_000
"""Names are taken from this many characters of a section."""
MOST_REFERENCES = 200
LONGEST_WORD = 80
"""A longer run of letters is data, such as a key or a picture; only its start counts."""

KEYWORDS = frozenset(
    """abstract and as assert async await auto base begin bool boolean break byte case catch char class const
    constexpr continue crate def default defer del delete do double elif else elsif end enum except export
    extends extern false final finally float fn for foreach from func function global go goto if impl
    implements import in include inline instanceof int interface internal is lambda let local long match mod
    module mut namespace new nil none nonlocal not null object of open operator or override package pass
    private protected protocol pub public raise readonly rescue return self short signed sizeof static
    string struct super switch template then this throw throws trait true try type typedef typename typeof
    union unless unsafe unsigned until use using
    val var virtual void volatile when where while with yield require print""".split()
)


_OUR = lazy_pattern(r"our(?=(?:s|ed|ing|able|al|ful|ites?|less|ers?)?$)")
_ISE = lazy_pattern(r"(?<=[a-z]i|ly)s(?=(?:e[ds]?|ers?|ing|able|ations?)$)")
LEAST_SPELLED = 6


@lru_cache(maxsize=65_536)
def code_stem(word: str) -> str:
    """The stem of a word in lower case. Programs are written in American spelling, whatever their authors and
    users write: `colour` has the stem of `color`, and `serialised` that of `serialized`."""
    if len(word) >= LEAST_SPELLED:
        word = _ISE.sub("z", _OUR.sub("or", word))
    return stem(word)


def parts_of(identifier: str) -> list[str]:
    """The words inside an identifier, in lower case: at camelCase, snake_case, acronyms and digits."""
    return [part.lower() for part in _PART.findall(identifier[:LONGEST_WORD])]


def tokens_of(text: str) -> list[str]:
    """The stems of a text's words, in order: of each identifier as a whole, then of its parts if several."""
    words = _WORD.findall(text)
    if max(map(len, words), default=0) > LONGEST_WORD:
        words = [word[:LONGEST_WORD] for word in words]
    return list(chain.from_iterable(map(tokens_of_word, words)))


@lru_cache(maxsize=65_536)
def tokens_of_word(word: str) -> tuple[str, ...]:
    """The stem of an identifier, then those of its parts if it has several."""
    whole = word.lower()
    parts = parts_of(word)
    if len(parts) > 1:
        return (code_stem(whole), *map(code_stem, parts))
    return (code_stem(parts[0] if parts else whole),)


def references_of(
    text: str, definitions: tuple[str, ...] = (), *, is_document: bool = False
) -> tuple[str, ...]:
    """The names that code calls, imports or writes with a capital, in order, without what it defines; of a
    document also those that it sets as code."""
    own = frozenset(definitions)
    found: dict[str, None] = {}
    text = text[:MOST_READ]
    for match in _IMPORT.finditer(text):
        for name in _NAME.findall(match[1][:200]):
            found[name] = None
    if is_document:
        found |= dict.fromkeys(match[1] for match in _SET_AS_CODE.finditer(text))
    for called, written in _CALLED.findall(text):
        found[called or written] = None
        if len(found) > 2 * MOST_REFERENCES:
            break
    names = (name for name in found if len(name) > 1 and name not in own and name.lower() not in KEYWORDS)
    return tuple(names)[:MOST_REFERENCES]
