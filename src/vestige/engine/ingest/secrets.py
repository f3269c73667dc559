"""Screening for secrets: every text is searched for keys, tokens and passwords before it is stored."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeGuard

from vestige.cognition.secrets.find import excerpt, find_secrets, position, redacted
from vestige.core.errors import SecretFound
from vestige.core.lazy_dataclass import dataclass
from vestige.engine.context import Call

if TYPE_CHECKING:
    from vestige.engine.ingest.batch import NewText  # a search redacts its query without all this

Policy = Literal["refuse", "redact", "allow"]
SCREENED = (
    "content", "tags", "node_type", "source", "scope", "author", "agent_id", "session_id", "thread",
    "domains", "metadata",
)  # fmt: skip
"""The fields of a new text that may hold a secret."""
NAMES = ("name", "key", "field", "label", "variable", "header", "k")
VALUES = frozenset("value values val v text string data content default current raw plain".split())
"""Keys of objects that hold a name and a value."""
LONGEST_NAME = 80
DEEPEST = 100
"""The depth from which nested values are searched as one text, and redacted as a whole."""
MOST_LISTED = 20
"""The most secrets that an error lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretSighting:
    """A secret in a field: its position, and an excerpt that may be shown."""

    kind: str
    field: str
    line: int
    column: int
    excerpt: str


def screen(call: Call, texts: "Sequence[NewText]", policy: Policy | None) -> "list[NewText]":
    """The texts as the policy allows them to be stored, or SecretFound. Later steps see only these."""
    clean = []
    for index, text in enumerate(texts):
        fields = {name: getattr(text, name) for name in SCREENED}
        try:
            clean.append(replace(text, **screen_fields(call, fields, policy)))
        except SecretFound as exc:
            exc.details["index"] = index
            raise
    return clean


def screen_text(call: Call, text: str, *, policy: Policy | None = None) -> str:
    """The text as the policy allows it to be stored, or SecretFound. Without a policy the settings decide."""
    return str(screen_fields(call, {"content": text}, policy).get("content", text))


def screen_fields(call: Call, fields: Mapping[str, Any], policy: Policy | None = None) -> dict[str, Any]:
    """The fields (texts, or lists or objects of texts) that hold secrets, redacted; empty if none does.
    Raises SecretFound if the policy refuses secrets."""
    policy = policy or call.engine.settings.memory.secrets
    if policy == "allow":
        return {}
    clean, found = find_in_fields(fields)
    if found and policy == "refuse":
        raise secret_error(found)
    return clean


def redact_query(call: Call, text: str) -> str:
    """A text that is not stored, such as a query, without its secrets; it is never refused."""
    if call.engine.settings.memory.secrets == "allow":
        return text
    return redacted(text, find_secrets(text), marked=False)


def find_in_fields(fields: Mapping[str, Any]) -> tuple[dict[str, Any], list[SecretSighting]]:
    """The fields with their secrets redacted, as in `screen_fields`, and every secret that was found."""
    found: list[SecretSighting] = []
    clean = {name: _clean(value, name, "", found) for name, value in fields.items()}
    return {name: value for name, value in clean.items() if value != fields[name]}, found


def secret_error(found: Sequence[SecretSighting]) -> SecretFound:
    """The error for these secrets: their kinds and positions, never the secrets themselves."""
    first, more = found[0], len(found) - 1
    beside = f", and {more} more" if more else ""
    return SecretFound(
        f"`{first.field}` holds a secret ({first.kind}, line {first.line}, column {first.column}: "
        f"{first.excerpt}){beside}. Nothing was stored.",
        hint="Leave the secret out and say where it is kept. With `secrets` set to `redact` it is stored as "
        f"`[redacted: {first.kind}]`, with `allow` as it is.",
        details={"argument": first.field, "secrets": [_shown(one) for one in found[:MOST_LISTED]]},
    )


def _shown(one: SecretSighting) -> dict[str, str | int]:
    place: dict[str, str | int] = {"line": one.line, "column": one.column}
    return {"kind": one.kind, "argument": one.field, **place, "excerpt": one.excerpt}


def _clean(
    value: Any, field: str, name: str, found: list[SecretSighting], depth: int = 0
) -> Any:  # Any: JSON
    """A value with its secrets redacted; `name` is its key, which helps to recognise a secret."""
    match value:
        case str():
            return _clean_text(value, field, name, found)
        case None | bool():
            return value
        case int() | float():
            text = str(value)
            cleaned = _clean_text(text, field, name, found)
            return value if cleaned == text else cleaned
        case Mapping() | list() | tuple() if depth == DEEPEST:
            before = len(found)
            _clean_text("\n".join(texts_in(value)), field, name, found)
            return value if len(found) == before else f"[redacted: {found[-1].kind}]"
        case Mapping():
            return _clean_object(value, field, name, found, depth + 1)
        case list() | tuple():
            names = (name, *(before if _is_option(before) else name for before in value))
            each = zip(value, names, strict=False)
            return type(value)([_clean(one, field, known, found, depth + 1) for one, known in each])
        case _:
            return value


def _clean_object(
    value: Mapping[Any, Any], field: str, name: str, found: list[SecretSighting], depth: int
) -> dict[str, Any]:
    """An object with its secrets redacted. A member such as `value` is known by the name beside it
    (`{"name": "DB_PASSWORD", "value": …}`), or by the key of the object."""
    beside = next((value[key] for key in NAMES if isinstance(value.get(key), str)), name)
    cleaned: dict[str, Any] = {}
    for key, inner in value.items():
        shown = _clean_text(str(key), field, "", found)
        known = beside if shown.casefold() in VALUES else shown
        at = f"{field}.{shown}"
        cleaned[_apart(shown, cleaned)] = _clean(inner, at, known[:LONGEST_NAME], found, depth)
    return cleaned


def texts_in(value: Any) -> Iterator[str]:  # Any: JSON
    """Every key and every text or number in a value, however deep it is nested."""
    left = [value]
    while left:
        match left.pop():
            case Mapping() as members:
                left += [one for pair in members.items() for one in reversed(pair)]
            case list() | tuple() as items:
                left += items
            case str() | int() | float() as one:
                yield str(one)


def _apart(name: str, taken: Mapping[str, Any]) -> str:
    """The name, with a number if it is taken: two redacted keys look alike."""
    return name if name not in taken else f"{name} {len(taken)}"


def _is_option(value: Any) -> TypeGuard[str]:  # Any: JSON
    """Whether this is an option of a command, which names the argument after it."""
    return isinstance(value, str) and value.startswith("-") and len(value) <= LONGEST_NAME


def _clean_text(text: str, field: str, name: str, found: list[SecretSighting]) -> str:
    before = f"{name}: " if name else ""
    whole = before + text
    secrets = [one for one in find_secrets(whole) if one.start >= len(before)]
    for one in secrets:
        line, column = position(whole, one)
        column -= len(before) if line == 1 else 0
        found.append(
            SecretSighting(kind=one.kind, field=field, line=line, column=column, excerpt=excerpt(whole, one))
        )
    return redacted(whole, secrets)[len(before) :] if secrets else text
