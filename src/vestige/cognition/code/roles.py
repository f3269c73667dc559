"""What a file is for, by its path: what is asked for is rarely in tests, examples, vendored or old code."""

import math
from collections.abc import Iterator
from functools import lru_cache

from vestige.cognition.code.languages import is_code
from vestige.core.patterns import lazy_pattern

MANUAL = "manual"
"""Programs beside a manual, such as its settings; its pages are what it is for."""
HISTORY = "history"
"""Pages of what changed: they have a word of every feature, and explain none."""
CREDITS = "credits"
"""Pages of who made it, and under which terms."""
DATA = "data"
"""Files of values: they have words of a program, and explain none."""
_ROLES: tuple[tuple[str, float, str], ...] = (
    (
        "test",
        0.3,
        r"(?:^|/)(?:tests?|testing|spec|specs|__tests__|testdata|fixtures|e2e|mocks?|__mocks__|benchmarks?|benches)/"
        r"|(?:^|/)(?:test_[^/]*|[^/]*_test|[^/]*[._-](?:test|spec|bench)|[^/]*(?:Test|Tests|Spec|TestCase)|conftest"
        r"|[^/]*_(?:spec|benchmark))\.[a-z]+$",
    ),
    ("vendored", 0.3, r"(?:^|/)(?:vendor|vendored|third_party|_vendor|external|node_modules|deps)/"),
    (
        "compat",
        0.3,
        r"(?:^|/)(?:_?compat|legacy|deprecated|_legacy|obsolete|v1)/|(?:^|/)_?(?:compat|legacy|deprecated)\.[a-z]+$",
    ),
    (
        "built",
        0.3,
        r"(?:^|/)(?:dist|_dist|generated|__generated__)/|\.(?:min|bundle)\.[cm]?js$|[._-]generated\.\w+$",
    ),
    ("example", 0.3, r"(?:^|/)(?:_?examples?|samples?|demos?|docs_src|tutorials?|playground)/"),
    (MANUAL, 0.3, r"(?:^|/)docs?/"),
    (
        HISTORY,
        0.2,
        r"(?i)(?:^|/)(?:changes|changelog|change_?log|history|news|release[_-]?notes?|what_?s?[_-]?new)"
        r"(?:[._-]v?\d[\w.-]*)?(?:\.(?:md|mdx|markdown|rst|txt|adoc|asciidoc))?$"
        r"|(?:^|/)(?:changelogs?|changes|release[_-]?notes?|newsfragments|what_?s?[_-]?new|\.changeset)/",
    ),
    (
        CREDITS,
        0.2,
        r"(?i)(?:^|/)(?:authors|contributors|maintainers|credits|thanks|acknowledge?ments|licen[sc]es?|copying|notice"
        r"|code[_-]of[_-]conduct)(?:\.(?:md|markdown|rst|txt))?$",
    ),
    (
        DATA,
        0.5,
        r"(?i)(?:^|/)(?!package\.json$|composer\.json$|tsconfig|pom\.xml$)[^/]*"
        r"\.(?:jsonc?|json5|webmanifest|xml|svg|plist|csv|tsv|po|snap)$",
    ),
    ("package", 0.5, r"(?:^|/)(?:__init__\.pyi?|package-info\.java|mod\.rs|lib\.rs|index\.[cm]?[jt]sx?)$"),
    ("declaration", 0.7, r"\.d\.[cm]?ts$"),
)
_BY_KIND = frozenset({MANUAL, HISTORY, CREDITS})
"""Roles of programs only, and of pages only."""
_PATTERNS = tuple((role, factor, lazy_pattern(pattern)) for role, factor, pattern in _ROLES)


def role_of(path: str) -> str:
    """What a file is for: `test`, `vendored`, `compat`, `built`, `example`, `manual`, `history`,
    `credits`, `data`, `package`, `declaration` or `source`."""
    return next((role for role, _ in _roles(path)), "source")


@lru_cache(maxsize=65_536)
def penalty(path: str, *, is_rich: bool = False, is_named: bool = False, of_history: bool = False) -> float:
    """The factor of a file's score; 1 for source code. The file of a package that is `is_rich` defines much
    itself, and is no list of what others define. A page of the history or a file of data may be what is asked
    for: by its name, or by a question about history."""
    excused = {"package"} if is_rich else set()
    excused |= {HISTORY, CREDITS, DATA} if is_named else {HISTORY} if of_history else set()
    return math.prod(factor for role, factor in _roles(path) if role not in excused)


def _roles(path: str) -> Iterator[tuple[str, float]]:
    for role, factor, pattern in _PATTERNS:
        if pattern.search(path) and (role not in _BY_KIND or is_code(path) == (role == MANUAL)):
            yield role, factor
