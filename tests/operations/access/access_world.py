"""A store of which a caller reaches only a part, with canaries in the rest.

Everything out of reach says so in a word of its own for each form it can be told in. What is in reach is what
the examples of all operations are about, so that every one of them works.
"""

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from testbed.world import HandClock, World, open_world
from tests.transports.parity.domain_examples import domain_examples
from tests.transports.parity.intention_examples import intention_example
from tests.transports.parity.key_examples import key_example
from tests.transports.parity.merge_examples import merge_examples
from tests.transports.parity.review_examples import review_examples
from vestige.cognition.text.analyser import text_hash
from vestige.core.caller import PERMISSIONS, Caller, Invocation
from vestige.core.documents import Document
from vestige.core.errors import VestigeError
from vestige.core.models import ANYTHING, EVERYTHING, NO_METADATA, Access, Edge, Memory, covers
from vestige.engine.context import Call
from vestige.engine.embedding import embed_memories
from vestige.engine.memory.suppress import sweep
from vestige.operations.memory.read import EXAMPLE_ID
from vestige.operations.registry.registry import Operation
from vestige.store.contract.changes import Add, Change, Forget, Link, Put, Revise
from vestige.store.merge.histories import DocumentHistory, MemoryHistory

Answer = dict[str, Any]
MINE = "/project/mine"
DOMAIN = "mine"
EXAMPLE_TEXT = "Ada prefers TypeScript over JavaScript for the web."
MOVED_ID = "01890000-0000-7000-8000-0000000000b1"
SUPERSEDED_ID = "01890000-0000-7000-8000-0000000000b2"
CANARY = "ca9a2700-0000-7000-8000-"
"""How the ids of everything out of reach begin."""

WORDS = (
    "canarycontent", "canaryrival", "canaryphrasing", "canarytag", "canarysource", "canaryauthor",
    "canarysession", "canaryagent", "canarythread", "canarymetadata", "canaryhistory", "canaryintention",
    "canaryinsight", "canarycodebase", "canaryfile", "canarydomain", "canaryscope", CANARY,
)  # fmt: skip
"""What no answer may tell, unless the caller said it himself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """An access, and places outside of it: (scope, domains)."""

    access: Access
    outside: tuple[tuple[str, tuple[str, ...]], ...]

    def caller(self) -> Caller:
        """Somebody who may do everything there."""
        return Caller(name="limited", permissions=frozenset(PERMISSIONS), access=self.access)


LIMITS = {
    "scopes": Limit(
        access=Access(scopes=(MINE,)),
        outside=(
            ("/", ()),
            ("/project", (DOMAIN,)),
            ("/project/mine-canaryscope", (DOMAIN,)),
            ("/user", ()),
            ("/project/canaryscope", ()),
        ),
    ),
    "domains": Limit(
        access=Access(domains=(DOMAIN,)),
        outside=((MINE, ()), (MINE, ("canarydomain",)), ("/", ("mine/canarydomain",)), ("/user", ())),
    ),
    "both": Limit(
        access=Access(scopes=(MINE,), domains=(DOMAIN, "other")),
        outside=(
            (MINE, ("canarydomain",)),
            ("/project/canaryscope", (DOMAIN,)),
            ("/", (DOMAIN,)),
            (MINE, ()),
        ),
    ),
}


@contextmanager
def reach_world(
    folder: Path,
    limit: Limit,
    *,
    canaries: bool = True,
    settings: Mapping[str, Any] = NO_METADATA,
    clock: HandClock | None = None,
) -> Iterator[World]:
    """A store with what the examples are about in reach and, if wanted, canaries out of it, 42 days later."""
    clock = clock or HandClock()
    with open_world(folder, clock=clock, **options(settings)) as world:
        for wait_days, changes in planted(world, limit, canaries):
            world.app.engine.store.commit(changes, access=EVERYTHING)
            clock.advance(days=wait_days)
        world.app.engine.store.put_key(key_example(clock.now))
        exports = folder / "exports"
        exports.mkdir(parents=True, exist_ok=True)
        (exports / "memories.jsonl").write_text('{"content": "Ada drinks tea."}\n', encoding="utf-8")
        clock.advance(days=40)
        sweep(Call(engine=world.app.engine))  # it is due, whoever comes next
        yield world


def options(settings: Mapping[str, Any] = NO_METADATA) -> Answer:
    """The settings of such a world; it is in memory unless they name a store."""
    return {"storage.backend": "memory", "memory.scope": MINE, **settings}


_CHANGES: dict[tuple[Limit, bool, datetime], tuple[tuple[int, list[Change]], ...]] = {}
"""What `planted` made: the same thousands of times."""


def planted(world: World, limit: Limit, canaries: bool) -> tuple[tuple[int, list[Change]], ...]:
    """The changes that fill it, with their vectors, and how many days to wait after each of them."""
    start = world.clock.now
    if (limit, canaries, start) not in _CHANGES:
        next_day, day_after = start + timedelta(days=1), start + timedelta(days=2)
        _CHANGES[limit, canaries, start] = (
            (1, with_vectors(world, _in_reach(start))),
            (1, with_vectors(world, _out_of_reach(limit, start, next_day) if canaries else [])),
            (0, with_vectors(world, _moved(limit, start, day_after))),
        )
    return _CHANGES[limit, canaries, start]


def asked(world: World, operation: Operation, arguments: Mapping[str, Any], caller: Caller) -> Answer:
    """What a caller is told, a refusal included."""
    try:
        return world.app.call_operation(
            Invocation(name=operation.name, arguments=arguments, caller=caller, deadline=math.inf)
        )
    except VestigeError as error:
        return {"error": error.value()}


def told_of(answer: object, arguments: Mapping[str, Any]) -> list[str]:
    """The canaries in an answer that its caller did not name himself."""
    said, heard = json.dumps(arguments), json.dumps(answer, default=str)
    return [word for word in WORDS if word in heard and word not in said]


def written_of(folder: Path) -> list[str]:
    """The canaries in files that were exported."""
    texts = [file.read_bytes().decode("utf-8", "replace") for file in folder.glob("exports/*")]
    return [word for word in WORDS if any(word in text for text in texts)]


def beyond(world: World, limit: Limit) -> Answer:
    """Everything out of reach as it is now: memories with their strength and log, links among them,
    documents."""
    store, access = world.app.engine.store, limit.access
    records = [one for batch in store.stream(ANYTHING, access=EVERYTHING) for one in batch]
    outside = {one.memory.id: one for one in records if not access.allows(one.memory)}
    lives = [life for batch in store.histories(access=EVERYTHING) for life in batch]
    return {
        "records": outside,
        "lives": {
            one.memory_id: (one.events, one.versions)
            for one in lives
            if isinstance(one, MemoryHistory)
            and (one.memory_id in outside or one.memory_id.startswith(CANARY))
        },
        "edges": store.edges(list(outside), access=EVERYTHING, among=True),
        "documents": {
            (one.kind, one.id): one.document
            for one in lives
            if isinstance(one, DocumentHistory) and one.document and _is_outside(one.document, outside, limit)
        },
    }


def _is_outside(document: Document, outside: Mapping[str, object], limit: Limit) -> bool:
    scopes = limit.access.scopes
    if scopes is not None and not any(covers(scope, document.scope) for scope in scopes):
        return True
    if not document.cites:
        return document.id.startswith(CANARY)
    # One that speaks of both sides goes with what is in reach.
    return outside.keys() >= set(document.cites)


def with_vectors(world: World, changes: list[Change]) -> list[Change]:
    """The same changes, those that add a memory with its vectors."""
    embedder = world.app.engine.embedders.get(10)
    assert embedder is not None
    texts = [change.memory for change in changes if isinstance(change, Add)]
    made = iter(embed_memories(Call(engine=world.app.engine), embedder, texts))
    return [replace(change, embedded=next(made)) if isinstance(change, Add) else change for change in changes]


def _in_reach(now: datetime) -> list[Change]:
    """What the examples are about, with a link and a codebase of ours."""
    example = _memory(EXAMPLE_ID, EXAMPLE_TEXT, now, tags=("preference", "draft"))
    pattern = _memory(
        "01890000-0000-7000-8000-0000000000b3",
        "# Pattern: Thin handlers\n\nHandlers only parse.",
        now,
        node_type="pattern",
        tags=("codebase", "codebase:shop"),
    )
    planted: list[Change] = [Add(memory=example), Add(memory=pattern)]
    examples = [*merge_examples(now), intention_example(now), *domain_examples(now), *review_examples(now)]
    for change in examples:
        planted.append(_brought_in(change))
    return planted


def _brought_in(change: Change) -> Change:
    """The same, where the caller reaches it."""
    if isinstance(change, Add | Revise):
        return replace(change, memory=replace(change.memory, scope=MINE, domains=(DOMAIN,)))
    if isinstance(change, Put):
        return replace(change, document=replace(change.document, scope=MINE))
    return change


def _moved(limit: Limit, then: datetime, now: datetime) -> list[Change]:
    """What was out of reach once, and what was superseded by something that is."""
    scope, domains = limit.outside[0]
    before = _memory(
        MOVED_ID,
        "The canaryhistory deploy was on Monday.",
        then,
        scope=scope,
        domains=domains,
        tags=("canarytag",),
        source="canarysource",
    )
    after = replace(
        before,
        content="The deploy was on Monday.",
        scope=MINE,
        domains=(DOMAIN,),
        tags=(),
        source=None,
        updated_at=now,
        revision=2,
    )
    superseded = _memory(
        SUPERSEDED_ID,
        "The deploy was on Sunday.",
        then,
        valid_until=now,
        superseded_by=f"{CANARY}000000000000",
    )
    return [Add(memory=before), Revise(memory=after, reason="moved"), Add(memory=superseded)]


def _out_of_reach(limit: Limit, then: datetime, now: datetime) -> list[Change]:
    planted: list[Add] = []
    for number, (scope, domains) in enumerate(limit.outside):
        planted += _canaries(f"{CANARY}0000000000{number}", scope, domains, then)
    first, gone = f"{CANARY}000000000000", f"{CANARY}0000000000ff"
    scope, domains = limit.outside[0]
    gone_memory = replace(_canary(gone, "Gone canarycontent.", then), scope=scope, domains=domains)
    return [
        *planted,
        Add(memory=gone_memory),
        Forget(memory_id=gone, at=now, reason="deleted"),
        *(
            Link(edge=Edge(source_id=EXAMPLE_ID, target_id=first, kind=kind, weight=0.9, created_at=then))
            for kind in ("related", "contradicts", "co_access")
        ),
        *(Put(document=one) for one in _documents(limit, planted[0].memory, then)),
    ]


def _canaries(prefix: str, scope: str, domains: tuple[str, ...], then: datetime) -> list[Add]:
    """Memories like the one in reach, in all states."""
    like = _canary(f"{prefix}0", f"{EXAMPLE_TEXT} canarycontent", then)
    rival = _canary(f"{prefix}1", "Ada never prefers TypeScript over JavaScript, canaryrival.", then)
    kept = [
        like,
        rival,
        replace(like, id=f"{prefix}2", suppression_count=1, suppressed_at=then),
        replace(like, id=f"{prefix}3", archived_at=then),
        replace(like, id=f"{prefix}4", pinned=True, thread="canarythread", position=1),
        replace(like, id=f"{prefix}5", content=EXAMPLE_TEXT),
        replace(
            like,
            id=f"{prefix}6",
            node_type="pattern",
            content="# Pattern: canarycodebase\n\nHandlers only parse.\n\nFiles: canaryfile.py",
            tags=("codebase", "codebase:canarycodebase", "codebase:shop"),
            metadata={"files": ["canaryfile.py"]},
        ),
        replace(like, id=f"{prefix}7", valid_until=then, superseded_by=EXAMPLE_ID),
        replace(
            like, id=f"{prefix}8", content="The harbour database is backed up every night. canarycontent"
        ),
    ]
    return [Add(memory=replace(one, scope=scope, domains=domains)) for one in kept]


def _documents(limit: Limit, like: Memory, then: datetime) -> list[Document]:
    scope, first = like.scope, like.id
    example = _memory(EXAMPLE_ID, EXAMPLE_TEXT, then, tags=("preference", "draft"))
    intention = {
        "description": "The canaryintention.",
        "trigger": {"type": "manual"},
        "priority": 3,
        "armed_at": then.isoformat(),
    }
    outside = "/project/canaryscope" if limit.access.scopes else scope
    return [
        _document("insight", f"{CANARY}00000000001a", then, _insight(like), scope, (first,)),
        _document(
            "insight", f"{CANARY}00000000001b", then, _insight(example, like), MINE, (EXAMPLE_ID, first)
        ),
        _document("intention", f"{CANARY}00000000001c", then, intention, outside),
        _document("rivalry", f"{CANARY}00000000001d", then, {"times": 1}, MINE, (EXAMPLE_ID, first)),
    ]


def _insight(*sources: Memory) -> Answer:
    texts = [text_hash(one) for one in sources]
    told = "canaryinsight"
    return {"type": "Synthesis", "insight": told, "confidence": 0.9, "novelty": 0.9, "texts": texts}


def _document(
    kind: str, name: str, now: datetime, body: Answer, scope: str, cites: tuple[str, ...] = ()
) -> Document:
    return Document(kind=kind, id=name, body=body, scope=scope, cites=cites, created_at=now, updated_at=now)


def _memory(memory_id: str, content: str, now: datetime, **fields: Any) -> Memory:
    told = {"scope": MINE, "domains": (DOMAIN,), **fields}
    return Memory(id=memory_id, content=content, created_at=now, updated_at=now, **told)


def _canary(memory_id: str, content: str, now: datetime) -> Memory:
    return Memory(
        id=memory_id,
        content=content,
        created_at=now,
        updated_at=now,
        tags=("canarytag", "preference"),
        source="canarysource",
        author="canaryauthor",
        session_id="canarysession",
        agent_id="canaryagent",
        phrasings=("canaryphrasing",),
        metadata={"note": "canarymetadata"},
    )
