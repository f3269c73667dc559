"""What a store in PostgreSQL finds missing in its schema, and what it makes again."""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing

import pytest

from testbed.postgres_server import Server
from tests.store.support.generators import T0, a_memory, add
from tests.store.support.postgres_stores import SCHEMA, open_at, query
from vestige.core.errors import StoreUnavailable
from vestige.store.postgres.check.schema import HELD_RULES, NAMES, plan, planned_rules
from vestige.store.postgres.server.address import ServerAddress
from vestige.store.postgres.status import status

pytestmark = pytest.mark.slow  # starts a server

DERIVED = {
    "the index edges_by_target": "DROP INDEX edges_by_target",
    "the index profiles_active": "DROP INDEX profiles_active",
    "the view knowledge_nodes": "DROP VIEW knowledge_nodes",
}
LOST = {
    "the foreign key of the table edges": "ALTER TABLE edges DROP CONSTRAINT edges_source_fkey",
    "the primary key of the table tombstones": "ALTER TABLE tombstones DROP CONSTRAINT tombstones_pkey",
    "the table claim_memories": "DROP TABLE claim_memories",
}


@pytest.fixture
def url(postgres_server: Server) -> Iterator[str]:
    """A database whose schema may be spoilt."""
    made = postgres_server.new_database()
    with closing(open_at(made)):
        pass
    yield made
    postgres_server.drop(made)


def test_the_plan_is_what_the_migrations_make(url: str) -> None:
    names = {name for (name,) in query(url, NAMES)}
    rules = Counter({(table, kind): number for table, kind, number in query(url, HELD_RULES)})
    of_rules = {name for (name,) in query(url, "SELECT conname::text FROM pg_constraint")}
    assert plan().keys() == names - of_rules - {"schema_migrations"}
    held = Counter(
        {rule: rules[rule] for rule in rules if rule[0] != "schema_migrations" and rule[1] in "pufc"}
    )
    assert +planned_rules() == held


@pytest.mark.parametrize("what", DERIVED)
def test_what_holds_nothing_of_its_own_is_missed_and_made_again(url: str, what: str) -> None:
    with closing(open_at(url)) as store:
        add(store, a_memory("m1"))
        assert status(ServerAddress(url=url, schema=SCHEMA)).missing == ()
        query(url, DERIVED[what])
        (found,) = store.examine(T0)
        assert (found.check, found.severity, found.repair) == ("schema", "warning", "schema")
        assert what in found.message
        assert status(ServerAddress(url=url, schema=SCHEMA)).missing == (what,)
        store.mend("schema", T0)
        assert store.examine(T0) == []


@pytest.mark.parametrize("what", LOST)
def test_what_keeps_rows_or_rules_is_missed_and_not_made_up(url: str, what: str) -> None:
    with closing(open_at(url)) as store:
        query(url, LOST[what])
        found = store.examine(T0)
        told = [(one.severity, one.repair) for one in found if what in one.message]
        assert told == [("broken", None)]
        assert what in status(ServerAddress(url=url, schema=SCHEMA)).missing


def test_who_meets_a_table_that_is_missing_is_told_where_to_look(url: str) -> None:
    with closing(open_at(url)) as store:
        query(url, "DROP TABLE tombstones")
        with pytest.raises(StoreUnavailable) as caught:
            add(store, a_memory("m1"))
    assert "vestige db status" in (caught.value.hint or "")
