"""That what was deleted can be read nowhere in the database by SQL: neither in a table nor in what the server
notes of its columns to plan with."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from tests.store.support.generators import (
    T0,
    a_memory,
    add,
    add_with,
    axis,
    between,
    embedded,
    forget,
    link,
    revise,
    some_tokens,
)
from tests.store.support.postgres_stores import open_at, query
from vestige.core.documents import Document
from vestige.core.models import EVERYTHING
from vestige.store.contract.changes import Claim, Put
from vestige.store.postgres.search import vectors
from vestige.store.postgres.store import PostgresStore

pytestmark = pytest.mark.slow  # starts a server

TEXT = ("xylophon", "marimba", "percuss", "celesta", "glockenspiel")
"""Words of the memory that is deleted: its content, a phrasing, a label, what it was before, and what is said
of it elsewhere."""
TABLES = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
NOTED = """SELECT tablename || '.' || attname FROM pg_stats s
WHERE schemaname = 'public' AND s::text ILIKE %s ORDER BY 1"""


@pytest.fixture
def store(postgres_url: str) -> Iterator[PostgresStore]:
    with closing(open_at(postgres_url)) as opened:
        yield opened


def fill(store: PostgresStore) -> None:
    """Two memories with these words in every place there is, and others beside them."""
    add(store, *(a_memory(f"other{number}", f"copper {number}") for number in range(20)))
    for name in ("a", "b"):
        label = f"percussion {name}"
        memory = replace(
            a_memory(name, f"celesta {name}"),
            phrasings=(f"marimba {name}",),
            node_type=label,
            source=label,
            author=label,
            agent_id=label,
            session_id=label,
            thread=label,
            tags=(label,),
            domains=(label,),
            domain_scores={label: 1.0},
            metadata={label: label},
        )
        add(store, memory)
        memory = replace(memory, content=f"xylophone {name}", revision=2)
        revise(store, memory)
        store.put_vectors({name: embedded(memory, axis(0), tokens=[some_tokens(1)])})
        link(store, name, "other1")
        body = {"said": f"glockenspiel {name}", "terms": {"glockenspiel": 1}}
        document = Document(kind="note", id=name, body=body, cites=(name,), created_at=T0, updated_at=T0)
        claim = Claim(key=name, digest="d", answer=memory.content, at=T0)
        store.commit([Put(document=document)], access=EVERYTHING, claim=claim)
    store.notify("other", ['{"query": "glockenspiel", "quotes": ["a"]}'])


def tables_with(url: str, word: str) -> list[str]:
    tables = [name for (name,) in query(url, TABLES)]
    return sorted(
        name for name in tables if query(url, f"SELECT 1 FROM {name} t WHERE t::text ILIKE %s", f"%{word}%")
    )


def test_no_table_holds_text_of_a_deleted_memory(store: PostgresStore, postgres_url: str) -> None:
    fill(store)
    before = {word: tables_with(postgres_url, word) for word in TEXT}
    assert before == {
        "xylophon": ["claims", "memories", "postings", "terms", "words"],
        "marimba": ["memories", "postings", "revisions", "terms", "words"],
        "percuss": ["memories", "memory_tags", "postings", "revisions", "terms", "words"],
        "celesta": ["revisions"],
        "glockenspiel": ["documents", "notices"],
    }
    forget(store, "a")
    forget(store, "b")
    assert {word: tables_with(postgres_url, word) for word in TEXT} == {word: [] for word in TEXT}


def test_the_server_notes_no_text_to_plan_with(store: PostgresStore, postgres_url: str) -> None:
    fill(store)
    query(postgres_url, "ANALYZE")
    assert query(postgres_url, NOTED, "%memories%") != []
    assert {word: query(postgres_url, NOTED, f"%{word}%") for word in TEXT} == {word: [] for word in TEXT}


NOTED_BEFORE = """
ALTER TABLE memories ALTER text_hash SET STATISTICS -1;
ALTER TABLE vectors ALTER text_hash SET STATISTICS -1;
DELETE FROM schema_migrations WHERE name = 'statistics'"""


def test_the_hashes_of_texts_that_an_earlier_schema_noted_are_forgotten(
    store: PostgresStore, postgres_url: str
) -> None:
    fill(store)
    ((of_text,),) = query(postgres_url, "SELECT text_hash FROM memories WHERE id = 'a'")
    query(postgres_url, NOTED_BEFORE)
    query(postgres_url, "ANALYZE")
    assert query(postgres_url, NOTED, f"%{of_text}%") == [("memories.text_hash",), ("vectors.text_hash",)]
    with closing(open_at(postgres_url)):
        assert query(postgres_url, NOTED, f"%{of_text}%") == []
        query(postgres_url, "ANALYZE")
        assert query(postgres_url, NOTED, f"%{of_text}%") == []


def test_the_server_notes_no_vectors_to_plan_with(
    store: PostgresStore, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "EXACT_ROWS", 10)
    for number in range(12):
        add_with(store, a_memory(f"m{number}"), between(0, 1, number / 12))
    assert store.rebuild_index().indexed == 12
    query(postgres_url, "ANALYZE")
    noted = {name for (name,) in query(postgres_url, NOTED, "%vectors%")}
    assert "vectors.key" in noted
    assert "vectors.vector" not in noted
    assert not [name for name in noted if name.startswith("vectors_near_")]
