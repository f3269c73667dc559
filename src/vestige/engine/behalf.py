"""On whose behalf something happens: what reacts to it goes no further than he does.

Events are heard on the thread that emits them, so whoever hears one can ask.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from vestige.models import EVERYTHING, Access

_REACH: ContextVar[Access] = ContextVar("reach", default=EVERYTHING)


@contextmanager
def on_behalf_of(access: Access) -> Iterator[None]:
    """Do what the block does for somebody with this reach."""
    before = _REACH.set(access)
    try:
        yield
    finally:
        _REACH.reset(before)


def reach_of_cause() -> Access:
    """The reach of whoever is behind what happens on this thread."""
    return _REACH.get()
