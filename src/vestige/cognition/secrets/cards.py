"""Numbers of payment cards, beside a word that says card."""

import re
from collections.abc import Iterator

from vestige.cognition.secrets.named import Found

CARD_HINTS = ("visa", "master", "amex", "american", "maestro", "diners", "card", "kart", "cart", "tarjeta")
FEWEST_DIGITS = 6
"""Numbers for tests (4242 4242 4242 4242) are made of fewer different digits."""
_TEST_NUMBERS = frozenset(
    "378282246310005 371449635398431 378734493671000 30569309025904 38520000023237 6011000990139424".split()
)
"""Those of them that are not told by that; card processors publish them."""
_BRAND = (
    r"\b(?:visa|master ?card|amex|american express|maestro|diners(?: club)?|discover card"
    r"|(?:credit|debit|bank|payment|company|corporate|business) ?card|card (?:number|no|nr)"
    r"|(?:kredit|debit|bank|firmen)karten?(?:nummer)?|carte (?:bleue|bancaire|de (?:crédit|paiement))"
    r"|tarjeta|carta di (?:credito|debito)|cart[ãa]o)\b"
)
_NUMBER = r"(?<![\w.-])[2-6]\d{3}(?:([ -]?)\d{4}\1\d{4}\1\d{4}|[ -]?\d{6}[ -]?\d{4,5})(?![\w-]|\.\d)"
_CARD = re.compile(_NUMBER)
_SAYS = re.compile(_BRAND, re.IGNORECASE)
NEAR = 60
"""So far before or after the number the word may stand, on the same line."""


def cards(text: str) -> Iterator[Found]:
    """Numbers that a card could have. A real one has the right check digit; of others one in ten."""
    for found in _CARD.finditer(text):
        digits = re.sub(r"\D", "", found.group())
        if not _has_check_digit(digits) or len(set(digits)) < FEWEST_DIGITS or digits in _TEST_NUMBERS:
            continue
        before = text[max(0, found.start() - NEAR) : found.start()].rpartition("\n")[2]
        after = text[found.end() : found.end() + NEAR].partition("\n")[0]
        if _SAYS.search(before) or _SAYS.search(after):
            yield "card number", *found.span(), "is a card number beside a word for cards"


def _has_check_digit(digits: str) -> bool:
    """The sum of Luhn: every second digit from the right is doubled."""
    doubled = (int(one) * (1 + place % 2) for place, one in enumerate(reversed(digits)))
    return sum(sum(divmod(one, 10)) for one in doubled) % 10 == 0
