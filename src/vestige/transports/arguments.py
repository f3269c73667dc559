"""Command-line form of operation arguments: kind, limits, parsing and formatting. An `Argument` is read from
the operation's JSON schema. Numbers, times and choices stay text: the registry checks them, so that errors
are the same on every transport."""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import orjson

from vestige.core.errors import InvalidInput
from vestige.core.lazy_dataclass import dataclass
from vestige.core.patterns import lazy_pattern

if TYPE_CHECKING:  # the command line reads its arguments from a file, and loads no operation for its help
    from vestige.operations.registry.arguments import Arguments
    from vestige.operations.registry.registry import Operation

Kind = Literal["text", "integer", "number", "time", "boolean", "choice", "list", "json"]

STDIN = "-"
NULL = "null"
"""No time, as in `--valid-from null`; leaving the option out may mean something else."""
_NAME = lazy_pattern(r"`(\w+)`")
_ACTION = lazy_pattern(r"`(\w+)`\s+(?:with|and)\s+(?:the\s+)?action\s+`(\w+)`")
_MARKS = frozenset('`_"')
"""A text that names an argument or a tool has one of them."""
_FAMILY = lazy_pattern(r"`(\w+)_…`")
"""Arguments that begin alike, such as `context_…`."""
_PLAIN_KINDS: dict[str, Kind] = {"integer": "integer", "number": "number", "boolean": "boolean"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One argument of an operation."""

    name: str
    kind: Kind
    positional: bool
    required: bool
    default: Any
    description: str
    choices: tuple[str, ...] = ()
    limits: str = ""
    id_of: str | None = None
    """What it is the id of, if it is one: a person may shorten it."""
    divided: bool = False
    """Whether one word of a command line can be several values, separated by commas."""

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def two_sided(self) -> bool:
        """Whether `--no-…` differs from leaving it out."""
        return self.kind == "boolean" and self.default is not False


def arguments_of(operation: "Operation") -> list[Argument]:
    """The arguments of an operation: positional ones first, in order, then the others."""
    return list(_arguments(operation.arguments, operation.positional))


@cache
def _arguments(model: "type[Arguments]", positional: tuple[str, ...]) -> tuple[Argument, ...]:
    # Cached: schemas take most of the time of building the command line, which needs each one twice.
    schema = model.model_json_schema(by_alias=False)
    definitions = schema.get("$defs", {})
    needed = schema.get("required", [])
    found = {
        name: _argument(
            name,
            _resolved(field, definitions),
            positional=name in positional,
            required=name in needed,
            id_of=model.id_of(name),
            is_whole=model.is_whole(name),
        )
        for name, field in schema.get("properties", {}).items()
    }
    return (*(found[name] for name in positional), *(one for one in found.values() if not one.positional))


def _argument(
    name: str,
    field: Mapping[str, Any],
    *,
    positional: bool,
    required: bool,
    id_of: str | None,
    is_whole: bool,
) -> Argument:
    kind = _kind(field)
    return Argument(
        name=name,
        kind=kind,
        positional=positional,
        required=required,
        default=field.get("default"),
        description=field.get("description", ""),
        choices=tuple(field.get("enum", ())),
        limits=_limits(field),
        id_of=id_of,
        divided=kind == "list" and not is_whole,
    )


def _resolved(field: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """A field's schema without references and without the null branch of an optional field."""
    branches = [branch for branch in field.get("anyOf", []) if branch != {"type": "null"}]
    if len(branches) == 1:
        field = {**branches[0], **{key: value for key, value in field.items() if key != "anyOf"}}
    if "$ref" in field:
        target = definitions[field["$ref"].rsplit("/", 1)[-1]]
        return {**target, **{key: value for key, value in field.items() if key != "$ref"}}
    return dict(field)


def _kind(field: Mapping[str, Any]) -> Kind:
    kind = field.get("type")
    if "enum" in field:
        return "choice"
    if kind == "array" and field.get("items", {}).get("type") == "string":
        return "list"
    if kind == "string":
        return "time" if field.get("format") == "date-time" else "text"
    # Objects, arrays of objects and unions are given as JSON.
    return _PLAIN_KINDS.get(str(kind), "json")


def _limits(field: Mapping[str, Any]) -> str:
    """The range of a number or the size of a text or list, as text."""
    for low, high, unit in (
        ("minimum", "maximum", ""),
        ("minLength", "maxLength", " characters"),
        ("minItems", "maxItems", " items"),
    ):
        least, most = field.get(low), field.get(high)
        if least is not None and most is not None:
            return f"{least} to {most}{unit}"
        if most is not None:
            return f"at most {most}{unit}"
        if least is not None:
            return f"at least {least}{unit}"
    return ""


class Wording:
    """Rewrites descriptions, hints and notes, which name arguments and tools, in the words of the command
    line."""

    def __init__(
        self, arguments: Sequence[Argument], tools: Mapping[str, str], others: Sequence[Argument] = ()
    ) -> None:
        """`tools` are the commands by the name of their tool, `others` the arguments of other operations,
        which a hint may name: those that no other word is like, and switches with their value."""
        self._own = {one.name: one for one in arguments}
        self._others = others
        self._tools = tools

    @cached_property
    def _arguments(self) -> dict[str, Argument]:
        return {one.name: one for one in self._others} | self._own

    @cached_property
    def _given(self) -> re.Pattern[str]:
        own = self._own
        names = (
            "|".join(name for name, one in self._arguments.items() if name in own or "_" in name) or "(?!)"
        )
        switches = "|".join(name for name, one in self._arguments.items() if one.kind == "boolean") or "(?!)"
        own_names = "|".join(own) or "(?!)"
        long_names = "|".join(name for name in own if "_" in name) or "(?!)"
        return re.compile(
            rf"`({names})`(?! in the answer)|`({switches}): (true|false)`"  # `record`, or `record: false`
            rf'|(?<![`\w])({own_names}) "([^"]*)"'  # scope "/"
            rf"|(?<![`\w])({long_names})(?![`\w])"
        )

    def of(self, text: str) -> str:
        if not _MARKS.intersection(text):  # most texts: a pattern for each command takes long to compile
            return text
        said = _ACTION.sub(lambda found: f"`vestige {found[1]} {found[2].replace('_', '-')}`", text)
        said = _FAMILY.sub(lambda found: f"`--{found[1]}-…`", self._given.sub(self._option, said))
        return _NAME.sub(self._command, said)

    def _option(self, found: re.Match[str]) -> str:
        name, switch, truth, valued, value, bare = found.groups()
        argument = self._arguments[name or switch or valued or bare]
        flag = argument.name.upper() if argument.positional else argument.flag
        if truth == "false":
            flag = flag.replace("--", "--no-", 1)
        return f"`{flag} {value}`" if value else f"`{flag}`"

    def _command(self, found: re.Match[str]) -> str:
        command = self._tools.get(found[1])
        return found[0] if command is None else f"`vestige {command}`"


class ArgumentReader:
    """Parses the words of a command line as arguments; `-` is read from standard input, once."""

    def __init__(self, read_stdin: Callable[[], bytes]) -> None:
        self._read_stdin = read_stdin
        self._taken_by: str | None = None

    def values(self, arguments: Sequence[Argument], given: Mapping[str, Any]) -> dict[str, Any]:
        """The given arguments, ready for `Operation.parse`."""
        return {
            one.name: self._value(one, given[one.name])
            for one in arguments
            if given.get(one.name) not in (None, ())
        }

    def _value(self, argument: Argument, given: Any) -> Any:
        if argument.kind == "list":
            parts = [part for word in given for part in (word.split(",") if argument.divided else [word])]
            return [part.strip() for part in parts if part.strip()]
        if argument.kind == "json":
            return self._json(argument, given)
        if argument.kind == "time" and given == NULL:
            return None
        if argument.positional and given == STDIN:
            # Like `$(…)` in a shell: the final newline is not part of the text.
            return _decoded(self._stdin(argument), argument.name).rstrip("\r\n")
        return given

    def _json(self, argument: Argument, given: str) -> Any:
        if given == STDIN:
            raw = self._stdin(argument)
        elif given.startswith("@"):
            raw = _file(Path(given[1:]).expanduser(), argument)
        else:
            raw = given.encode("utf-8", "surrogateescape")
        try:
            return orjson.loads(raw)
        except orjson.JSONDecodeError as exc:
            hint = f"Give JSON, a file as {argument.flag} @FILE, or {argument.flag} - for standard input."
            message = f"`{argument.name}` is not valid JSON: {exc}."
            raise invalid_argument(argument.name, message, hint) from exc

    def _stdin(self, argument: Argument) -> bytes:
        if self._taken_by is not None:
            both = f"`{self._taken_by}` and `{argument.name}`"
            message = f"{both} are both read from standard input."
            raise invalid_argument(argument.name, message, "Use `-` only once.")
        self._taken_by = argument.name
        return self._read_stdin()


def invalid_argument(name: str, message: str, hint: str | None = None) -> InvalidInput:
    """The error for an argument or option with an invalid value."""
    return InvalidInput(message, hint=hint, details={"argument": name})


def _decoded(raw: bytes, name: str) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as exc:
        message = f"`{name}`: standard input is not UTF-8 text (byte {exc.start})."
        raise invalid_argument(name, message, "Convert it first, for example with iconv.") from exc


def _file(path: Path, argument: Argument) -> bytes:
    try:
        return path.read_bytes()
    except OSError as exc:
        message = f"`{argument.name}`: {path} cannot be read: {exc.strerror}."
        raise invalid_argument(argument.name, message) from exc


def words_of(operation: "Operation", values: Mapping[str, Any]) -> list[str]:
    """The command line, without `vestige`, that gives an operation these arguments."""
    arguments = [one for one in arguments_of(operation) if one.name in values]
    options = [
        word for one in arguments if not one.positional for word in _option_words(one, values[one.name])
    ]
    positionals = [
        word for one in arguments if one.positional for word in _positional_words(one, values[one.name])
    ]
    if any(word.startswith("-") for word in positionals):
        return [*operation.command, *options, "--", *positionals]
    return [*operation.command, *positionals, *options]


def example_of(operation: "Operation") -> str:
    """The example of an operation as a command line, quoted for the shell."""
    return " ".join(map(_quoted, ["vestige", *words_of(operation, operation.example)]))


def _quoted(word: str) -> str:
    """A word quoted for the shell: an apostrophe in double quotes, if possible; `~/` is left to the shell."""
    if word.startswith("~/"):
        return f"~/{shlex.quote(word[2:])}"
    return f'"{word}"' if "'" in word and not set(word) & set('"$`\\!') else shlex.quote(word)


def _positional_words(argument: Argument, value: Any) -> Iterator[str]:
    if argument.kind == "list":
        yield from value
    elif argument.kind == "json":
        yield orjson.dumps(value).decode("utf-8")
    else:
        yield str(value)


def _option_words(argument: Argument, value: Any) -> Iterator[str]:
    if argument.kind == "boolean":
        if value:
            yield argument.flag
        elif argument.two_sided:
            yield argument.flag.replace("--", "--no-", 1)
        return
    for one in value if argument.kind == "list" else [value]:
        text = orjson.dumps(one).decode("utf-8") if argument.kind == "json" or one is None else str(one)
        yield from ([f"{argument.flag}={text}"] if text.startswith("-") else [argument.flag, text])
