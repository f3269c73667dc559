"""Screening for secrets: every text is searched for keys, tokens and passwords before it is stored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from vestige.cognition.secrets.find import excerpt, find_secrets, position, redacted
from vestige.core.errors import SecretFound
from vestige.engine.context import Call
from vestige.engine.ingest.batch import NewText

Policy = Literal["refuse", "redact", "allow"]
SCREENED = (
    "content", "tags", "node_type", "source", "scope", "author", "agent_id", "session_id", "thread",
    "domains", "metadata",
)  # fmt: skip
"""The fields of a new text that may hold a secret."""
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


def screen(call: Call, texts: Sequence[NewText], policy: Policy | None) -> list[NewText]:
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


def _clean(value: Any, field: str, name: str, found: list[SecretSighting]) -> Any:  # Any: JSON
    """A value with its secrets redacted; `name` is its key, which helps to recognise a secret."""
    match value:
        case str():
            return _clean_text(value, field, name, found)
        case Mapping():
            cleaned = {}
            for key, inner in value.items():
                shown = _clean_text(str(key), field, "", found)
                cleaned[shown] = _clean(inner, f"{field}.{shown}", shown, found)
            return cleaned
        case list() | tuple():
            return type(value)(_clean(inner, field, name, found) for inner in value)
        case _:
            return value


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
