"""The texts in the review inbox that the examples of `review` decide about."""

from datetime import datetime

from vestige.core.origin import Origin
from vestige.engine.ingest.batch import NewText
from vestige.engine.ingest.inbox import ASKED, PendingText, document_of
from vestige.operations.review.review import EXAMPLES
from vestige.store.contract.changes import Change, Put


def review_examples(now: datetime) -> list[Change]:
    """Changes that plant them: all wait, but the one whose rejection is undone."""
    return [
        Put(
            document=document_of(
                PendingText(
                    id=name,
                    scope="/",
                    text=NewText(content=f"Ada moved the {action} meeting to ten."),
                    origin=Origin.ASSISTANT,
                    reason=ASKED,
                    created_at=now,
                    updated_at=now,
                    outcome="rejected" if action == "undo" else None,
                    resolved_at=now if action == "undo" else None,
                )
            )
        )
        for action, name in EXAMPLES.items()
    ]
