from dataclasses import replace
from datetime import datetime
from threading import Thread

import pytest

from tests.store.support.generators import (
    DAY,
    HOUR,
    T0,
    a_memory,
    add,
    add_with,
    axis,
    flat,
    forget,
    held,
    ids,
    link,
    memory_id,
    remark,
    revise,
)
from vestige.cognition.fsrs.strength import accessibility, retention_of, retrieval_of
from vestige.cognition.text.analyser import fingerprint
from vestige.core.errors import InvalidInput, NotFound
from vestige.core.models import ANYTHING, EVERYTHING, Access, Evidence, Filter, MemoryContext, Order
from vestige.store.contract.store import MemoryStore


def test_records_come_in_the_order_asked_for_once_each_without_the_unknown(store: MemoryStore) -> None:
    add(store, a_memory("a"), a_memory("b"), a_memory("c"))
    assert ids(store.get_many(["c", "x", "a", "c", "b", "a"], access=EVERYTHING)) == ["c", "a", "b"]
    assert store.get_many([], access=EVERYTHING) == []


def test_contexts_are_those_of_the_records(store: MemoryStore) -> None:
    placed = replace(
        a_memory("a"), tags=("red", "blue"), scope="/home", source="notes.md", session_id="s", occurred_at=T0
    )
    add(store, placed, a_memory("b"))
    wanted = ["b", "x", "a", "b"]
    records = store.get_many(wanted, access=EVERYTHING)
    assert store.contexts(wanted, access=EVERYTHING) == [MemoryContext.of(one.memory) for one in records]
    assert ids(records) == ["b", "a"]
    assert store.contexts([], access=EVERYTHING) == []


def test_ids_are_found_by_their_beginning_or_end_and_signs_of_patterns_mean_themselves(
    store: MemoryStore,
) -> None:
    add(store, a_memory("abc-1xyz"), a_memory("abc-2xyz"), a_memory("zzz-3abc"), a_memory("a%c_9"))
    assert store.ids_like("abc", access=EVERYTHING, limit=9) == ["abc-1xyz", "abc-2xyz", "zzz-3abc"]
    assert store.ids_like("abc", access=EVERYTHING, limit=2) == ["abc-1xyz", "abc-2xyz"]
    assert store.ids_like("2xyz", access=EVERYTHING, limit=9) == ["abc-2xyz"]
    assert store.ids_like("a%c", access=EVERYTHING, limit=9) == ["a%c_9"]
    assert store.ids_like("_9", access=EVERYTHING, limit=9) == ["a%c_9"]
    assert store.ids_like("c-1x", access=EVERYTHING, limit=9) == []
    assert store.ids_like("abc", access=Access(scopes=("/elsewhere",)), limit=9) == []


def test_thousands_of_records_can_be_asked_for_at_once(store: MemoryStore) -> None:
    wanted = [memory_id(number) for number in range(40_000)]
    add(store, a_memory(wanted[-1]), a_memory(wanted[0]))
    assert ids(store.get_many(wanted, access=EVERYTHING)) == [wanted[0], wanted[-1]]


def test_an_empty_store_answers_everything_with_nothing(store: MemoryStore) -> None:
    stats = store.stats(access=EVERYTHING, now=T0)
    assert (stats.memories, stats.edges, stats.due) == (0, 0, 0)
    levels = store.levels(access=EVERYTHING, now=T0)
    assert [len(one) for one in (levels.retentions, levels.retrievals, levels.accessibilities)] == [0, 0, 0]
    assert (stats.oldest, stats.newest, dict(stats.by_type), dict(stats.by_scope)) == (None, None, {}, {})
    assert store.find(ANYTHING, access=EVERYTHING, limit=5) == []
    assert list(store.stream(access=EVERYTHING)) == []
    assert store.count(ANYTHING, access=EVERYTHING) == 0
    assert store.tag_counts(access=EVERYTHING) == {}
    assert store.edges(["a"], access=EVERYTHING) == []
    assert store.log(access=EVERYTHING) == []
    assert store.same_text([fingerprint("zinc")], scope="/", valid_at=T0, access=EVERYTHING) == {}
    assert store.claimed("k") is None
    assert store.tombstone("a", access=EVERYTHING) is None
    with pytest.raises(NotFound):
        store.history("a", access=EVERYTHING)


def test_newest_and_oldest_go_by_creation_and_ties_by_id(store: MemoryStore) -> None:
    add(store, a_memory("c"), a_memory("b", at=T0 + HOUR), a_memory("a"), a_memory("d", at=T0 - HOUR))
    revise(store, replace(a_memory("d"), updated_at=T0 + DAY, revision=2))

    def order(order: Order) -> list[str]:
        return ids(store.find(ANYTHING, access=EVERYTHING, order=order, limit=10))

    assert order(Order.NEWEST) == ["b", "a", "c", "d"]
    assert order(Order.OLDEST) == ["d", "a", "c", "b"]
    assert ids(store.find(ANYTHING, access=EVERYTHING, limit=2)) == ["b", "a"]


def test_times_a_microsecond_apart_and_far_apart_sort_as_times(store: MemoryStore) -> None:
    moments = [T0.replace(year=2), T0.replace(year=999), T0, T0.replace(microsecond=1), T0.replace(year=9998)]
    for number, at in reversed(list(enumerate(moments))):
        add(store, a_memory(f"m{number}", at=at))
    records = store.find(ANYTHING, access=EVERYTHING, order=Order.OLDEST, limit=10)
    assert ids(records) == ["m0", "m1", "m2", "m3", "m4"]
    assert [record.memory.created_at for record in records] == moments


def test_due_puts_the_soonest_first_and_ties_by_id(store: MemoryStore) -> None:
    add(store, a_memory("late", at=T0 + DAY), a_memory("b"), a_memory("a"), a_memory("soon", at=T0 - DAY))
    remark(store, "soon", Evidence.EASY, T0 + DAY)
    records = store.find(ANYTHING, access=EVERYTHING, order=Order.DUE, limit=10)
    assert ids(records) == ["a", "b", "late", "soon"]
    due = [record.strength.due_at for record in records]
    assert due == sorted(due)


def test_retention_puts_the_weakest_at_that_moment_first(store: MemoryStore) -> None:
    add(store, a_memory("strong"), a_memory("b"), a_memory("a"), a_memory("weak"))
    remark(store, "strong", Evidence.EASY, T0 + DAY)
    remark(store, "weak", Evidence.DEMOTED, T0 + DAY)
    where = Filter(now=T0 + 30 * DAY)
    records = store.find(where, access=EVERYTHING, order=Order.RETENTION, limit=10)
    assert ids(records) == ["weak", "a", "b", "strong"]


def test_an_order_by_retention_without_a_moment_is_refused(store: MemoryStore) -> None:
    with pytest.raises(InvalidInput):
        store.find(ANYTHING, access=EVERYTHING, order=Order.RETENTION, limit=10)


@pytest.mark.parametrize("order", list(Order))
def test_pages_of_any_order_together_are_the_whole_list(store: MemoryStore, order: Order) -> None:
    for number in range(23):
        add(store, a_memory(memory_id(number), at=T0 + (number % 5) * DAY))
    where = Filter(now=T0 + 9 * DAY)
    whole = ids(store.find(where, access=EVERYTHING, order=order, limit=100))
    pages = [
        ids(store.find(where, access=EVERYTHING, order=order, limit=7, offset=offset))
        for offset in range(0, 28, 7)
    ]
    assert [len(page) for page in pages] == [7, 7, 7, 2]
    assert flat(pages) == whole
    assert len(set(whole)) == 23
    assert store.find(where, access=EVERYTHING, order=order, limit=5, offset=23) == []


def test_a_limit_of_zero_is_an_empty_page(store: MemoryStore) -> None:
    add_with(store, a_memory("a", "zinc"), axis(0))
    assert store.find(ANYTHING, access=EVERYTHING, limit=0) == []
    assert store.lexical(["zinc"], ANYTHING, access=EVERYTHING, limit=0) == []
    assert store.log(access=EVERYTHING, limit=0) == []


@pytest.mark.parametrize(("limit", "offset"), [(-1, 0), (1, -1)])
def test_a_negative_limit_or_offset_is_refused(store: MemoryStore, limit: int, offset: int) -> None:
    with pytest.raises(InvalidInput):
        store.find(ANYTHING, access=EVERYTHING, limit=limit, offset=offset)


@pytest.mark.parametrize("batch", [1, 3, 7, 500])
def test_a_stream_gives_everything_once_in_the_order_of_arrival(store: MemoryStore, batch: int) -> None:
    names = [memory_id((number * 5) % 7) for number in range(7)]
    for number, name in enumerate(names):
        add(store, a_memory(name, at=T0 - number * DAY))
    batches = list(store.stream(access=EVERYTHING, batch=batch))
    assert flat(ids(records) for records in batches) == names
    assert all(0 < len(records) <= batch for records in batches)


def test_a_stream_filters(store: MemoryStore) -> None:
    add(store, *(replace(a_memory(memory_id(number)), pinned=number % 2 == 0) for number in range(6)))
    batches = list(store.stream(Filter(pinned=True), access=EVERYTHING, batch=2))
    assert [len(records) for records in batches] == [2, 1]
    assert all(record.memory.pinned for records in batches for record in records)


def test_a_stream_survives_writes_between_its_batches(store: MemoryStore) -> None:
    names = [memory_id(number) for number in range(6)]
    add(store, *(a_memory(name) for name in names))
    seen: list[str] = []
    for records in store.stream(access=EVERYTHING, batch=2):
        if not seen:
            forget(store, names[0])
            forget(store, names[4])
            remark(store, names[1], Evidence.GOOD, T0 + DAY)
            add(store, a_memory("late"))
        seen += ids(records)
    assert [name for name in seen if name != "late"] in ([*names[:4], names[5]], names)
    assert len(set(seen)) == len(seen)


def test_a_batch_of_none_is_refused(store: MemoryStore) -> None:
    with pytest.raises(InvalidInput):
        list(store.stream(access=EVERYTHING, batch=0))


def test_stats_count_what_is_there(store: MemoryStore) -> None:
    add_with(store, replace(a_memory("a"), pinned=True, scope="/project"), axis(0), axis(1))
    add(store, replace(a_memory("b", at=T0 + DAY), node_type="event", suppression_count=2))
    add(store, replace(a_memory("c", at=T0 + 9 * DAY), superseded_by="b", scope="/project/x"))
    link(store, "a", "b")
    link(store, "b", "a", kind="other")
    now = T0 + 10 * DAY
    stats = store.stats(access=EVERYTHING, now=now)
    strengths = [held(store, name).strength for name in "abc"]
    assert (stats.memories, stats.embedded, stats.pinned) == (3, 1, 1)
    assert (stats.suppressed, stats.superseded, stats.edges) == (1, 1, 2)
    assert sum(strength.due_at <= now for strength in strengths) == 2
    where = Filter(due_by=now, valid_at=now, include_suppressed=False)
    assert stats.due == store.count(where, access=EVERYTHING) == 1  # the suppressed one is not due
    levels = store.levels(access=EVERYTHING, now=now)
    kept, recalled = sorted(levels.retentions), sorted(levels.retrievals)
    assert kept == pytest.approx(sorted(retention_of(one, now) for one in strengths), abs=1e-9)
    assert recalled == pytest.approx(sorted(retrieval_of(one, now) for one in strengths), abs=1e-9)
    assert (stats.oldest, stats.newest) == (T0, T0 + 9 * DAY)
    assert dict(stats.by_type) == {"fact": 2, "event": 1}
    assert dict(stats.by_scope) == {"/project": 1, "/": 1, "/project/x": 1}


def test_stats_tell_how_accessible_each_memory_is_with_its_suppression(store: MemoryStore) -> None:
    suppressions = {"a": 0, "b": 2, "c": 9, "d": 1}
    for days, (name, suppressed) in enumerate(suppressions.items()):
        add(store, replace(a_memory(name, at=T0 + days * DAY), suppression_count=suppressed))
    now = T0 + 10 * DAY
    kept = {name: retention_of(held(store, name).strength, now) for name in suppressions}
    expected = sorted(float(accessibility(kept[name], count)) for name, count in suppressions.items())
    reached = sorted(store.levels(access=EVERYTHING, now=now).accessibilities)
    assert reached == pytest.approx(expected, abs=1e-9)
    assert reached[0] == pytest.approx(0.2 * kept["c"], abs=1e-9)


def test_a_memory_is_due_at_the_very_moment(store: MemoryStore) -> None:
    add(store, a_memory("a"))
    due_at = held(store, "a").strength.due_at
    assert store.stats(access=EVERYTHING, now=due_at).due == 1
    assert store.stats(access=EVERYTHING, now=due_at - HOUR).due == 0


def test_a_tag_counts_the_memories_that_carry_it_exactly(store: MemoryStore) -> None:
    add(store, replace(a_memory("a"), tags=("red", "Red", "日本")), replace(a_memory("b"), tags=("red",)))
    add(store, replace(a_memory("c"), tags=("red", "red")))
    assert store.tag_counts(access=EVERYTHING) == {"red": 3, "Red": 1, "日本": 1}


def test_same_text_is_the_oldest_memory_that_says_it_in_exactly_that_scope(store: MemoryStore) -> None:
    add(
        store,
        a_memory("young", "Zinc melts at 420 degrees.", at=T0 + DAY),
        a_memory("b", "zinc melts at 420 degrees"),
        a_memory("a", "zinc  MELTS at 420 degrees"),
        replace(a_memory("below", "zinc melts at 420 degrees", at=T0 - DAY), scope="/project"),
        replace(a_memory("phrased", "other words"), phrasings=("copper melts at 1085 degrees",)),
    )
    zinc, copper, unknown = (
        fingerprint(text)
        for text in ("zinc melts at 420 degrees", "copper melts at 1085 degrees", "zinc melts at 421 degrees")
    )
    asked = [copper, unknown, zinc, zinc]
    assert store.same_text(asked, scope="/", valid_at=T0, access=EVERYTHING) == {zinc: "a", copper: "phrased"}
    assert store.same_text(asked, scope="/project", valid_at=T0, access=EVERYTHING) == {zinc: "below"}
    assert store.same_text(asked, scope="/proj", valid_at=T0, access=EVERYTHING) == {}
    assert store.same_text([], scope="/", valid_at=T0, access=EVERYTHING) == {}


def test_same_text_follows_a_revision(store: MemoryStore) -> None:
    add(store, replace(a_memory("a", "zinc"), phrasings=("grey metal",)))
    revise(store, replace(a_memory("a", "copper"), phrasings=("red metal",), scope="/project", revision=2))
    asked = [fingerprint(text) for text in ("zinc", "grey metal", "copper", "red metal")]
    assert store.same_text(asked, scope="/", valid_at=T0, access=EVERYTHING) == {}
    assert store.same_text(asked, scope="/project", valid_at=T0, access=EVERYTHING) == dict.fromkeys(
        asked[2:], "a"
    )


def test_same_text_is_what_was_true_at_the_moment(store: MemoryStore) -> None:
    zinc = fingerprint("zinc")
    add(store, replace(a_memory("then", "zinc"), valid_until=T0 + DAY, superseded_by="later"))
    add(store, replace(a_memory("later", "zinc", at=T0 + HOUR), valid_from=T0 + 2 * DAY))

    def known(moment: datetime) -> dict[str, str]:
        return store.same_text([zinc], scope="/", valid_at=moment, access=EVERYTHING)

    assert known(T0 + DAY - HOUR) == {zinc: "then"}
    assert known(T0 + DAY) == {}
    assert known(T0 + 2 * DAY - HOUR) == {}
    assert known(T0 + 2 * DAY) == {zinc: "later"}


def test_same_text_passes_over_an_older_memory_that_has_expired(store: MemoryStore) -> None:
    add(store, replace(a_memory("old", "zinc"), valid_until=T0 + HOUR), a_memory("new", "zinc", at=T0 + DAY))
    known = store.same_text([fingerprint("zinc")], scope="/", valid_at=T0 + DAY, access=EVERYTHING)
    assert known == {fingerprint("zinc"): "new"}


def test_threads_can_write_and_read_at_the_same_time(store: MemoryStore) -> None:
    failures: list[BaseException] = []

    def work(worker: int) -> None:
        try:
            for number in range(10):
                add(store, a_memory(f"{worker}-{number}"))
                assert held(store, f"{worker}-{number}").memory.content == "zinc and cobalt"
                assert store.count(ANYTHING, access=Access(scopes=("/",))) > number
        except BaseException as exc:
            failures.append(exc)

    threads = [Thread(target=work, args=(worker,)) for worker in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert store.count(ANYTHING, access=EVERYTHING) == 80
    assert [event.seq for event in store.log(access=EVERYTHING)] == list(range(1, 81))


def test_edges_can_be_asked_for_among_the_ids_and_by_weight(store: MemoryStore) -> None:
    add(store, *(a_memory(name) for name in "abcd"))
    for target, weight in (("b", 0.2), ("c", 0.9), ("d", 0.9)):
        link(store, "a", target, weight=weight)
    link(store, "b", "c", weight=0.5)

    def ends(memory_ids: list[str], *, among: bool = False, heaviest: int | None = None) -> list[str]:
        found = store.edges(memory_ids, access=EVERYTHING, among=among, heaviest=heaviest)
        return [edge.source_id + edge.target_id for edge in found]

    assert ends(["a", "b"], among=True) == ["ab"]
    assert ends(["a", "b", "c"], among=True) == ["ab", "ac", "bc"]
    assert ends(["a"], heaviest=2) == ["ac", "ad"]
    assert ends(["a", "b"], heaviest=3) == ["ac", "ad", "bc"]
    assert ends(["a"], heaviest=0) == []
