"""Memories, vectors, filters and shorthands the store tests are written with."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from vestige.cognition.text.analyser import text_hash
from vestige.core.api_key import ApiKey
from vestige.core.candidates import LexicalScores
from vestige.core.models import EVERYTHING, Access, Edge, Evidence, Filter, LogEvent, Memory, Record
from vestige.embed.protocol import Signature
from vestige.store.contract.answers import Scored
from vestige.store.contract.changes import Add, Embedded, Forget, Link, Piece, RecordEvidence, Revise, Tokens
from vestige.store.contract.store import MemoryStore

T = TypeVar("T")
NewStore = Callable[[], MemoryStore]

T0 = datetime(2025, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
SIGNATURE = Signature(name="test", revision="1", dimension=8)
OTHER_SIGNATURE = Signature(name="test", revision="2", dimension=8)
THIRD_SIGNATURE = Signature(name="test", revision="3", dimension=8)

WORDS = (
    *("zinc", "cobalt", "copper", "iron", "nickel", "silver", "quartz", "granite", "basalt", "marble"),
    *(
        "café",
        "naïve",
        "über",
        "Straße",
        "e\u0301clair",
        "ﬁne",
        "Привет",
        "мир",
        "Ελλάδα",
        "日本語",
        "東京都",
    ),
    *(
        "한국어",
        "สวัสดี",
        "العربية",
        "עברית",
        "🦀",
        "👩\u200d🚀",
        "\u202eltr",
        "\ufeffbom",
        "C++",
        "16",
        "-16",
        "v3.11",
    ),
    *("don't", "snake_case", "camelCase", "kebab-case", "path/to/file.py", "AND", "NOT", "NEAR", "the", "of"),
)
SCOPES = ("/", "/project", "/project/vestige", "/project/vestigial", "/user/ada", "/user/ada/notes")
DOMAINS = ("work", "home", "läb")
TAGS = ("red", "green", "blue", "Blue", "tag with spaces", "日本")
TYPES = ("fact", "decision", "event")


def memory_id(number: int) -> str:
    return f"01900000-0000-7000-8000-{number:012d}"


def a_memory(name: str, content: str = "zinc and cobalt", at: datetime = T0) -> Memory:
    return Memory(id=name, content=content, created_at=at, updated_at=at)


def a_key(name: str, at: datetime = T0) -> ApiKey:
    """A key whose hash is made of its name."""
    hashed = name.encode().hex().ljust(64, "0")
    return ApiKey(id=name, hash=hashed, label=f"label of {name}", permissions=("read",), created_at=at)


def axis(number: int, dimension: int = SIGNATURE.dimension) -> NDArray[np.float32]:
    """A unit vector along one axis: its cosines are exact in any arithmetic."""
    vector = np.zeros(dimension, dtype=np.float32)
    vector[number] = 1
    return vector


def between(first: int, second: int, share: float) -> NDArray[np.float32]:
    """A unit vector in the plane of two axes whose cosine with the first is `share`."""
    vector = share * axis(first) + float(np.sqrt(1 - share * share)) * axis(second)
    return vector.astype(np.float32)


def embedded(
    memory: Memory,
    *vectors: NDArray[np.float32],
    signature: Signature = SIGNATURE,
    tokens: Sequence[Tokens | None] = (),
) -> Embedded:
    """The vectors as pieces of the memory's present text, one character each, the first ones with tokens."""
    told = [*tokens, *[None] * len(vectors)]
    pieces = tuple(
        Piece(start=at, end=at + 1, vector=vector, tokens=told[at]) for at, vector in enumerate(vectors)
    )
    return Embedded(signature=signature, text_hash=text_hash(memory), pieces=pieces)


def some_tokens(*rows: int, asked: bool = False) -> Tokens:
    """Tokens of eight dimensions, given as bytes."""
    return Tokens(
        bits=np.array(rows, dtype=np.uint8).reshape(-1, 1), asked=np.full(len(rows), asked, dtype=np.bool_)
    )


def a_turn(name: str, content: str, position: int | None, thread: str = "talk", at: datetime = T0) -> Memory:
    return replace(a_memory(name, content, at), thread=thread, position=position)


def add(store: MemoryStore, *memories: Memory) -> list[LogEvent]:
    return store.commit([Add(memory=memory) for memory in memories], access=EVERYTHING)


def change_model(store: MemoryStore, signature: Signature, *memories: Memory) -> None:
    """Give these memories, which must be all there are, vectors of another model, and put it in use."""
    made = {memory.id: embedded(memory, axis(7), signature=signature) for memory in memories}
    assert store.put_vectors(made, coming=signature) == len(memories)
    assert store.adopt(signature)


def add_with(store: MemoryStore, memory: Memory, *vectors: NDArray[np.float32]) -> None:
    store.commit([Add(memory=memory, embedded=embedded(memory, *vectors))], access=EVERYTHING)


def revise(store: MemoryStore, memory: Memory, reason: str = "edited") -> list[LogEvent]:
    return store.commit([Revise(memory=memory, reason=reason)], access=EVERYTHING)


def remark(store: MemoryStore, name: str, evidence: Evidence, at: datetime) -> list[LogEvent]:
    return store.commit([RecordEvidence(memory_id=name, evidence=evidence, at=at)], access=EVERYTHING)


def link(store: MemoryStore, source: str, target: str, kind: str = "related", weight: float = 1.0) -> None:
    edge = Edge(source_id=source, target_id=target, kind=kind, weight=weight, created_at=T0)
    store.commit([Link(edge=edge)], access=EVERYTHING)


def forget(store: MemoryStore, name: str, at: datetime = T0 + DAY) -> list[LogEvent]:
    return store.commit([Forget(memory_id=name, at=at, reason="asked to")], access=EVERYTHING)


def held(store: MemoryStore, name: str, access: Access = EVERYTHING) -> Record:
    (record,) = store.get_many([name], access=access)
    return record


def ids(records: Sequence[Record]) -> list[str]:
    return [record.memory.id for record in records]


def hits(scored: Sequence[Scored] | Sequence[LexicalScores]) -> list[str]:
    return [one.memory_id for one in scored]


def found(store: MemoryStore, where: Filter, access: Access = EVERYTHING) -> list[str]:
    """The ids a filter lets through, sorted."""
    return sorted(ids(store.find(where, access=access, limit=10_000)))


def rows(*vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Query vectors as the matrix a search takes."""
    return np.array(vectors, dtype=np.float32).reshape(len(vectors), -1)


class Dice:
    """Seeded random choices for generated stores."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def one(self, options: Sequence[T]) -> T:
        return options[int(self.rng.integers(len(options)))]

    def some(self, options: Sequence[T], most: int) -> tuple[T, ...]:
        chosen = self.rng.permutation(len(options))[: int(self.rng.integers(most + 1))]
        return tuple(options[int(index)] for index in chosen)

    def often(self, share: float) -> bool:
        return float(self.rng.random()) < share

    def moment(self, days: float = 400) -> datetime:
        return T0 + timedelta(microseconds=int(self.rng.integers(int(days * 86_400_000_000))))

    def maybe(self, options: Sequence[T], share: float = 0.5) -> T | None:
        return self.one(options) if self.often(share) else None

    def text(self, most: int = 20) -> str:
        return " ".join(self.one(WORDS) for _ in range(1 + int(self.rng.integers(most))))

    def unit(self, dimension: int = SIGNATURE.dimension) -> NDArray[np.float32]:
        vector = self.rng.normal(size=dimension)
        return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)


def generated_memory(dice: Dice, name: str) -> Memory:
    """A memory with any of its fields set, some of them tricky."""
    created = dice.moment()
    start, end = sorted((dice.moment(), dice.moment()))
    suppressed, archived = dice.often(0.1), dice.often(0.1)
    return Memory(
        id=name,
        content=dice.text(),
        created_at=created,
        updated_at=created,
        node_type=dice.one(TYPES),
        tags=dice.some(TAGS, 3),
        scope=dice.one(SCOPES),
        source=dice.maybe(("paper.pdf", "chat", "50%_")),
        author=dice.maybe(("ada", "Ada")),
        agent_id=dice.maybe(("agent-1", "agent-2")),
        session_id=dice.maybe(("s-1", "s-2", "s-3")),
        thread=dice.maybe(("t-1", "t-2")),
        position=dice.maybe(range(4)),
        occurred_at=dice.moment() if dice.often(0.3) else None,
        valid_from=start if dice.often(0.3) else None,
        valid_until=end if dice.often(0.3) else None,
        superseded_by=memory_id(0) if dice.often(0.1) else None,
        pinned=dice.often(0.1),
        suppression_count=int(suppressed),
        suppressed_at=created if suppressed else None,
        archived_at=created if archived else None,
        phrasings=tuple(dice.text(5) for _ in range(int(dice.often(0.2)))),
        domains=dice.some(DOMAINS, 2),
        domain_scores={domain: float(dice.rng.random()) for domain in dice.some(DOMAINS, 2)},
        metadata={"n": int(dice.rng.integers(9)), "text": dice.one(WORDS)} if dice.often(0.3) else {},
    )


def generated_turn(dice: Dice, name: str) -> Memory:
    """A memory in one of a few threads, some of which have several sources, orders and visibilities."""
    created = dice.moment()
    return Memory(
        id=name,
        content=f"{dice.one(('Ada: ', 'Bob: ', ''))}{dice.text(8)}{dice.one(('', '?', ' yesterday.'))}",
        created_at=created,
        updated_at=created,
        scope=dice.one(("/", "/project")),
        thread=dice.maybe(("t-1", "t-2", "t-3"), 0.8),
        source=dice.maybe(("chat", "mail", f"unique {name}"), 0.7),
        position=dice.maybe(range(50), 0.8),
        domains=dice.one(((), (), ("work", "home"), ("home", "work"))),
        valid_from=dice.maybe((T0, T0 + DAY), 0.2),
        valid_until=dice.maybe((T0 + 300 * DAY,), 0.2),
        occurred_at=dice.moment() if dice.often(0.3) else None,
    )


def generated_tokens(dice: Dice) -> Tokens | None:
    """None, or up to five tokens of eight dimensions."""
    count = int(dice.rng.integers(6))
    if dice.often(0.2):
        return None
    return Tokens(
        bits=dice.rng.integers(0, 256, size=(count, 1), dtype=np.uint8),
        asked=dice.rng.integers(0, 2, size=count).astype(np.bool_),
    )


def generated_filter(dice: Dice) -> Filter:
    """A filter with a few of its fields set."""
    low, high = sorted((float(dice.rng.random()), float(dice.rng.random())))
    rare = 0.12
    return Filter(
        scope=dice.maybe(SCOPES, rare),
        scope_only=dice.often(0.3),
        inherited=dice.often(0.3),
        domains=dice.some(DOMAINS, 2) if dice.often(rare) else (),
        tags_any=dice.some(TAGS, 3) if dice.often(rare) else (),
        tags_all=dice.some(TAGS, 2) if dice.often(rare) else (),
        node_types=dice.some(TYPES, 2) if dice.often(rare) else (),
        exclude_types=dice.some(TYPES, 2) if dice.often(rare) else (),
        source=dice.maybe(("paper.pdf", "50%_", "unknown"), rare),
        author=dice.maybe(("ada", "Ada"), rare),
        agent_id=dice.maybe(("agent-1",), rare),
        session_id=dice.maybe(("s-1", "s-2"), rare),
        thread=dice.maybe(("t-1", "t-2"), rare),
        position=dice.maybe(range(5), rare),
        created_from=dice.moment() if dice.often(rare) else None,
        created_to=dice.moment() if dice.often(rare) else None,
        valid_at=dice.moment() if dice.often(0.3) else None,
        known_at=dice.moment(450) if dice.often(0.2) else None,
        pinned=dice.maybe((True, False), rare),
        include_suppressed=dice.often(0.7),
        suppressed_by=dice.moment() if dice.often(rare) else None,
        archived=dice.one((False, False, False, True, None)),
        min_retention=low if dice.often(rare) else None,
        max_retention=high if dice.often(rare) else None,
        due_by=dice.moment(500) if dice.often(rare) else None,
        recalled=dice.maybe((True, False), rare),
        now=T0 + timedelta(days=450),
    )


def generated_access(dice: Dice) -> Access:
    """Often everything, else a few scopes or domains."""
    return Access(
        scopes=dice.some(SCOPES, 3) if dice.often(0.3) else None,
        domains=dice.some(DOMAINS, 2) if dice.often(0.2) else None,
    )


def flat(batches: Iterable[Sequence[T]]) -> list[T]:
    """What all batches hold, in one list."""
    return [item for batch in batches for item in batch]
