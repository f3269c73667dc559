"""The key that the examples of `keys` are about."""

from datetime import datetime, timedelta

from vestige.core.api_key import ApiKey
from vestige.operations.care.keys import EXAMPLE_KEY


def key_example(now: datetime) -> ApiKey:
    """A key with every filter."""
    return ApiKey(
        id=EXAMPLE_KEY,
        hash="0123456789abcdef" * 4,
        label="Grace's agent",
        permissions=("read", "write"),
        scopes=("/project/vestige",),
        domains=("parsing",),
        created_at=now,
        expires_at=now + timedelta(days=90),
    )
