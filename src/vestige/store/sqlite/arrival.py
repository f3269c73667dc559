"""Whether a store that is being carried into this file is there whole."""

from pathlib import Path

from vestige.store.sql import arrivals
from vestige.store.sql.database import Database

HAS_RECEIPT = f"SELECT 1 FROM sqlite_master WHERE name = '{arrivals.TABLE}' AND type = 'table'"


def has_receipt(db: Database) -> bool:
    """Whether there is room for the receipt of a transfer."""
    return db.execute(HAS_RECEIPT).fetchone() is not None


def require_complete(db: Database, path: Path) -> None:
    """StoreError for a part of a store."""
    if has_receipt(db) and not arrivals.is_complete(db):
        raise arrivals.incomplete(str(path))
