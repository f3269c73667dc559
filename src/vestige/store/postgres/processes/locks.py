"""The advisory locks of a store, all in one module: two with the same number would be one lock.

The first number of a lock is one of these, the second is the oid of the store's schema.
"""

from enum import IntEnum, unique


@unique
class Lock(IntEnum):
    """Work that only one session at a time may do in a store."""

    WRITERS = 0x56_57_54_45
    """Writing: every write transaction takes it first."""
    UPGRADES = 0x56_57_54_46
    """Creating or upgrading the schema."""
    STARTS = 0x56_57_54_47
    """Starting a server."""
    ALONE = 0x56_57_54_48
    """Exclusive use for long."""
    BRIEFLY = 0x56_57_54_49
    """Exclusive use for a moment."""
    TENDERS = 0x56_57_54_4A
    """Building an index of vectors."""
    LEADING = 0x56_57_54_4B
    """Leading the processes that use the store."""


def signed(oid: int) -> int:
    """A number of 32 bits as the server's functions for locks take it."""
    return oid - (1 << 32) if oid >= 1 << 31 else oid
