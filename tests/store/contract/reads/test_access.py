"""A memory outside the access behaves like one that does not exist, in every method."""

from dataclasses import replace

import pytest

from tests.store.support.generators import (
    DAY,
    SIGNATURE,
    T0,
    a_memory,
    add_with,
    axis,
    embedded,
    flat,
    forget,
    found,
    held,
    hits,
    ids,
    link,
    revise,
    rows,
)
from vestige.cognition.text.analyser import fingerprint
from vestige.core.documents import Document
from vestige.core.errors import Conflict, Forbidden, NotFound
from vestige.core.models import ANYTHING, EVERYTHING, Access, Edge, Evidence, Filter
from vestige.store.contract.changes import Add, Change, Drop, Forget, Link, Put, RecordEvidence, Revise
from vestige.store.contract.store import MemoryStore
from vestige.store.merge.histories import MemoryHistory

MINE = Access(scopes=("/user/ada",))
HOME = Access(domains=("home",))


@pytest.fixture
def shared(store: MemoryStore) -> MemoryStore:
    """Two memories of ada's (one in the domain `home`) and two out of her reach."""
    add_with(store, replace(a_memory("mine"), scope="/user/ada", tags=("red",), domains=("home",)), axis(0))
    add_with(store, replace(a_memory("below"), scope="/user/ada/notes", tags=("red",)), axis(1))
    add_with(store, replace(a_memory("near"), scope="/user/adam", tags=("green",), pinned=True), axis(0))
    add_with(store, replace(a_memory("root"), tags=("red",), domains=("home", "work")), axis(0))
    link(store, "mine", "below")
    link(store, "mine", "near")
    link(store, "root", "mine")
    return store


@pytest.mark.parametrize(
    ("access", "reached"),
    [
        (EVERYTHING, ["below", "mine", "near", "root"]),
        (MINE, ["below", "mine"]),
        (Access(scopes=("/",)), ["below", "mine", "near", "root"]),
        (Access(scopes=("/user",)), ["below", "mine", "near"]),
        (Access(scopes=("/user/ada/notes", "/user/adam")), ["below", "near"]),
        (Access(scopes=()), []),
        (HOME, ["mine", "root"]),
        (Access(domains=()), []),
        (Access(domains=("work", "nowhere")), ["root"]),
        (Access(scopes=("/user",), domains=("home",)), ["mine"]),
    ],
)
def test_reads_reach_exactly_what_the_access_allows(
    shared: MemoryStore, access: Access, reached: list[str]
) -> None:
    everyone = ["mine", "below", "near", "root"]
    (near,) = shared.nearest(rows(axis(0)), SIGNATURE, ANYTHING, access=access, limit=10)
    streamed = [ids(records) for records in shared.stream(access=access)]
    assert found(shared, ANYTHING, access) == reached
    assert sorted(ids(shared.get_many(everyone, access=access))) == reached
    assert sorted(one.id for one in shared.contexts(everyone, access=access)) == reached
    assert sorted(flat(streamed)) == reached
    assert shared.count(ANYTHING, access=access) == len(reached)
    assert sorted(hits(shared.lexical(["zinc"], ANYTHING, access=access, limit=10))) == reached
    assert sorted(hits(near)) == reached
    assert shared.stats(access=access, now=T0).memories == len(reached)


def test_a_filter_cannot_widen_an_access(shared: MemoryStore) -> None:
    assert found(shared, Filter(scope="/"), MINE) == ["below", "mine"]
    assert found(shared, Filter(scope="/user/adam"), MINE) == []
    assert found(shared, Filter(domains=("work",)), HOME) == ["root"]


def test_the_limit_counts_only_what_is_in_reach(shared: MemoryStore) -> None:
    only = Access(scopes=("/user/ada/notes",))
    (near,) = shared.nearest(rows(axis(0)), SIGNATURE, ANYTHING, access=only, limit=1)
    assert hits(near) == ["below"]
    assert hits(shared.lexical(["zinc"], ANYTHING, access=only, limit=1)) == ["below"]
    assert ids(shared.find(ANYTHING, access=only, limit=1)) == ["below"]


def test_word_scores_do_not_depend_on_the_access(shared: MemoryStore) -> None:
    everything = {
        one.memory_id: one for one in shared.lexical(["zinc"], ANYTHING, access=EVERYTHING, limit=9)
    }
    mine = {one.memory_id: one for one in shared.lexical(["zinc"], ANYTHING, access=MINE, limit=9)}
    assert mine == {name: everything[name] for name in ("mine", "below")}


def test_an_edge_with_an_end_out_of_reach_is_not_there(shared: MemoryStore) -> None:
    mine = shared.edges(["mine", "near", "root"], access=MINE)
    assert [(edge.source_id, edge.target_id) for edge in mine] == [("mine", "below")]
    assert len(shared.edges(["mine"], access=EVERYTHING)) == 3
    home = shared.edges(["mine"], access=HOME)
    assert [(edge.source_id, edge.target_id) for edge in home] == [("root", "mine")]


def test_counts_are_of_what_is_in_reach(shared: MemoryStore) -> None:
    stats = shared.stats(access=MINE, now=T0 + 365 * DAY)
    assert (stats.memories, stats.embedded, stats.pinned, stats.edges, stats.due) == (2, 2, 0, 1, 2)
    levels = shared.levels(access=MINE, now=T0 + 365 * DAY)
    assert len(levels.retentions) == len(levels.accessibilities) == 2
    assert dict(stats.by_scope) == {"/user/ada": 1, "/user/ada/notes": 1}
    assert shared.tag_counts(access=MINE) == {"red": 2}
    assert shared.tag_counts(access=HOME) == {"red": 2}


def test_history_and_tombstone_out_of_reach_are_not_there(shared: MemoryStore) -> None:
    revise(shared, replace(held(shared, "near").memory, content="changed", revision=2))
    with pytest.raises(NotFound):
        shared.history("near", access=MINE)
    forget(shared, "near")
    assert shared.tombstone("near", access=MINE) is None
    assert shared.tombstone("near", access=Access(scopes=("/user/adam",))) is not None


def test_a_tombstone_has_no_domains_so_limited_ones_never_reach_it(shared: MemoryStore) -> None:
    forget(shared, "root")
    assert shared.tombstone("root", access=HOME) is None
    assert shared.tombstone("root", access=EVERYTHING) is not None


def test_same_text_out_of_reach_is_not_there(shared: MemoryStore) -> None:
    zinc = fingerprint("zinc and cobalt")
    assert shared.same_text([zinc], scope="/user/adam", valid_at=T0, access=EVERYTHING) == {zinc: "near"}
    assert shared.same_text([zinc], scope="/user/adam", valid_at=T0, access=MINE) == {}
    assert shared.same_text([zinc], scope="/user/ada/notes", valid_at=T0, access=HOME) == {}


def test_the_log_shows_events_of_scopes_in_reach(shared: MemoryStore) -> None:
    forget(shared, "near")
    assert {event.memory_id for event in shared.log(access=MINE)} == {"mine", "below"}
    assert {event.scope for event in shared.log(access=MINE)} == {"/user/ada", "/user/ada/notes"}
    assert shared.log(access=MINE, memory_id="near") == []
    assert [event.kind for event in shared.log(access=Access(scopes=("/user/adam",)))] == [
        "memory.created",
        "memory.deleted",
    ]


def links_in_the_log(store: MemoryStore, access: Access) -> list[tuple[str | None, str]]:
    events = store.log(access=access)
    return [(event.memory_id, event.payload["target"]) for event in events if event.kind == "edge.linked"]


def test_the_log_does_not_tell_of_links_to_memories_out_of_reach(shared: MemoryStore) -> None:
    assert links_in_the_log(shared, EVERYTHING) == [("mine", "below"), ("mine", "near"), ("root", "mine")]
    assert links_in_the_log(shared, MINE) == [("mine", "below")]
    assert links_in_the_log(shared, HOME) == [("root", "mine")]
    mine = shared.log(access=MINE, memory_id="mine")
    assert [event.payload.get("target") for event in mine] == [None, "below"]


def test_a_page_of_the_log_is_filled_with_events_in_reach(shared: MemoryStore) -> None:
    link(shared, "mine", "near", kind="other")
    link(shared, "below", "mine")
    whole = shared.log(access=MINE)
    assert [event.kind for event in whole] == ["memory.created"] * 2 + ["edge.linked"] * 2
    assert shared.log(access=MINE, after=whole[1].position, limit=2) == whole[2:]


def test_a_limited_access_is_not_told_of_links_to_memories_that_are_gone(shared: MemoryStore) -> None:
    forget(shared, "below")
    forget(shared, "mine")
    assert links_in_the_log(shared, EVERYTHING) == [("mine", "below"), ("mine", "near"), ("root", "mine")]
    assert links_in_the_log(shared, MINE) == []
    assert links_in_the_log(shared, HOME) == []
    assert links_in_the_log(shared, Access(scopes=("/",))) == [("mine", "near")]


def test_a_link_follows_its_target_into_and_out_of_reach(shared: MemoryStore) -> None:
    revise(shared, replace(held(shared, "near").memory, scope="/user/ada", revision=2))
    revise(shared, replace(held(shared, "below").memory, scope="/user/adam", revision=2))
    assert links_in_the_log(shared, MINE) == [("mine", "near")]


def test_the_log_of_a_memory_that_moved_away_is_not_there(shared: MemoryStore) -> None:
    revise(shared, replace(held(shared, "mine").memory, scope="/user/adam", revision=2), "moved")
    assert {event.memory_id for event in shared.log(access=MINE)} == {"below"}
    assert shared.log(access=MINE, memory_id="mine") == []
    with pytest.raises(NotFound):
        shared.history("mine", access=MINE)


def test_what_happened_before_a_memory_moved_into_reach_stays_out_of_it(shared: MemoryStore) -> None:
    revise(shared, replace(held(shared, "near").memory, scope="/user/ada", revision=2), "moved")
    assert [event.kind for event in shared.log(access=MINE, memory_id="near")] == ["memory.revised"]
    assert shared.history("near", access=MINE) == []
    assert shared.earlier(["near"], T0, access=MINE) == {}
    assert len(shared.history("near", access=EVERYTHING)) == 1


def test_a_log_limited_to_domains_leaves_out_memories_that_are_gone(shared: MemoryStore) -> None:
    assert {event.memory_id for event in shared.log(access=HOME)} == {"mine", "root"}
    forget(shared, "root")
    assert {event.memory_id for event in shared.log(access=HOME)} == {"mine"}


WRITES_OUT_OF_REACH: list[Change] = [
    Revise(memory=replace(a_memory("near"), scope="/user/ada", revision=2), reason="r"),
    RecordEvidence(memory_id="near", evidence=Evidence.GOOD, at=T0),
    Link(edge=Edge(source_id="mine", target_id="near", kind="new", created_at=T0)),
    Link(edge=Edge(source_id="near", target_id="mine", kind="new", created_at=T0)),
    Forget(memory_id="near", at=T0, reason="r"),
]


@pytest.mark.parametrize("change", WRITES_OUT_OF_REACH)
def test_writing_about_a_memory_out_of_reach_is_not_found(shared: MemoryStore, change: Change) -> None:
    before = shared.log(access=EVERYTHING)
    with pytest.raises(NotFound):
        shared.commit([change], access=MINE)
    assert shared.log(access=EVERYTHING) == before


@pytest.mark.parametrize("scope", ["/", "/user", "/user/adam"])
def test_writing_into_a_scope_out_of_reach_is_forbidden(shared: MemoryStore, scope: str) -> None:
    with pytest.raises(Forbidden):
        shared.commit([Add(memory=replace(a_memory("new"), scope=scope))], access=MINE)
    moved = replace(held(shared, "mine").memory, scope=scope, revision=2)
    with pytest.raises(Forbidden):
        shared.commit([Revise(memory=moved, reason="moved")], access=MINE)
    assert shared.get_many(["new"], access=EVERYTHING) == []
    assert held(shared, "mine").memory.scope == "/user/ada"


def test_writing_into_a_domain_out_of_reach_is_forbidden(shared: MemoryStore) -> None:
    with pytest.raises(Forbidden):
        shared.commit([Add(memory=a_memory("new"))], access=HOME)
    with pytest.raises(Forbidden):
        shared.commit([Add(memory=replace(a_memory("new"), domains=("work",)))], access=HOME)
    shared.commit([Add(memory=replace(a_memory("new"), domains=("work", "home")))], access=HOME)
    assert ids(shared.get_many(["new"], access=HOME)) == ["new"]


def test_within_its_reach_a_limited_access_can_do_everything(shared: MemoryStore) -> None:
    new = replace(a_memory("new", "quartz"), scope="/user/ada/new")
    shared.commit(
        [
            Add(memory=new, embedded=embedded(new, axis(2))),
            Revise(memory=replace(new, scope="/user/ada", revision=2), reason="moved"),
            RecordEvidence(memory_id="new", evidence=Evidence.GOOD, at=T0 + DAY),
            Link(edge=Edge(source_id="new", target_id="mine", kind="k", created_at=T0)),
            Forget(memory_id="below", at=T0, reason="r"),
        ],
        access=MINE,
    )
    assert found(shared, ANYTHING, MINE) == ["mine", "new"]
    assert held(shared, "new").memory.scope == "/user/ada"


def test_an_id_taken_out_of_reach_cannot_be_taken_again(shared: MemoryStore) -> None:
    with pytest.raises(Conflict):
        shared.commit([Add(memory=replace(a_memory("near"), scope="/user/ada"))], access=MINE)
    assert held(shared, "near").memory.scope == "/user/adam"


def test_the_log_tells_of_a_document_to_who_reaches_it(shared: MemoryStore) -> None:
    for name, cited in (("ours", "below"), ("of both", "near"), ("of nothing", None)):
        cites = ("mine", cited) if cited else ()
        note = Document(kind="note", id=name, scope="/user/ada", cites=cites, created_at=T0, updated_at=T0)
        shared.commit([Put(document=note)], access=EVERYTHING)
    told = [event.payload.get("id") for event in shared.log(access=MINE) if event.kind == "document.put"]
    assert told == ["ours", "of nothing"]
    shared.commit([Drop(kind="note", id="of nothing", at=T0)], access=EVERYTHING)
    kinds = {event.kind for event in shared.log(access=MINE) if event.payload.get("id") == "of nothing"}
    assert kinds == set()
    assert "document.dropped" in {event.kind for event in shared.log(access=EVERYTHING)}


def lives_told(store: MemoryStore, access: Access) -> list[str]:
    told = [life for batch in store.histories(access=access) for life in batch]
    return [life.memory_id for life in told if isinstance(life, MemoryHistory)]


def test_a_life_that_was_in_another_domain_is_not_told(shared: MemoryStore) -> None:
    assert lives_told(shared, HOME) == ["mine", "root"]
    revise(shared, replace(held(shared, "below").memory, domains=("home",), revision=2))
    assert lives_told(shared, HOME) == ["mine", "root"]
    assert [one.memory.domains for one in shared.history("below", access=EVERYTHING)] == [()]
    assert shared.history("below", access=HOME) == []


def test_a_life_that_names_a_memory_out_of_reach_is_not_told(shared: MemoryStore) -> None:
    revise(shared, replace(held(shared, "below").memory, superseded_by="near", revision=2))
    assert lives_told(shared, MINE) == ["mine"]
    revise(shared, replace(held(shared, "mine").memory, superseded_by="below", revision=2))
    assert lives_told(shared, MINE) == ["mine"]
    assert lives_told(shared, EVERYTHING) == ["below", "mine", "near", "root"]
