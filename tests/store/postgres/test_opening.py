"""Opening a store in PostgreSQL: what is made, what is refused, and that nobody learns the password."""

import logging
import secrets
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from datetime import datetime
from urllib.parse import quote, urlsplit

import psycopg
import pytest

from testbed.patience import PATIENCE_SECONDS
from testbed.postgres_server import Server
from tests.store.support.generators import SIGNATURE, a_memory, add, add_with, axis, held
from tests.store.support.postgres_stores import open_at, outside, query
from vestige.core.errors import ConfigError, StoreError, StoreReadOnly, StoreTooNew, StoreUnavailable
from vestige.core.models import ANYTHING, EVERYTHING
from vestige.store.postgres import opening
from vestige.store.postgres.server import requirements
from vestige.store.postgres.server.address import ServerAddress
from vestige.store.postgres.status import status
from vestige.store.sql.filters import moment_text

pytestmark = pytest.mark.slow  # starts a server

SECRET = "xyzzy-plugh"
NewRole = Callable[[str, str], str]


@pytest.fixture
def empty(postgres_server: Server) -> Iterator[str]:
    """A database with nothing in it."""
    url = postgres_server.new_database()
    yield url
    postgres_server.drop(url)


@pytest.fixture
def as_role(postgres_server: Server) -> Iterator[NewRole]:
    """Makes users with no rights but those granted, and gives the URL by which they come."""
    made: list[tuple[str, str]] = []

    def new(url: str, grants: str) -> str:
        name = f"vestige_{secrets.token_hex(4)}"
        query(url, f"CREATE ROLE {name} LOGIN PASSWORD '{SECRET}'")
        made.append((url, name))
        if grants:
            query(url, grants.format(role=name))
        return _coming_as(url, name)

    yield new
    for url, name in made:
        query(url, f"DROP OWNED BY {name}; DROP ROLE {name}")


def _coming_as(url: str, user: str, password: str = SECRET) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=f"{user}:{password}@{parts.netloc.rpartition('@')[2]}").geturl()


def _with_option(url: str, option: str) -> str:
    return f"{url}{'&' if urlsplit(url).query else '?'}options={quote(option)}"


# -- what is made ----------------------------------------------------------------------------------


def test_an_empty_database_gets_a_schema_with_a_store(empty: str) -> None:
    with closing(open_at(empty, schema="vestige")) as store:
        add(store, a_memory("m1"))
        node = store.node
    with closing(open_at(empty, schema="vestige", node="another")) as again:
        assert again.node == node
        assert held(again, "m1").memory == a_memory("m1")
    assert query(empty, "SELECT id FROM vestige.memories") == [("m1",)]


def test_two_schemas_of_one_database_are_two_stores(empty: str) -> None:
    with closing(open_at(empty, schema="one")) as one, closing(open_at(empty, schema="two")) as two:
        add(one, a_memory("m1"))
        assert two.get_many(["m1"], access=EVERYTHING) == []
        with one.alone("re-embed"), two.alone("re-embed"):
            pass


def test_those_who_open_an_empty_database_at_once_get_one_store(empty: str) -> None:
    count = 4
    together = threading.Barrier(count)

    def begin(number: int) -> str:
        together.wait()
        with closing(open_at(empty, schema="vestige", node=f"node-{number}")) as store:
            add(store, a_memory(f"m{number}"))
            return store.node

    with ThreadPoolExecutor(count) as threads:
        nodes = set(threads.map(begin, range(count)))
    assert len(nodes) == 1
    assert query(empty, "SELECT count(*) FROM vestige.memories") == [(count,)]
    assert query(empty, "SELECT version FROM vestige.schema_migrations") == [
        (one.version,) for one in opening.schema()
    ]


def test_a_copied_database_is_another_installation(postgres_server: Server, empty: str) -> None:
    with closing(open_at(empty, node="first")) as store:
        add(store, a_memory("m1"))
        first = store.node
    copy = postgres_server.new_database(template=empty)
    with closing(open_at(copy, node="second")) as store:
        assert store.node != first
        assert held(store, "m1").memory.id == "m1"
        second = store.node
    with closing(open_at(copy, node="third")) as store:
        assert store.node == second


def test_tables_of_another_program_beside_the_schema_are_in_nobodys_way(empty: str) -> None:
    query(empty, "CREATE TABLE schema_migrations (version text); CREATE TABLE memories (nothing int)")
    with closing(open_at(empty, schema="vestige")) as store:
        add(store, a_memory("m1"))
    assert query(empty, "SELECT * FROM public.memories") == []


# -- what is refused -------------------------------------------------------------------------------


def test_the_schema_of_another_program_is_left_as_it_is(empty: str) -> None:
    query(empty, "CREATE TABLE schema_migrations (version text PRIMARY KEY)")
    with pytest.raises(StoreError, match="another program") as caught:
        open_at(empty)
    assert caught.value.details["table"] == "schema_migrations"
    assert "storage.postgres.schema" in (caught.value.hint or "")
    assert query(empty, "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace") == [
        ("schema_migrations",),
        ("schema_migrations_pkey",),
    ]


def test_a_store_of_a_newer_vestige_is_refused(postgres_url: str) -> None:
    query(postgres_url, "INSERT INTO schema_migrations VALUES (99, 'later', '', '', '9.9.9')")
    with pytest.raises(StoreTooNew, match=r"9\.9\.9"):
        open_at(postgres_url)


def test_a_server_that_is_too_old_is_refused(empty: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "OLDEST_SERVER", 990_000)
    with pytest.raises(StoreError, match="too old: 99 or later"):
        open_at(empty)


def test_an_extension_that_is_too_old_is_refused(empty: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "OLDEST_EXTENSION", (99, 0))
    with pytest.raises(StoreError, match=r"extension `vector` is .* 99\.0 or later is needed") as caught:
        open_at(empty)
    assert "ALTER EXTENSION" in (caught.value.hint or "")


def test_a_server_without_the_extension_is_refused(empty: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "INSTALLABLE", "SELECT 1 WHERE false")
    with pytest.raises(StoreError, match="no extension `vector`") as caught:
        open_at(empty)
    assert "pgvector" in (caught.value.hint or "")


def test_a_database_that_cannot_hold_every_text_is_refused(postgres_server: Server) -> None:
    name = f"vestige_latin_{secrets.token_hex(4)}"
    query(postgres_server.url(), f"CREATE DATABASE {name} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    try:
        with pytest.raises(StoreError, match="LATIN1") as caught:
            open_at(postgres_server.url(name))
    finally:
        query(postgres_server.url(), f"DROP DATABASE {name} WITH (FORCE)")
    assert "UTF8" in (caught.value.hint or "")


def test_a_user_who_may_not_create_the_extension_is_told_who_may(empty: str, as_role: NewRole) -> None:
    with pytest.raises(StoreError, match="may not create the extension") as caught:
        open_at(as_role(empty, ""), schema="vestige")
    assert "CREATE EXTENSION vector" in (caught.value.hint or "")


def test_a_user_who_may_not_create_a_schema_is_told_what_to_ask_for(empty: str, as_role: NewRole) -> None:
    query(empty, "CREATE EXTENSION vector")
    with pytest.raises(StoreError, match="may not create the schema vestige") as caught:
        open_at(as_role(empty, ""), schema="vestige")
    assert "CREATE SCHEMA vestige AUTHORIZATION" in (caught.value.hint or "")


def test_a_user_who_may_not_use_or_fill_the_schema_is_told_so(empty: str, as_role: NewRole) -> None:
    query(empty, "CREATE EXTENSION vector; CREATE SCHEMA vestige")
    with pytest.raises(StoreError, match="may not use the schema"):
        open_at(as_role(empty, ""), schema="vestige")
    with pytest.raises(StoreError, match="may not create or change tables"):
        open_at(as_role(empty, "GRANT USAGE ON SCHEMA vestige TO {role}"), schema="vestige")


def test_a_user_who_may_not_use_the_extension_is_told_so(empty: str, as_role: NewRole) -> None:
    query(empty, "CREATE SCHEMA elsewhere; CREATE EXTENSION vector SCHEMA elsewhere")
    url = as_role(empty, "CREATE SCHEMA vestige AUTHORIZATION {role}")
    with pytest.raises(StoreError, match="may not use the schema elsewhere, where the extension") as caught:
        open_at(url, schema="vestige")
    assert "GRANT USAGE ON SCHEMA elsewhere" in (caught.value.hint or "")


def test_an_extension_in_a_schema_of_its_own_will_do(empty: str) -> None:
    query(empty, "CREATE SCHEMA elsewhere; CREATE EXTENSION vector SCHEMA elsewhere")
    with closing(open_at(empty, schema="vestige")) as store:
        add(store, a_memory("m1"))
        assert store.count(ANYTHING, access=EVERYTHING) == 1


def test_the_owner_of_a_schema_needs_no_other_rights(empty: str, as_role: NewRole) -> None:
    query(empty, "CREATE EXTENSION vector")
    url = as_role(empty, "CREATE SCHEMA vestige AUTHORIZATION {role}")
    with closing(open_at(url, schema="vestige")) as store:
        add(store, a_memory("m1"))
        with store.alone("purge"):
            store.notify("one", ["{}"])
        assert [who.command for who in store.processes()] == ["vestige test"]


def test_a_user_who_may_only_read_gets_a_store_to_read(empty: str, as_role: NewRole) -> None:
    with closing(open_at(empty, schema="vestige")) as store:
        add(store, a_memory("m1"))
    grants = "GRANT USAGE ON SCHEMA vestige TO {role}; GRANT SELECT ON ALL TABLES IN SCHEMA vestige TO {role}"
    with closing(open_at(as_role(empty, grants), schema="vestige")) as reader:
        assert reader.read_only
        assert held(reader, "m1").memory.id == "m1"
        with pytest.raises(StoreReadOnly):
            add(reader, a_memory("m2"))


def test_a_user_who_may_not_read_the_tables_is_not_told_that_reading_works(
    empty: str, as_role: NewRole
) -> None:
    with closing(open_at(empty, schema="vestige")):
        pass
    url = as_role(empty, "GRANT USAGE ON SCHEMA vestige TO {role}")
    for act in (lambda: open_at(url, schema="vestige"), lambda: status(ServerAddress(url=url))):
        with pytest.raises(StoreError, match="may not") as caught:
            act()
        assert not isinstance(caught.value, StoreReadOnly)
        assert "GRANT SELECT" in (caught.value.hint or "")
        assert "Reading works" not in (caught.value.hint or "")


def test_a_schema_that_was_removed_under_a_store_is_told_of(empty: str) -> None:
    with closing(open_at(empty, schema="vestige")) as store:
        add(store, a_memory("m1"))
        query(empty, "DROP SCHEMA vestige CASCADE")
        with pytest.raises(StoreUnavailable, match="removed or recreated") as read:
            held(store, "m1")
        with pytest.raises(StoreUnavailable, match="removed or recreated"):
            add(store, a_memory("m2"))
    assert "Restart" in (read.value.hint or "")


def test_a_session_that_may_only_read_gets_a_store_to_read(postgres_url: str) -> None:
    with closing(open_at(postgres_url)) as store:
        add(store, a_memory("m1"))
    standby = _with_option(postgres_url, "-c default_transaction_read_only=on")
    with closing(open_at(standby)) as reader:
        assert reader.read_only
        assert held(reader, "m1").memory.id == "m1"
        with reader.listening() as wait:
            assert wait(0.01)
        with pytest.raises(StoreReadOnly):
            reader.notify("one", ["{}"])
        with pytest.raises(StoreReadOnly), reader.alone("purge"):
            pass


def test_no_store_is_made_where_only_reading_is_allowed(empty: str) -> None:
    query(empty, "CREATE EXTENSION vector")
    standby = _with_option(empty, "-c default_transaction_read_only=on")
    for schema in ("vestige", "public"):
        with pytest.raises(StoreReadOnly, match="none can be created") as caught:
            open_at(standby, schema=schema)
        assert "Reading works" not in (caught.value.hint or "")


# -- addresses and passwords -----------------------------------------------------------------------


def _told(error: BaseException) -> str:
    """Everything that a log, a debugger or an error report could show of an error."""
    seen: list[BaseException] = []
    next_one: BaseException | None = error
    while next_one is not None:
        seen.append(next_one)
        next_one = next_one.__cause__ or next_one.__context__
    return repr([(str(one), repr(one), one.args, vars(one)) for one in seen])


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://ada:{SECRET}@127.0.0.1:1/vestige",
        f"postgresql://ada:{SECRET}@no.such.host.invalid/vestige",
        f"host=/nowhere user=ada password={SECRET} dbname=vestige",
    ],
    ids=["refused", "unknown host", "no socket"],
)
def test_a_server_that_does_not_come_is_unavailable(url: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG), pytest.raises(StoreUnavailable) as caught:
        open_at(url, busy_seconds=0.2)
    assert "storage.postgres.url" in (caught.value.hint or "")
    assert SECRET not in _told(caught.value) + caplog.text


@pytest.mark.parametrize(
    "url", [f"postgresql://ada:{SECRET}@[::1/vestige", f"postgresql://ada:{SECRET}@host/x?nonsense=1", SECRET]
)
def test_an_address_that_cannot_be_read_is_not_repeated(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_at(url)
    assert SECRET not in _told(caught.value)


@pytest.mark.parametrize(
    ("end", "name", "helps"),
    [
        ("/x?conect_timeout=3", "conect_timeout", "connect_timeout"),
        ("/x?nonsense=1", "nonsense", "SSL"),
        ("/x?connect_timeout=abc", "connect_timeout", "number"),
        ("/x?keepalives_idle=", "keepalives_idle", "number"),
        (":54x/x", "port", "%40 for @"),
        (":99999/x", "port", "65535"),
        ("/x?port=0", "port", "65535"),
    ],
)
def test_what_is_wrong_in_an_address_is_named(end: str, name: str, helps: str) -> None:
    with pytest.raises(ConfigError, match=f"`{name}`") as caught:
        ServerAddress(url=f"postgresql://ada:{SECRET}@127.0.0.1{end}")
    assert helps in f"{caught.value.message} {caught.value.hint}"
    assert SECRET not in _told(caught.value)


def test_a_piece_of_a_password_is_not_named_as_a_parameter() -> None:
    with pytest.raises(ConfigError) as caught:
        ServerAddress(url="postgresql://ada:a/b?plugh=1@127.0.0.1/x")
    assert "plugh" not in _told(caught.value)


@pytest.mark.parametrize("password", ["hunter/2", "hunter@2", "1/2", "1/", "@", "/"])
def test_a_password_with_special_characters_as_they_are_is_not_taken_for_an_address(password: str) -> None:
    with pytest.raises(ConfigError, match="cannot be read") as caught:
        ServerAddress(url=f"postgresql://ada:{password}@127.0.0.1/memories")
    assert "%40 for @" in (caught.value.hint or "")
    assert "hunter" not in _told(caught.value)
    assert "ada" not in _told(caught.value)


@pytest.mark.parametrize(
    "url", ["postgresql://one:1,two:2/memories", "postgresql:///memories", "port='' host=h"]
)
def test_addresses_of_several_servers_or_of_none_can_be_read(url: str) -> None:
    assert ServerAddress(url=url)


@pytest.mark.parametrize("password", ["d", "t", "no"])
def test_a_short_password_is_hidden_where_it_stands_and_nowhere_else(password: str) -> None:
    place = ServerAddress(url=f"postgresql://ada:{password}@127.0.0.1/memories")
    said = "the database does not exist"
    assert place.without_secrets(said) == said
    assert place.without_secrets(f"tried ada:{password}@127.0.0.1") == "tried ada:***@127.0.0.1"
    assert place.without_secrets(f"user=ada password={password} port=1") == "user=ada password=*** port=1"


def test_the_name_of_a_schema_is_checked(postgres_url: str) -> None:
    for name in ("", "Vestige", 'a"b', "a; DROP TABLE x", "x" * 64, "pg_own", "information_schema"):
        with pytest.raises(ConfigError):
            open_at(postgres_url, schema=name)


def test_a_place_is_told_without_its_password() -> None:
    place = ServerAddress(url=f"postgresql://ada:{SECRET}@db.example:5433/memories")
    assert str(place) == "postgresql://ada@db.example:5433/memories, schema vestige"
    assert SECRET not in repr(place)
    assert SECRET not in place.without_secrets(f"{place.url} and {SECRET}")


def test_a_host_that_is_not_known_is_not_waited_for() -> None:
    with pytest.raises(StoreUnavailable, match=r"no\.such\.host"):
        open_at("postgresql://no.such.host.invalid/vestige", busy_seconds=10 * PATIENCE_SECONDS)


def test_a_database_that_does_not_exist_is_named(postgres_server: Server) -> None:
    with pytest.raises(StoreUnavailable, match='"nowhere" does not exist'):
        open_at(postgres_server.url("nowhere"))


def test_a_wrong_password_is_said_and_never_shown(
    postgres_server: Server, empty: str, as_role: NewRole, caplog: pytest.LogCaptureFixture
) -> None:
    right = as_role(empty, "")
    user = urlsplit(right).username or ""
    _require_passwords(postgres_server, user, right)

    wrong = _coming_as(empty, user, f"not-{SECRET}")
    with caplog.at_level(logging.DEBUG), pytest.raises(StoreUnavailable, match="password") as caught:
        open_at(wrong, schema="vestige")
    assert "refuses this user" in caught.value.message
    assert "storage.postgres.url" in (caught.value.hint or "")
    assert "server runs" not in (caught.value.hint or "")
    with pytest.raises(StoreUnavailable) as looked:
        status(ServerAddress(url=wrong))
    assert looked.value.value() == {**caught.value.value(), "code": "store_unavailable"}
    assert SECRET not in _told(caught.value) + _told(looked.value) + caplog.text


def test_a_user_the_server_does_not_know_is_not_let_in(empty: str) -> None:
    with pytest.raises(StoreUnavailable, match="refuses this user"):
        open_at(_coming_as(empty, "nobody_here"), schema="vestige")


def _require_passwords(server: Server, user: str, url: str) -> None:
    if server.cluster is None:
        pytest.skip("PASSWORDS ARE NOT TESTED: the given server decides who needs one")
    rules = server.cluster.home / "data" / "pg_hba.conf"
    rules.write_text(f"local all {user} scram-sha-256\n{rules.read_text()}", encoding="utf-8")
    query(server.url(), "SELECT pg_reload_conf()")
    with ExitStack() as refused:
        while True:  # the server reads it again a moment later
            try:
                refused.enter_context(outside(_coming_as(url, user, "wrong")))
            except psycopg.OperationalError:
                return


@pytest.mark.parametrize(
    "limit", ["ALTER ROLE {role} CONNECTION LIMIT 1", "ALTER DATABASE {database} CONNECTION LIMIT 1"]
)
def test_who_gets_no_connection_because_of_a_limit_is_told_which_to_change(
    empty: str, as_role: NewRole, limit: str
) -> None:
    ((database,),) = query(empty, "SELECT quote_ident(current_database())")
    url = as_role(empty, f"GRANT ALL ON DATABASE {database} TO {{role}}")
    query(empty, "CREATE EXTENSION vector")
    query(empty, limit.format(role=urlsplit(url).username, database=database))
    with pytest.raises(StoreUnavailable, match="too many connections") as caught:
        open_at(url, schema="vestige", busy_seconds=0.1)
    assert "storage.postgres.max_connections" in (caught.value.hint or "")
    assert "CONNECTION LIMIT" in (caught.value.hint or "")


def test_the_model_in_use_can_be_read_from_any_sql_client(postgres_url: str) -> None:
    with closing(open_at(postgres_url)) as store:
        add_with(store, a_memory("m1"), axis(0))
    ((name, dimension, digest, created_at),) = query(
        postgres_url, "SELECT name, dimension, hash, created_at FROM embedding_model"
    )
    assert (name, dimension) == (SIGNATURE.name, SIGNATURE.dimension)
    assert f"{name}@{digest}" == SIGNATURE.profile
    assert moment_text(datetime.fromisoformat(created_at)) == created_at
