"""The LangGraph store against LangGraph: its own in-memory store says what is right."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any, TypedDict

import pytest
from langgraph.graph import START, StateGraph
from langgraph.store.base import BaseStore, GetOp, InvalidNamespaceError, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore
from vestige_langgraph import VestigeStore

from vestige import Memory

ADA, GRACE = ("users", "ada"), ("users", "grace")
ITEMS: list[tuple[tuple[str, ...], str, dict[str, Any]]] = [
    (ADA, "drink", {"text": "Ada drinks tea.", "kind": "food", "score": 4.5}),
    (ADA, "city", {"text": "Ada lives in Kyiv.", "kind": "place", "score": 2, "in": {"country": "UA"}}),
    (GRACE, "drink", {"text": "Grace drinks water.", "kind": "food", "score": 1}),
    (("docs", "a/b c", "ü%"), "a key/with.dots", {"list": [1, [2, None]], "none": None}),
]
FILTERS: list[dict[str, Any]] = [
    {"kind": "food"},
    {"score": {"$gt": 2}},
    {"score": {"$gte": 2, "$lt": 4.5}},
    {"kind": {"$ne": "food"}, "score": {"$lte": 2}},
    {"in": {"country": "UA"}},
    {"kind": {"$eq": "place"}},
    {"kind": "nothing"},
]


@pytest.fixture
def store(memory: Memory) -> VestigeStore:
    return VestigeStore(memory)


def filled(store: BaseStore) -> BaseStore:
    for namespace, key, value in ITEMS:
        store.put(namespace, key, value)
    return store


def keys(found: list[Any]) -> set[tuple[tuple[str, ...], str]]:
    return {(one.namespace, one.key) for one in found}


def test_get_returns_what_was_put_under_a_key(store: VestigeStore) -> None:
    filled(store)
    for namespace, key, value in ITEMS:
        item = store.get(namespace, key)
        assert item is not None
        assert (item.namespace, item.key, item.value) == (namespace, key, value)
    assert store.get(ADA, "nothing") is None
    assert store.get(("users",), "drink") is None


def test_a_put_that_was_cut_off_half_way_shows_only_the_new_value(
    memory: Memory, store: VestigeStore
) -> None:
    store.put(ADA, "drink", {"text": "Ada drinks tea."})
    (old,) = memory.memory.list(scope="/langgraph")["results"]
    store.put(ADA, "drink", {"text": "Ada drinks coffee."})
    memory.memory.set_validity(old["id"], valid_until=None)  # as if the program had ended before this step

    item = store.get(ADA, "drink")
    assert item is not None
    assert item.value == {"text": "Ada drinks coffee."}
    for found in (store.search(ADA), store.search(ADA, query="Ada drinks tea.")):
        assert [one.value for one in found] == [{"text": "Ada drinks coffee."}]
    store.put(ADA, "drink", {"text": "Ada drinks water."})
    assert len(memory.memory.list(scope="/langgraph", current=True)["results"]) == 1


def test_a_second_put_replaces_the_value_and_keeps_when_it_was_created(
    memory: Memory, store: VestigeStore
) -> None:
    store.put(ADA, "drink", {"text": "Ada drinks tea."})
    first = store.get(ADA, "drink")
    store.put(ADA, "drink", {"text": "Ada drinks coffee."})
    second = store.get(ADA, "drink")
    assert first is not None
    assert second is not None
    assert second.value == {"text": "Ada drinks coffee."}
    assert second.created_at == first.created_at
    assert second.updated_at > first.updated_at
    assert len(store.search(ADA)) == 1
    assert [one.value["text"] for one in store.search(ADA, query="What does Ada drink?")] == [
        "Ada drinks coffee."
    ]
    assert memory.memory.list()["total"] == 2  # the past stays


def test_delete_removes_every_version(memory: Memory, store: VestigeStore) -> None:
    for text in ("tea", "coffee", "water"):
        store.put(ADA, "drink", {"text": text})
    store.delete(ADA, "drink")
    store.delete(ADA, "drink")
    assert store.get(ADA, "drink") is None
    assert memory.memory.list()["total"] == 0


@pytest.mark.parametrize("wanted", FILTERS)
def test_filters_are_those_of_langgraph(store: VestigeStore, wanted: dict[str, Any]) -> None:
    theirs = filled(InMemoryStore()).search(("users",), filter=wanted)
    assert keys(filled(store).search(("users",), filter=wanted)) == keys(theirs)


def test_a_query_ranks_and_a_filter_narrows_it(store: VestigeStore) -> None:
    filled(store)
    found = store.search(("users",), query="Where does Ada live?")
    assert found[0].key == "city"
    assert all(one.score is not None for one in found)
    assert keys(store.search(("users",), query="Who drinks?", filter={"kind": "food"})) == {
        (ADA, "drink"),
        (GRACE, "drink"),
    }
    assert len(store.search(("users",), query="Who drinks?", limit=1)) == 1


@pytest.mark.parametrize(("limit", "offset"), [(2, 0), (2, 2), (10, 1), (1, 10)])
def test_pages_together_are_everything(store: VestigeStore, limit: int, offset: int) -> None:
    theirs = filled(InMemoryStore()).search((), limit=limit, offset=offset)
    assert len(filled(store).search((), limit=limit, offset=offset)) == len(theirs)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"prefix": ("users",)},
        {"suffix": ("ada",)},
        {"prefix": ("*", "ada")},
        {"max_depth": 1},
        {"limit": 1, "offset": 1},
        {"prefix": ("nothing",)},
    ],
)
def test_namespaces_are_listed_as_langgraph_does(store: VestigeStore, arguments: dict[str, Any]) -> None:
    assert filled(store).list_namespaces(**arguments) == filled(InMemoryStore()).list_namespaces(**arguments)


def test_an_item_that_is_not_indexed_is_found_by_its_key_only(store: VestigeStore) -> None:
    store.put(ADA, "raw", {"text": "Ada owns a kayak."}, index=False)
    assert store.search(ADA, query="kayak") == []
    assert [one.key for one in store.search(ADA)] == ["raw"]
    assert store.get(ADA, "raw") is not None


def test_only_the_fields_of_the_index_are_searched(memory: Memory) -> None:
    store = VestigeStore(memory, fields=["text"])
    store.put(ADA, "boat", {"text": "Ada owns a kayak.", "note": "bought from zanzibar"})
    held = memory.memory.list(detail_level="full")["results"][0]
    assert held.get("content") == "Ada owns a kayak."


def test_an_item_ends_with_its_time_unless_it_is_read(memory: Memory) -> None:
    now = [datetime.now(UTC) - timedelta(minutes=50)]
    store = VestigeStore(memory, now=lambda: now[0])
    store.put(ADA, "read", {"text": "Ada reads."}, ttl=60)
    store.put(ADA, "over", {"text": "Ada is away."}, ttl=40)
    assert store.get(ADA, "over") is None
    now[0] = datetime.now(UTC)
    assert store.get(ADA, "read", refresh_ttl=True) is not None
    until = memory.memory.list(current=True, detail_level="full")["results"][0].get("validUntil")
    assert until is not None
    assert datetime.fromisoformat(until) > now[0] + timedelta(minutes=55)
    assert [one.key for one in store.search(ADA)] == ["read"]


def test_a_batch_reads_before_it_writes_and_the_last_put_counts(store: VestigeStore) -> None:
    ops = [
        PutOp(ADA, "drink", {"text": "tea"}),
        GetOp(ADA, "drink"),
        PutOp(ADA, "drink", {"text": "coffee"}),
        SearchOp(ADA),
    ]
    assert store.batch(ops) == InMemoryStore().batch(ops) == [None, None, None, []]
    item = store.get(ADA, "drink")
    assert item is not None
    assert item.value == {"text": "coffee"}


def test_a_label_cannot_reach_another_namespace(store: VestigeStore) -> None:
    store.put(("a", "b/c"), "k", {"text": "first"})
    store.put(("a/b", "c"), "k", {"text": "second"})
    store.put(("a", "b", "c"), "k", {"text": "third"})
    for namespace, text in ((("a", "b/c"), "first"), (("a/b", "c"), "second"), (("a", "b", "c"), "third")):
        item = store.get(namespace, "k")
        assert item is not None
        assert item.value == {"text": text}
    with pytest.raises(InvalidNamespaceError):
        store.put(("a.b",), "k", {})


def test_a_long_key_and_an_empty_value_are_kept(store: VestigeStore) -> None:
    store.put(ADA, "k" * 300, {})
    item = store.get(ADA, "k" * 300)
    assert item is not None
    assert item.value == {}


def test_everything_can_be_awaited(store: VestigeStore) -> None:
    async def used() -> None:
        await store.aput(ADA, "drink", {"text": "Ada drinks tea."})
        item = await store.aget(ADA, "drink")
        assert item is not None
        assert [one.key for one in await store.asearch(("users",), query="tea")] == ["drink"]
        assert await store.alist_namespaces() == [ADA]
        await store.adelete(ADA, "drink")
        assert await store.aget(ADA, "drink") is None

    asyncio.run(used())


class State(TypedDict):
    question: str
    answer: str


def test_a_graph_remembers_from_one_run_to_the_next(store: VestigeStore) -> None:
    def answer(state: State, *, store: BaseStore) -> dict[str, str]:
        found = store.search(("facts",), query=state["question"], limit=1)
        store.put(("facts",), state["question"], {"text": state["question"]})
        return {"answer": found[0].value["text"] if found else "I do not know."}

    builder = StateGraph(State)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    graph = builder.compile(store=store)
    assert graph.invoke({"question": "Ada drinks tea.", "answer": ""})["answer"] == "I do not know."
    assert graph.invoke({"question": "What does Ada drink?", "answer": ""})["answer"] == "Ada drinks tea."
