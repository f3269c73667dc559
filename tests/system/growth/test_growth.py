"""Time is linear in the input: every pattern and every function that reads a text, over hostile texts."""

import gc
import re
from collections.abc import Callable, Iterator
from types import ModuleType

import pytest

from testbed.effort import NIGHTLY, effort
from tests.system.growth.cost import growth
from tests.system.growth.flows import COUNTED, FLOWS
from tests.system.growth.functions import LONG_PIECES, TextFunction, call_of, hostile_texts, text_functions
from tests.system.growth.patterns import Usage, attacks, made_of_variables, modules, usages
from vestige.core.patterns import _LazyPattern

CHARS = 2048  # The length of a hostile text …
LONG_CHARS = effort(16_384, nightly=65_536)  # … and of a long one, unless a shorter one takes long enough.
OUTSIDE = ("vestige.transports.connect.", "vestige.transports.docs", "vestige.transports.client_code")
"""Patterns for the user's own settings files, and for our own source."""


@pytest.fixture(autouse=True)
def _undisturbed() -> Iterator[None]:
    """A collection of garbage is no work of what is measured."""
    gc.disable()
    yield
    gc.enable()


def slow_pattern(usage: Usage) -> str | None:
    """The first text for which a pattern takes more than linear time, with the way it is used."""
    pattern = usage.pattern
    calls: dict[str, Callable[[str], object]] = {}
    if not usage.methods or usage.methods - {"match", "fullmatch"}:
        calls["search"] = lambda text: [None for _ in pattern.finditer(text)]
    calls |= {name: getattr(pattern, name) for name in usage.methods & {"match", "fullmatch"}}
    for name, text_of in attacks(pattern).items():
        for method, call in calls.items():
            found = growth(call, text_of, 2 * CHARS, LONG_CHARS if NIGHTLY else 2 * CHARS)
            if found is not None:
                return f"{usage.name}: {method} of {name}: {found}"
    return None


def slow_function(function: TextFunction) -> str | None:
    """The first text for which a function takes more than linear time."""
    long = {f"{piece!r} repeated" for piece in LONG_PIECES}
    for name, text_of in hostile_texts(function.module).items():
        found = growth(
            function.call, text_of, CHARS // 2, LONG_CHARS if NIGHTLY or name in long else CHARS // 2
        )
        if found is not None:
            return f"{function.name}: {name}: {found}"
    return None


_PARTS = 4  # Tests that share the work, so that several processes can.


@pytest.mark.slow
@pytest.mark.parametrize("part", range(_PARTS))
def test_every_pattern_takes_linear_time(part: int) -> None:
    checked = [usage for usage in usages() if not usage.name.startswith(OUTSIDE)][part::_PARTS]
    assert [slow for usage in checked if (slow := slow_pattern(usage))] == []


@pytest.mark.slow
@pytest.mark.parametrize("part", range(_PARTS))
def test_every_function_that_reads_a_text_takes_linear_time(part: int) -> None:
    checked = list(text_functions())[part::_PARTS]
    assert [slow for function in checked if (slow := slow_function(function))] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", FLOWS)
def test_work_on_the_turns_of_a_text_takes_linear_time(name: str) -> None:
    call, texts = FLOWS[name], hostile_texts(modules()[0])
    found = {about: growth(call, text_of, CHARS // 2, CHARS) for about, text_of in texts.items()}
    assert {about: one for about, one in found.items() if one is not None} == {}


@pytest.mark.parametrize("name", COUNTED)
def test_work_on_many_small_texts_takes_linear_time(name: str) -> None:
    assert growth(COUNTED[name], lambda size: "x" * size, CHARS, 16 * CHARS) is None


# -- The test of the test


def test_patterns_that_are_compiled_on_first_use_are_tried_too() -> None:
    tried = {usage.pattern.pattern for usage in usages()}
    gc.unfreeze()  # a command that ran in this process has hidden what was imported from the collector
    lazy = {one.pattern for one in gc.get_objects() if isinstance(one, _LazyPattern)}
    assert len(lazy) > 300
    assert {one.decode("latin-1") if isinstance(one, bytes) else one for one in lazy} <= tried


@pytest.mark.parametrize(
    "planted", [r"(?<!\w)_\S[^\n]+?_(?!\w)", r"\s+until\b", r"[-,]+(?:urgent)$", r"(?:a+)+b", r"“[^”]*”"]
)
def test_a_planted_quadratic_pattern_is_found(planted: str) -> None:
    usage = Usage(name="planted", pattern=re.compile(planted), methods=frozenset(("search",)))

    assert slow_pattern(usage) is not None


def _pairs(text: str, other: str) -> int:
    return sum(one == another for one in text.split() for another in other.split())


def _without_brackets(text: str) -> str:
    while text.endswith(")") and text.count(")") > text.count("("):
        text = text[:-1]
    return text


@pytest.mark.parametrize("planted", [_pairs, _without_brackets])
def test_a_planted_quadratic_function_is_found(planted: Callable[..., object], module: ModuleType) -> None:
    call = call_of(planted)
    assert call is not None

    assert slow_function(TextFunction(name="planted", module=module, call=call)) is not None


@pytest.fixture
def module() -> ModuleType:
    return modules()[0]


def test_patterns_and_functions_are_found_wherever_they_are() -> None:
    patterns = {usage.name for usage in usages()}
    functions = {function.name for function in text_functions()}

    assert {
        "vestige.cognition.gate.paraphrase._EMPHASIS",  # in a tuple
        "vestige.cognition.intentions.parse._LABELLED",  # in a dict
        "vestige.cognition.english.words._TOKEN",
        "vestige.engine.project.files.secrets._shape",  # made by a function on first use
    } <= patterns
    assert any(re.fullmatch(r"vestige\.cognition\.\S+:\d+", name) for name in patterns)  # in a call
    assert {
        "vestige.cognition.gate.paraphrase.bare",
        "vestige.cognition.intentions.parse.understand",
        "vestige.cognition.code.formats.markdown",  # of lines
        "vestige.cognition.secrets.find.find_secrets",
        "vestige.exchange.importers.notes.markdown.sections",
    } <= functions


def test_a_pattern_is_tried_as_its_own_module_uses_it_whatever_a_name_means_elsewhere() -> None:
    """Another module calls `search` on what it names `shape`, as the loop over these is named."""
    shapes = [usage for usage in usages() if usage.name == "vestige.cognition.query.literals._SHAPES"]

    assert shapes
    assert {usage.methods for usage in shapes} == {frozenset(("fullmatch",))}


def test_patterns_that_are_made_of_variables_are_known() -> None:
    assert made_of_variables() == {
        # Compiled when a module is imported, so that the module holds them: these are tried.
        "vestige.cognition.secrets.commands",
        "vestige.cognition.secrets.provider_keys",
        "vestige.cognition.text.word_lists",
        "vestige.cognition.time.expressions",
        # Compiles the patterns of all other modules on first use: these are tried.
        "vestige.core.patterns",
        # An escaped name or number.
        "vestige.cognition.query.contrast",
        "vestige.cognition.query.literals",
        "vestige.engine.ingest.batch",
        # The ignore files of a project, in atomic groups: the tests of them try hostile ones.
        "vestige.engine.project.files.ignore_rules",
        # The command line, the settings files and the code of the user's own machine.
        "vestige.store.postgres.server.address",
        "vestige.transports.arguments",
        "vestige.transports.client_code",
        "vestige.transports.connect.files",
    }
