"""The whole benchmark: prompts that need nothing, prompts with gold, repeats, and what an injection costs."""

import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from uuid import UUID

import numpy as np

from benchmarks.bm25 import Bm25
from benchmarks.engine import InProcess, OverStdio
from benchmarks.notes.shares import in_words, share
from benchmarks.progress import track
from benchmarks.quality.corpus import Missing
from benchmarks.report import Cell, Report, Target
from benchmarks.silence.prompts import (
    FOREIGN,
    OWN,
    RENAMED,
    SEED,
    UNKNOWN,
    Asked,
    Session,
    locomo,
    long_mem_eval,
    notebooks,
)
from vestige.app.app import Clock

SETS: dict[str, Callable[[Path, int], Iterator[Session]]] = {
    "notes": notebooks,
    "locomo": locomo,
    "longmemeval": long_mem_eval,
}
MOST, QUICK = 100, 20
STORED_AT = datetime(2026, 11, 1, 9, tzinfo=UTC)
BATCH = 100
COST_PROMPTS = 60
UNRELATED = (FOREIGN, RENAMED, UNKNOWN)
NO_MEMORY, RANDOM, BM25, OURS = "no memory", "random", "BM25, first", "ours"
FALSE, KEPT, SERVER_MS, COMMAND_MS = 0.10, 0.80, 100.0, 250.0
NOTES = (
    "A store is asked its own questions (with gold) and those of the next store of its family; `renamed` "
    "puts the names of these speakers into them, `about what is missing` are questions of the same author "
    "that no note answers. `gold`: the share of prompts with gold whose injection holds it. `of the first`: "
    "of what `search` puts first for a prompt with gold, the share that is injected. Shares of ours have "
    "their 95 % interval (Wilson). Every prompt is a new session, but for `repeats`, where all prompts of a "
    "store, asked twice, are one session.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a prompt got, as keys of documents and their threads, by each way; `first` is what search on
    request puts first."""

    family: str
    asked: Asked
    shown: dict[str, frozenset[str]]
    first: frozenset[str]
    memories: tuple[str, ...]
    first_id: str | None


def run(*, data: Path, only: Sequence[str] = tuple(SETS), quick: bool = False) -> Report:
    most = QUICK if quick else MOST
    outcomes: list[Outcome] = []
    repeats = shown = 0
    skipped: dict[str, str] = {}
    cost: dict[str, list[float]] = {}
    for name in only:
        try:
            for session in SETS[name](data, most):
                with tempfile.TemporaryDirectory(prefix="vestige-silence-") as folder:
                    found, twice, seen = _asked(session, Path(folder))
                    outcomes += found
                    repeats, shown = repeats + twice, shown + seen
                    if not cost and name in ("locomo", "notes"):
                        cost = _cost(session, Path(folder))
        except Missing as missing:
            skipped[name] = str(missing)
    return Report(
        benchmark="silence",
        settings={"prompts of a kind and store, at most": most},
        tables=_tables(outcomes, repeats, shown, cost),
        targets=list(_targets(outcomes, repeats, cost)),
        notes=NOTES,
        skipped=skipped,
    )


# -- Prompts


def _asked(session: Session, folder: Path) -> tuple[list[Outcome], int, int]:
    """What every prompt got; then how many memories one session was shown, and how many of them twice."""
    clock, moment = _clock()
    corpus = session.corpus
    with InProcess(folder, clock=clock) as opened:
        keys: dict[str, frozenset[str]] = {}
        for at in range(0, len(corpus.documents), BATCH):
            batch = corpus.documents[at : at + BATCH]
            stored = opened.call("smart_ingest", {"items": [one.item() for one in batch]})
            for document, result in zip(batch, stored["results"], strict=True):
                held = keys.get(result["nodeId"], frozenset())
                keys[result["nodeId"]] = held | {document.key, document.thread or document.key}
        opened.settle()
        moment[0] += timedelta(days=1)
        index, chance = Bm25([one.content for one in corpus.documents]), random.Random(SEED)
        outcomes = []
        for number, asked in enumerate(track(session.prompts, f"{session.family}: {corpus.name}")):
            got = opened.call(
                "agent", {"action": "recall", "prompt": asked.text, "session_id": f"one-{number}"}
            )
            found = opened.call("search", {"query": asked.text, "limit": 5, "record": False})["results"]
            first = found[0]["id"] if found else None
            best = index.top(asked.text, 1)
            names = [frozenset({one.key, one.thread or one.key}) for one in corpus.documents]
            outcomes.append(
                Outcome(
                    family=session.family,
                    asked=asked,
                    shown={
                        NO_MEMORY: frozenset(),
                        RANDOM: chance.choice(names),
                        BM25: names[best[0]] if best else frozenset(),
                        OURS: frozenset[str]().union(*(keys.get(one, ()) for one in got["memories"])),
                    },
                    first=keys.get(first, frozenset()) if first else frozenset(),
                    memories=tuple(got["memories"]),
                    first_id=first,
                )
            )
        seen = [
            one
            for asked in [*session.prompts, *session.prompts]
            for one in opened.call("agent", {"action": "recall", "prompt": asked.text, "session_id": "all"})[
                "memories"
            ]
        ]
    return outcomes, len(seen) - len(set(seen)), len(seen)


def _clock() -> tuple[Clock, list[datetime]]:
    moment, numbers = [STORED_AT], count(1)
    clock = Clock(
        now=lambda: moment[0],
        monotonic=time.monotonic,
        sleep=time.sleep,
        new_id=lambda: str(UUID(int=next(numbers))),
        rng=random.Random(SEED),
    )
    return clock, moment


# -- Cost


def _cost(session: Session, folder: Path) -> dict[str, list[float]]:
    """CPU milliseconds of a prompt: in a running server asked over MCP, and of `vestige-hook` together with
    the server that it asks."""
    prompts = [one.text for one in session.prompts][:COST_PROMPTS]
    hook = [str(Path(sys.executable).parent / "vestige-hook"), "claude-code", "--data-dir", str(folder)]
    made: dict[str, list[float]] = {"server": [], "command and server": [], "command": []}
    with OverStdio(folder) as server:
        for number, prompt in enumerate(prompts):
            payload = {"hook_event_name": "UserPromptSubmit", "session_id": f"m{number}", "prompt": prompt}
            began = server.cpu_seconds()
            server.call("agent", {"action": "hook", "client": "claude-code", "payload": payload})
            made["server"].append(1000 * (server.cpu_seconds() - began))
            payload["session_id"] = f"c{number}"
            began, own = server.cpu_seconds(), _children()
            subprocess.run(hook, input=json.dumps(payload).encode(), check=True, capture_output=True)
            used = 1000 * (_children() - own)
            made["command"].append(used)
            made["command and server"].append(used + 1000 * (server.cpu_seconds() - began))
    return {name: sorted(values) for name, values in made.items()}


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


# -- Report


def _tables(
    outcomes: Sequence[Outcome], repeats: int, shown: int, cost: dict[str, list[float]]
) -> dict[str, list[dict[str, Cell]]]:
    families = list(dict.fromkeys(one.family for one in outcomes))
    tables: dict[str, list[dict[str, Cell]]] = {
        family: [_row(way, [one for one in outcomes if one.family == family]) for way in WAYS]
        for family in families
    }
    tables["all"] = [_row(way, outcomes) for way in WAYS]
    tables["repeats in one session"] = [{"shown": shown, "repeats": repeats}]
    tables["CPU of a warm injection, ms"] = [
        {"": name, "median": float(np.median(values)), "p95": float(np.percentile(values, 95))}
        for name, values in cost.items()
    ]
    return tables


WAYS = (NO_MEMORY, RANDOM, BM25, OURS)


def _row(way: str, outcomes: Sequence[Outcome]) -> dict[str, Cell]:
    row: dict[str, Cell] = {"way": way}
    for kind in UNRELATED:
        asked = [one for one in outcomes if one.asked.kind == kind]
        row[f"injected, {kind}"] = _share([bool(one.shown[way]) for one in asked], way)
    own = [one for one in outcomes if one.asked.kind == OWN]
    row["gold"] = _share([bool(one.shown[way] & one.asked.gold) for one in own], way)
    searched = [one for one in own if one.first]
    row["of the first"] = _share([bool(one.shown[way] & one.first) for one in searched], way)
    return row


def _share(hits: Sequence[bool], way: str) -> Cell:
    if not hits:
        return ""
    return in_words(hits) if way == OURS else share(hits)


def _targets(outcomes: Sequence[Outcome], repeats: int, cost: dict[str, list[float]]) -> Iterator[Target]:
    unrelated = [one for one in outcomes if one.asked.kind == FOREIGN]
    if unrelated:
        false = sum(bool(one.memories) for one in unrelated) / len(unrelated)
        yield Target(
            name="prompts of another store that got anything", value=false, limit=FALSE, at_least=False
        )
    first = [one for one in outcomes if one.asked.kind == OWN and one.first_id]
    if first:
        kept = sum(one.first_id in one.memories for one in first) / len(first)
        yield Target(name="of what search puts first", value=kept, limit=KEPT, at_least=True)
    yield Target(name="memories shown twice in a session", value=repeats, limit=0, at_least=False)
    for name, limit in (("server", SERVER_MS), ("command and server", COMMAND_MS)):
        if cost:
            p95 = float(np.percentile(cost[name], 95))
            yield Target(name=f"p95 of CPU, {name}, ms", value=p95, limit=limit, at_least=False)
