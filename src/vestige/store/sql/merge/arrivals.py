"""The state of a transfer into this store.

Until it is complete the store must not be used: searches would miss the rest, and writes would take numbers
that the rest has. A transfer leaves a receipt (`store.transfer.receipts`); where there never was one there is
no table.
"""

import orjson

from vestige.core.errors import StoreError
from vestige.store.sql.database import Database

TABLE = "transfer"
RECEIPT = f"SELECT receipt FROM {TABLE}"


def is_complete(db: Database) -> bool:
    row = db.execute(RECEIPT).fetchone()
    return row is None or is_finished(row[0])


def is_finished(receipt: str) -> bool:
    return orjson.loads(receipt)["finished"] is not None


def incomplete(place: str) -> StoreError:
    return StoreError(
        f"A transfer into this store is not complete. ({place})",
        hint="Run the same `vestige migrate --from … --to …` again: it resumes where it stopped. Or empty "
        "the store (drop its schema, or remove its file) and start again.",
        details={"store": place},
    )
