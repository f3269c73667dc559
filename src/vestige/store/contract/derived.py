"""The part of the store contract about derived data."""

from collections.abc import Mapping
from typing import Protocol

from vestige.core.models import Memory, Strength
from vestige.embed.protocol import Signature
from vestige.store.contract.answers import IndexStatus, ProfileStatus
from vestige.store.contract.changes import Embedded


class StoreDerived(Protocol):
    """Derived data: vectors, strengths, word rows, index files. It can be rebuilt from canonical data."""

    def signature(self) -> Signature | None:
        """The signature of the vectors in this store, also after the last of them was removed; None before
        the first one."""

    def profiles(self) -> list[ProfileStatus]:
        """The signatures that have vectors: the one in use, then the coming one and the former one, if
        any."""

    def unembedded(self, signature: Signature, *, limit: int, tokens: bool = False) -> list[Memory]:
        """Memories without vectors of this signature for their present text, oldest first. With `tokens` also
        those with vectors but without tokens; a text without a word has tokens of length 0."""

    def put_vectors(self, embedded: Mapping[str, Embedded], *, coming: Signature | None = None) -> int:
        """Add vectors that were made after their memories; the number of memories that took them (stale ones
        do not).

        The first ones decide the store's signature. With `coming` they are of another one and are stored
        beside those in use: no search finds them before `adopt`, and they are removed with their text like
        others. One signature is coming at a time: the vectors of an earlier coming one are removed. The
        former one is not coming: missing vectors are added to it. Any other is ModelMismatch.
        """

    def adopt(self, signature: Signature) -> bool:
        """Put a signature in use, in one transaction; whether it is in use. While a memory has no vectors of
        it (`unembedded`) it is not, and nothing changes.

        The previous one becomes the former one and keeps its vectors; later writes get none of it. Any other
        is removed with its vectors: the earlier former one, and a coming one.
        """

    def drop_vectors(self, signature: Signature) -> None:
        """Remove the vectors and tokens of the coming or the former signature, and leftovers of others, in
        short transactions. InvalidInput for the one in use. An unknown one has none. After an interruption,
        calling it again continues."""

    def put_strengths(self, strengths: Mapping[str, Strength], *, after: int) -> int:
        """Overwrite strengths with those replayed from the log up to position `after`; the number of memories
        that took them. One with later evidence (`strength_log.EVIDENCE`) keeps its present strength, which
        includes that evidence while the replayed one does not. The curve stays the store's."""

    def rebuild_words(self) -> int:
        """Derive all lexical rows and term statistics again from the text; the number of memories."""

    def index_status(self) -> IndexStatus:
        """The state of the index files; they are read through and verified."""

    def rebuild_index(self) -> IndexStatus:
        """Write the index files again that are damaged, missing, or mostly of deleted vectors."""
