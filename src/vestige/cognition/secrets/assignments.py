"""Secrets recognised by their name: `password = …`, `"api_key": "…"`, "the token is …".

A word for secrets is looked for first; the text after it is matched from there, within bounds.
"""

import re
from collections.abc import Iterator

from vestige.cognition.secrets import values
from vestige.cognition.secrets.entropy import classes, irregular
from vestige.cognition.text.word_lists import pattern, sections, words
from vestige.core.patterns import lazy_pattern

Found = tuple[str, int, int, str]  # (kind, start, end, reason)

DEEPEST = 2  # The limit of nested names that are followed in one long string (`pwd=pwd=pwd=…`).
_LISTS = sections("vestige.cognition.secrets", "assignments")
NAME_HINTS = tuple(" ".join(_LISTS["name_hints"]).split())
_KINDS = {
    "password": "password",
    "session": "session id",
    "key": "key",
    "token": "token",
    "login": "token",
    "secret": "secret",
}
_WORD = lazy_pattern("|".join(f"(?P<{group}>{'|'.join(_LISTS[group])})" for group in _KINDS))
_WHICH_KEY = tuple(" ".join(_LISTS["which_key"]).split())
"""Words one of which must come before `key`: other keys give no access."""
_OTHER_KEY = words(_LISTS["other_key"])
"""Words before `key` after which even a random string is not a secret."""
_LAST_WORD = lazy_pattern(r"(?<![a-z0-9])[a-z0-9]++$")
_API = lazy_pattern(r"\s(?:d['’]\s?|de\s)?(?:la\s|l['’])?api", re.IGNORECASE)
_NO_SECRET = tuple(" ".join(_LISTS["no_secret"]).split())
"""Words before a name that then does not name a secret."""
_COMPOUND = lazy_pattern(
    r"(?:^|[^a-z])(?:pg|db|my|sql|wifi|user|admin|root|mail|smtp|ftp|ssh|key|store|new|old|bind|require)$",
    re.I,
)
_TAIL = pattern(_LISTS["name_endings"])
"""Endings of a name that does not name the secret itself."""
_PHRASE = r"""(?:\s(?:for|to|of|on|in|at|from|zum|zur|für|fürs|vom|des|der|du|de|d['’]|pour|para|del|della?
    |la|le|das|von|al|sur|van|voor|da|do|di|per|dla|till|от|для|к|that|which|you|we|I|he|she|they|used|here)
    \s?[^\n:="']{1,60}?)?"""
_FORM = r"""(?P<tail>[A-Za-z0-9_äöüß-]{0,30})
    (?:\\?["'`*_]{1,3})?[\])}]?
    (?:\s?\((?!it\s|is\s)[^()\n]{1,40}\))?
    (?:
      PHRASE
      (?:\s{0,20}(?:[,{]?\s{0,20}\\?["']?(?:value|default)\\?["']?\s{0,4})?
          (?P<sign>:=|=>|={1,3}|:{1,2}|：|→|->|[—–](?=\s)|>|是|は|为|為|(?P<comma>,)(?=\s{0,4}\\?["'])
            |\((?=\\?["']))
          \s{0,4}(?:[|>]-?[ ]{0,4}\n\s{1,20}|c['’]est\s)?
        |\s{1,4}(?:\(it\s|here\s|should\s|must\s|will\s|has\s|had\s|got\s|was\s|is\s|been\s|to\s|wurde\s){0,3}
          (?P<verb>is|was|are|be|ist|war|lautet|c['’]est|est|es|era|è|é|jest|är|je|er|the\ value
          |(?:re)?set\ to|(?:changed|updated|rotated|switched|reset)\ to|(?P<to>to))
          (?:\s(?:now|still|set|changed|currently|actually|just|to|jetzt|maintenant|ahora)){0,3}\s?:?\s{1,3})
      |(?P<gap>[ \t]{1,4})
    )
    [\[(]?(?:[bru@](?=["']))?
    (?:\\?"(?P<double>(?:[^"\\\n]|\\[^"'\n]){1,4096})\\?"
      |\\?'(?P<single>(?:[^'\\\n]|\\[^"'\n]){1,4096})\\?'|`(?P<tick>[^`\n]{1,4096})`
      |[“„«]\s?(?P<curly>[^”“»\n]{1,256}?)\s?[”“»]|(?P<plain>[^\s"'`<>]{1,4096}))"""
_AFTER = lazy_pattern(_FORM.replace("PHRASE", _PHRASE), re.IGNORECASE | re.VERBOSE)
_NEXT = lazy_pattern(_FORM.replace("PHRASE", ""), re.IGNORECASE | re.VERBOSE)
_GIVES = lazy_pattern(
    r".{0,100}?(?:[:=>：→—–是は为為(,]|\s(?:is|was|are|be|ist|war|lautet|(?:c['’])?est|es|era|è|é|jest|är|je|er|value|to)\s)"
)
"""Without any of these a value can only come right after the name: the longer form is not tried."""
_QUOTED = ("double", "single", "tick", "curly")
_CUT = lazy_pattern(r";|&(?=\w{1,30}=)|,(?=[\w-]{1,30}[=:]|$)|\\[nr\"']|\|\||です|[。，、；]")
_ENDS = lazy_pattern(r"[\"'`]?[.,;!)]{0,3}(?:\s{0,4}(?:$|\n)|(?<=[.,;!)])\s)|[。，、；]|です")
"""What follows a word at the end of a sentence or clause."""
_ALONE = lazy_pattern(r"(?:^|\n)[\w.-]{0,60}$")
_TEST = lazy_pattern(r"[Tt]est(?:[A-Z_/]|s/)")
_FLAG = lazy_pattern(r"(?<!\w)--?(?:[a-z]+-){0,3}$", re.IGNORECASE)


def assignments(text: str) -> Iterator[Found]:
    """Values assigned to a name with a word for secrets."""
    done, until, inside = 0, 0, 0
    for word in _WORD.finditer(_lower(text)):
        inside = inside + 1 if word.start() < until else 0
        if word.start() < done or inside > DEEPEST or not _says_secret(text, word):
            continue
        after = (_AFTER if _GIVES.match(text, word.end()) else _NEXT).match(text, word.end())
        if after is None:
            continue
        until = max(until, after.end())
        start, end = _value(text, after)
        if _names_itself(text, word, after) and _is_secret(text, word, after, (start, end)):
            done = end
            yield _KINDS[str(word.lastgroup)], start, end, f"follows `{word.group()}`"


def _says_secret(text: str, word: re.Match[str]) -> bool:
    """Whether the word, with the words before it, names a secret."""
    start, before = word.start(), _before(text, word)
    if before.endswith(_NO_SECRET) or text[start - 1 : start] == ":":
        return False
    if word.lastgroup == "key" and "code" not in word.group() and not _opens(text, word):
        last = _LAST_WORD.search(before) if text[start - 1 : start] in tuple("-_. ") else None
        return last is not None and last.group() not in _OTHER_KEY
    if word.lastgroup == "key":
        return True
    # `compass` and `bypass` end like a word for it; in `dbPass` a new word begins.
    short = len(word.group()) < 5 and not _COMPOUND.search(text, max(0, start - 8), start)
    return not (
        short and start and text[start - 1].isalpha() and text[start - 1].islower() == text[start].islower()
    )


def _opens(text: str, word: re.Match[str]) -> bool:
    """Whether a key gives access to something; of another kind only a random one is a secret."""
    return _before(text, word).endswith(_WHICH_KEY) or _API.match(text, word.end()) is not None


def _before(text: str, word: re.Match[str]) -> str:
    """The text before the word, without one separator."""
    before = text[max(0, word.start() - 16) : word.start()].lower()
    return before[:-1] if before[-1:] in ("-", "_", ".", " ") else before


def _lower(text: str) -> str:
    """The text in lower case with the same length: a few characters have longer lower-case forms."""
    plain = text.lower()
    return plain if len(plain) == len(text) else "".join(c if len(c.lower()) > 1 else c.lower() for c in text)


def _value(text: str, after: re.Match[str]) -> tuple[int, int]:
    """The span of the value, without trailing punctuation."""
    place = next((name for name in _QUOTED if after[name] is not None), "plain")
    start, end = after.span(place)
    if place != "plain":
        return start, end
    cut = _CUT.search(text, start + 1, end)
    end = cut.start() if cut else end
    closing = ",.;:)]}" + ("!?" if after["verb"] else "")
    while end > start and text[end - 1] in closing and not (text[end - 1] == ")" and "(" in text[start:end]):
        end -= 1
    return start, end


def _names_itself(text: str, word: re.Match[str], after: re.Match[str]) -> bool:
    """Whether the name denotes the secret itself, not something about it."""
    tail = after["tail"]
    if tail and after["comma"]:
        return False  # a list of names
    if tail and tail[0].islower() and text[word.end() - 1].islower() and tail not in ("s", "n", "base"):
        return False  # `tokenizer`, `secretary`
    return not (tail and _TAIL.search(tail))


def _is_secret(text: str, word: re.Match[str], after: re.Match[str], span: tuple[int, int]) -> bool:
    group, value = word.lastgroup, text[slice(*span)]
    flag = _FLAG.search(text, max(0, word.start() - 24), word.start()) is not None
    if word.group() == "pass" and (after["to"] is not None or _TEST.match(value)):
        return False  # `options to pass to 'codesign'`, `--- PASS: TestParser/cut`
    if after["gap"] is not None and not flag:
        return _follows(text, str(group), span)
    if group == "login" or _only_random(text, word):
        mixed = word.group() == "clave" and values.is_mixed_password(value)
        return (values.is_key(value, least=16) or mixed) and group != "login"
    named = flag or (
        text[word.start() : word.end()].isupper() and not after["tail"].islower() and not after["verb"]
    )
    if group == "secret" and (values.is_strong_password(value) or values.is_mixed_password(value)):
        return True
    quoted = after["plain"] is None
    if group != "password" and not (group == "secret" and named and after["sign"] == "=" and not flag):
        return len(value) >= (16 if group == "session" else 8) and values.is_token(value, quoted=quoted)
    if values.is_password(value, quoted=quoted, named=named) or values.is_key(value):
        return True
    return group == "password" and _is_spoken(text, word, after, span)


def _only_random(text: str, word: re.Match[str]) -> bool:
    """Whether the word is so common that only a random value counts."""
    name = word.group()
    return name == "auth" or (word.lastgroup == "key" and "code" not in name and not _opens(text, word))


def _follows(text: str, group: str, span: tuple[int, int]) -> bool:
    """Whether the text right after the word is the secret."""
    value = text[slice(*span)]
    if value.isalpha() and value.islower():
        return False  # a plain word, as most are that follow
    ends = _ENDS.match(text, span[1]) is not None
    strong, mixed = values.is_strong_password(value), values.is_mixed_password(value)
    if group == "password":
        camel = ends and classes(value) == 2 and not value.istitle() and values.is_plain_password(value)
        return strong or mixed or values.is_key(value) or camel
    return values.is_key(value) or (group == "secret" and (mixed or (ends and strong)))


def _is_spoken(text: str, word: re.Match[str], after: re.Match[str], span: tuple[int, int]) -> bool:
    """Whether a password of plain words is given."""
    value = text[slice(*span)]
    if values.is_placeholder(value) or _WORD.search(value.lower()):
        return False
    quoted, sign = after["plain"] is None, after["sign"] or ""
    if any(map(str.isspace, value)):
        return quoted and _is_phrase(word.group(), after, value)
    if values.is_phrase(value):
        return value.count("-") >= 3
    if value.isdigit():
        return 6 <= len(value) <= 20 and len(irregular(value)) > 4
    if not values.is_plain_password(value):
        return False
    if quoted:
        return len(value) >= 6 and sign not in (",", "(")
    if sign == "=":
        alone = _ALONE.search(text, max(0, word.start() - 64), word.start()) is not None
        return alone and _ENDS.match(text, span[1]) is not None
    # `set the password to expire`, `second pass: parse`
    stated = after["to"] is None and word.group() != "pass"
    return stated and _ENDS.match(text, span[1]) is not None


def _is_phrase(name: str, after: re.Match[str], value: str) -> bool:
    """Whether several words in quotes are a password."""
    if "phrase" in name and values.is_phrase(value):
        return True
    if after["sign"] not in ("=", ":", "=>"):
        return False
    if values.is_spaced_password(value):
        return True
    if name == "psk" and after["sign"] == "=":
        return len(value) >= 8  # as wpa_supplicant has it
    # A longer name, such as `passwordHint`, is about a password.
    return name != "pass" and not after["tail"] and values.is_passphrase(value)
