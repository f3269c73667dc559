"""Every pattern of the package, how it is used, and hostile texts made of its own pieces."""

import ast
import dataclasses
import importlib
import inspect
import pkgutil
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from re import _constants as codes  # the parsed form of a pattern has no public name
from re import _parser
from types import FunctionType, ModuleType
from typing import Any, cast

import vestige
from vestige.core.patterns import _LazyPattern, lazy_pattern

SOURCE = Path(vestige.__file__).parent
DEPTH = 5  # The limit of containers inside each other that are searched.
ATOMS = 8  # The limit of characters of a pattern that are tried, alone and in pairs.
UNICODE_SAMPLES = " \t\na1_Z.,-:/'\"éß日０\u200b"


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """A pattern, the name it has in the source, and the methods that are called on it."""

    name: str
    pattern: re.Pattern[str]
    methods: frozenset[str]


@cache
def modules() -> tuple[ModuleType, ...]:
    """All modules of the package but the one that runs it."""
    names = (found.name for found in pkgutil.walk_packages(vestige.__path__, "vestige."))
    return tuple(importlib.import_module(name) for name in names if not name.endswith("__main__"))


@cache
def usages() -> list[Usage]:
    """Every pattern that a module holds, wherever, makes on first use, or compiles inside a function."""
    found: dict[tuple[str, int], Usage] = {}
    called = _methods_by_name()
    for module in modules():
        for name, value in vars(module).items():
            for pattern in _held(value, 0):
                used = _called if value is pattern else _called_on_members
                methods = used(name, module, called)
                usage = Usage(name=f"{module.__name__}.{name}", pattern=_as_text(pattern), methods=methods)
                found.setdefault((usage.pattern.pattern, usage.pattern.flags), usage)
        for one in (*_made_on_first_use(module), *_inline(module)):
            found.setdefault((one.pattern.pattern, one.pattern.flags), one)
    return list(found.values())


def _as_text(pattern: re.Pattern[str] | re.Pattern[bytes]) -> re.Pattern[str]:
    """A pattern for bytes as one for the characters of the same numbers."""
    if isinstance(pattern.pattern, str):
        return re.compile(pattern.pattern, pattern.flags)
    return re.compile(pattern.pattern.decode("latin-1"), pattern.flags | re.ASCII)


def patterns_of(module: ModuleType) -> list[re.Pattern[str]]:
    """The patterns that a module itself holds."""
    return [_as_text(pattern) for value in vars(module).values() for pattern in _held(value, 0)]


def _held(value: object, depth: int) -> Iterator[re.Pattern[str]]:
    """The patterns in a value: in containers, in fields, in the variables that a function closes over."""
    if isinstance(value, re.Pattern | _LazyPattern):
        yield cast(re.Pattern[str], value)
    elif depth < DEPTH:
        for part in _parts(value):
            yield from _held(part, depth + 1)


def _parts(value: object) -> Iterator[object]:
    if isinstance(value, Mapping):
        yield from value.items()
    elif isinstance(value, (tuple, list, set, frozenset)):
        yield from value
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield from (getattr(value, field.name, None) for field in dataclasses.fields(value))
    elif isinstance(value, FunctionType):
        yield from (cell.cell_contents for cell in value.__closure__ or ())
        yield from value.__defaults__ or ()
    elif isinstance(value, type) and value.__module__.startswith("vestige"):
        yield from tuple(vars(value).values())


@cache
def tree_of(module: ModuleType) -> ast.Module:
    """The source of a module, parsed."""
    return ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))


@cache
def _methods_by_name() -> dict[str, dict[str, frozenset[str]]]:
    """What each module calls on each name: `search`, `match`, `sub`."""
    called: dict[str, dict[str, frozenset[str]]] = {}
    for module in modules():
        names: dict[str, set[str]] = {}
        for node in ast.walk(tree_of(module)):
            if isinstance(node, ast.Attribute) and node.attr in _METHODS:
                name = node.value.id if isinstance(node.value, ast.Name) else ""
                names.setdefault(name, set()).add(node.attr)
        called[module.__name__] = {name: frozenset(methods) for name, methods in names.items()}
    return called


_METHODS = frozenset(
    ("search", "match", "fullmatch", "finditer", "findall", "sub", "subn", "split", "scanner")
)


@cache
def _loop_variables(module: ModuleType) -> Mapping[str, frozenset[str]]:
    """For each name that the module goes through: the names that its members have there."""
    found: dict[str, set[str]] = {}
    for loop in ast.walk(tree_of(module)):
        if isinstance(loop, (ast.comprehension, ast.For)):
            targets = {target.id for target in ast.walk(loop.target) if isinstance(target, ast.Name)}
            for part in ast.walk(loop.iter):
                if isinstance(part, ast.Name):
                    found.setdefault(part.id, set()).update(targets)
    return {name: frozenset(variables) for name, variables in found.items()}


def _called(
    name: str, module: ModuleType, called: Mapping[str, Mapping[str, frozenset[str]]]
) -> frozenset[str]:
    """The methods that are called on a name: a private one in its own module, a public one anywhere."""
    within = (called[module.__name__],) if name.startswith("_") else called.values()
    return frozenset().union(*(names.get(name, frozenset()) for names in within))


def _called_on_members(
    name: str, module: ModuleType, called: Mapping[str, Mapping[str, frozenset[str]]]
) -> frozenset[str]:
    """The methods that are called on the members of a container, in each module that goes through it. The
    variable of a loop is one of that module alone: another may give the same name to something else."""
    within = (module,) if name.startswith("_") else modules()
    found = (
        called[one.__name__].get(variable, frozenset())
        for one in within
        for variable in _loop_variables(one).get(name, frozenset())
    )
    return frozenset().union(*found)


def _makers(module: ModuleType) -> dict[str, Callable[[], re.Pattern[str]]]:
    """The functions of a module that make one pattern, always the same: they have no parameters."""
    found: dict[str, Callable[[], re.Pattern[str]]] = {}
    for name, value in vars(module).items():
        function = inspect.unwrap(value) if callable(value) else None
        if isinstance(function, FunctionType) and function.__module__ == module.__name__:
            signature = inspect.signature(function)
            if not signature.parameters and "Pattern[" in str(signature.return_annotation):
                found[name] = value
    return found


def _made_on_first_use(module: ModuleType) -> Iterator[Usage]:
    """What such functions make. Nobody knows what it is called where it is used: it is searched for."""
    for name, make in _makers(module).items():
        yield Usage(name=f"{module.__name__}.{name}", pattern=_as_text(make()), methods=frozenset())


def _inline(module: ModuleType) -> Iterator[Usage]:
    """Patterns that are written in a call: `re.sub("^to ", "", text)`."""
    for node, method in _calls(module):
        flags = next((word.value for word in node.keywords if word.arg == "flags"), None)
        positional = {"compile": 1, "sub": 4}.get(method, 2)
        if flags is None and len(node.args) > positional:
            flags = node.args[positional]
        with suppress(NameError):  # of variables: `made_of_variables`
            pattern = re.compile(_evaluated(node.args[0], module), _evaluated(flags, module) or 0)
            yield Usage(
                name=f"{module.__name__}:{node.lineno}",
                pattern=_as_text(pattern),
                methods=frozenset((method,)),
            )


def made_of_variables() -> set[str]:
    """The modules with a pattern that is made when a function runs, of its variables, and is not tried."""
    found: set[str] = set()
    for module in modules():
        tried = _makers(module)
        inside = {
            id(node)
            for function in ast.walk(tree_of(module))
            if isinstance(function, ast.FunctionDef) and function.name not in tried
            for node in ast.walk(function)
        }
        for node, _ in _calls(module):
            try:
                _evaluated(node.args[0], module)
            except NameError:
                found |= {module.__name__} if id(node) in inside else set()
    return found


def _calls(module: ModuleType) -> Iterator[tuple[ast.Call, str]]:
    """The calls of functions of `re`, or of `lazy_pattern`, with a pattern."""
    for node in ast.walk(tree_of(module)):
        if not (isinstance(node, ast.Call) and node.args):
            continue
        if isinstance(node.func, ast.Name) and node.func.id == lazy_pattern.__name__:
            yield node, "compile"
        elif isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
            owner, method = node.func.value.id, node.func.attr
            if owner == "re" and method in (*_METHODS, "compile"):
                yield node, method


def _evaluated(node: ast.expr | None, module: ModuleType) -> Any:
    if node is None:
        return None
    return eval(compile(ast.Expression(node), "<pattern>", "eval"), dict(vars(module)))  # our own source


# -- Hostile texts


def attacks(pattern: re.Pattern[str]) -> dict[str, Callable[[int], str]]:
    """Texts of any length made of the pieces of a pattern: repeats, alternations, near-misses."""
    parsed = _parser.parse(pattern.pattern, pattern.flags)
    pumps = list(dict.fromkeys(_pumps(parsed, "")))[:24]
    atoms = list(dict.fromkeys((*_shared(parsed), *_atoms(parsed))))[:ATOMS]
    units = dict.fromkeys((*atoms, *(one + other for one in atoms for other in atoms[:3] if one != other)))
    whole = _sample(parsed)
    units |= dict.fromkeys(part for part in (whole, whole[:-1], f" {whole}", f"{whole[:-1]} ") if part)
    made = {f"{unit!r} repeated": repeated("", unit, "") for unit in units}
    for before, unit in pumps:
        made[f"{before!r} + {unit!r} repeated"] = repeated(before, unit, "\x01")
        made[f"({before!r} + {unit!r}) repeated"] = repeated("", before + unit, "")
    return made


def repeated(before: str, unit: str, after: str) -> Callable[[int], str]:
    """A text of any length: the unit over and over, between a beginning and an end."""
    return lambda size: before + unit * (max(1, size - len(before) - len(after)) // len(unit)) + after


def _pumps(parsed: Any, before: str) -> Iterator[tuple[str, str]]:
    """Each repeated part, with a text that leads to it."""
    for code, value in parsed:
        if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            _, most, inner = value
            sample = _sample(inner)
            if most > 8 and sample:
                yield before, sample
                yield from ((before, one) for one in list(dict.fromkeys(_atoms(inner)))[:3])
            yield from _pumps(inner, before)
        elif code is codes.SUBPATTERN:
            yield from _pumps(value[3], before)
        elif code is codes.ATOMIC_GROUP:
            yield from _pumps(value, before)
        elif code is codes.BRANCH:
            for branch in value[1]:
                yield from _pumps(branch, before)
        elif code in (codes.ASSERT, codes.ASSERT_NOT):
            yield from _pumps(value[1], before)
        before += _sample([(code, value)])


def _atoms(parsed: Any) -> Iterator[str]:
    """The characters that a pattern names, one for each class."""
    for code, value in parsed:
        if code in (codes.LITERAL, codes.NOT_LITERAL, codes.IN, codes.ANY):
            yield _sample([(code, value)])
        elif code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            yield from _atoms(value[2])
        elif code is codes.SUBPATTERN:
            yield from _atoms(value[3])
        elif code is codes.ATOMIC_GROUP:
            yield from _atoms(value)
        elif code is codes.BRANCH:
            for branch in value[1]:
                yield from _atoms(branch)
        elif code in (codes.ASSERT, codes.ASSERT_NOT):
            yield from _atoms(value[1])


def _shared(parsed: Any) -> list[str]:
    """The characters that several classes of a pattern name: a run of one can be divided in many ways."""
    named = Counter(character for one in _classes(parsed) for character in one)
    return sorted(
        (one for one in named if named[one] > 1 and not one.isalnum()), key=lambda one: (-named[one], one)
    )


def _classes(parsed: Any) -> Iterator[set[str]]:
    """The characters that each class names."""
    for code, value in parsed:
        if code is codes.IN:
            yield {chr(one) for kind, one in value if kind is codes.LITERAL}
        elif code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            yield from _classes(value[2])
        elif code is codes.SUBPATTERN:
            yield from _classes(value[3])
        elif code is codes.ATOMIC_GROUP:
            yield from _classes(value)
        elif code is codes.BRANCH:
            for branch in value[1]:
                yield from _classes(branch)
        elif code in (codes.ASSERT, codes.ASSERT_NOT):
            yield from _classes(value[1])


def _sample(parsed: Any) -> str:
    """A short text that a pattern matches, or nearly: its first branches, each repeat once."""
    return "".join(_one(code, value) for code, value in parsed)


def _one(code: Any, value: Any) -> str:
    if code is codes.LITERAL:
        return chr(int(value))
    if code is codes.NOT_LITERAL:
        return "b" if chr(value) == "a" else "a"
    if code is codes.ANY:
        return "a"
    if code is codes.IN:
        return _of_class(value)
    if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
        least, _, inner = value
        return str(_sample(inner) * min(max(least, 1), 40))
    if code is codes.SUBPATTERN:
        return _sample(value[3])
    if code is codes.ATOMIC_GROUP:
        return _sample(value)
    if code is codes.BRANCH:
        return _sample(value[1][0])
    return ""


def _of_class(items: Any) -> str:
    """The first character of a class; of what it leaves out, the first of some that are common."""
    negated = any(code is codes.NEGATE for code, _ in items)
    fits = [sample for sample in UNICODE_SAMPLES if any(_fits(sample, *item) for item in items) != negated]
    for code, value in items if not negated else ():
        if code is codes.LITERAL:
            return chr(value)
        if code is codes.RANGE:
            return chr(value[0])
    return "a" if "a" in fits else fits[0] if fits else "a"


def _fits(sample: str, code: Any, value: Any) -> bool:
    if code is codes.LITERAL:
        return bool(ord(sample) == value)
    if code is codes.RANGE:
        return bool(value[0] <= ord(sample) <= value[1])
    if code is codes.CATEGORY:
        return bool(_CATEGORIES[value](sample))
    return False


_CATEGORIES: dict[Any, Callable[[str], bool]] = {
    codes.CATEGORY_DIGIT: str.isdecimal,
    codes.CATEGORY_NOT_DIGIT: lambda one: not one.isdecimal(),
    codes.CATEGORY_SPACE: str.isspace,
    codes.CATEGORY_NOT_SPACE: lambda one: not one.isspace(),
    codes.CATEGORY_WORD: lambda one: one.isalnum() or one == "_",
    codes.CATEGORY_NOT_WORD: lambda one: not (one.isalnum() or one == "_"),
}
