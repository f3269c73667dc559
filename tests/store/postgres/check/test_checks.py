"""What a store in PostgreSQL finds missing in its schema, and what it makes again."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from testbed.postgres_server import Server
from tests.store.postgres.test_opening import NewRole, as_role, empty
from tests.store.support.generators import T0, a_memory, add
from tests.store.support.postgres_stores import SCHEMA, open_at, outside, query
from vestige.core.errors import StoreUnavailable
from vestige.store.postgres.check.schema import OBJECTS, expected, objects
from vestige.store.postgres.server.address import ServerAddress
from vestige.store.postgres.status import status

__all__ = ["as_role", "empty"]
pytestmark = pytest.mark.slow  # starts a server

DERIVED = {
    "the index edges_by_target": "DROP INDEX edges_by_target",
    "the index profiles_active": "DROP INDEX profiles_active",
    "the view knowledge_nodes": "DROP VIEW knowledge_nodes",
}
LOST = {
    "the foreign key edges_source_fkey": "ALTER TABLE edges DROP CONSTRAINT edges_source_fkey",
    "the primary key tombstones_pkey": "ALTER TABLE tombstones DROP CONSTRAINT tombstones_pkey",
    "the check curve_one_check": "ALTER TABLE curve DROP CONSTRAINT curve_one_check",
    "the column memories.author": "ALTER TABLE memories DROP COLUMN author CASCADE",
    "the table claim_memories": "DROP TABLE claim_memories",
}
CHANGED_DERIVED = {
    "the index edges_by_target": "DROP INDEX edges_by_target; CREATE INDEX edges_by_target ON edges (kind)",
    "the index profiles_active": "DROP INDEX profiles_active;"
    " CREATE INDEX profiles_active ON profiles (active)",
    "the view review_events": "DROP VIEW review_events; CREATE VIEW review_events AS SELECT 1 AS id",
}
CHANGED = {
    "the column edges.weight": "ALTER TABLE edges ALTER weight DROP NOT NULL",
    "the column curve.w20": "ALTER TABLE curve ALTER w20 SET DEFAULT 1",
    "the column claims.answer": "ALTER TABLE claims ALTER answer SET STATISTICS 100",
    "the foreign key edges_source_fkey": "ALTER TABLE edges DROP CONSTRAINT edges_source_fkey,"
    " ADD FOREIGN KEY (source) REFERENCES memories",
}


@pytest.fixture
def url(postgres_server: Server) -> Iterator[str]:
    """A database whose schema may be spoilt."""
    made = postgres_server.new_database()
    with closing(open_at(made)):
        pass
    yield made
    postgres_server.drop(made)


def test_temporary_tables_have_the_definitions_of_a_migrated_schema(url: str) -> None:
    with outside(url) as db:
        planned = expected(db)
        db.execute("SET search_path TO public")
        held = objects(db.execute(OBJECTS.encode()))
        left = db.execute("SELECT count(*) FROM pg_class WHERE relpersistence = 't'").fetchone()
    assert planned.names_only is None
    of_records = {key for key, one in held.items() if "schema_migrations" in (one.name, one.table)}
    assert planned.objects == {key: one for key, one in held.items() if key not in of_records}
    assert left == (0,)


@pytest.mark.parametrize("what", DERIVED)
def test_what_holds_nothing_of_its_own_is_missed_and_made_again(url: str, what: str) -> None:
    with closing(open_at(url)) as store:
        add(store, a_memory("m1"))
        assert status(ServerAddress(url=url, schema=SCHEMA)).missing == ()
        query(url, DERIVED[what])
        (found,) = store.examine(T0.replace(year=2030))
        assert (found.check, found.severity, found.repair) == ("schema", "warning", "schema")
        assert what in found.message
        assert status(ServerAddress(url=url, schema=SCHEMA)).missing == (what,)
        store.repair("schema", T0)
        assert store.examine(T0.replace(year=2030)) == []


@pytest.mark.parametrize("what", LOST)
def test_what_keeps_rows_or_rules_is_missed_and_not_made_up(url: str, what: str) -> None:
    with closing(open_at(url)) as store:
        query(url, LOST[what])
        found = store.examine(T0.replace(year=2030))
        told = [(one.severity, one.repair) for one in found if what in one.message]
        assert told == [("broken", None)]
        assert what in status(ServerAddress(url=url, schema=SCHEMA)).missing


@pytest.mark.parametrize("what", CHANGED_DERIVED)
def test_an_index_or_view_with_another_definition_is_replaced(url: str, what: str) -> None:
    with closing(open_at(url)) as store:
        add(store, a_memory("m1"))
        query(url, CHANGED_DERIVED[what])
        (found,) = store.examine(T0.replace(year=2030))
        assert (found.check, found.severity, found.repair) == ("schema", "warning", "schema")
        assert f"another definition than the migrations of {what}" in found.message
        store.repair("schema", T0)
        assert store.examine(T0.replace(year=2030)) == []


@pytest.mark.parametrize("what", CHANGED)
def test_a_column_or_constraint_with_another_definition_is_reported(url: str, what: str) -> None:
    with closing(open_at(url)) as store:
        query(url, CHANGED[what])
        (found,) = store.examine(T0.replace(year=2030))
    assert (found.check, found.severity, found.repair) == ("schema", "broken", None)
    assert f"another definition than the migrations of {what}" in found.message


def test_without_the_right_to_create_temporary_tables_only_names_are_compared(
    empty: str, as_role: NewRole
) -> None:
    database = query(empty, "SELECT current_database()")[0][0]
    query(empty, "CREATE EXTENSION vector")
    query(empty, f'REVOKE TEMPORARY ON DATABASE "{database}" FROM PUBLIC')
    user = as_role(empty, f'GRANT CREATE ON DATABASE "{database}" TO {{role}}')
    with closing(open_at(user, schema="ours")) as store:
        (found,) = store.examine(T0.replace(year=2030))
        assert (found.check, found.severity, found.repair) == ("schema", "warning", None)
        assert "Only names of tables, indexes and views were compared: permission denied" in found.message
        query(empty, "DROP INDEX ours.edges_by_target")
        assert "the index edges_by_target" in store.examine(T0.replace(year=2030))[0].message
        store.repair("schema", T0)
        assert store.examine(T0.replace(year=2030)) == [found]


def test_examining_waits_for_no_writer_and_leaves_no_lock(url: str) -> None:
    with closing(open_at(url, busy_seconds=0.2)) as store, outside(url) as other, other.transaction():
        other.execute("INSERT INTO tombstones VALUES ('x', '/', '2026-01-01T00:00:00.000000+00:00')")
        other.execute("LOCK TABLE memories, events, edges IN ROW EXCLUSIVE MODE")
        assert store.examine(T0.replace(year=2030)) == []


def test_who_meets_a_table_that_is_missing_is_told_where_to_look(url: str) -> None:
    with closing(open_at(url)) as store:
        query(url, "DROP TABLE tombstones")
        with pytest.raises(StoreUnavailable) as caught:
            add(store, a_memory("m1"))
    assert "vestige db status" in (caught.value.hint or "")
