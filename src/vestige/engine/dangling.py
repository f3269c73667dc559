"""Links that another store tells of and that come to nothing here: a memory at their end is not here."""

from collections.abc import Sequence

from vestige.engine.context import Call
from vestige.models import EVERYTHING
from vestige.store.lives import EdgeLife, Life
from vestige.store.uniting import edge

BATCH = 500


class Dangling:
    """Notes the links of lives that are taken in, to say afterwards how many of them are without an end."""

    def __init__(self, call: Call) -> None:
        self._store = call.engine.store
        self._links: set[tuple[str, str, str]] = set()

    def watch(self, batch: Sequence[Life]) -> None:
        """Note the links of a batch that stand."""
        self._links.update(
            (life.source_id, life.target_id, life.kind)
            for life in batch
            if isinstance(life, EdgeLife) and edge(life) is not None
        )

    def count(self) -> int:
        """How many of them have an end that is not here."""
        ends = sorted({end for link in self._links for end in link[:2]})
        here: set[str] = set()
        for start in range(0, len(ends), BATCH):
            records = self._store.get_many(ends[start : start + BATCH], access=EVERYTHING)
            here.update(record.memory.id for record in records)
        return sum(not here.issuperset(link[:2]) for link in self._links)
