"""The argument `secrets`, and arguments without what it keeps out."""

from collections.abc import Collection
from typing import Annotated, TypeVar

from pydantic import Field

from vestige.engine.context import Call
from vestige.engine.ingest.secrets import Policy, screen_fields
from vestige.operations.registry.arguments import Arguments

Told = TypeVar("Told", bound=Arguments)
Secrets = Annotated[
    Policy | None,
    Field(
        description="A key, token or password in the text: refuse it, redact (black out the secret), allow "
        "(store as it is). Default: the setting memory.secrets."
    ),
]


def cleaned(call: Call, told: Told, names: Collection[str], secrets: Policy | None) -> Told:
    """The arguments with secrets in these of them blacked out, or SecretFound, as the policy says."""
    given = told.model_dump(include=set(names), exclude_unset=True)
    changed = screen_fields(call, given, secrets)
    for name, value in changed.items():
        held = getattr(told, name)
        if isinstance(held, Arguments):
            changed[name] = held.model_copy(update=value)
    return told.model_copy(update=changed)
