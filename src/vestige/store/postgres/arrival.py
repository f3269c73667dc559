"""Whether a store that is being carried into this schema is there whole."""

from vestige.store.postgres.place import Place
from vestige.store.sql import arrivals
from vestige.store.sql.database import Database

# Who may read the tables of a store, but not this one, works with it all the same.
HAS_RECEIPT = (
    f"SELECT EXISTS (SELECT 1 FROM pg_class c WHERE c.relname = '{arrivals.TABLE}'"
    " AND c.relnamespace = current_schema()::regnamespace AND has_table_privilege(c.oid, 'SELECT'))"
)


def has_receipt(db: Database) -> bool:
    """Whether there is room for the receipt of a transfer."""
    return bool(db.execute(HAS_RECEIPT).fetchone()[0])


def require_complete(db: Database, place: Place) -> None:
    """StoreError for a part of a store."""
    if has_receipt(db) and not arrivals.is_complete(db):
        raise arrivals.incomplete(str(place))
