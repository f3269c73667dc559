"""The nearest known name to a misspelt one, for error messages."""

from collections.abc import Iterable


def nearest_name(wrong: str, known: Iterable[str]) -> str | None:
    """The known name most similar to `wrong`, or None if none is close."""
    # Imported late: difflib is only needed after an error.
    from difflib import get_close_matches

    plain = {name.replace("_", "").lower(): name for name in known}
    found = get_close_matches(wrong.replace("_", "").lower(), plain, n=1, cutoff=0.6)
    return plain[found[0]] if found else None
