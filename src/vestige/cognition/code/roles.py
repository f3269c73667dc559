"""What a file is for, by its path: what is asked for is rarely in tests, examples, vendored or old code."""

import math
from collections.abc import Iterator
from functools import lru_cache

from vestige.cognition.code.languages import is_code
from vestige.core.patterns import lazy_pattern

MANUAL = "manual"
"""Programs beside a manual, such as its settings; its pages are what it is for."""
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
    ("example", 0.3, r"(?:^|/)(?:examples?|samples?|demos?|docs_src|tutorials?|playground)/"),
    (MANUAL, 0.3, r"(?:^|/)docs?/"),
    ("package", 0.5, r"(?:^|/)(?:__init__\.pyi?|package-info\.java|mod\.rs|lib\.rs|index\.[cm]?[jt]sx?)$"),
    ("declaration", 0.7, r"\.d\.[cm]?ts$"),
)
_PATTERNS = tuple((role, factor, lazy_pattern(pattern)) for role, factor, pattern in _ROLES)


def role_of(path: str) -> str:
    """What a file is for: `test`, `vendored`, `compat`, `example`, `manual`, `package`, `declaration` or
    `source`."""
    return next((role for role, _ in _roles(path)), "source")


@lru_cache(maxsize=65_536)
def penalty(path: str, *, is_rich: bool = False) -> float:
    """The factor of a file's score; 1 for source code. The file of a package that is `is_rich` defines much
    itself, and is no list of what others define."""
    return math.prod(factor for role, factor in _roles(path) if not (is_rich and role == "package"))


def _roles(path: str) -> Iterator[tuple[str, float]]:
    for role, factor, pattern in _PATTERNS:
        if pattern.search(path) and (role != MANUAL or is_code(path)):
            yield role, factor
