"""The intention that the example of `intention.update` is about."""

from datetime import datetime

from vestige.core.documents import Document
from vestige.operations.intentions.intentions import EXAMPLE_INTENTION
from vestige.store.contract.changes import Put


def intention_example(now: datetime) -> Put:
    """The change that plants it."""
    body = {
        "description": "Rotate the keys.",
        "trigger": {"type": "manual"},
        "priority": 2,
        "armed_at": now.isoformat(),
    }
    return Put(
        document=Document(kind="intention", id=EXAMPLE_INTENTION, body=body, created_at=now, updated_at=now)
    )
