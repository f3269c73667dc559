"""Living through a story with a real store: the tools are called as an agent would, under a virtual clock."""

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.client import Json
from benchmarks.quality.aged import Calendar
from benchmarks.simulate.embedding import Remembering
from benchmarks.simulate.story import ATTRIBUTES, OVERVIEW, Ask, Hush, Reject, Story, Tell, Truth
from vestige.app.app import App, open_app
from vestige.core.caller import Invocation
from vestige.core.errors import Conflict
from vestige.core.events import EventBus
from vestige.embed.background import EmbedderSource

BEGIN = datetime(2025, 1, 1, 8, 0, tzinfo=UTC)
STEP = timedelta(minutes=20)
SHOWN = 10
LOOKED_AT = 5
USEFUL, PROMOTED, DEMOTED, CORRECTED = 0.25, 0.1, 0.3, 0.1
"""How often somebody says that an answer helped, or was right; and of one that no longer holds, that it was
wrong, or puts it right."""
SLEEP_EVERY_DAYS = 7
GC_EVERY_DAYS = 30
FADED = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """A way to live: settings, and whether it sleeps."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    sleeps: bool = True
    forgets: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """One question of an examination: what it is worth, by measure."""

    question: str
    scores: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """All questions asked on one day, and how many memories were in each state."""

    day: int
    answers: tuple[Answered, ...]
    states: Mapping[str, int]
    archived: int


class Life:
    """A store that a story happens to."""

    def __init__(self, app: App, calendar: Calendar, story: Story, arm: Arm, seed: int) -> None:
        self._app, self._calendar, self._story, self._arm, self._seed = app, calendar, story, arm, seed
        self._ids: dict[str, str] = {}
        self.truth = Truth()
        self.decisions: Counter[str] = Counter()
        self.hushed: set[str] = set()
        self.pinned: dict[str, tuple[str, str]] = {}
        self._corrected: dict[str, tuple[str, str]] = {}

    def live(self, day: int) -> None:
        """One day, and the night after it."""
        self._calendar.now = BEGIN + timedelta(days=day)
        for number, step in enumerate(self._story.days[day]):
            self._calendar.now += STEP
            match step:
                case Tell():
                    self._tell(day, step)
                case Ask():
                    self._ask(step, random.Random(f"{self._seed}-{day}-{number}"))
                case Hush():
                    self._hush(step)
                case Reject():
                    self.call("memory", {"action": "demote", "id": self._ids[step.key]})
        self._app.settle()
        if self._arm.sleeps and day % SLEEP_EVERY_DAYS == SLEEP_EVERY_DAYS - 1:
            self.call("consolidate", {})
            self.call("dream", {})
        if self._arm.forgets and day % GC_EVERY_DAYS == GC_EVERY_DAYS - 1:
            self.call("gc", {"min_retention": FADED, "dry_run": False})

    def call(self, tool: str, arguments: Json) -> Json:
        """Run a tool as a transport does."""
        return self._app.call_tool(Invocation(name=tool, arguments=arguments))

    def examine(self, day: int) -> Examination:
        """Ask about everything, without a trace."""
        answers = [*self._current(day), *self._old()]
        status = self.call("system_status", {})
        return Examination(
            day=day, answers=tuple(answers), states=status["stateDistribution"], archived=status["archived"]
        )

    def texts(self) -> dict[str, str]:
        """Everything that was told, by key: what a plain index would hold."""
        return dict(self.truth.texts)

    def holding(self, service: str, day: int) -> set[str]:
        """The memories that say what holds of a service now."""
        return {self._ids[key] for key in self.truth.holding(service, day)}

    def judge(self, question: str, keys: list[str], slot: tuple[str, str]) -> Answered:
        """What a ranking of told texts would be worth."""
        right = self.truth.wordings.get(slot, set())
        wrong = {key for key, one in self._slots().items() if one == slot and key in self.truth.stale}
        return answered(question, keys, right, wrong - right)

    def _tell(self, day: int, tell: Tell) -> None:
        given: Json = {"content": tell.text, "tags": [tell.service.lower()]}
        if tell.pinned:
            given["pinned"] = True
        answer = self.call("smart_ingest", given)
        self._ids[tell.key] = str(answer["nodeId"])
        self.decisions[str(answer["decision"])] += 1
        self.truth.learn(day, tell, self._story.values.get(tell.key))
        if tell.pinned and tell.slot is not None:
            self.pinned[tell.key] = tell.slot

    def _ask(self, ask: Ask, chance: random.Random) -> None:
        found = self._search(ask.text, record=True, topics=[ask.busy_with.lower()])[:LOOKED_AT]
        for memory_id in self.hushed.intersection(found):
            self._suppress(memory_id)
        helpful, right, wrong = chance.random(), chance.random(), chance.random()
        if ask.attribute is None:
            return
        slot = (ask.service, ask.attribute)
        answers = {self._ids[key] for key in self.truth.wordings.get(slot, ())}
        best = next((at for at, one in enumerate(found) if one in answers), None)
        if best is not None and helpful < USEFUL:
            self.call("memory", {"action": "useful", "id": found[best]})
        if best is not None and right < PROMOTED:
            self.call("memory", {"action": "promote", "id": found[best]})
        misled = [one for one in found[: 1 if best is None else best] if one in self._stale(slot)]
        if misled and wrong < DEMOTED:
            self.call("memory", {"action": "demote", "id": misled[0]})
        elif misled and wrong < DEMOTED + CORRECTED:
            self._correct(slot, misled[0])

    def _correct(self, slot: tuple[str, str], memory_id: str) -> None:
        """Edit a memory that no longer holds into what does."""
        key = max(self.truth.wordings[slot], key=self.truth.told_on.__getitem__)
        self.call("memory", {"action": "edit", "id": memory_id, "content": self.truth.texts[key]})
        corrected = f"{key}-{memory_id}"
        self._ids[corrected] = memory_id
        self.truth.wordings[slot].add(corrected)
        self.truth.told_on[corrected] = self.truth.told_on[key]
        self.truth.texts[corrected] = self.truth.texts[key]
        self._corrected[corrected] = slot

    def _hush(self, hush: Hush) -> None:
        memory_id = self._ids[hush.key]
        if memory_id in self.hushed:
            return
        self._suppress(memory_id)
        self.hushed.add(memory_id)

    def _suppress(self, memory_id: str) -> None:
        """Once more when it came up again, unless the last time was only just."""
        with suppress(Conflict):
            self.call("suppress", {"id": memory_id})

    def _stale(self, slot: tuple[str, str]) -> set[str]:
        """The memories that only say what held of a slot before."""
        current = {self._ids[key] for key in self.truth.wordings.get(slot, ())}
        once = {
            self._ids[key] for key, one in self._slots().items() if one == slot and key in self.truth.stale
        }
        return once - current

    def _slots(self) -> dict[str, tuple[str, str]]:
        told = (step for day in self._story.days for step in day if isinstance(step, Tell))
        slots = {step.key: step.slot for step in told if step.slot is not None and step.key in self._ids}
        return slots | self._corrected

    def _search(self, text: str, *, record: bool, topics: Sequence[str] = ()) -> list[str]:
        asked: Json = {"query": text, "limit": SHOWN, "detail_level": "brief"}
        if not record:  # else it is up to the setting
            asked["record"] = False
        found = self.call("search", {**asked, "context_topics": list(topics)})
        return [str(hit["id"]) for hit in found["results"]]

    def _current(self, day: int) -> Iterator[Answered]:
        """Questions about the services in use: do the first answers still hold?"""
        slots = self._slots()
        once: dict[tuple[str, str], set[str]] = {}
        for key in self.truth.stale:
            once.setdefault(slots[key], set()).add(self._ids[key])
        for service in self._story.busy:
            holding = self.holding(service, day)
            for text in OVERVIEW:
                question = text.format(s=service)
                first = self._search(question, record=False)[:5]
                yield Answered(
                    question=question, scores={"precision@5": sum(one in holding for one in first) / 5}
                )
            for attribute in ATTRIBUTES:
                slot = (service, attribute.name)
                right = {self._ids[key] for key in self.truth.wordings.get(slot, ())}
                question = attribute.asked[0].format(s=service)
                yield answered(
                    question, self._search(question, record=False), right, once.get(slot, set()) - right
                )

    def _old(self) -> Iterator[Answered]:
        """Questions about the services that were set up long ago and never asked for since."""
        pinned = {slot: self._ids[key] for key, slot in self.pinned.items()}
        for service in self._story.quiet:
            for attribute in ATTRIBUTES:
                slot = (service, attribute.name)
                question = attribute.asked[-1].format(s=service)
                found = self._search(question, record=False)
                right = {self._ids[key] for key in self.truth.wordings.get(slot, ())}
                if not right:
                    continue
                scores = {
                    "old recall@5": float(_rank(found[:5], right) < 5),
                    "old recall@10": float(_rank(found, right) < SHOWN),
                }
                if slot in pinned:
                    scores["pinned recall@10"] = float(pinned[slot] in found)
                yield Answered(question=question, scores=scores)


def answered(question: str, found: list[str], right: set[str], wrong: set[str]) -> Answered:
    """What an answer about one slot is worth: of what it tells of the slot, the share that still holds."""
    told = [one in right for one in found[:5] if one in right | wrong]
    scores = {"precision@5": sum(told) / len(told) if told else 0.0}
    if wrong:
        scores["current first"] = float(_rank(found, right) <= _rank(found, wrong))
    return Answered(question=question, scores=scores)


def _rank(found: list[str], wanted: set[str]) -> int:
    return next((at for at, one in enumerate(found) if one in wanted), SHOWN)


@contextmanager
def lived(folder: Path, story: Story, arm: Arm, seed: int, embedder: Remembering) -> Iterator[Life]:
    """A life in a store of its own."""
    calendar = Calendar(BEGIN)
    options = {"data_dir": str(folder), **arm.settings}
    # Time stands still while something is done: what paces itself has nothing to wait for.
    clock = replace(calendar.clock(), monotonic=lambda: calendar.now.timestamp())
    with open_app(options, clock=clock) as opened:
        source = EmbedderSource(lambda _: embedder)
        source.get(60.0)
        app = App(replace(opened.engine, embedders=source, events=EventBus()))
        try:
            yield Life(app, calendar, story, arm, seed)
        finally:
            app.settle()
