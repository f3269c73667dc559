"""The store contract: seven small Protocols that `MemoryStore` joins.

Every store passes the same suite, `tests/store/contract/`.

What holds for all methods:

- `access` is what the caller may read and write. A memory outside it behaves exactly like one that does
  not exist: reads skip it, writes raise NotFound. Writing *into* a scope outside it is Forbidden.
- Ids are the caller's. Orders are total: ties go by id, ascending. Scores are higher-better. A
  negative limit or offset is InvalidInput, a limit of 0 an empty answer.
- Metadata, details and payloads are JSON, copied in and out; weights and vectors are finite.
- No text holds a NUL or a lone surrogate: a change with one is InvalidInput, and nothing is found by one.
- Labels are short enough for an index in any database (`checks.MAX_LABEL_BYTES`, less for ids, kinds and
  the keys of claims); others are TooLarge. Rows of older versions stay usable.
- The store never embeds and has no clock: vectors and times are arguments.
- `commit` is the only way canonical data changes; it is one transaction. Other writes touch derived
  data only, and are ignored where the text they were derived from has changed.
- Driver errors never escape: they become StoreError and its children.
- Methods may be called from any thread. `close` ends the store; using it afterwards is StoreError.
"""

from typing import Protocol

from vestige.store.contract.care import StoreCare
from vestige.store.contract.derived import StoreDerived
from vestige.store.contract.keys import StoreKeys
from vestige.store.contract.peers import StorePeers
from vestige.store.contract.reads import StoreReads
from vestige.store.contract.search import StoreSearch
from vestige.store.contract.writes import StoreWrites


class MemoryStore(
    StoreReads, StoreWrites, StoreSearch, StoreDerived, StorePeers, StoreCare, StoreKeys, Protocol
):
    """Keeps memories, their strength, history, links, words and vectors; and the API keys to them."""

    @property
    def node(self) -> str:
        """This installation's id: a copied store gets a new one when it is first opened."""

    @property
    def read_only(self) -> bool:
        """Whether writes are impossible here (read-only media)."""

    @property
    def software(self) -> dict[str, str]:
        """The software below the store, by name, with versions; empty where it needs none."""
