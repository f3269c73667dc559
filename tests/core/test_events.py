"""The event bus, and the events as listeners outside the process get them."""

import json
import logging
import threading
from dataclasses import FrozenInstanceError, fields, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from testbed.failures import each
from vestige.core import events
from vestige.core.events import (
    PREVIEW_CHARS,
    ActivationSpread,
    Actor,
    BackupCompleted,
    ConnectionDiscovered,
    ConsolidationCompleted,
    ConsolidationStarted,
    DomainsChanged,
    DreamCompleted,
    DreamProgress,
    DreamStarted,
    Event,
    EventBus,
    EventScope,
    ImportanceScored,
    IntentionTriggered,
    MemoriesArchived,
    MemoriesRestored,
    MemoryClassified,
    MemoryCreated,
    MemoryDeleted,
    MemoryDemoted,
    MemoryPromoted,
    MemorySuppressed,
    MemoryUnsuppressed,
    MemoryUpdated,
    Rac1CascadeSwept,
    RetentionDecayed,
    ReviewWaiting,
    SearchPerformed,
    StoreMerged,
    acting,
    event_from,
    preview,
    sent_fields,
)
from vestige.core.models import EVERYTHING, Access

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
HOME = EventScope(scope="/project/tea", domains=("drinks",))
DELETED = MemoryDeleted(timestamp=NOON, scopes=(HOME,), id="1")
CREATED = MemoryCreated(
    timestamp=NOON, scopes=(HOME,), id="2", content_preview="Tea.", node_type="fact", tags=("a", "b")
)
PLACES = [["/project/tea", ["drinks"]]]
"""Where both happened, as it travels."""


def test_listeners_hear_every_event_in_order() -> None:
    bus, first, second = EventBus(), list[Event](), list[Event]()
    with bus.listening(first.append), bus.listening(second.append):
        bus.emit(CREATED, DELETED)
        bus.emit(CREATED)
    assert first == second == [CREATED, DELETED, CREATED]


def test_a_listener_hears_only_while_its_block_runs() -> None:
    bus, heard = EventBus(), list[Event]()
    bus.emit(DELETED)
    with bus.listening(heard.append):
        bus.emit(CREATED)
    bus.emit(DELETED)
    assert heard == [CREATED]


def test_a_block_that_fails_unsubscribes_its_listener() -> None:
    bus, heard = EventBus(), list[Event]()
    with pytest.raises(ZeroDivisionError), bus.listening(heard.append):
        raise ZeroDivisionError
    bus.emit(DELETED)
    assert heard == []


def test_a_listener_that_fails_is_logged_and_disturbs_nobody(caplog: pytest.LogCaptureFixture) -> None:
    bus, heard = EventBus(), list[Event]()

    def fail(_happening: Event) -> None:
        raise RuntimeError("broken listener")

    with caplog.at_level(logging.ERROR), bus.listening(fail), bus.listening(heard.append):
        bus.emit(DELETED, CREATED)
    assert heard == [DELETED, CREATED]
    assert [record.message for record in caplog.records] == [
        "A listener failed on MemoryDeleted",
        "A listener failed on MemoryCreated",
    ]


def test_a_listener_may_leave_while_it_is_being_told() -> None:
    bus, heard = EventBus(), list[Event]()
    inner = bus.listening(heard.append)

    def leave(_happening: Event) -> None:
        inner.__exit__(None, None, None)

    with bus.listening(leave):
        inner.__enter__()
        bus.emit(DELETED)
        bus.emit(CREATED)
    assert heard == [DELETED]


def test_an_event_travels_as_its_type_and_plain_data() -> None:
    assert json.loads(json.dumps(CREATED.message())) == {
        "type": "MemoryCreated",
        "data": {
            "timestamp": "2026-03-01T12:00:00+00:00",
            "scope": "/project/tea",
            "id": "2",
            "content_preview": "Tea.",
            "node_type": "fact",
            "tags": ["a", "b"],
        },
    }


EXAMPLES: dict[object, Any] = {
    str: "text",
    int: 3,
    float: 0.25,
    bool: False,
    datetime: NOON,
    tuple[str, ...]: ("a", "b"),
    str | None: None,
    tuple[EventScope, ...] | None: (HOME, EventScope(scope="/")),
}


@each("kind", events.KINDS.values(), ids=events.KINDS.keys())
def test_every_event_comes_back_from_its_journey_as_it_was(kind: type[Event]) -> None:
    event = kind(**{field.name: EXAMPLES[field.type] for field in fields(kind) if field.init})
    carried = {**event.message(), "places": [["/project/tea", ["drinks"]], ["/", []]]}
    assert event_from(json.loads(json.dumps(carried))) == event


@each("kind", events.KINDS.values(), ids=events.KINDS.keys())
def test_no_event_can_be_told_without_saying_where_it_happened(kind: type[Event]) -> None:
    told: dict[str, Any] = {field.name: EXAMPLES[field.type] for field in sent_fields(kind) if field.init}
    with pytest.raises(TypeError, match="scopes"):
        kind(**told)
    event = kind(**told, scopes=(HOME,))
    assert "scopes" not in event.message()["data"]
    assert event.within(Access(scopes=("/project",), domains=("drinks",)))
    assert not event.within(Access(scopes=("/private",)))


def test_a_listener_hears_what_lies_within_its_reach_and_nothing_else() -> None:
    assert DELETED.within(EVERYTHING)
    assert DELETED.within(Access(scopes=("/a", "/project/tea")))
    assert DELETED.within(Access(domains=("food", "drinks")))
    assert not DELETED.within(Access(scopes=("/project/te",)))
    assert not DELETED.within(Access(scopes=()))
    assert not DELETED.within(Access(domains=()))
    assert not DELETED.within(Access(scopes=("/project",), domains=("food",)))


def test_what_happened_in_several_places_is_heard_by_who_reaches_all_of_them() -> None:
    both = replace(DELETED, scopes=(HOME, EventScope(scope="/project/coffee", domains=("drinks",))))
    assert both.within(Access(scopes=("/project",), domains=("drinks",)))
    assert not both.within(Access(scopes=("/project/tea",)))


def test_what_concerns_a_scope_as_such_is_not_heard_by_who_reaches_only_domains_in_it() -> None:
    search = replace(DELETED, scopes=(EventScope(scope="/project/tea"),))
    assert search.within(Access(scopes=("/project",)))
    assert not search.within(Access(scopes=("/project",), domains=("drinks",)))


@pytest.mark.parametrize(
    ("scopes", "scope"),
    [
        ((HOME,), "/project/tea"),
        ((HOME, EventScope(scope="/project/tea", domains=("food",))), "/project/tea"),
        ((HOME, EventScope(scope="/project")), None),
        ((), None),
        (None, None),
    ],
)
def test_an_event_tells_its_scope_where_all_of_it_lies_in_one(
    scopes: tuple[EventScope, ...] | None, scope: str | None
) -> None:
    assert replace(DELETED, scopes=scopes).message()["data"]["scope"] == scope


def test_a_search_tells_the_scope_that_was_searched_wherever_it_found_something() -> None:
    search = SearchPerformed(
        timestamp=NOON,
        scopes=(EventScope(scope="/project"), HOME),
        query="tea",
        result_count=1,
        result_ids=("2",),
        duration_ms=1.0,
        scope="/project",
    )
    assert search.message()["data"]["scope"] == "/project"


@pytest.mark.parametrize("scopes", [None, ()])
def test_what_happened_everywhere_or_nowhere_is_heard_by_who_reaches_everything(
    scopes: tuple[EventScope, ...] | None,
) -> None:
    event = replace(DELETED, scopes=scopes)
    assert event.within(EVERYTHING)
    assert not event.within(Access(scopes=("/",)))


def test_what_an_older_version_tells_concerns_the_whole_store() -> None:
    told = event_from(DELETED.message())
    assert told == replace(DELETED, scopes=None)


def test_what_a_newer_version_tells_is_understood_as_far_as_it_goes() -> None:
    told = DELETED.message()
    assert event_from({**told, "type": "MemoryPainted"}) is None
    assert event_from({"data": told["data"]}) is None
    newer = {**told, "data": {**told["data"], "colour": "red"}, "quotes": [], "places": PLACES}
    assert event_from(newer) == DELETED
    assert event_from({**told, "data": {"timestamp": "2026-03-01T12:00:00+00:00"}}) is None


def test_a_field_that_an_older_version_did_not_tell_has_its_default() -> None:
    search = SearchPerformed(
        timestamp=NOON, scopes=(HOME,), query="tea", result_count=0, result_ids=(), duration_ms=1.0
    )
    told = {**search.message(), "places": PLACES}
    del told["data"]["scope"], told["data"]["recorded"]
    assert event_from(told) == search


def test_what_happened_elsewhere_is_told_only_to_those_who_listen_everywhere() -> None:
    bus, here, everywhere = EventBus(), list[Event](), list[Event]()
    with bus.listening(here.append):
        assert not bus.followed
        with bus.listening(everywhere.append, everywhere=True):
            assert bus.followed
            bus.pass_on(CREATED)
            bus.emit(DELETED)
        bus.pass_on(CREATED)
    assert not bus.followed
    assert here == [DELETED]
    assert everywhere == [CREATED, DELETED]


def test_an_event_says_which_caller_it_is_of_and_a_reaction_on_another_thread_none() -> None:
    heard: list[Event] = []
    bus = EventBus()
    with bus.listening(heard.append):
        with acting(Actor(by="laptop", client="claude-code")):
            bus.emit(CREATED)
            worker = threading.Thread(target=bus.emit, args=(DELETED,))
            worker.start()
            worker.join()
        bus.emit(CREATED)
    by_ada, reaction, after = heard
    assert by_ada == replace(CREATED, by="laptop", client="claude-code")
    assert by_ada.message()["data"] == {**CREATED.message()["data"], "by": "laptop", "client": "claude-code"}
    assert by_ada.message(actor=False) == CREATED.message()
    assert (reaction, after) == (DELETED, CREATED)
    assert "by" not in CREATED.message()["data"]


def test_events_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        DELETED.id = "3"  # type: ignore[misc]  # that it fails is what is tested


EXPECTED: dict[type[Event], set[str]] = {
    MemoryCreated: {"id", "content_preview", "node_type", "tags"},
    MemoryUpdated: {"id", "content_preview", "field"},
    MemoryDeleted: {"id"},
    MemoryPromoted: {"id", "new_retention"},
    MemoryDemoted: {"id", "new_retention"},
    SearchPerformed: {
        "query", "result_count", "result_ids", "duration_ms", "topics", "recorded",
    },
    ConnectionDiscovered: {"source_id", "target_id", "connection_type", "weight"},
    MemoryClassified: {"id", "domains"},
    DomainsChanged: {"action", "domains", "moved"},
    MemorySuppressed: {"id", "suppression_count", "estimated_cascade", "reversible_until"},
    MemoryUnsuppressed: {"id", "remaining_count"},
    Rac1CascadeSwept: {"seeds", "neighbors_affected"},
    MemoriesArchived: {"ids", "archive_id"},
    MemoriesRestored: {"ids", "archive_id"},
    DreamStarted: {"memory_count"},
    DreamProgress: {"phase", "progress_pct"},
    DreamCompleted: {"memories_replayed", "connections_found", "insights_generated", "duration_ms"},
    ConsolidationStarted: set(),
    ConsolidationCompleted: {"nodes_processed", "decay_applied", "embeddings_generated", "duration_ms"},
    RetentionDecayed: {"id", "old_retention", "new_retention"},
    ActivationSpread: {"source_id", "activated_ids"},
    ImportanceScored: {
        "memory_id", "content_preview", "composite_score", "novelty", "arousal", "reward", "attention",
    },
    IntentionTriggered: {"id", "description", "priority"},
    ReviewWaiting: {"id", "origin"},
    StoreMerged: {"source", "added", "changed", "ended"},
    BackupCompleted: {"file", "size_bytes", "rotated"},
}  # fmt: skip
"""The names and fields that dashboards and bridges know."""


@each("kind", EXPECTED)
def test_an_event_has_the_fields_that_clients_know(kind: type[Event]) -> None:
    assert {field.name for field in sent_fields(kind)} == EXPECTED[kind] | {"timestamp", "scope"}


def test_every_event_is_expected_and_documented() -> None:
    kinds = [one for one in vars(events).values() if isinstance(one, type) and issubclass(one, Event)]
    assert set(kinds) == {Event, *EXPECTED}
    assert all(kind.__doc__ and kind.__doc__.endswith(".") for kind in kinds)


def test_a_preview_is_the_beginning_on_one_line() -> None:
    assert preview("  Tea\n\tand   biscuits ") == "Tea and biscuits"
    assert preview("x" * PREVIEW_CHARS) == "x" * PREVIEW_CHARS
    long = preview("x" * (PREVIEW_CHARS + 1))
    assert len(long) == PREVIEW_CHARS
    assert long.endswith("…")
