"""The effective settings as they may be shown: each value, where it comes from, and where it can be set."""

import re
from collections.abc import Iterator
from typing import Any

from pydantic import SecretStr

from vestige.core.lazy_dataclass import dataclass
from vestige.settings.settings import (
    Settings,
    allowed_in_project,
    documented_fields,
    environment_name,
    without_password,
)

MASK = "********"
_CREDENTIALS = re.compile(r"(?<=//)[^/@\s]+(?=@)")


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveSetting:
    """A setting in force. `source` is default, file, environment or flag; a secret value is masked."""

    name: str
    value: Any  # a word, number or switch
    source: str
    environment: str
    project: bool
    description: str


def effective_settings(settings: Settings) -> Iterator[EffectiveSetting]:
    """Every setting, in the order of the reference page."""
    tree = settings.model_dump(by_alias=True)
    for name, field in documented_fields():
        value: Any = tree
        for part in name.split("."):
            value = value[part]
        yield EffectiveSetting(
            name=name,
            value=masked(value, secret=not field.repr),
            source=settings.source_of(name),
            environment=environment_name(name),
            project=allowed_in_project(field),
            description=field.description or "",
        )


def masked(value: Any, *, secret: bool) -> Any:
    """A setting's value as it may be shown."""
    if secret:
        return MASK if value else ""
    if isinstance(value, SecretStr):  # a URL that may contain a password
        return without_password(value.get_secret_value())
    return value if isinstance(value, bool | int | float) else _CREDENTIALS.sub(MASK, str(value))
