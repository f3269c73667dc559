"""Documents: records that are not memories, such as an intention, an insight, a pattern or a run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from vestige.core import models
from vestige.core.errors import InvalidInput

LOCAL = frozenset({"running", "peer", "backup"})
"""Kinds that never leave an installation: running processes, sync peers, the last backup."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A value of some kind under an id, in a scope, kept until it is dropped.

    `cites` are the memories it refers to: it is deleted with any of them, so that no text outlives its
    source. A document must not quote memories that it does not cite. `version` counts its changes, from 1.
    """

    kind: str
    id: str
    body: Mapping[str, Any] = field(default_factory=lambda: models.NO_METADATA)
    scope: str = models.ROOT_SCOPE
    cites: tuple[str, ...] = ()
    version: int = 1
    created_at: datetime
    updated_at: datetime

    def __post_init__(self) -> None:
        models.check_label("kind", self.kind)
        models.check_label("id", self.id)
        for name in self.cites:
            models.check_label("cites", name)
        models.check_metadata(self.body)
        if self.scope != models.normal_scope(self.scope):
            raise InvalidInput(f"The scope {self.scope!r} is not in normal form.")
        if self.version < 1:
            raise InvalidInput("The version of a document starts at 1.", details={"version": self.version})
        models.check_moment("created_at", self.created_at)
        models.check_moment("updated_at", self.updated_at)
