"""The part of the store contract about derived data."""

from collections.abc import Mapping
from typing import Protocol

from vestige.core.models import (
    Memory,
    Strength,
)
from vestige.embed.protocol import Signature
from vestige.store.contract.answers import IndexStatus, ProfileStatus
from vestige.store.contract.changes import Embedded


class StoreDerived(Protocol):
    """Derived data: vectors, strengths, word rows, index files. It can be rebuilt from canonical data."""

    def signature(self) -> Signature | None:
        """The signature of the vectors held here, also after the last of them went; None before the
        first one was written."""

    def profiles(self) -> list[ProfileStatus]:
        """The signatures there are vectors of: the one in use, then the coming one and the former one, as far
        as there is one."""

    def unembedded(self, signature: Signature, *, limit: int, tokens: bool = False) -> list[Memory]:
        """Memories without vectors of this signature of their present text, oldest first. With `tokens` also
        those whose vectors are there without tokens; a text may have none (a length of 0), and was given them
        all the same."""

    def put_vectors(self, embedded: Mapping[str, Embedded], *, coming: Signature | None = None) -> int:
        """Add vectors made after the fact; how many memories took them (stale ones do not).

        The first ones decide the store's signature. With `coming` they are of another one and lie beside
        those in use: nothing finds them before `adopt`, and they go with their text as others do. One
        signature is coming at a time: the vectors of another that was are gone. The former one is not coming:
        what it lacks is added to what it has. Any other is ModelMismatch.
        """

    def adopt(self, signature: Signature) -> bool:
        """Put a signature in use, in one transaction; whether it is in use. While a memory has no vectors of
        it (`unembedded`) it is not, and nothing changes.

        The one that was in use becomes the former one and keeps its vectors; what is written from now on gets
        none of it. Any other goes, with its vectors: the former one before, and one that was coming.
        """

    def drop_vectors(self, signature: Signature) -> None:
        """Remove the vectors and tokens of a signature that is coming or the former one, and what was left of
        others, in transactions that are over in a moment. InvalidInput for the one in use. One that is not
        known has none. Whatever ends it before, doing it again goes on where it was."""

    def put_strengths(self, strengths: Mapping[str, Strength], *, after: int) -> int:
        """Overwrite strengths with those replayed from the log up to position `after`; how many
        memories took them. One with evidence past it (`store.evidence.EVIDENCE`) keeps its present strength,
        which holds that evidence while the replayed one does not. Their curve stays the store's."""

    def rebuild_words(self) -> int:
        """Derive all lexical rows and term statistics again from the text; how many memories."""

    def index_status(self) -> IndexStatus:
        """What the index files hold; they are read through and checked."""

    def rebuild_index(self) -> IndexStatus:
        """Write again the index files that are damaged or mostly dead, and those that are missing."""
