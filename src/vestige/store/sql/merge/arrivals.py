"""Whether a store that is being carried here is here whole.

Until then it is no store: what is searched lacks the rest, and what is written takes numbers that the rest
has. A transfer leaves a receipt (`store.transfer.receipts`); where there never was one there is no table.
"""

import orjson

from vestige.core.errors import StoreError
from vestige.store.sql.database import Database

TABLE = "transfer"
RECEIPT = f"SELECT receipt FROM {TABLE}"


def is_complete(db: Database) -> bool:
    """Whether all is there, in a store that has room for a receipt."""
    row = db.execute(RECEIPT).fetchone()
    return row is None or is_finished(row[0])


def is_finished(receipt: str) -> bool:
    """Whether a receipt says that all is there."""
    return orjson.loads(receipt)["finished"] is not None


def incomplete(place: str) -> StoreError:
    """The refusal to work with a part of a store."""
    return StoreError(
        f"A transfer into this store is not complete. ({place})",
        hint="Run the same `vestige migrate --from … --to …` again: it goes on where it was. Or empty the "
        "store (drop its schema, or remove its file) and begin anew.",
        details={"store": place},
    )
