"""The laws of uniting, on tellings of the same entities by stores that were changed apart."""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from itertools import permutations

from hypothesis import HealthCheck, given, settings

from testbed.failures import each
from tests.store.support.generators import HOUR, T0, NewStore, flat
from tests.store.support.stories import Deed, Visit, live, stories
from vestige.core.documents import Document
from vestige.core.models import EVERYTHING, LogEvent, Memory
from vestige.store.contract.changes import DELETED
from vestige.store.merge.absorb import PAYLOADS, check
from vestige.store.merge.histories import DocumentHistory, EdgeHistory, EntityHistory, MemoryHistory
from vestige.store.merge.union import (
    GROUPS,
    NEEDED,
    Key,
    edge,
    key_of,
    merged,
    present,
    revisions,
    versions_of,
)

told_apart = settings(
    max_examples=30,
    deadline=None,
    derandomize=True,
    database=None,
    # every example opens stores of its own
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def tellings(new_oracle: NewStore, story: list[Deed | Visit]) -> Iterator[list[EntityHistory]]:
    """What each of three stores tells of an entity, for all that more than one knows."""
    stores = [new_oracle() for _ in range(3)]
    live(stores, story)
    told: list[dict[Key, EntityHistory]] = [
        {key_of(life): life for life in flat(store.histories(access=EVERYTHING))} for store in stores
    ]
    for key in sorted({key for lives in told for key in lives}):
        several = [lives[key] for lives in told if key in lives]
        if len(several) > 1:
            yield several


def all_of(lives: list[EntityHistory]) -> EntityHistory:
    first, *rest = lives
    for life in rest:
        first = merged(first, life)
    return first


def test_every_field_of_a_memory_is_in_one_group_or_follows_from_its_life() -> None:
    grouped = [name for group in GROUPS for name in group]
    following = ["id", "created_at", "updated_at", "revision"]
    assert sorted([*grouped, *following]) == sorted(field.name for field in fields(Memory))


@told_apart
@given(story=stories)
def test_it_does_not_matter_who_tells_first_or_what_was_united_before(
    new_oracle: NewStore, story: list[Deed | Visit]
) -> None:
    for several in tellings(new_oracle, story):
        whole = all_of(several)
        assert all(all_of(list(order)) == whole for order in permutations(several))
        if len(several) == 3:
            one, two, three = several
            assert merged(one, merged(two, three)) == whole


@told_apart
@given(story=stories)
def test_what_is_told_again_changes_nothing(new_oracle: NewStore, story: list[Deed | Visit]) -> None:
    for several in tellings(new_oracle, story):
        whole = all_of(several)
        for life in several:
            assert merged(life, life) == life
            assert merged(whole, life) == whole
        check(whole)


@told_apart
@given(story=stories)
def test_every_text_that_anybody_told_is_in_the_united_memory_or_its_past(
    new_oracle: NewStore, story: list[Deed | Visit]
) -> None:
    for several in tellings(new_oracle, story):
        whole = all_of(several)
        if not isinstance(whole, MemoryHistory) or present(whole) is None:
            continue
        known = {memory.content for memory in whole.versions}
        for life in several:
            assert isinstance(life, MemoryHistory)
            assert {memory.content for memory in life.versions} <= known
        assert [one.memory for one in revisions(whole)] == list(whole.versions[:-1])
        assert [one.revision for one in whole.versions] == list(range(1, len(whole.versions) + 1))


@told_apart
@given(story=stories)
def test_what_one_of_them_deleted_is_gone(new_oracle: NewStore, story: list[Deed | Visit]) -> None:
    for several in tellings(new_oracle, story):
        whole = all_of(several)
        if isinstance(whole, MemoryHistory):
            deleted = any(event.kind == DELETED for life in several for event in life.events)
            assert (present(whole) is None) == deleted


@told_apart
@given(story=stories)
def test_each_version_differs_from_the_one_before_by_what_its_event_changed(
    new_oracle: NewStore, story: list[Deed | Visit]
) -> None:
    for several in tellings(new_oracle, story):
        whole = all_of(several)
        if not isinstance(whole, MemoryHistory) or present(whole) is None:
            continue
        told = [versions_of(life) for life in several if isinstance(life, MemoryHistory)]
        for name, version in versions_of(whole).items():
            (event,) = (one for one in whole.events if (one.node, one.seq) == name)
            for field in event.payload.get("fields", ()):
                assert {repr(getattr(lives[name], field)) for lives in told if name in lives} == {
                    repr(getattr(version, field))
                }


# -- edges and documents by example --------------------------------------------------------------------


def an_event(called: str, clock: int, **payload: object) -> LogEvent:
    at = T0 + clock * HOUR
    return LogEvent(
        position=0,
        node="n1",
        seq=clock,
        clock=clock,
        at=at,
        kind=called,
        memory_id="a" if called.startswith("edge") else None,
        scope="/",
        payload=payload,
    )


def an_edge(*events: LogEvent) -> EdgeHistory:
    return EdgeHistory(source_id="a", target_id="b", kind="k", events=events)


def a_link(clock: int, weight: float) -> LogEvent:
    return an_event("edge.linked", clock, target="b", kind="k", weight=weight)


def test_an_edge_was_made_when_it_was_first_linked_since_it_was_last_unlinked() -> None:
    end = an_event("edge.unlinked", 2, target="b", kind="k")
    assert edge(an_edge(a_link(1, 0.1), end)) is None
    found = edge(an_edge(a_link(1, 0.1), end, a_link(3, 0.3), a_link(4, 0.4)))
    assert found is not None
    assert (found.weight, found.created_at) == (0.4, T0 + 3 * HOUR)


def put_at(clock: int, body: Mapping[str, object]) -> DocumentHistory:
    at = T0 + clock * HOUR
    document = Document(kind="note", id="x", body=body, created_at=at, updated_at=at)
    return DocumentHistory(kind="note", id="x", events=(), document=document, clock=clock, node="n1")


@each("clocks", list(permutations([1, 2, 3, 4])))
def test_a_document_is_the_last_put_unless_more_is_known_to_have_followed(clocks: tuple[int, ...]) -> None:
    first, second, dropped, logged = clocks
    lives: list[EntityHistory] = [put_at(clock, {"n": clock}) for clock in (first, second)]
    for called, clock in (("document.dropped", dropped), ("document.put", logged)):
        events = (an_event(called, clock, kind="note", id="x"),)
        lives.append(DocumentHistory(kind="note", id="x", events=events, document=None))
    last = max(first, second)
    for order in permutations(lives):
        whole = all_of(list(order))
        assert isinstance(whole, DocumentHistory)
        assert (whole.document is not None) == (last > max(dropped, logged))
        assert whole.clock == (last if whole.document is not None else 0)


def test_a_repair_keeps_the_fields_that_the_schema_of_an_event_requires() -> None:
    assert {kind: set(PAYLOADS[kind].required) for kind in NEEDED} == NEEDED
