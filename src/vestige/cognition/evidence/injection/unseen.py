"""Characters that do not show, which could hide words or reorder them in a context."""

from vestige.core.patterns import lazy_pattern

_UNSEEN = lazy_pattern(
    "[\u00ad\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
    "|[\x00-\x08\x0b-\x1f\x7f\x80-\x9f]"
)


def visible(text: str) -> str:
    """The text without unseen characters: controls, directions, tags, widthless ones. Joiners stay,
    which some scripts and emoji need."""
    if text.isascii() and text.isprintable():
        return text
    return _UNSEEN.sub("", text)
