"""What a limited caller finds does not depend on memories outside its access: no score and no count does."""

from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import timedelta

import numpy as np
import pytest

from tests.store.support.generators import (
    SIGNATURE,
    T0,
    Dice,
    NewStore,
    a_memory,
    add,
    axis,
    embedded,
    generated_access,
    generated_memory,
    generated_tokens,
    generated_turn,
    memory_id,
    revise,
)
from vestige.cognition.ranking.bm25 import MOST_TERMS
from vestige.cognition.text.analyser import query_terms
from vestige.core.candidates import CandidatePool
from vestige.core.models import ANYTHING, EVERYTHING, Access, Filter, Memory
from vestige.store.contract.changes import Add
from vestige.store.contract.search import Probe
from vestige.store.contract.store import MemoryStore
from vestige.store.sqlite.search import words

LATER = T0 + timedelta(days=450)
MINE = Access(scopes=("/mine",))


def described(pool: CandidatePool) -> dict[str, object]:
    """A pool as values that compare by every bit. The numbers of threads only say which are the same."""
    told = asdict(pool)
    threads = told["traits"].pop("thread").tolist()
    told["threads"] = [threads.index(one) if one >= 0 else -1 for one in threads]
    sketch = told.pop("sketch")
    return {
        name: value.tobytes() if isinstance(value, np.ndarray) and value.dtype != object else repr(value)
        for part in (told, told.pop("traits"), sketch or {})
        for name, value in part.items()
    }


def answers(store: MemoryStore, dice: Dice, access: Access) -> Iterator[object]:
    """What a store says to the same questions, within an access."""
    for _ in range(6):
        terms = (*query_terms(dice.text(6)), *dice.some(("z*", "co*", "s*"), 2))
        known_at = dice.moment() if dice.often(0.4) else None
        where = Filter(known_at=known_at, scope=dice.maybe(("/project", "/user/ada"), 0.2), archived=None)
        probe = Probe(
            terms=terms,
            date_terms=terms[:1],
            literals=dice.some(("zinc", "paper.pdf", "file.py", "iron"), 2),
            vector=dice.unit(),
            signature=SIGNATURE,
            where=where,
            per_arm=dice.one((2, 50)),
            postings=dice.one((8, 40, 60_000)),
        )
        yield described(store.gather(probe, access=access))
        yield store.lexical(terms, where, access=access, limit=5, postings=probe.postings)
        yield store.reworded(terms, where, access=access, limit=5)


@pytest.mark.parametrize("seed", range(4))
def test_a_limited_caller_finds_the_same_whatever_is_outside_its_access(
    new_store: NewStore, seed: int
) -> None:
    dice = Dice(seed)
    access = replace(generated_access(dice), scopes=("/project",)) if seed % 2 else Access(domains=("work",))
    every = [
        (generated_turn if dice.often(0.5) else generated_memory)(dice, memory_id(number))
        for number in range(120)
    ]
    changes = [
        Add(memory=one, embedded=embedded(one, dice.unit(), tokens=[generated_tokens(dice)])) for one in every
    ]
    revised = [replace(one, content=dice.text(), updated_at=LATER, revision=2) for one in every[::9]]
    seen: list[list[object]] = []
    for keep in (lambda one: True, access.allows):
        store = new_store()
        store.commit([one for one in changes if keep(one.memory)], access=EVERYTHING)
        for one in filter(keep, revised):
            revise(store, one)
        seen.append(list(answers(store, Dice(seed + 100), access)))
    assert seen[0] == seen[1]


def some(scope: str, *texts: str) -> list[Memory]:
    return [replace(a_memory(f"{scope}/{at}", text), scope=scope) for at, text in enumerate(texts)]


@pytest.mark.parametrize("postings", [None, 6])
def test_words_are_counted_in_what_the_caller_may_read(store: MemoryStore, postings: int | None) -> None:
    """With the budget of 6, the words of the caller's own memories fit and those of the store do not."""
    add(store, *some("/mine", "zinc iron", "zinc"), *some("/theirs", "zinc nickel", "iron", "cobalt"))
    asked = ("zinc", "iron", "nickel", "gold", "ni*")
    pool = store.gather(Probe(terms=asked, per_arm=9, postings=postings), access=MINE)
    assert pool.frequencies == {"zinc": 2, "iron": 1, "nickel": 0, "gold": 0, "ni*": 0}
    assert pool.memories == 2
    found = store.reworded(asked, ANYTHING, access=MINE, limit=9).statistics
    assert (found.memories, found.words) == (2, 3)
    assert found.frequencies == pool.frequencies
    assert store.gather(Probe(terms=("zinc",), per_arm=9), access=EVERYTHING).frequencies == {"zinc": 3}


def test_the_rarest_terms_are_those_that_are_rare_in_what_the_caller_may_read(store: MemoryStore) -> None:
    """Elsewhere `common` is the rare word; a budget for one of the two takes the one that is rare here."""
    mine = some("/mine", *["common"] * 5, "rare")
    add(store, *mine, *some("/theirs", *["rare"] * 50))
    found = store.lexical(("common", "rare"), ANYTHING, access=MINE, limit=9, postings=1)
    assert [one.memory_id for one in found] == ["/mine/5"]
    terms = [f"word{chr(97 + number // 26)}{chr(97 + number % 26)}q" for number in range(MOST_TERMS)]
    several = (*query_terms(" ".join(terms)), "common", "rare")
    assert {one.memory_id for one in store.lexical(several, ANYTHING, access=MINE, limit=9)} == {
        one.id for one in mine
    }


def test_a_literal_is_common_only_by_what_the_caller_may_read(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(words, "EVERYWHERE", 3)
    monkeypatch.setattr("vestige.store.postgres.search.words.EVERYWHERE", 3)
    add(store, *some("/mine", "see ERR_42"), *some("/theirs", *["see ERR_42"] * 5))
    assert store.gather(Probe(literals=("ERR_42",), per_arm=9), access=MINE).ids == ("/mine/0",)


def test_the_nearest_memories_are_counted_among_those_the_caller_may_read(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("store.sql.search.pool", "store.inmemory.gather"):
        monkeypatch.setattr(f"vestige.{module}.NEARBY", 3)
    every = [*some("/mine", "zinc", "iron"), *some("/theirs", *["zinc"] * 5)]
    changes = [Add(memory=one, embedded=embedded(one, axis(0))) for one in every]
    store.commit(changes, access=EVERYTHING)
    pool = store.gather(Probe(terms=("zinc",), vector=axis(0), signature=SIGNATURE, per_arm=9), access=MINE)
    assert (pool.memories, pool.frequencies) == (2, {"zinc": 1})
