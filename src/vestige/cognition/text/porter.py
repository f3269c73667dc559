"""Porter's stemmer of 1980, as our own code.

The full-text index stores stems, so the stemmer must never change: a library upgrade that stems one word
differently would leave rows that no query finds. A test compares it with the Snowball project's `porter`.

M. F. Porter, "An algorithm for suffix stripping", Program 14(3), 1980.
"""

from functools import lru_cache

Rules = dict[str, str]

# A word that ends in a suffix of the left column, with a measure above the step's limit, gets the right one.
STEP_2: Rules = {
    "ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize", "abli": "able",
    "alli": "al", "entli": "ent", "eli": "e", "ousli": "ous", "ization": "ize", "ation": "ate",
    "ator": "ate", "alism": "al", "iveness": "ive", "fulness": "ful", "ousness": "ous", "aliti": "al",
    "iviti": "ive", "biliti": "ble",
}  # fmt: skip
STEP_3: Rules = {
    "icate": "ic", "ative": "", "alize": "al", "iciti": "ic",  # codespell:ignore ative
    "ical": "ic", "ful": "", "ness": "",
}  # fmt: skip
STEP_4: Rules = dict.fromkeys(
    (
        "al", "ance", "ence", "er", "ic", "able", "ible", "ant",
        "ement", "ment", "ent",  # codespell:ignore ment
        "ion", "ou", "ism", "ate", "iti", "ous", "ive", "ize",
    ),
    "",
)  # fmt: skip

# English doubles only these before -ed and -ing; ll, ss and zz belong to the word (fall, hiss, fizz).
DOUBLES = ("bb", "dd", "ff", "gg", "mm", "nn", "pp", "rr", "tt")


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """The stem of a lower-case English word."""
    word = _step_1c(_step_1b(_step_1a(word)))
    word = _longest_suffix(word, STEP_2, above=0)
    word = _longest_suffix(word, STEP_3, above=0)
    word = _longest_suffix(word, STEP_4, above=1)
    return _step_5(word)


def _shape(word: str) -> str:
    """The word as `c` and `v`: y is a vowel after a consonant, and a consonant elsewhere."""
    shape = ""
    for letter in word:
        vowel = letter in "aeiou" or (letter == "y" and shape.endswith("c"))
        shape += "v" if vowel else "c"
    return shape


def _measure(word: str) -> int:
    """Porter's m: how often a vowel is followed by a consonant."""
    return _shape(word).count("vc")


def _has_vowel(word: str) -> bool:
    return "v" in _shape(word)


def _ends_short(word: str) -> bool:
    """Porter's *o: consonant, vowel, consonant other than w, x and y, as in `hop`."""
    return _shape(word).endswith("cvc") and word[-1] not in "wxy"


def _step_1a(word: str) -> str:
    if word.endswith("sses"):
        return word[:-2]
    if word.endswith("ies"):
        return word[:-2]
    if word.endswith("s") and not word.endswith("ss"):
        return word[:-1]
    return word


def _step_1b(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for suffix in ("ed", "ing"):
        if word.endswith(suffix):
            rest = word[: -len(suffix)]
            return _mended(rest) if _has_vowel(rest) else word
    return word


def _mended(rest: str) -> str:
    """A word without its -ed or -ing, with its ending restored: hopp -> hop, fil -> file."""
    if rest.endswith(("at", "bl", "iz")):
        return rest + "e"
    if rest.endswith(DOUBLES):
        return rest[:-1]
    if _measure(rest) == 1 and _ends_short(rest):
        return rest + "e"
    return rest


def _step_1c(word: str) -> str:
    return word[:-1] + "i" if word.endswith("y") and _has_vowel(word[:-1]) else word


def _longest_suffix(word: str, rules: Rules, *, above: int) -> str:
    """Replace the longest suffix that has a rule; a suffix that fails its measure ends the step."""
    for length in range(min(7, len(word)), 1, -1):
        suffix, rest = word[-length:], word[:-length]
        if suffix in rules:
            applies = _measure(rest) > above and (suffix != "ion" or rest[-1] in "st")
            return rest + rules[suffix] if applies else word
    return word


def _step_5(word: str) -> str:
    if word.endswith("e"):
        rest = word[:-1]
        measure = _measure(rest)
        if measure > 1 or (measure == 1 and not _ends_short(rest)):
            word = rest
    if word.endswith("ll") and _measure(word) > 1:
        return word[:-1]
    return word
