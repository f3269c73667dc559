"""The arguments that say which memories a search or a list is about, written once."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated

from pydantic import Field

from vestige.cognition.text.analyser import query_terms
from vestige.core.checks import check_label, check_text
from vestige.core.errors import InvalidInput
from vestige.core.models import EVERYTHING, ROOT_SCOPE, Filter, covers
from vestige.engine.context import Call
from vestige.operations.registry.arguments import Arguments, EndMoment, Moment, Names, Scope, Tags
from vestige.operations.shared.text import clip, day

# -- In which scope an operation looks when its caller does not say, written once.


def scoped(call: Call, where: Filter, given: str | None) -> Filter:
    """The filter within the scope asked for, else within the caller's own and what holds there from above."""
    if given is not None:
        return replace(where, scope=given)
    return replace(where, scope=call.scope, inherited=True)


def used(call: Call, given: str | None) -> str:
    """The name of the scope that was looked in."""
    return given if given is not None else call.scope


def widening(call: Call, scope: str, to: str) -> str | None:
    """How to search or export (`to`) more than was looked in; None where this caller reaches no more."""
    reach = (ROOT_SCOPE,) if call.access.scopes is None else call.access.scopes
    if all(covers(scope, one) for one in reach):
        return None
    everything = "everything" if call.access == EVERYTHING else "everything you reach"
    return f'Pass scope "/" (--scope /) to {to} {everything}.'


# -- filtering

DESCRIBED_CHARS = 300
_LABELS = (
    "tags", "tags_all", "include_types", "exclude_types", "domains", "source", "author", "thread",
)  # fmt: skip


class FilterArguments(Arguments):
    """Which memories; what is left out does not filter."""

    scope: Annotated[
        Scope | None,
        Field(description="Only this scope and what is below it; / is everything. Default: where you are."),
    ] = None
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
                "`created_from` is not before `created_to`: no memory can pass.",
                hint="Give an earlier `created_from` or a later `created_to`.",
            )
        return replace(
            scoped(call, where, self.scope),
            now=call.engine.now(),
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

    def in_words(self, call: Call) -> str:
        """Which memories these arguments are about, as in "in scope /work with tag tea"; empty for all."""
        scope = used(call, self.scope)
        where = () if scope == ROOT_SCOPE else (f"in scope {scope}",)
        return clip(" ".join((*where, *self._phrases())), DESCRIBED_CHARS)

    def _phrases(self) -> Iterator[str]:
        yield from _naming("with tag", "with any of the tags", self.tags)
        yield from _naming("with tag", "with all of the tags", self.tags_all)
        yield from _naming("of type", "of any of the types", self.include_types)
        yield from _naming("not of type", "of none of the types", self.exclude_types)
        yield from _naming("in domain", "in any of the domains", self.domains)
        for words, label in (("from source", self.source), ("by", self.author), ("in thread", self.thread)):
            if label is not None:
                yield f"{words} {label}"
        if self.created_from is not None:
            yield f"stored at or after {day(self.created_from)}"
        if self.created_to is not None:
            yield f"stored before {day(self.created_to)}"
        if self.min_retention is not None:
            yield f"with a retention of at least {self.min_retention:g}"


def _naming(one: str, several: str, names: Sequence[str]) -> Iterator[str]:
    if names:
        yield f"{one if len(names) == 1 else several} {', '.join(names)}"


# -- What every question to memory must be, checked once.

MAX_QUERY_CHARS = 10_000


def check_query(name: str, text: str) -> None:
    """Refuse a text that no search could look for."""
    check_text(name, text)
    if not text.strip():
        raise InvalidInput(f"The {name} is blank.", hint="Say what to look for.")
    if not query_terms(text):
        raise InvalidInput(
            f"The {name} holds nothing to look for: no word, number or symbol that is kept.",
            hint="Write a question or key words.",
        )
