"""Verifies that a copy is a store: opens it for reading, and reads one of everything in it."""

from pathlib import Path

from vestige.core.models import ANYTHING, EVERYTHING, Order
from vestige.store.contract.store import MemoryStore
from vestige.store.sqlite.connection import SqliteConnections, WriterWait


def lying(path: Path, waiting: WriterWait) -> SqliteConnections:
    """Connections to a file that does not change; they create no file beside it."""
    return SqliteConnections(
        path=path, waiting=waiting, uri=f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    )


def read_one_of_each(store: MemoryStore, connections: SqliteConnections) -> None:
    """Read the newest and the oldest memory with its history, an event, an edge, a document of each kind."""
    for order in (Order.NEWEST, Order.OLDEST):
        for record in store.find(ANYTHING, access=EVERYTHING, order=order, limit=1):
            store.history(record.memory.id, access=EVERYTHING)
            store.log(access=EVERYTHING, memory_id=record.memory.id, limit=1)
    store.signature()
    next(store.stream_edges(access=EVERYTHING, batch=1), None)
    with connections.reading(snapshot=False) as db:
        kinds = [row[0] for row in db.execute("SELECT DISTINCT kind FROM documents")]
    for kind in kinds:
        store.documents(kind, access=EVERYTHING, limit=1)
