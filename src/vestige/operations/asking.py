"""What every question to memory must be, checked once."""

from vestige.checks import check_text
from vestige.cognition.text import query_terms
from vestige.errors import InvalidInput

MAX_QUERY_CHARS = 10_000


def check_query(name: str, text: str) -> None:
    """Refuse a text that no search could look for."""
    check_text(name, text)
    if not text.strip():
        raise InvalidInput(f"The {name} is blank.", hint="Say what to look for.")
    if not query_terms(text):
        raise InvalidInput(
            f"The {name} holds nothing to look for: no word, number or symbol that is kept.",
            hint="Write a question or key words.",
        )
