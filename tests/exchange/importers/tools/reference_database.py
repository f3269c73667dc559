"""Databases of the reference system, made table by table for any of its schemas, with awkward rows."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
"""When tests import: the start of the world's clock."""

NODE_V1 = (
    "id TEXT PRIMARY KEY, content TEXT NOT NULL, node_type TEXT NOT NULL DEFAULT 'fact', created_at TEXT,"
    " updated_at TEXT, last_accessed TEXT, stability REAL DEFAULT 1.0, difficulty REAL DEFAULT 5.0,"
    " reps INTEGER DEFAULT 0, lapses INTEGER DEFAULT 0, learning_state TEXT DEFAULT 'new',"
    " storage_strength REAL DEFAULT 1.0, retrieval_strength REAL DEFAULT 1.0,"
    " retention_strength REAL DEFAULT 1.0, sentiment_score REAL DEFAULT 0.0,"
    " sentiment_magnitude REAL DEFAULT 0.0, next_review TEXT, scheduled_days INTEGER DEFAULT 0,"
    " source TEXT, tags TEXT DEFAULT '[]', has_embedding INTEGER DEFAULT 0, embedding_model TEXT"
)
STEPS: dict[int, tuple[str, ...]] = {
    1: (
        f"CREATE TABLE knowledge_nodes ({NODE_V1})",
        "CREATE TABLE node_embeddings (node_id TEXT PRIMARY KEY REFERENCES knowledge_nodes(id)"
        " ON DELETE CASCADE, embedding BLOB NOT NULL, dimensions INTEGER DEFAULT 768, model TEXT,"
        " created_at TEXT)",
        "CREATE VIRTUAL TABLE knowledge_fts USING fts5(id, content, tags, content='knowledge_nodes')",
        "CREATE TABLE schema_version (version INTEGER PRIMARY KEY, applied_at TEXT)",
    ),
    2: (
        "ALTER TABLE knowledge_nodes ADD COLUMN valid_from TEXT",
        "ALTER TABLE knowledge_nodes ADD COLUMN valid_until TEXT",
    ),
    3: (
        "CREATE TABLE intentions (id TEXT PRIMARY KEY, content TEXT, trigger_type TEXT, trigger_data TEXT,"
        " priority INTEGER DEFAULT 2, status TEXT DEFAULT 'active', created_at TEXT, deadline TEXT,"
        " fulfilled_at TEXT, reminder_count INTEGER DEFAULT 0, last_reminded_at TEXT, notes TEXT,"
        " tags TEXT DEFAULT '[]', related_memories TEXT DEFAULT '[]', snoozed_until TEXT, source_type TEXT,"
        " source_data TEXT)",
        "CREATE TABLE insights (id TEXT PRIMARY KEY, insight TEXT, source_memories TEXT, confidence REAL,"
        " novelty_score REAL, insight_type TEXT, generated_at TEXT, tags TEXT DEFAULT '[]', feedback TEXT,"
        " applied_count INTEGER DEFAULT 0)",
        "CREATE TABLE memory_connections (source_id TEXT, target_id TEXT, strength REAL, link_type TEXT,"
        " created_at TEXT, last_activated TEXT, activation_count INTEGER DEFAULT 0,"
        " PRIMARY KEY (source_id, target_id))",
        "CREATE TABLE memory_states (memory_id TEXT PRIMARY KEY, state TEXT, last_access TEXT,"
        " access_count INTEGER, state_entered_at TEXT, suppression_until TEXT, suppressed_by TEXT)",
        "CREATE TABLE fsrs_cards (memory_id TEXT PRIMARY KEY, stability REAL, difficulty REAL)",
        "CREATE TABLE consolidation_history (id INTEGER PRIMARY KEY, completed_at TEXT, duration_ms INTEGER)",
        "CREATE TABLE state_transitions (id INTEGER PRIMARY KEY, memory_id TEXT, from_state TEXT,"
        " to_state TEXT, reason_type TEXT, reason_data TEXT, timestamp TEXT)",
    ),
    4: (
        "CREATE TABLE knowledge_edges (id TEXT PRIMARY KEY, source TEXT, target TEXT)",
        "CREATE TABLE compressed_memories (id TEXT PRIMARY KEY, content TEXT)",
        "CREATE TABLE sessions (id TEXT PRIMARY KEY, user_id TEXT, started_at TEXT, ended_at TEXT,"
        " context TEXT, memory_count INTEGER)",
        "ALTER TABLE node_embeddings ADD COLUMN version INTEGER",
        "ALTER TABLE knowledge_nodes ADD COLUMN scope TEXT DEFAULT 'user'",
        "ALTER TABLE knowledge_nodes ADD COLUMN memory_system TEXT DEFAULT 'semantic'",
    ),
    5: (
        "CREATE TABLE memory_access_log (id INTEGER PRIMARY KEY, node_id TEXT, access_type TEXT,"
        " accessed_at TEXT)",
        "ALTER TABLE knowledge_nodes ADD COLUMN activation REAL DEFAULT 0.0",
        "CREATE TABLE fsrs_config (key TEXT PRIMARY KEY, value TEXT, updated_at TEXT)",
        "INSERT INTO fsrs_config VALUES ('w20', '0.2', '2026-01-01T00:00:00Z')",
    ),
    6: (
        "CREATE TABLE dream_history (id INTEGER PRIMARY KEY, dreamed_at TEXT, duration_ms INTEGER,"
        " memories_replayed INTEGER)",
    ),
    7: (),
    8: (
        "ALTER TABLE knowledge_nodes ADD COLUMN waking_tag INTEGER DEFAULT 0",
        "ALTER TABLE knowledge_nodes ADD COLUMN waking_tag_at TEXT",
        "ALTER TABLE knowledge_nodes ADD COLUMN utility_score REAL DEFAULT 0.0",
        "ALTER TABLE knowledge_nodes ADD COLUMN times_retrieved INTEGER DEFAULT 0",
        "ALTER TABLE knowledge_nodes ADD COLUMN times_useful INTEGER DEFAULT 0",
        "CREATE TABLE retention_snapshots (id INTEGER PRIMARY KEY, snapshot_at TEXT, avg_retention REAL)",
    ),
    9: (
        "ALTER TABLE knowledge_nodes ADD COLUMN emotional_valence REAL DEFAULT 0.0",
        "ALTER TABLE knowledge_nodes ADD COLUMN flashbulb INTEGER DEFAULT 0",
        "ALTER TABLE knowledge_nodes ADD COLUMN temporal_level TEXT",
        "ALTER TABLE knowledge_nodes ADD COLUMN summary_parent_id TEXT",
    ),
    10: (
        "ALTER TABLE knowledge_nodes ADD COLUMN suppression_count INTEGER DEFAULT 0",
        "ALTER TABLE knowledge_nodes ADD COLUMN suppressed_at TEXT",
    ),
    11: ("DROP TABLE knowledge_edges", "DROP TABLE compressed_memories"),
}  # fmt: skip
"""What each schema adds, by the public description of the system."""

Row = Mapping[str, object]


def build(path: Path, version: int, rows: Mapping[str, Sequence[Row]]) -> None:
    """A database of a schema with these rows; columns that the schema lacks are left out."""
    with closing(sqlite3.connect(path)) as db:
        for step in range(1, version + 1):
            for statement in STEPS[step]:
                db.execute(statement)
            db.execute("INSERT INTO schema_version VALUES (?, ?)", (step, "2026-01-01T00:00:00Z"))
        for table, added in rows.items():
            known = {column[1] for column in db.execute(f"PRAGMA table_info({table})")}
            for row in added if known else ():
                given = {name: value for name, value in row.items() if name in known}
                marks = ", ".join("?" * len(given))
                db.execute(
                    f"INSERT INTO {table} ({', '.join(given)}) VALUES ({marks})", tuple(given.values())
                )
        db.commit()


def days_ago(days: float) -> str:
    """A time as the reference system writes it, with more digits than a microsecond has."""
    return (NOW - timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%S.%f") + "789+00:00"


def node(name: str, content: object, **fields: object) -> Row:
    """A row of the memories."""
    made = days_ago(30)
    return {"id": name, "content": content, "created_at": made, "updated_at": made, "last_accessed": made,
            "next_review": days_ago(-3), **fields}  # fmt: skip


TEA = "11111111-1111-4111-8111-111111111111"
PORT = "22222222-2222-4222-8222-222222222222"
OLD = "33333333-3333-4333-8333-333333333333"
HUGE = "44444444-4444-4444-8444-444444444444"

NODES: tuple[Row, ...] = (
    node(
        TEA, "Ada drinks green tea in the morning.", node_type="preference", updated_at=days_ago(20),
        last_accessed=days_ago(2), stability=12.5, difficulty=4.25, reps=3, lapses=1,
        learning_state="review", storage_strength=2.5, retrieval_strength=0.61, retention_strength=0.502,
        sentiment_score=0.4, sentiment_magnitude=0.7, scheduled_days=5, source="chat",
        tags='["drink", "ada"]', valid_from=days_ago(40), valid_until=days_ago(-300), times_retrieved=9,
        times_useful=4, utility_score=0.44, emotional_valence=0.3, flashbulb=1, temporal_level="day",
        waking_tag=1, waking_tag_at=days_ago(1), activation=1.5,
    ),
    node(
        PORT, "The service listens on port 8080.", suppression_count=2, suppressed_at=days_ago(1),
        scope="project", memory_system="episodic", learning_state="relearning", stability=0.4,
        retrieval_strength=0.95,
    ),
    node(OLD, "The service listened on port 80 — “before”.", learning_state="learning",
         valid_until=days_ago(30)),
    node(HUGE, "All of it. " + "x y " * 25_000, summary_parent_id=TEA),
)  # fmt: skip
AWKWARD: tuple[Row, ...] = (
    node("future", "Told from the future.", created_at="2099-01-01T00:00:00Z",
         last_accessed="2099-01-01T00:00:00Z"),
    node("negative", "Its stability is negative.", stability=-5.0, difficulty=99.0, reps=-1),
    node("infinite", "Its stability has no end.", stability=float("inf"), retrieval_strength=7.0),
    node("no time", "Its times are words.", created_at="yesterday", last_accessed="soon", next_review="?"),
    node("tags", "Its tags are broken.", tags="[not json"),
    node("tagged object", "Its tags are no list.", tags='{not json, either'),
    node("backwards", "It ended before it began.", valid_from=days_ago(1), valid_until=days_ago(2)),
    node("empty", ""),
    node("blank", "   "),
    node("blob", b"\x00\x01"),
    node("nul", "a\x00b"),
    node("number", 42, content_type="x"),
)  # fmt: skip
LEFT = ("empty", "blank", "blob", "nul")
"""Rows that are no memory."""

EDGES: tuple[Row, ...] = (
    {"source_id": TEA, "target_id": PORT, "strength": 0.8, "link_type": "semantic",
     "created_at": days_ago(700), "activation_count": 3, "last_activated": days_ago(1)},
    {"source_id": PORT, "target_id": OLD, "strength": 0.5, "link_type": "causal", "created_at": days_ago(9)},
    {"source_id": OLD, "target_id": TEA, "strength": 0.4, "link_type": "shared_concepts",
     "created_at": days_ago(9)},
    {"source_id": HUGE, "target_id": TEA, "strength": 0.3, "link_type": "cross_reference",
     "created_at": days_ago(9)},
    {"source_id": TEA, "target_id": TEA, "strength": 0.3, "link_type": "semantic"},
    {"source_id": TEA, "target_id": "nowhere", "strength": 0.3, "link_type": "semantic"},
    {"source_id": TEA, "target_id": HUGE, "strength": None, "link_type": "semantic"},
)  # fmt: skip
INTENTIONS: tuple[Row, ...] = (
    {"id": "i-time", "content": "Water the plants", "trigger_type": "time", "priority": 3,
     "trigger_data": json.dumps({"type": "time", "at": "2026-03-05T10:00:00Z"}), "created_at": days_ago(3),
     "deadline": "2026-03-06T10:00:00Z", "notes": "The fern first", "tags": '["home"]',
     "related_memories": json.dumps([TEA])},
    {"id": "i-minutes", "content": "Look at the build", "trigger_type": "time",
     "trigger_data": json.dumps({"type": "time", "inMinutes": 90}), "created_at": days_ago(0)},
    {"id": "i-context", "content": "Rename the parser", "trigger_type": "context", "priority": 4,
     "trigger_data": json.dumps({"codebase": "vestige", "filePattern": "parser"}),
     "created_at": days_ago(3)},
    {"id": "i-event", "content": "Tell Grace", "trigger_type": "event", "created_at": days_ago(3),
     "trigger_data": json.dumps({"condition": "release published"})},
    {"id": "i-recurring", "content": "Weekly report", "trigger_type": "recurring",
     "trigger_data": json.dumps({"every": "weekly"}), "created_at": days_ago(3)},
    {"id": "i-snoozed", "content": "Call back", "trigger_type": "manual", "trigger_data": "{}",
     "status": "snoozed", "snoozed_until": "2026-03-02T09:00:00Z", "created_at": days_ago(3)},
    {"id": "i-done", "content": "Buy tea", "trigger_type": "manual", "trigger_data": "{}",
     "status": "fulfilled", "fulfilled_at": days_ago(4), "created_at": days_ago(6)},
    {"id": "i-triggered", "content": "Pay rent", "trigger_type": "time", "status": "triggered",
     "trigger_data": json.dumps({"at": days_ago(2)}), "created_at": days_ago(6), "reminder_count": 2,
     "last_reminded_at": days_ago(1)},
    {"id": "i-old", "content": "Long done", "trigger_type": "manual", "status": "fulfilled",
     "fulfilled_at": days_ago(90), "created_at": days_ago(100)},
    {"id": "i-expired", "content": "Too late", "trigger_type": "manual", "status": "expired",
     "created_at": days_ago(5)},
    {"id": "i-broken", "content": None, "trigger_type": "manual", "created_at": days_ago(5)},
)  # fmt: skip
INSIGHTS: tuple[Row, ...] = (
    {"id": "s-1", "insight": "Tea goes with all of it.", "confidence": 0.7, "novelty_score": 0.6,
     "source_memories": json.dumps([TEA, HUGE]), "insight_type": "Generalization",
     "generated_at": days_ago(2), "feedback": "helpful", "applied_count": 2},
    {"id": "s-2", "insight": "Of something unknown.", "source_memories": json.dumps(["nowhere"]),
     "confidence": 0.7, "novelty_score": 0.6, "insight_type": "Synthesis", "generated_at": days_ago(2)},
    {"id": "s-3", "insight": "Of nothing.", "source_memories": "[]", "confidence": 0.7},
)  # fmt: skip
ROWS: dict[str, Sequence[Row]] = {
    "knowledge_nodes": (*NODES, *AWKWARD),
    "memory_connections": EDGES,
    "intentions": INTENTIONS,
    "insights": INSIGHTS,
    "node_embeddings": ({"node_id": TEA, "embedding": b"\0" * 1024, "model": "nomic"},),
    "memory_states": ({"memory_id": TEA, "state": "active"},),
    "state_transitions": ({"memory_id": TEA, "from_state": "active", "to_state": "dormant"},),
    "memory_access_log": tuple({"node_id": TEA, "access_type": "search_hit"} for _ in range(5)),
    "consolidation_history": ({"completed_at": days_ago(1), "duration_ms": 3},),
    "dream_history": ({"dreamed_at": days_ago(1)},),
    "retention_snapshots": ({"avg_retention": 0.8},),
    "sessions": ({"id": "one"},),
    "knowledge_edges": ({"id": "dead"},),
}  # fmt: skip
