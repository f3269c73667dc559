"""The argument `secrets`, and screening of arguments for secrets."""

from collections.abc import Collection
from typing import Annotated, TypeVar

from pydantic import Field

from vestige.engine.context import Call
from vestige.engine.ingest.secrets import Policy, screen_fields
from vestige.operations.registry.arguments import Arguments

Screened = TypeVar("Screened", bound=Arguments)
Secrets = Annotated[
    Policy | None,
    Field(
        description="If the text contains a key, token or password: refuse it, redact (replace the "
        "secret), allow (store it unchanged). Default: setting memory.secrets."
    ),
]


def cleaned(call: Call, arguments: Screened, names: Collection[str], secrets: Policy | None) -> Screened:
    """The arguments with secrets in these fields redacted, or SecretFound, depending on the policy."""
    given = arguments.model_dump(include=set(names), exclude_unset=True)
    changed = screen_fields(call, given, secrets)
    for name, value in changed.items():
        held = getattr(arguments, name)
        if isinstance(held, Arguments):
            changed[name] = held.model_copy(update=value)
    return arguments.model_copy(update=changed)
