"""Every function of the package whose first argument is a text or its lines, with the other arguments it
needs, and hostile texts for them."""

import inspect
import random
import types
import typing
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

from tests.system.growth.patterns import attacks, modules, patterns_of, repeated

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextFunction:
    """A function that reads a text; `call` gives it all its arguments, and goes through what it yields."""

    name: str
    module: ModuleType
    call: Callable[[str], object]


def text_functions() -> Iterator[TextFunction]:
    """All public functions whose first parameter is annotated `str` or `Sequence[str]`, and whose others can
    be made up."""
    for module in modules():
        for name, value in vars(module).items():
            function = inspect.unwrap(value) if callable(value) else None
            if not isinstance(function, types.FunctionType) or function.__module__ != module.__name__:
                continue
            if name.startswith("_") or function.__name__ != name or not _reads_text(function):
                continue
            if f"{module.__name__}.{name}".startswith(tuple(NOT_TEXT)):
                continue
            call = call_of(function)
            if call is not None:
                yield TextFunction(name=f"{module.__name__}.{name}", module=module, call=call)


NOT_TEXT = {
    "vestige.client.": "opens connections",
    "vestige.embed.": "opens models; what is embedded was cut into pieces",
    "vestige.core.models.enclosing": "a scope is a label, which has a limit; its parents are quadratic in it",
    "vestige.store.filter_rule.": "a scope is a label, which has a limit; its parents are quadratic in it",
    "vestige.store.sql.filters.in_scope": "a scope is a label, which has a limit",
    "vestige.store.postgres.": "the names and statements are our own",
    "vestige.store.sqlite.": "the names and statements are our own",
    "vestige.store.transfer.": "the names are our own",
    "vestige.transports.cli.": "the command line of the user",
    "vestige.transports.connect.": "settings files of the user, changed by his own command",
    "vestige.transports.http.openapi.": "the document is our own",
}
"""Where no text of a client arrives, with the reason."""


def _reads_text(function: types.FunctionType) -> bool:
    first = next(iter(inspect.signature(function).parameters.values()), None)
    reads = first is not None and first.annotation in (str, Sequence[str])
    return reads and not inspect.iscoroutinefunction(function)


LINE_CHARS = 8


def lines_of(text: str) -> list[str]:
    """A text as lines; one without a line break is cut into short ones."""
    if "\n" in text:
        return text.splitlines(keepends=True)
    return [f"{text[at : at + LINE_CHARS]}\n" for at in range(0, len(text), LINE_CHARS)]


def call_of(function: Callable[..., object]) -> Callable[[str], object] | None:
    """The function as one of its text alone; None if another argument cannot be made up."""
    first, *others = inspect.signature(function).parameters.values()
    needed = [one for one in others if one.default is one.empty and one.kind is not one.VAR_POSITIONAL]
    needed = [one for one in needed if one.kind is not one.VAR_KEYWORD]
    makers = {one.name: _maker(one.annotation) for one in needed}
    if None in makers.values():
        return None
    keywords = {one.name for one in needed if one.kind is one.KEYWORD_ONLY}

    def call(text: str) -> object:
        made = {name: make(text) for name, make in makers.items() if make is not None}
        positional = [value for name, value in made.items() if name not in keywords]
        try:
            given = text if first.annotation is str else lines_of(text)
            found = function(given, *positional, **{name: made[name] for name in made if name in keywords})
            return [None for _ in found] if isinstance(found, Iterator) else found
        except Exception:  # a refusal; what must not happen is that it takes long
            return None

    return call


def _maker(annotation: Any) -> Callable[[str], object] | None:
    """What gives a function an argument of this kind, for a text."""
    origin = typing.get_origin(annotation)
    if annotation in _MAKERS:
        return _MAKERS[annotation]
    if origin is typing.Union or origin is types.UnionType:
        return (lambda _: None) if type(None) in typing.get_args(annotation) else None
    if (
        isinstance(origin, type)
        and origin is not type
        and issubclass(tuple, origin) | issubclass(frozenset, origin)
    ):
        inner = next(iter(typing.get_args(annotation)), None)
        make = _maker(inner)
        if make is not None:
            return lambda text: frozenset((make(text),)) if not issubclass(tuple, origin) else (make(text),)
    if isinstance(origin, type) and issubclass(dict, origin):
        return lambda _: {}
    return None


_MAKERS: dict[Any, Callable[[str], object]] = {
    str: lambda text: f"{text}b",
    datetime: lambda _: NOW,
    bool: lambda _: True,
    int: lambda _: 10,
    float: lambda _: 0.9,
    object: lambda text: text,
    random.Random: lambda _: random.Random(1),
    np.ndarray: lambda _: np.zeros((1, 2), dtype=np.int32),
}


# -- Hostile texts

LONG_PIECES = (")", "a", " ", ".", "-", "_a ", "1,", "\n", "(", "a ", "'a ", "日", "abcdefghijklmnop ")
"""What long hostile texts are repeats of; the last is a word as long as a key."""
PIECES = (
    *LONG_PIECES, "A", "1", "\t", "_", ",", ":", "/", "'", '"', "`", "#", "*", "=", "\\", "é", "A ", " _a",
    "1,111", "1.", "a.", "a, ", "()", "((a)", '"a ', "a-", "a_", "a/", "a@", "a=b ", "a: ", "- a\n", "\n\n",
    "://", "a://", "not a ", "in 2 days ", "on Monday ", "Ada is in Rome. ", "every day at 9 ", "[[", "<a>",
    "the a of a, ", "is forbidden ", "password: a ", '{"a":', "aA", "a1", "1a ", "e\u0301", "\u200b",
    "\U0001f600",
)  # fmt: skip
"""What hostile texts are repeats of."""
OWN_PIECES = 12  # The limit of texts made of the patterns of a function's own module.


@cache
def hostile_texts(module: ModuleType) -> dict[str, Callable[[int], str]]:
    """Repeats of common pieces, what brackets nest, and pieces of the module's own patterns."""
    made = {f"{piece!r} repeated": repeated("", piece, "") for piece in PIECES}
    made |= {f"{one!r} nested": _nested(*one) for one in ("()", "[]", "{}")}
    own: dict[str, Callable[[int], str]] = {}
    for pattern in patterns_of(module):
        own |= attacks(pattern)
    chosen = random.Random(module.__name__).sample(sorted(own), min(OWN_PIECES, len(own)))
    return made | {name: own[name] for name in chosen}


def _nested(opening: str, closing: str) -> Callable[[int], str]:
    return lambda size: opening * (size // 2) + closing * (size // 2)


@cache
def _caches() -> tuple[Callable[[], None], ...]:
    return tuple(
        value.cache_clear
        for module in modules()
        for value in vars(module).values()
        if hasattr(value, "cache_clear") and getattr(value, "__module__", "") == module.__name__
    )


def forget() -> None:
    """Empty the caches of the package, so that a text is read again."""
    for clear in _caches():
        clear()
