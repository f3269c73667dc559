"""Any sequence of commits, good and bad, leaves a store as the reference and a simple fold say."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count, pairwise

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from testbed.effort import effort
from tests.store.support.compare import (
    assert_same_log,
    assert_same_pool,
    assert_same_records,
    assert_same_stats,
    assert_same_strength,
    assert_same_words,
)
from tests.store.support.generators import (
    DAY,
    OTHER_SIGNATURE,
    SIGNATURE,
    T0,
    THIRD_SIGNATURE,
    NewStore,
    a_memory,
    add,
    axis,
    embedded,
    flat,
    held,
    hits,
    rows,
    some_tokens,
)
from vestige.cognition.fsrs.strength import encode
from vestige.cognition.text.analyser import fingerprint, memory_terms
from vestige.core.documents import Document
from vestige.core.errors import InvalidInput, VestigeError
from vestige.core.models import (
    ANYTHING,
    EVERYTHING,
    Access,
    Edge,
    Evidence,
    Filter,
    LogEvent,
    Memory,
    MemoryState,
    Strength,
)
from vestige.embed.protocol import Signature
from vestige.store.contract.changes import (
    Add,
    Carry,
    Change,
    ChangeState,
    Drop,
    Embedded,
    Forget,
    Link,
    Put,
    RecordEvidence,
    Revise,
    Unlink,
)
from vestige.store.contract.search import Probe
from vestige.store.contract.store import MemoryStore
from vestige.store.merge.strength_log import Curves

TEXTS = ("zinc cobalt", "Zinc, cobalt.", "zinc zinc", "日本語 über", "copper 16", "copper 14")
SCOPES = ("/", "/a", "/a/b", "/ab")
ACCESSES = (EVERYTHING, Access(scopes=("/a",)), Access(domains=("home",)))
EVIDENCE = [evidence for evidence in Evidence if evidence is not Evidence.ENCODED]
WISHES = (
    "add",
    "add",
    "revise",
    "revise",
    "remark",
    "link",
    "link",
    "forget",
    "settle",
    "carry",
    "unlink",
    "put",
    "put",
    "drop",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A change somebody would like, of memories picked by number; a wild one rarely can be made."""

    kind: str
    pick: int
    other: int
    text: str
    scope: str
    tags: tuple[str, ...]
    domains: tuple[str, ...]
    days: int
    evidence: Evidence
    pieces: int
    tokens: int
    thread: str | None
    source: str | None
    position: int | None
    hushed: bool
    wild: bool


wishes = st.builds(
    Wish,
    kind=st.sampled_from(WISHES),
    pick=st.integers(0, 99),
    other=st.integers(0, 99),
    text=st.sampled_from(TEXTS),
    scope=st.sampled_from(SCOPES),
    tags=st.sampled_from([(), ("red",), ("red", "cobalt blue")]),
    domains=st.sampled_from([(), ("home",), ("home", "work")]),
    days=st.integers(-3, 60),
    evidence=st.sampled_from(EVIDENCE),
    pieces=st.integers(0, 2),
    tokens=st.integers(0, 3),
    thread=st.sampled_from([None, "t", "t"]),
    source=st.sampled_from([None, "a", "b"]),
    position=st.sampled_from([None, 1, 2, 3]),
    hushed=st.integers(0, 9).map(lambda chance: chance == 9),
    wild=st.integers(0, 19).map(lambda chance: chance == 19),
)


def attempt(store: MemoryStore, changes: list[Change], access: Access) -> list[LogEvent] | type[VestigeError]:
    try:
        return store.commit(changes, access=access)
    except VestigeError as error:
        return type(error)


def replay(log: list[LogEvent], name: str, created_at: datetime) -> Strength:
    """The strength the log gives a memory."""
    return Curves().folded(created_at, [event for event in log if event.memory_id == name]).strength


class Life(RuleBasedStateMachine):
    """The store under test, the reference, and `known`: what a dict of accepted changes would hold."""

    def __init__(self, store: MemoryStore, reference: MemoryStore) -> None:
        super().__init__()
        self.store, self.reference = store, reference
        self.names: list[str] = []
        self.known: dict[str, Memory] = {}
        self.links: set[tuple[str, str]] = set()
        self.documents: dict[str, Document] = {}

    @rule(
        wanted=st.lists(wishes, min_size=1, max_size=4),
        access=st.sampled_from([EVERYTHING, EVERYTHING, EVERYTHING, *ACCESSES]),
    )
    def commit(self, wanted: list[Wish], access: Access) -> None:
        revisions = {name: memory.revision for name, memory in self.known.items()}
        changes = [self.change(wish, revisions) for wish in wanted]
        outcome = attempt(self.store, changes, access)
        expected = attempt(self.reference, changes, access)
        if isinstance(outcome, type) or isinstance(expected, type):
            assert outcome == expected
            return
        assert_same_log(outcome, expected)
        for change in changes:
            self.accept(change)

    @precondition(lambda self: self.names)
    @rule(pick=st.integers(0, 99), text=st.sampled_from(TEXTS), number=st.integers(0, 7))
    def put_vectors(self, pick: int, text: str, number: int) -> None:
        """Vectors that may be stale by now, or of a memory that is gone."""
        name = self.names[pick % len(self.names)]
        late = {name: self.vectors(a_memory(name, text), 1, number)}
        assert self.store.put_vectors(late) == self.reference.put_vectors(late)

    @rule(
        signature=st.sampled_from([SIGNATURE, OTHER_SIGNATURE, THIRD_SIGNATURE]), most=st.sampled_from([1, 9])
    )
    def embed_anew(self, signature: Signature, most: int) -> None:
        """One round: some of the memories get vectors of another model, which is used if none is left."""
        lacking = self.reference.unembedded(signature, limit=most)
        assert self.store.unembedded(signature, limit=most) == lacking
        made = {memory.id: embedded(memory, axis(5), signature=signature) for memory in lacking}
        taken = self.reference.put_vectors(made, coming=signature)
        assert self.store.put_vectors(made, coming=signature) == taken
        assert self.store.adopt(signature) == self.reference.adopt(signature)
        assert self.store.profiles() == self.reference.profiles()

    @rule(signature=st.sampled_from([SIGNATURE, OTHER_SIGNATURE, THIRD_SIGNATURE]))
    def drop_vectors(self, signature: Signature) -> None:
        """Those of a model that is in use are refused."""
        outcomes = []
        for store in (self.store, self.reference):
            try:
                store.drop_vectors(signature)
                outcomes.append("dropped")
            except InvalidInput:
                outcomes.append("refused")
        assert outcomes[0] == outcomes[1]
        assert self.store.profiles() == self.reference.profiles()

    @rule()
    def rebuild_words(self) -> None:
        assert self.store.rebuild_words() == len(self.known)

    @rule(cut=st.integers(0, 30))
    def put_strengths(self, cut: int) -> None:
        """A replay of the log as it once was: evidence since then must survive it."""
        taken = []
        for store in (self.store, self.reference):
            read = store.log(access=EVERYTHING, limit=cut)
            replayed = {name: replay(read, name, memory.created_at) for name, memory in self.known.items()}
            taken.append(store.put_strengths(replayed, after=read[-1].position if read else 0))
        assert taken[0] == taken[1]

    def change(self, wish: Wish, revisions: dict[str, int]) -> Change:
        """The wish as a change; `revisions` says what will be there by then."""
        at = T0 + wish.days * DAY
        name, other = self.named(wish, wish.pick, revisions), self.named(wish, wish.other, revisions)
        memory = replace(
            a_memory(name, wish.text, at),
            scope=wish.scope,
            tags=wish.tags,
            domains=wish.domains,
            thread=wish.thread,
            source=wish.source,
            position=wish.position,
            suppression_count=int(wish.hushed),
        )
        given = self.vectors(memory, wish.pieces, wish.days % 8, wish.tokens) if wish.pieces else None
        match wish.kind:
            case "revise" if name in revisions:
                revisions[name] += 0 if wish.wild else 1
                return Revise(
                    memory=replace(memory, revision=revisions[name]), reason="wished", embedded=given
                )
            case "remark" if name in revisions or wish.wild:
                amount = wish.days % 5 / 4
                return RecordEvidence(
                    memory_id=name, evidence=wish.evidence, at=at, amount=amount, details={"n": wish.days}
                )
            case "settle" if name in revisions or wish.wild:
                return ChangeState(
                    memory_id=name,
                    at=at,
                    before=MemoryState.ACTIVE,
                    after=MemoryState.DORMANT,
                    reason="wished",
                )
            case "carry" if name in revisions or wish.wild:
                brought = replace(encode(at), stability=1.0 + wish.pick, lapses=wish.other)
                return Carry(memory_id=name, strength=brought, at=at)
            case "unlink" if (name, other) in self.links or wish.wild:
                return Unlink(source_id=name, target_id=other, kind="k", at=at)
            case "put" if name in revisions:
                return self.filed(wish, name, at)
            case "drop" if self.documents or wish.wild:
                return Drop(kind="note", id=f"d{wish.pick % 3}", at=at)
            case "link" if name != other or wish.wild:
                return Link(edge=Edge(source_id=name, target_id=other, kind="k", created_at=at))
            case "forget" if name in revisions or wish.wild:
                revisions.pop(name, None)
                return Forget(memory_id=name, at=at, reason="wished")
            case _:
                fresh = name if wish.wild else f"m{len(self.names)}"
                self.names.append(fresh)
                revisions[fresh] = 1
                return Add(memory=replace(memory, id=fresh), embedded=given)

    def filed(self, wish: Wish, name: str, at: datetime) -> Put:
        """A document about a memory, in its next version or in a wrong one."""
        key = f"d{wish.pick % 3}"
        version = 1 if wish.wild or key not in self.documents else self.documents[key].version + 1
        document = Document(
            kind="note",
            id=key,
            body={"n": wish.days},
            cites=(name,),
            scope=wish.scope,
            version=version,
            created_at=at,
            updated_at=at,
        )
        return Put(document=document, logged=wish.days % 2 == 0)

    def named(self, wish: Wish, pick: int, revisions: dict[str, int]) -> str:
        """One of the memories that will be there; for a wild wish, any id ever tried."""
        options = self.names if wish.wild else list(revisions)
        return options[pick % len(options)] if options else "unknown"

    def vectors(self, memory: Memory, pieces: int, number: int, tokens: int = 1) -> Embedded:
        chosen = [axis((number + piece) % 8) for piece in range(pieces)]
        told = [some_tokens(*range(number, number + tokens), asked=bool(tokens % 2))] if tokens else []
        return embedded(memory, *chosen, signature=self.reference.signature() or SIGNATURE, tokens=told)

    def accept(self, change: Change) -> None:
        match change:
            case Add(memory=memory):
                self.known[memory.id] = memory
            case Revise(memory=memory):
                self.known[memory.id] = replace(memory, created_at=self.known[memory.id].created_at)
            case Link(edge=edge):
                self.links.add((edge.source_id, edge.target_id))
            case Unlink(source_id=source_id, target_id=target_id):
                self.links.discard((source_id, target_id))
            case Put(document=document):
                known = self.documents.get(document.id, document)
                self.documents[document.id] = replace(document, created_at=known.created_at)
            case Drop(id=name):
                del self.documents[name]
            case Forget(memory_id=name):
                del self.known[name]
                self.links = {ends for ends in self.links if name not in ends}
                self.documents = {key: one for key, one in self.documents.items() if name not in one.cites}
            case RecordEvidence() | ChangeState() | Carry():
                pass

    @invariant()
    def holds_what_was_accepted(self) -> None:
        records = flat(self.store.stream(access=EVERYTHING, batch=2))
        assert {record.memory.id: record.memory for record in records} == self.known
        assert {
            (edge.source_id, edge.target_id) for edge in self.store.edges(self.names, access=EVERYTHING)
        } == self.links
        found = self.store.documents("note", access=EVERYTHING, limit=10)
        assert {one.id: one for one in found} == self.documents

    @invariant()
    def keeps_a_log_that_explains_it(self) -> None:
        log = self.store.log(access=EVERYTHING)
        assert [event.seq for event in log] == list(range(1, len(log) + 1))
        assert all(one.clock < two.clock and one.position < two.position for one, two in pairwise(log))
        for name in self.known:
            created_at = next(event.at for event in log if event.memory_id == name)
            assert_same_strength(held(self.store, name).strength, replay(log, name, created_at))

    @invariant()
    def answers_as_the_reference_does(self) -> None:
        mine, theirs = self.store, self.reference
        for access in ACCESSES:
            assert_same_records(flat(mine.stream(access=access)), flat(theirs.stream(access=access)))
            assert_same_log(mine.log(access=access), theirs.log(access=access))
            assert mine.edges(self.names, access=access) == theirs.edges(self.names, access=access)
            assert mine.tag_counts(access=access) == theirs.tag_counts(access=access)
            assert_same_stats(mine, theirs, access, T0)
            assert_same_words(
                mine.lexical(["zinc", "co*", "日本"], ANYTHING, access=access, limit=3),
                theirs.lexical(["zinc", "co*", "日本"], ANYTHING, access=access, limit=3),
            )
            probe = Probe(
                terms=("zinc", "copper", "zinc"),
                literals=("Zinc, cobalt", "a"),
                vector=axis(0),
                signature=theirs.signature() or SIGNATURE,
                where=Filter(known_at=T0 + 30 * DAY),
                per_arm=99,
            )
            assert_same_pool(mine.gather(probe, access=access), theirs.gather(probe, access=access))
            then = T0 + 30 * DAY
            assert mine.earlier(self.names, then, access=access) == theirs.earlier(
                self.names, then, access=access
            )
            reworded, expected = (
                store.reworded(["zinc", "co*"], Filter(known_at=then), access=access, limit=9)
                for store in (mine, theirs)
            )
            assert_same_records(reworded.records, expected.records)
            assert reworded.statistics == expected.statistics
        for name in self.names:
            assert mine.tombstone(name, access=EVERYTHING) == theirs.tombstone(name, access=EVERYTHING)
        for name in self.known:
            assert mine.history(name, access=EVERYTHING) == theirs.history(name, access=EVERYTHING)
        prints = [fingerprint(text) for text in TEXTS]
        for scope in SCOPES:
            known = theirs.same_text(prints, scope=scope, valid_at=T0, access=EVERYTHING)
            assert mine.same_text(prints, scope=scope, valid_at=T0, access=EVERYTHING) == known
        self.compare_vectors()

    def compare_vectors(self) -> None:
        signature = self.reference.signature()
        assert self.store.signature() == signature
        asked = signature or SIGNATURE
        assert self.store.unembedded(asked, limit=99) == self.reference.unembedded(asked, limit=99)
        for number in range(3):
            query = rows(axis(number))
            answers = [
                store.nearest(query, asked, ANYTHING, access=EVERYTHING, limit=2)
                for store in (self.store, self.reference)
            ]
            assert answers[0] == answers[1]

    def teardown(self) -> None:
        self.store.close()
        self.reference.close()


def test_any_life_of_a_store_is_the_one_the_reference_lives(
    new_store: NewStore, new_oracle: NewStore
) -> None:
    class Fresh(Life):
        def __init__(self) -> None:
            super().__init__(new_store(), new_oracle())

    run_state_machine_as_test(
        Fresh,
        settings=settings(
            max_examples=effort(12, nightly=100),
            stateful_step_count=15,
            deadline=None,
            derandomize=True,
            database=None,
        ),
    )


new_number: Callable[[], int] = count(1).__next__


@settings(
    max_examples=effort(50, nightly=500),
    deadline=None,
    derandomize=True,
    database=None,
    # one store takes all the examples, each under an id of its own
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(text=st.text(min_size=1, max_size=60), tag=st.text(min_size=1, max_size=10))
def test_any_text_that_can_be_made_comes_back_and_is_found_by_its_terms(
    store: MemoryStore, text: str, tag: str
) -> None:
    name = f"m{new_number()}"
    try:
        memory = replace(a_memory(name, text), tags=(tag,), phrasings=(text[::-1],))
    except InvalidInput:
        assume(False)
    add(store, memory)
    assert held(store, name).memory == memory
    for term in set(memory_terms(memory)):
        assert name in hits(store.lexical([term], ANYTHING, access=EVERYTHING, limit=1_000)), term
    assert fingerprint(text) in store.same_text(
        [fingerprint(text)], scope="/", valid_at=T0, access=EVERYTHING
    )
