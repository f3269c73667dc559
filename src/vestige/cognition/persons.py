"""Asking a talk as one would ask its speakers: "What did Caroline paint?" becomes "What did you paint?".

In a talk people say I and you, and hardly ever their own names, so a name in the question draws its token
states away from what was said. Who speaks is judged apart (the `speaker` signal).
"""

import re

from vestige.cognition.form import name_hash

_NAME = re.compile(r"[^\W\d_][\w-]*(['’]s\b|['’](?!\w))?")
_POSSESSIVE = re.compile(r"\b(?:his|her|their)\b", re.IGNORECASE)


def in_second_person(text: str, speakers: frozenset[int]) -> str:
    """The text with the names of these speakers (`form.name_hash`) as you, and what is theirs as your."""

    def addressed(word: re.Match[str]) -> str:
        owner = word[1] or ""
        if name_hash(word[0].removesuffix(owner)) not in speakers:
            return word[0]
        return "your" if owner else "you"

    spoken = _NAME.sub(addressed, text)
    return _POSSESSIVE.sub("your", spoken) if spoken != text else text
