"""The same memories after a year of use: stored over months, some reviewed and promoted, some suppressed.

What is reviewed and suppressed is drawn from the memories that answer no question. A memory that ranks by
use more than by the question would lose here.
"""

import random
import shutil
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from benchmarks.engine import InProcess, decisions_in
from benchmarks.progress import track
from benchmarks.quality import arms
from benchmarks.quality.corpus import Corpus, Document
from benchmarks.quality.ranked import Ranked
from benchmarks.quality.shelf import Ground
from vestige.app.app import Clock
from vestige.core.clock import Uuid7
from vestige.core.models import EVERYTHING
from vestige.store.contract.changes import Revise

SEED = 7
STORED_OVER_DAYS = 335
LAST_DAYS = 30
"""Between the last thing stored and the search."""
REVIEWED = 0.2
SUPPRESSED = 0.1
REVIEWS = 3
MOST_SUPPRESSIONS = 3
GOOD = 3


class Calendar:
    """A clock that is set by hand."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def clock(self) -> Clock:
        """As the app takes it."""
        rng = random.Random(SEED)

        def now() -> datetime:
            return self.now

        new_id = Uuid7(now, rng)
        return Clock(now=now, monotonic=time.monotonic, sleep=time.sleep, new_id=new_id, rng=rng)


def aged(corpus: Corpus, ground: Ground) -> list[Ranked]:
    """What the engine answers after that year. The store is made anew, with the calendar turned back."""
    folder = ground.folder / f"aged-{corpus.name}"
    shutil.rmtree(folder, ignore_errors=True)
    today = datetime.now(UTC)
    calendar = Calendar(today - timedelta(days=STORED_OVER_DAYS + LAST_DAYS))
    with InProcess(folder, clock=calendar.clock()) as opened:
        keys = _store(opened, calendar, corpus)
        _use(opened, calendar, corpus, keys)
        calendar.now = today
        return arms.search(ground.asking(opened), keys, corpus.questions, f"{corpus.name}: after a year")


def _store(opened: InProcess, calendar: Calendar, corpus: Corpus) -> dict[str, str]:
    """Remember a thread at a time, as they would come; the key of each memory."""
    threads: dict[str | None, list[Document]] = {}
    for document in corpus.documents:
        threads.setdefault(document.thread, []).append(document)
    step = timedelta(days=STORED_OVER_DAYS) / len(threads)
    keys: dict[str, str] = {}
    for documents in track(list(threads.values()), f"{corpus.name}: storing over {STORED_OVER_DAYS} days"):
        answered = opened.call("smart_ingest", {"items": [document.item() for document in documents]})
        decisions_in(answered)
        ids = [result["nodeId"] for result in answered["results"]]
        keys |= dict(zip(ids, (document.key for document in documents), strict=True))
        calendar.now += step
    return keys


def _use(opened: InProcess, calendar: Calendar, corpus: Corpus, keys: dict[str, str]) -> None:
    gold = {key for question in corpus.questions for key in question.gold}
    others = sorted(memory_id for memory_id, key in keys.items() if key not in gold)
    rng = random.Random(SEED)
    rng.shuffle(others)
    reviewed = others[: round(REVIEWED * len(others))]
    suppressed = others[len(reviewed) :][: round(SUPPRESSED * len(others))]
    for _ in range(REVIEWS):
        calendar.now += timedelta(days=LAST_DAYS / (REVIEWS + 2))
        for memory_id in reviewed:
            opened.call("mark_reviewed", {"id": memory_id, "rating": GOOD})
    for memory_id in reviewed[::2]:
        opened.call("memory", {"action": "promote", "id": memory_id})
    _suppress(opened, calendar.now, suppressed, rng)


def _suppress(opened: InProcess, now: datetime, memory_ids: Sequence[str], rng: random.Random) -> None:
    """No tool suppresses yet, so the store is told."""
    store = opened.engine.store
    changes = []
    for record in store.get_many(memory_ids, access=EVERYTHING):
        memory = replace(
            record.memory,
            revision=record.memory.revision + 1,
            updated_at=now,
            suppressed_at=now,
            suppression_count=rng.randint(1, MOST_SUPPRESSIONS),
        )
        changes.append(Revise(memory=memory, reason="suppressed"))
    store.commit(changes, access=EVERYTHING)
