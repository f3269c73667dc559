"""Filter arguments shared by search, list and export: scope, tags, types, dates."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pydantic import Field

from vestige.cognition.text.analyser import query_terms
from vestige.core.errors import InvalidInput
from vestige.core.events import preview
from vestige.core.models import EVERYTHING, ROOT_SCOPE, Filter, check_label, check_text, covers
from vestige.core.origin import Origin
from vestige.engine.context import Call
from vestige.operations.registry.arguments import (
    DomainNames,
    Moment,
    Names,
    SearchedScope,
    StoredBefore,
    Tags,
    ZonedArguments,
)
from vestige.operations.shared.text import day

# -- Default scope of an operation


def scoped(call: Call, where: Filter, given: str | None) -> Filter:
    """The filter within the given scope, or within the caller's scope and what it inherits: for what changes
    or exports memories, for intentions and for a codebase."""
    if given is not None:
        return replace(where, scope=given)
    return replace(where, scope=call.scope, inherited=True)


def used(call: Call, given: str | None) -> str:
    """The given scope, or the caller's."""
    return given if given is not None else call.scope


def searched(call: Call, where: Filter, given: str | None) -> Filter:
    """The filter of a read: the given scope, or everything the caller may see; with `memory.isolate` only the
    caller's scope and what it inherits."""
    if given is None and not call.engine.settings.memory.isolate:
        return where
    return scoped(call, where, given)


def searched_scope(call: Call, given: str | None) -> str:
    """The name of the scope that a read covers."""
    if given is not None or call.engine.settings.memory.isolate:
        return used(call, given)
    allowed = call.access.scopes or ()
    return allowed[0] if len(allowed) == 1 else ROOT_SCOPE


def widening(call: Call, scope: str, to: str) -> str | None:
    """A hint on how to search or export (`to`) more scopes; None if the caller has access to no more."""
    access = (ROOT_SCOPE,) if call.access.scopes is None else call.access.scopes
    if all(covers(scope, one) for one in access):
        return None
    everything = "everything" if call.access == EVERYTHING else "everything you have access to"
    return f'Pass scope "/" to {to} {everything}.'


def limits(call: Call) -> str:
    """The access of a caller in words; empty for access to everything."""
    return "" if call.access == EVERYTHING else "that you have access to"


# -- Filters

DESCRIBED_CHARS = 300
_LABELS = (
    "tags", "tags_all", "include_types", "exclude_types", "domains", "source", "author", "thread", "origin",
)  # fmt: skip


def _domains(call: Call, names: Sequence[str]) -> tuple[str, ...]:
    """The ids of domains that are named by id, or by label if the caller may see it."""
    if not names:
        return ()
    from vestige.engine.domains.catalogue import resolved  # brings the clustering

    return resolved(call.engine.store, names, call.access)


_SAME = ("source", "author", "thread", "origin", "created_from", "created_to", "min_retention")
"""Arguments that a filter has under the same name."""


def domains_named(call: Call, names: Sequence[str]) -> tuple[str, ...]:
    """The ids of the domains that a filter names by id or label."""
    for label in names:
        check_label("domains", label)
    return _domains(call, names)


class FilterArguments(ZonedArguments):
    """Which memories to include; an omitted argument does not filter."""

    scope: SearchedScope = None
    tags: Tags = Field([], description="Only memories with any of these tags.")
    tags_all: Tags = Field([], description="Only memories with all of these tags.")
    include_types: Names = Field([], description="Only these node types.")
    exclude_types: Names = Field([], description="Not these node types.")
    domains: DomainNames = Field([], description="Only these domains.")
    source: str | None = Field(None, description="Only memories from this source.")
    author: str | None = Field(None, description="Only memories by this author.")
    thread: str | None = Field(None, description="Only memories from this thread.")
    origin: Origin | None = Field(None, description="Only memories of this kind of source.")
    created_from: Moment | None = Field(None, description="Only memories stored at or after this time.")
    created_to: StoredBefore = None
    min_retention: float | None = Field(None, ge=0, le=1, description="Minimum retention.")

    def narrow(self, call: Call, where: Filter) -> Filter:
        """The filter, narrowed by these arguments."""
        for name in _LABELS:
            given: str | list[str] | None = getattr(self, name)
            for label in [given] if isinstance(given, str) else given or []:
                check_label(name, label)
        both = [name for name in self.include_types if name in self.exclude_types]
        if both:
            raise InvalidInput(
                f"`include_types` and `exclude_types` both name {', '.join(both)}.",
                hint="Name a type in one of them only.",
            )
        if self.created_from and self.created_to and self.created_from >= self.created_to:
            raise InvalidInput(
                "`created_from` is not before `created_to`, so no memory can match.",
                hint="Give an earlier `created_from` or a later `created_to`.",
            )
        return replace(
            searched(call, where, self.scope),
            now=call.engine.now(),
            tags_any=tuple(self.tags),
            tags_all=tuple(self.tags_all),
            node_types=tuple(self.include_types),
            exclude_types=tuple(self.exclude_types),
            domains=_domains(call, self.domains),
            **{name: getattr(self, name) for name in _SAME},
        )

    def in_words(self, call: Call) -> str:
        """The filter in words, such as "in scope /work with tag tea"; empty for all memories."""
        scope = searched_scope(call, self.scope)
        where = () if scope == ROOT_SCOPE else (f"in scope {scope}",)
        return preview(" ".join((*where, *self._phrases())), DESCRIBED_CHARS)

    def _phrases(self) -> Iterator[str]:
        yield from _naming("with tag", "with any of the tags", self.tags)
        yield from _naming("with tag", "with all of the tags", self.tags_all)
        yield from _naming("of type", "of any of the types", self.include_types)
        yield from _naming("not of type", "of none of the types", self.exclude_types)
        yield from _naming("in domain", "in any of the domains", self.domains)
        for words, label in (("from source", self.source), ("by", self.author), ("in thread", self.thread)):
            if label is not None:
                yield f"{words} {label}"
        if self.origin is not None:
            yield f"of origin {self.origin}"
        if self.created_from is not None:
            yield f"stored at or after {day(self.created_from)}"
        if self.created_to is not None:
            yield f"stored before {day(self.created_to)}"
        if self.min_retention is not None:
            yield f"with a retention of at least {self.min_retention:g}"


def _naming(one: str, several: str, names: Sequence[str]) -> Iterator[str]:
    if names:
        yield f"{one if len(names) == 1 else several} {', '.join(names)}"


# -- Checks of query texts

MAX_QUERY_CHARS = 10_000


def check_query(name: str, text: str) -> None:
    """Reject a text that no search can look for."""
    check_text(name, text)
    if not text.strip():
        raise InvalidInput(f"The {name} is blank.", hint="Say what to look for.")
    if not query_terms(text):
        raise InvalidInput(
            f"The {name} has no searchable word, number or symbol.", hint="Write a question or key words."
        )
