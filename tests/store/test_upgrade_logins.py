"""A store from before logins could be ended in it can do so after its upgrade, and still has its keys."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.store.sqlite.test_migrations import old_store
from tests.store.support import postgres_stores, sqlite_files
from tests.store.support.canonical import assert_whole, canonical
from tests.store.support.generators import HOUR, T0, a_key
from vestige.store.contract.store import MemoryStore
from vestige.store.sql.filters import moment_text
from vestige.store.sqlite.opening import open_file, schema

BEFORE = [step for step in schema() if step.version < 8]
KEY = "INSERT INTO api_keys (id, hash, label, permissions, created_at) VALUES (?, ?, ?, '[\"read\"]', ?)"


def ends_logins(store: MemoryStore) -> bool:
    assert store.key_of_login("k", "one") == a_key("k")
    store.end_login("one", T0 + HOUR, forgetting=T0)
    return store.key_of_login("k", "one") is None and store.examine(T0.replace(year=2030)) == []


def test_a_file_of_before(tmp_path: Path) -> None:
    path = old_store(tmp_path, "schema5")
    open_file(path, sqlite_files.around(), migrations=BEFORE)[0].close()
    key = a_key("k")
    with closing(sqlite3.connect(path)) as db:
        db.execute(KEY, (key.id, key.hash, key.label, moment_text(key.created_at)))
        db.commit()
    before = canonical(path)
    with closing(sqlite_files.open_at(path, prefix="later")) as store:
        assert ends_logins(store)
    assert canonical(path, like=before) == before
    assert_whole(path)


@pytest.mark.slow  # starts a server
def test_a_database_of_before(postgres_url: str) -> None:
    with closing(postgres_stores.open_at(postgres_url)) as store:
        store.put_key(a_key("k"))
    for undo in (
        "DROP TABLE neighbours, neighbours_version",
        "DROP TABLE ended_logins",
        "DROP VIEW embedding_model",
        "ALTER TABLE profiles DROP created_at",
        "ALTER TABLE memories DROP origin",
        "DELETE FROM schema_migrations WHERE version >= 4",
    ):
        postgres_stores.query(postgres_url, undo)
    with closing(postgres_stores.open_at(postgres_url)) as store:
        assert ends_logins(store)
