"""The arguments that say which memories a search or a list is about, written once."""

from dataclasses import replace
from datetime import datetime
from typing import Annotated

from pydantic import Field

from vestige.errors import InvalidInput
from vestige.models import Filter
from vestige.operations.fields import EndMoment, Moment, Names, Scope, Tags
from vestige.operations.registry import Arguments


class FilterArguments(Arguments):
    """Which memories; what is left out does not filter."""

    scope: Annotated[Scope | None, Field(description="Only this scope and what is below it.")] = None
    tags: Annotated[Tags, Field(description="Only memories with any of these tags.")] = []
    tags_all: Annotated[Tags, Field(description="Only memories with all of these tags.")] = []
    include_types: Annotated[Names, Field(description="Only these node types.")] = []
    exclude_types: Annotated[Names, Field(description="Not these node types.")] = []
    domains: Annotated[Names, Field(description="Only these domains.")] = []
    source: Annotated[str | None, Field(description="Only from this source.")] = None
    author: Annotated[str | None, Field(description="Only by this author.")] = None
    thread: Annotated[str | None, Field(description="Only from this thread.")] = None
    created_from: Annotated[Moment | None, Field(description="Only stored at or after this.")] = None
    created_to: Annotated[
        EndMoment | None, Field(description="Only stored before this; a date includes that day.")
    ] = None
    min_retention: Annotated[float | None, Field(ge=0, le=1, description="Least retention.")] = None

    def narrow(self, where: Filter, now: datetime) -> Filter:
        """The filter, narrowed by these arguments."""
        if self.created_from and self.created_to and self.created_from >= self.created_to:
            raise InvalidInput(
                "`created_from` is not before `created_to`: no memory can pass.",
                hint="Give an earlier `created_from` or a later `created_to`.",
            )
        return replace(
            where,
            now=now,
            scope=self.scope,
            tags_any=tuple(self.tags),
            tags_all=tuple(self.tags_all),
            node_types=tuple(self.include_types),
            exclude_types=tuple(self.exclude_types),
            domains=tuple(self.domains),
            source=self.source,
            author=self.author,
            thread=self.thread,
            created_from=self.created_from,
            created_to=self.created_to,
            min_retention=self.min_retention,
        )
