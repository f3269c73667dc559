"""The rules of the architecture, as functions over parsed modules.

`test_architecture.py` holds the source to them, and proves on bad examples that each one can fail.
A rule takes a module and yields what breaks it: file, line, and what to do instead.
"""

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

MAX_MODULE_LINES = 800
MAX_STATEMENTS = 40
"""Statements of a function, those of functions inside it included."""

GENERATED = ("client.async_operations", "client.operations", "client.routes", "client.values")
"""Written by `vestige docs --write`: nobody reads them from top to bottom, or changes them."""

CONTRACT = (
    "store.contract", "store.merge", "store.filter_rule", "store.fair_lock",
)  # fmt: skip
BACKEND = ("core", "cognition", "embed.protocol", *CONTRACT, "store.migrations", "store.sql")
BELOW_ENGINE = ("core", *CONTRACT, "settings", "cognition", "embed", "exchange")
LAYERS: dict[str, tuple[str, ...]] = {
    # The names that programs import, on first use.
    "": ("app.library",),
    "core": ("core",),
    # The name that programs import: for others, not for the source.
    "errors": ("core.errors",),
    "settings": ("core", "settings"),
    "cognition": ("core", "cognition"),
    "embed": ("core", "settings", "cognition", "embed"),
    "store": ("core", "cognition", "embed.protocol", *CONTRACT),
    "store.inmemory": ("core", "cognition", "embed.protocol", *CONTRACT, "store.inmemory"),
    "store.sql": ("core", "cognition", "embed.protocol", *CONTRACT, "store.sql"),
    "store.sqlite": (*BACKEND, "store.sqlite"),
    "store.postgres": (*BACKEND, "store.postgres"),
    # A derived file of a project, not a backend of memories; its writers take the same kind of lock.
    "store.code_index": ("core", "cognition", *CONTRACT, "store.code_index", "store.sqlite.processes.locks"),
    # Rows go from one backend to another through what both have: it knows neither of them.
    "store.transfer": ("core", "cognition", "embed.protocol", *CONTRACT, "store.sql", "store.transfer"),
    "store.sqlite.transfer": (*BACKEND, "store.sqlite", "store.transfer.ends"),
    "store.postgres.transfer": (*BACKEND, "store.postgres", "store.transfer.ends"),
    "exchange": ("core", "cognition", "embed.protocol", *CONTRACT, "exchange"),
    # A reference database is a file of another program, which happens to be SQLite; it is no backend.
    "exchange.importers": (
        "core", "cognition", *CONTRACT, "exchange", "store.sqlite.file.foreign",
    ),
    # So are the databases in which some clients keep their sessions.
    "exchange.transcripts": ("core", "cognition", "exchange.transcripts", "store.sqlite.file.foreign"),
    "engine": (*BELOW_ENGINE, "engine"),
    "operations": (*BELOW_ENGINE, "engine", "operations"),
    "transports": (*BELOW_ENGINE, "engine", "operations", "transports", "store.transfer"),
    # A program of its own, which names the tools that it calls. Of the server it shares what every HTTP API
    # has to have.
    "transports.bridge": ("core", "settings", "transports.http", "transports.bridge"),
    "transports.connect": ("core.errors", "transports.connect"),
    # A program of its own, which starts within milliseconds; a server listens for it.
    "transports.hooks": (
        "core.caller", "core.errors", "settings.directories", "engine.agent.hook_log", "transports.hooks",
    ),
    # A program of its own, which speaks to a server: of the rest it shares the errors.
    "client": ("core.errors", "client"),
    "app": ("",),
    "__main__": ("",),
}  # fmt: skip
"""What each part may import; a name covers what is below it, and '' is everything.

The part of a module is the longest key that covers it. Backends do not know each other, and nobody
but app/ knows a backend.
"""

LAZY_EXCEPTIONS = {
    # A console entry that answers the client before anything heavy is imported opens the app itself.
    ("vestige.transports.mcp.stdio", "vestige.app.app"),
    # The same of the program that a hook runs, where no server does.
    ("vestige.transports.hooks.command", "vestige.app.app"),
    ("vestige.transports.hooks.command", "vestige.settings.libraries"),
    # A process without an engine takes its clock and its ids from where they are made.
    ("vestige.transports.cli.commands.bridge", "vestige.app.app"),
}
"""Imports upward that are allowed inside a function, each for the reason beside it."""

ENVIRONMENT_READERS = (
    "settings.settings", "settings.libraries", "transports.hooks.command", "transports.mcp.stdio",
)  # fmt: skip
ENVIRONMENT = ("os.environ", "os.environb", "os.getenv", "os.getenvb", "os.putenv", "os.path.expandvars")
CLOCKS = (
    "time", "datetime.datetime.now", "datetime.datetime.utcnow", "datetime.datetime.today",
    "datetime.date.today",
)  # fmt: skip
CHANCE = ("random", "secrets", "numpy.random", "os.urandom", "uuid")
INERT = ("random.Random", "uuid.UUID")
"""Types that may be named; calling `random.Random` makes randomness and is refused."""

BACKENDS = frozenset({"sqlite", "memory", "inmemory", "postgres", "postgresql"})
STORES = frozenset({"SqliteStore", "InMemoryStore", "PostgresStore"})
DRIVERS = ("sqlite3", "psycopg")
VAGUE_NAMES = frozenset({"utils", "util", "helpers", "common", "misc", "manager", "managers"})

_SQL = re.compile(
    r"\s*(select\s+[\w*(][^?]*\sfrom\s+\w+|insert\s+(or\s+\w+\s+)?into\s|update\s+\w+\s+set\s|"
    r"delete\s+from\s|pragma\s+\w+|(create|drop|alter)\s+(table|index|view|virtual|trigger|unique)\s|"
    r"begin\s+(immediate|deferred|exclusive)\b)",
    re.IGNORECASE,
)
_SILENCED = re.compile(
    r"#\s*(?:type:\s*ignore(?:\[[\w\-, ]*\])?|noqa(?::\s*[A-Z]+\d+(?:[, ]+[A-Z]+\d+)*)?)\s*(.*)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """A parsed file. `part` is its dotted name below the package, such as `engine.recall`."""

    path: str
    name: str
    part: str
    source: str
    tree: ast.Module


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """Where a rule is broken, and how."""

    path: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.what}"


Rule = Callable[[Module], Iterator[Violation]]


def read_tree(package: Path) -> list[Module]:
    """Every module below the directory of a package, in order of path."""
    modules = []
    for path in sorted(package.rglob("*.py")):
        inner = path.relative_to(package).with_suffix("").parts
        part = ".".join(inner[:-1] if inner[-1] == "__init__" else inner)
        source = path.read_text(encoding="utf-8")
        modules.append(
            Module(
                path=str(path.relative_to(package.parent)),
                name=f"{package.name}.{part}".rstrip("."),
                part=part,
                source=source,
                tree=ast.parse(source, str(path)),
            )
        )
    return modules


@cache
def read_once(package: Path) -> list[Module]:
    """The same for a tree that nobody changes: several tests share what was read."""
    return read_tree(package)


# -- layers --------------------------------------------------------------------------------------


def imports_downward(module: Module) -> Iterator[Violation]:
    """A module imports only what lies below it."""
    layer = _layer(module.part)
    if layer is None:
        yield _found(module, module.tree, f"`{module.part}` belongs to no layer; give it one")
        return
    for node, target, lazy in _imports(module):
        inner = _inside_package(module, target)
        if inner is None or any(_covers(allowed, inner) for allowed in LAYERS[layer]):
            continue
        if lazy and any(module.name == who and _covers(what, target) for who, what in LAZY_EXCEPTIONS):
            continue
        yield _found(module, node, f"`{layer or module.name}` may not import `{target}`")


def _layer(part: str) -> str | None:
    covering = [layer for layer in LAYERS if (_covers(layer, part) if layer else not part)]
    return max(covering, key=len) if covering else None


def _inside_package(module: Module, target: str) -> str | None:
    """The dotted name of a target below our package; None for others and for the package's own names."""
    package = module.name.split(".")[0]
    if not _covers(package, target):
        return None
    inner = target[len(package) + 1 :]
    return None if not inner or inner.startswith("__version") else inner


def _imports(module: Module) -> Iterator[tuple[ast.AST, str, bool]]:
    """Every imported name in full, and whether it is imported inside a function."""
    for node, lazy in _walk(module.tree):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name, lazy) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = _source_of(module, node)
            yield from (
                (node, source if alias.name == "*" else f"{source}.{alias.name}", lazy)
                for alias in node.names
            )
        elif isinstance(node, ast.Call) and _called(node) in ("import_module", "__import__"):
            name = node.args[0] if node.args else None
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                yield node, name.value, lazy


def imported_names(module: Module) -> Iterator[str]:
    """Every name that a module imports, in full."""
    yield from (target for _, target, _ in _imports(module))


def _source_of(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    here = module.name.split(".")
    is_package = module.path.endswith("__init__.py")
    kept = here[: len(here) - node.level + is_package]
    return ".".join([*kept, *([node.module] if node.module else [])])


def drivers_stay_in_the_store(module: Module) -> Iterator[Violation]:
    """Database drivers are imported below store/ only."""
    if not _covers("store", module.part):
        for node, target, _ in _imports(module):
            if any(_covers(driver, target) for driver in DRIVERS):
                yield _found(module, node, f"`{target}` belongs in store/")


def pydantic_stays_at_the_edge(module: Module) -> Iterator[Violation]:
    """pydantic checks what comes from outside: operations and settings; transports show its schemas."""
    if not any(_covers(part, module.part) for part in ("operations", "settings", "transports")):
        for node, target, _ in _imports(module):
            if _covers("pydantic", target) or _covers("pydantic_core", target):
                yield _found(module, node, "pydantic belongs in operations/ and settings/")


def annotations_are_evaluated(module: Module) -> Iterator[Violation]:
    """The registry reads annotations at run time."""
    for node, target, _ in _imports(module):
        if target == "__future__.annotations":
            yield _found(module, node, "`from __future__ import annotations` hides them from the registry")


# -- what a module may touch ----------------------------------------------------------------------


def environment_is_read_once(module: Module) -> Iterator[Violation]:
    """Only settings.py reads the environment, and what runs before settings.py is imported."""
    if module.part not in ENVIRONMENT_READERS:
        for node, name in _names(module):
            if any(_covers(one, name) for one in ENVIRONMENT):
                yield _found(module, node, f"`{name}` belongs in settings.py; take a setting")


def time_is_an_argument(module: Module) -> Iterator[Violation]:
    """Clocks and sleeps are in app.py only; transports may wait for the operating system."""
    if module.part != "app.app" and not _covers("transports", module.part):
        for node, name in _names(module):
            if any(_covers(one, name) for one in CLOCKS):
                yield _found(module, node, f"`{name}` belongs in app.py; take `now` as an argument")


def chance_is_an_argument(module: Module) -> Iterator[Violation]:
    """Randomness and ids are made in app.py only."""
    if module.part == "app.app":
        return
    for node, name in _names(module):
        if any(_covers(one, name) and name != one for one in CHANCE) and not _inert(name):
            yield _found(module, node, f"`{name}` belongs in app.py; take it as an argument")
    aliases = _aliases(module)
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and _resolved(node.func, aliases) == "random.Random":
            yield _found(module, node, "a new `random.Random` belongs in app.py; take it as an argument")


def _inert(name: str) -> bool:
    return any(_covers(one, name) for one in INERT)


def sql_stays_in_the_store(module: Module) -> Iterator[Violation]:
    """SQL is written below store/ only."""
    if not _covers("store", module.part):
        for node, text in _strings(module):
            if _SQL.match(text):
                yield _found(module, node, f"SQL belongs in store/: {' '.join(text.split())[:40]!r}")


def backends_are_picked_once(module: Module) -> Iterator[Violation]:
    """Which backend it is, is asked in app.py only."""
    if module.part == "app.app" or _covers("store", module.part):
        return
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Compare):
            asked = any(_names_backend(side) for side in (node.left, *node.comparators))
        elif isinstance(node, ast.Match):
            asked = _is_called(node.subject, "backend")
        elif isinstance(node, ast.Call) and _called(node) == "isinstance":
            asked = any(
                isinstance(n, ast.Name | ast.Attribute) and _last(n) in STORES for n in ast.walk(node)
            )
        else:
            continue
        if asked:
            yield _found(module, node, "which backend it is belongs in app.py; ask the contract")


def _names_backend(side: ast.expr) -> bool:
    if _is_called(side, "backend"):
        return True
    constants = ast.walk(side)
    return any(isinstance(node, ast.Constant) and node.value in BACKENDS for node in constants)


ASYNC = ("transports", "client", "app.library")
"""Parts that may be asynchronous: transports, and the classes of programs with an event loop (ADR 0037)."""


def middle_is_plain(module: Module) -> Iterator[Violation]:
    """Everything below transports/ is plain `def`."""
    if not any(_covers(part, module.part) for part in ASYNC):
        for node in ast.walk(module.tree):
            if isinstance(node, ast.AsyncFunctionDef | ast.Await):
                yield _found(module, node, "async belongs in transports/ and client/")


def transports_name_no_operation(module: Module, operations: frozenset[str]) -> Iterator[Violation]:
    """A transport shows the registry; it knows no operation by name."""
    if _covers("transports", module.part) and not _covers("transports.bridge", module.part):
        for node, text in _strings(module):
            if text in operations:
                yield _found(module, node, f"the operation `{text}` is named; ask the registry")


# -- sizes, names, silence ------------------------------------------------------------------------


def modules_are_short(module: Module) -> Iterator[Violation]:
    """A module has at most 800 lines, unless it is generated."""
    if module.part in GENERATED:
        return
    lines = len(module.source.splitlines())
    if lines > MAX_MODULE_LINES:
        yield _found(module, module.tree, f"{lines} lines; split it by noun below {MAX_MODULE_LINES}")


def functions_are_short(module: Module) -> Iterator[Violation]:
    """A function has at most 40 statements, unless it is generated."""
    for node in ast.walk(module.tree) if module.part not in GENERATED else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            count = sum(isinstance(inner, ast.stmt) for inner in ast.walk(node)) - 1
            if count > MAX_STATEMENTS:
                what = f"`{node.name}` has {count} statements; at most {MAX_STATEMENTS}"
                yield _found(module, node, what)


def modules_are_named_after_a_thing(module: Module) -> Iterator[Violation]:
    """One noun per module; no `utils`."""
    if module.part.rpartition(".")[2] in VAGUE_NAMES:
        yield _found(module, module.tree, f"`{module.part}` does not say what it is about")


def silenced_checks_give_a_reason(module: Module) -> Iterator[Violation]:
    """A check that is switched off on a line says why on that line."""
    for token in tokenize.generate_tokens(io.StringIO(module.source).readline):
        match = _SILENCED.match(token.string) if token.type == tokenize.COMMENT else None
        if match and not match.group(1).strip(" -#:–"):
            yield Violation(
                path=module.path, line=token.start[0], what="a check is silenced without a reason"
            )


RULES: tuple[Rule, ...] = (
    imports_downward,
    drivers_stay_in_the_store,
    pydantic_stays_at_the_edge,
    annotations_are_evaluated,
    environment_is_read_once,
    time_is_an_argument,
    chance_is_an_argument,
    sql_stays_in_the_store,
    backends_are_picked_once,
    middle_is_plain,
    modules_are_short,
    functions_are_short,
    modules_are_named_after_a_thing,
    silenced_checks_give_a_reason,
)


# -- reading syntax trees -------------------------------------------------------------------------


def _found(module: Module, node: ast.AST, what: str) -> Violation:
    return Violation(path=module.path, line=getattr(node, "lineno", 1), what=what)


def _covers(above: str, name: str) -> bool:
    return not above or name == above or name.startswith(above + ".")


def _walk(tree: ast.AST, lazy: bool = False) -> Iterator[tuple[ast.AST, bool]]:
    """Every node, with whether it is inside a function."""
    for node in ast.iter_child_nodes(tree):
        yield node, lazy
        yield from _walk(node, lazy or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda))


def _aliases(module: Module) -> dict[str, str]:
    """What the imported names of a module stand for."""
    found = {}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found[alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                found[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return found


def _names(module: Module) -> Iterator[tuple[ast.AST, str]]:
    """Every use of an imported name in full: `dt.now` is `datetime.datetime.now` whatever `dt` was."""
    aliases = _aliases(module)
    inner = {id(node.value) for node in ast.walk(module.tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Name | ast.Attribute) and id(node) not in inner:
            name = _resolved(node, aliases)
            if name:
                yield node, name


def _resolved(node: ast.expr, aliases: dict[str, str]) -> str | None:
    if isinstance(node, ast.Name):
        return aliases.get(node.id)
    if isinstance(node, ast.Attribute):
        above = _resolved(node.value, aliases)
        return f"{above}.{node.attr}" if above else None
    return None


def _strings(module: Module) -> Iterator[tuple[ast.AST, str]]:
    """Every string that is not a docstring or a string standing alone as a comment."""
    alone = {id(node.value) for node in ast.walk(module.tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield node, node.value


def _called(node: ast.Call) -> str:
    return _last(node.func)


def _is_called(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name | ast.Attribute) and _last(node) == name


def _last(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
