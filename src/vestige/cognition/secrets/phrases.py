"""Secrets that people write down: seed phrases, recovery codes, PINs; and random strings beside a word for
secrets."""

import re
from collections.abc import Iterator

from vestige.cognition.secrets.assignments import Found
from vestige.cognition.secrets.entropy import classes, looks_random
from vestige.cognition.secrets.values import is_mixed_password, is_odd_password, is_placeholder, opens_remark
from vestige.cognition.text.word_lists import sections

SEED_HINTS = ("seed", "mnemonic", "phrase", "word", "bip", "metamask", "trezor")
_LISTS = sections("vestige.cognition.secrets", "phrases")
PHRASE_HINTS = tuple(_LISTS["phrase_hints"])
CODE_HINTS = tuple(" ".join(_LISTS["code_hints"]).split())
RANDOM_HINTS = tuple(" ".join(_LISTS["random_hints"]).split())
_SEED = re.compile(
    r"\b(?:seed|mnemonic|(?:recovery|backup|secret|wallet|seed)\s(?:phrase|words?)"
    r"|bip-?39|metamask|trezor)\b",
    re.IGNORECASE,
)
_WORDS = re.compile(
    r"(?:^|[:=\n\"'`(]|\bis\b|\bare\b|\bwords?\b)[\s\"'`]{0,4}"
    r"(?P<secret>(?:\d{1,2}[.):]?\s?)?[a-z]{3,8}"
    r"(?:[\s,]{1,3}(?:\d{1,2}[.):]?\s?)?[a-z]{3,8}){11,23})(?![a-z])"
)
_PROSE = frozenset("the and for with are was were but from has its our their which not into his her".split())
_CODE = r"[A-Za-z0-9]{4,12}(?:-[A-Za-z0-9]{3,12}){0,4}"
_CODES = re.compile(
    r"\b(?:recovery|backup|rescue|2fa|mfa|scratch|emergency)[ _-]?codes?\b"
    r"(?:[^\n:=]{0,40}?(?:[:=\n]|\bare\b|\bis\b)|(?=\s[a-z]{0,8}[\d-]))\s{0,4}"
    rf"(?P<secret>{_CODE}(?:[\s,;/|]{{1,4}}{_CODE}){{0,30}})",
    re.IGNORECASE,
)
_PIN = re.compile(
    r"(?:\b(?:PIN|pin|Pin)\b|\b[Pp][Ii][Nn][ -]?[Cc]ode\b|\b[Pp]ass[ -]?code\b"
    r"|\b(?i:door|gate|alarm|safe|lock|locker|sim|card|entry|entrance|security|garage|vault|voicemail|unlock"
    r"|keypad|access|lockbox|building|phone|luggage)[ -](?:\w{2,10}[ -])?(?:pin|code|combination|combo)\b"
    r"|\b[Cc]omb(?:ination|o)\s(?:to|of|for)\b"
    r"|\b(?:T[üu]r|Tor|Alarm)code\b"
    r"|\bcode (?:de la porte|d['’]entrée|pin)\b|\bc[oó]digo pin\b|ПИН(?:-код)?)"
    r"[^\n\d:=]{0,30}?(?:\bis\b|:|=|\bist\b|\blautet\b|\best\b|\bes\b|\bwas\b|\bto\b)\s{0,3}[*#]?"
    r"(?P<secret>[*#]?\d{4,8}#?|\d{1,2}(?:-\d{1,2}){2,3})(?![\w.:/-]*\d)",
)
_SAFE = re.compile(
    r"(?:\b(?:door|gate|alarm|safe|lock|locker|garage|vault|voicemail|unlock|lockbox|building|atm|bank|debit"
    r"|credit|sim|phone|ipad|iphone|tablet)"
    r"(?:(?:[ -]card)?[ -](?:pin|code|passcode|combination|combo|pass[ -]?code)\s{1,2}"
    r"|s?\s?:\s?(?=\S{4,9}\s{0,2}$)|(?:s|ed)?\swith\s)|\bkeypad:\s?|(?-i:\bPIN\s))"
    r"(?P<secret>[*#]?\d{4,8}#?|\d{1,2}(?:-\d{1,2}){2,3})(?![\w.:/-]*\d)",
    re.IGNORECASE,
)
_GROUPED = re.compile(
    r"\b(?:t?otp|2fa|mfa|authenticator|secret|setup|activation)(?:[ _-](?:secret|seed|key|code|setup))?\b"
    r"[^\n:=]{0,40}?(?:\s|[:=])\s{0,3}[\"']?"
    r"(?P<secret>(?=[^\d\n]{0,30}\d)[A-Za-z2-7]{4}(?: [A-Za-z2-7]{4}){3,12})(?![A-Za-z0-9])",
    re.IGNORECASE,
)
_LICENCE = re.compile(
    r"\b(?:serial|licen[cs]e|activation|product|registration|cd|windows|office|steam|voucher|gift ?card)\b"
    r"[^\n]{0,60}?(?<![\w-])(?P<secret>[A-Z0-9]{4,8}(?:-[A-Z0-9]{4,8}){2,7})(?![\w-])",
    re.IGNORECASE,
)
_CARD = re.compile(
    r"\b(?:(?:SIM|card)[ -]PIN|PUK|CVV2?|CVC2?)\b[^\n\d]{0,12}?(?P<secret>\d{3,8})(?!\d)", re.IGNORECASE
)
_PASSPHRASE = re.compile(
    r"\bpass\s?phrase\b[^\n:=]{0,40}?(?:\bis\b|:|=|\bist\b|\blautet\b|\best\b|\bes\b)\s{1,3}[\"'`]?"
    r"(?P<secret>[a-z]{3,12}(?: [a-z]{3,12}){2,7})(?=[\"'`.]?(?:\s|$))",
    re.MULTILINE,
)
_APP_PASSWORD = re.compile(
    r"(?:\bapp(?:lication)?[- ](?:specific )?password\b[^\n:=]{0,40}?(?:\bis\b|[:=]|\s)|pass(?:word)?\s?=)"
    r"\s{0,3}[\"'`]?"
    r"(?P<secret>[a-z]{4}(?:[ -][a-z]{4}){3}|(?-i:[a-z]{16}))(?![a-z])",
    re.IGNORECASE,
)
_TOKEN = re.compile(r"(?<![\w+/=.~-])[A-Za-z0-9+/_=.~-]{20,512}")
_SAYS = re.compile(
    r"(?<![^\W_])(?:secrets?|token|jeton|keys?|credentials?|passwords?|passwd|bearer|signing|apikey|schlüssel"
    r"|clé|clave|licen[cs]e|activation|aws|salt|pepper|totp|2fa)(?![^\W_])",
    re.IGNORECASE,
)
_SAYS_CLEARLY = re.compile(
    r"(?<![^\W_])(?:api[ _-]?keys?|(?:access|auth|api|bearer|refresh|deploy|bot|personal)[ _-]?tokens?"
    r"|client[ _-]secret|secrets?|credentials?|passwords?|passwd|apikey|private key|signing)(?![^\W_])",
    re.IGNORECASE,
)
"""Words required beside lower-case letters and digits, which could be a hash."""
_LOWER = re.compile(r"[a-z0-9]{24,}$|[A-Z0-9]{24,}$")
_UNSAYS = re.compile(
    r"public|fingerprint|sha-?\d|hash|checksum|digest|integrity|commit|etag|cache|partition|idempot|ssh-"
    r"|certificate|uuid|trace|request|correlation|s3:|arn:|primary|foreign|host ?key|site|object|page|next"
    r"|cursor|tracking|file|path|did:|enc\[|publishable",
    re.IGNORECASE,
)
_NAME = re.compile(r"[0-9a-fA-F-]+$|[\w-]+(?:\.[\w-]+)+$|[./~]|.*/.*/.*/|https?")
_TELLS = re.compile(
    r"\b(?:pass(?:word|wort|code|phrase|wd)?|pw|pwd|kennwort|login|log(?:ged)? ?in|sign ?in|creds?"
    r"|credentials|wi-?fi|wlan|vpn|unlock|decrypt|admin|root|account|konto|zugang|access|type|enter"
    r"|ask(?:s|ed)?|prompts?|get in|mot de passe|mdp|contrase[ñn]a|clave|senha|wachtwoord)\b",
    re.IGNORECASE,
)
_TELLS_CLEARLY = re.compile(
    r"pass|pw|kennwort|creds|wi-?fi|wlan|mot de|mdp|contra|senha|wacht", re.IGNORECASE
)
_MADE_UP = re.compile(r"[a-z]\d{2,4}$|[a-z]\d[a-z]")
_PIECE = re.compile(r"(?<![^\s\"'`(:])[^\s\"'`<>(),;]{8,64}(?![^\s\"'`),;.])")
NEAR = 100
BEFORE = 80
"""The largest distance of the word before a random string."""


def seed_phrases(text: str) -> Iterator[Found]:
    """The seed words of a wallet."""
    done = 0
    for word in _SEED.finditer(text):
        if word.start() < done:
            continue
        found = _WORDS.search(text, word.end(), word.end() + 4 * NEAR)
        done = word.end() + NEAR  # what begins so near ends within what was searched
        if found and not _PROSE & set(re.findall("[a-z]+", found["secret"])):
            done = found.end()
            yield "seed phrase", *found.span("secret"), f"follows `{word.group().casefold()}`"


def codes(text: str) -> Iterator[Found]:
    """Recovery codes and PINs."""
    for found in _CODES.finditer(text):
        start = found.start("secret")
        listed = re.finditer(r"[A-Za-z0-9-]+", found["secret"])
        drawn = [one.end() for one in listed if any(map(str.isdigit, one.group()))]
        if drawn and not is_placeholder(found["secret"]) and any(map(str.isdigit, found["secret"][:13])):
            yield "recovery codes", start, start + drawn[-1], "follows `codes`"
    for found in _GROUPED.finditer(text):
        yield "recovery codes", *found.span("secret"), "is grouped as a seed for one-time codes"
    for found in _LICENCE.finditer(text):
        value = found["secret"]
        if value.isupper() and any(map(str.isdigit, value)) and not is_placeholder(value):
            yield "licence key", *found.span("secret"), "is grouped as a licence key"
    for found in (*_PIN.finditer(text), *_SAFE.finditer(text), *_CARD.finditer(text)):
        if len(set(found["secret"])) > 1:
            yield "PIN", *found.span("secret"), "follows `PIN`"


def passphrases(text: str) -> Iterator[Found]:
    """Phrases of plain words, and the groups of letters of application passwords."""
    for found in _PASSPHRASE.finditer(text):
        if not _PROSE & set(found["secret"].split()) and not opens_remark(found["secret"]):
            yield "passphrase", *found.span("secret"), "follows `passphrase`"
    for found in _APP_PASSWORD.finditer(text):
        yield "password", *found.span("secret"), "follows `app password`"


def odd_beside_words(text: str) -> Iterator[Found]:
    """Strings that can only be passwords, on a line with a word for one."""
    last = -1
    for word in _TELLS.finditer(text):
        if word.end() <= last:
            continue  # that line was looked through
        start, end = text.rfind("\n", last + 1, word.start()) + 1 or last + 1, text.find("\n", word.end())
        end = min(end if end >= 0 else len(text), word.end() + NEAR)
        start = max(start, word.start() - NEAR, last + 1)
        last = max(last, end)
        for found in _PIECE.finditer(text, start, end):
            value = found.group().rstrip(".,:")
            clear = _TELLS_CLEARLY.match(word.group()) is not None
            if is_odd_password(value) or (clear and _is_made_up(value)):
                yield (
                    "password",
                    found.start(),
                    found.start() + len(value),
                    f"stands beside `{word.group().casefold()}`",
                )


def _is_made_up(value: str) -> bool:
    """Whether letters and digits are mixed so that it is neither a name nor a number."""
    return (
        value.isalnum() and classes(value) == 3 and bool(_MADE_UP.search(value)) and is_mixed_password(value)
    )


def _line_before(text: str, at: int) -> str:
    """The text before on the same line, or the line before if it leads up to it."""
    lines = text[max(0, at - BEFORE) : at].rsplit("\n", 2)
    leads = len(lines) > 1 and not lines[-1].strip()
    return lines[-2] if leads else lines[-1]


def _line_after(text: str, at: int) -> str:
    return text[at : at + BEFORE].partition("\n")[0]


def random_beside_words(text: str) -> Iterator[Found]:
    """Strings that look random, on a line with a word for secrets."""
    for found in _TOKEN.finditer(text):
        value = found.group().rstrip(".=")
        plain = classes(value) < 3 or _NAME.match(value)
        if not looks_random(value, least=20) or (plain and not _LOWER.match(value)):
            continue
        beside = _line_before(text, found.start()), _line_after(text, found.end())
        says = _SAYS_CLEARLY if plain else _SAYS
        named = any(says.search(part) for part in beside) and not any(_UNSAYS.search(part) for part in beside)
        if named and not is_placeholder(value):
            yield "secret", *found.span(), "looks random beside a word for secrets"
