"""A PostgreSQL server of the benchmark's own, or the one that is named, with a database for the store."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from benchmarks.scale.backends import POSTGRES, Maker
from benchmarks.scale.by_hand import ByHand, Vectors
from benchmarks.scale.postgres_by_hand import SCHEMA, PostgresByHand
from benchmarks.speed.disk import OTHER, PARTS
from testbed.postgres_server import server
from vestige.settings.settings import CONFIG_NAME

TUNED = {"shared_buffers": "1GB", "max_wal_size": "4GB"}
"""What anybody sets who has this much memory; the rest is as PostgreSQL comes."""
INDEX = "vector index"
KEPT = {**PARTS, "postings": "words", "terms": "words", "analysed": "words"}

SIZES = """
SELECT coalesce(t.relname, c.relname), a.amname, sum(pg_table_size(c.oid))::bigint
FROM pg_class c LEFT JOIN pg_index i ON i.indexrelid = c.oid LEFT JOIN pg_class t ON t.oid = i.indrelid
LEFT JOIN pg_am a ON a.oid = c.relam
WHERE c.relnamespace = %s::regnamespace AND c.relkind IN ('r', 'i') GROUP BY 1, 2"""
AT_WORK = (
    "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    " AND backend_type = 'client backend'"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresBackend:
    """A database, and a data directory whose settings name it. `local`: its processes are on this machine."""

    data_dir: Path
    url: str
    local: bool
    name: str = POSTGRES

    def settle(self) -> None:
        """What autovacuum does within a minute."""
        with psycopg.connect(self.url, autocommit=True) as db:
            db.execute("VACUUM (ANALYZE)")

    def pids(self) -> list[int]:
        """The sessions of its database."""
        if not self.local:
            return []
        with psycopg.connect(self.url, autocommit=True) as db:
            return [pid for (pid,) in db.execute(AT_WORK)]

    def disk(self) -> dict[str, int]:
        """By tables with their indexes."""
        found: dict[str, int] = {}
        with psycopg.connect(self.url, autocommit=True) as db:
            for table, method, size in db.execute(SIZES, (SCHEMA,)):
                part = INDEX if method == "hnsw" else KEPT.get(table, OTHER)
                found[part] = found.get(part, 0) + size
        return found

    def by_hand(self, vectors: Vectors) -> ByHand:
        """On a session of its own; the vectors are in the database."""
        return PostgresByHand(self.url, vectors.shape[1])


@contextmanager
def postgres_maker() -> Iterator[Maker]:
    """A server that makes databases; all of it is gone in the end."""
    with server(durable=True, settings=TUNED) as running:

        def make(folder: Path) -> PostgresBackend:
            url, data_dir = running.new_database(), folder / "postgres"
            data_dir.mkdir(parents=True)
            told = f'[storage]\nbackend = "postgres"\n\n[storage.postgres]\nurl = "{url}"\n'
            (data_dir / CONFIG_NAME).write_text(told, encoding="utf-8")
            return PostgresBackend(data_dir=data_dir, url=url, local=running.cluster is not None)

        yield make
