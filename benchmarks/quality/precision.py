"""PrecisionMemBench: beliefs of a user in several domains, some superseded, and what a question may surface.

The benchmark was made for a system that always shows pinned facts beside what it found. So beside a search
every arm but "no memory" has the pinned facts of the user's domains, ours by listing them; a case without a
query asks for those alone. A case passes when everything it wants is there and nothing that must stay out is.
"nothing else" asks in addition that not a single other fact was found.
"""

import json
import random
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.bm25 import Bm25
from benchmarks.client import Json
from benchmarks.engine import InProcess, OverStdio, Service
from benchmarks.quality import arms
from benchmarks.quality.corpus import need
from benchmarks.quality.ranked import TOP
from benchmarks.quality.shelf import Ground
from benchmarks.report import Cell

FOLDER = "precisionmembench"
USER = "test-user"
OPEN_QUESTION = "open_question"
TITLE = "PrecisionMemBench, cases"
BALANCED, PRECISE = "balanced", "precise"
NOW = "2100-01-01"
"""Later than every belief that has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Belief:
    """A belief as it is stored."""

    key: str
    user: str
    domains: tuple[str, ...]
    content: str
    tags: tuple[str, ...]
    kind: str
    pinned: bool
    ended_at: str | None

    def item(self) -> Json:
        """As `smart_ingest` takes it: a domain is a domain, a user a scope."""
        facts: Json = {
            "content": self.content,
            "tags": list(self.tags),
            "node_type": self.kind,
            "scope": f"/user/{self.user}",
            "domains": list(self.domains),
            "pinned": self.pinned,
            "force_create": True,
        }
        return facts | ({"valid_until": self.ended_at} if self.ended_at else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A question within domains, and what should come of it."""

    name: str
    query: str
    user: str
    domains: tuple[str, ...]
    wanted: frozenset[str]
    unwanted: frozenset[str]
    only: frozenset[str] | None
    limit: int

    def within(self, belief: Belief) -> bool:
        """Whether the question may surface the belief at all."""
        mine = belief.user == self.user and not set(belief.domains).isdisjoint(self.domains)
        return mine and belief.ended_at is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What an arm gives: what it found for the question, and the facts that stand beside every answer."""

    found: tuple[str, ...] = ()
    standing: tuple[str, ...] = ()


Answer = Callable[[Case], Shown]


def load(data: Path) -> tuple[list[Belief], list[Case]]:
    """The beliefs and the cases."""
    folder = data / FOLDER
    beliefs = [_belief(one) for one in _json(folder / "beliefs.seed.json")]
    return beliefs, [_case(one) for one in _json(folder / "cases.json")]


def run(data: Path, ground: Ground) -> dict[str, list[dict[str, Cell]]]:
    """Every arm on every case, and why ours did not pass some."""
    beliefs, cases = load(data)
    rng = random.Random(arms.SEED)

    def draw(case: Case) -> list[str]:
        near = [belief.key for belief in beliefs if case.within(belief)]
        return rng.sample(near, min(case.limit, len(near)))

    made = [
        judge(arms.NO_MEMORY, beliefs, cases, lambda _: Shown()),
        judge(arms.RANDOM, beliefs, cases * arms.DRAWS, _beside_pins(beliefs, draw)),
        judge(arms.BM25, beliefs, cases, _beside_pins(beliefs, _keywords(beliefs))),
    ]
    folder = ground.folder / FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    with OverStdio(folder) as server:
        answered = server.call("smart_ingest", {"items": [belief.item() for belief in beliefs]})
        ids = [result["nodeId"] for result in answered["results"]]
        keys = dict(zip(ids, (belief.key for belief in beliefs), strict=True))
        asking = ground.asking(server)
        through_mcp = judge(arms.MCP, beliefs, cases, _search(asking, keys))
        precisely = judge(f"{arms.MCP}, precise", beliefs, cases, _search(asking, keys, PRECISE))
        failed = failures(beliefs, cases, _search(asking, keys))
    with InProcess(folder) as opened:
        made.append(judge(arms.ENGINE, beliefs, cases, _search(ground.asking(opened), keys)))
    return {TITLE: [*made, through_mcp, precisely], f"{TITLE} that do not pass (MCP)": failed}


def judge(arm: str, beliefs: Sequence[Belief], cases: Sequence[Case], answer: Answer) -> dict[str, Cell]:
    """How many cases an arm passes."""
    known = {belief.key: belief for belief in beliefs}
    found = kept_out = passed = exact = 0
    for case in cases:
        shown = answer(case)
        has, clean = not _lacking(case, shown), not _intruding(case, shown, known)
        facts = {key for key in shown.found if not known[key].pinned and known[key].kind != OPEN_QUESTION}
        found, kept_out, passed = found + has, kept_out + clean, passed + (has and clean)
        exact += has and clean and case.only in (None, facts)
    times = len(cases) // len({id(case) for case in cases})
    return {
        "arm": arm,
        "cases": len(cases) // times,
        "found": found / times,
        "kept out": kept_out / times,
        "passed": passed / times,
        "nothing else": exact / times,
    }


def failures(beliefs: Sequence[Belief], cases: Sequence[Case], answer: Answer) -> list[dict[str, Cell]]:
    """The cases that do not pass, each with what was missing and what should not have been there."""
    known = {belief.key: belief for belief in beliefs}
    judged = ((case, answer(case)) for case in cases)
    return [
        {
            "case": case.name,
            "question": case.query,
            "missing": ", ".join(_lacking(case, shown)),
            "not wanted": ", ".join(_intruding(case, shown, known)),
        }
        for case, shown in judged
        if _lacking(case, shown) or _intruding(case, shown, known)
    ]


def _lacking(case: Case, shown: Shown) -> list[str]:
    return sorted(case.wanted - {*shown.found, *shown.standing})


def _intruding(case: Case, shown: Shown, known: dict[str, Belief]) -> list[str]:
    there = {*shown.found, *shown.standing}
    return sorted(key for key in there if key in case.unwanted or not case.within(known[key]))


def _beside_pins(beliefs: Sequence[Belief], find: Callable[[Case], Sequence[str]]) -> Answer:
    def shown(case: Case) -> Shown:
        pins = tuple(belief.key for belief in beliefs if belief.pinned and case.within(belief))
        return Shown(found=tuple(find(case)) if case.query.strip() else (), standing=pins)

    return shown


def _search(service: Service, keys: dict[str, str], mode: str = BALANCED) -> Answer:
    def shown(case: Case) -> Shown:
        place = {"scope": f"/user/{case.user}", "domains": list(case.domains)}
        now = {"action": "list", "pinned": True, "as_of": NOW, "limit": 100, "detail_level": "brief"}
        pins = service.call("memory", {**now, **place})
        standing = tuple(keys[one["id"]] for one in pins["results"])
        if not case.query.strip():
            return Shown(standing=standing)
        answer = arms.ask(service, case.query, case.limit, retrieval_mode=mode, **place)
        return Shown(found=tuple(arms.found_keys(answer, keys)), standing=standing)

    return shown


def _keywords(beliefs: Sequence[Belief]) -> Callable[[Case], list[str]]:
    index = Bm25([" ".join((belief.content, *belief.tags)) for belief in beliefs])

    def found(case: Case) -> list[str]:
        best = (beliefs[place] for place in index.top(case.query, len(beliefs)))
        return [belief.key for belief in best if case.within(belief)][: case.limit]

    return found


def _belief(told: Json) -> Belief:
    ended = told["updated_at"] if told["superseded_by"] else told["resolved_at"]
    return Belief(
        key=told["_id"],
        user=told["user_id"],
        domains=_domains(told["scope"]),
        content=told["content"],
        tags=(told["canonical_name"], *told["aliases"]),
        kind=told["type"],
        pinned=told["pinned"],
        ended_at=ended,
    )


def _case(told: Json) -> Case:
    tiers = {name: tier for name, tier in told["expect"].items() if name != "personaPrelude"}
    only = tiers.get("relevantBeliefs", {}).get("shouldOnlyInclude")
    must = [key for tier in tiers.values() for key in tier.get("mustInclude", ())]
    return Case(
        name=str(told.get("caseId", told["query"])),
        query=told["query"],
        user=told.get("userId", USER),
        domains=_domains(told["scope"]),
        wanted=frozenset([*must, *(only or ())]),
        unwanted=frozenset(key for tier in tiers.values() for key in tier.get("mustExclude", ())),
        only=None if only is None else frozenset(only),
        limit=told.get("budget", {}).get("maxBeliefs", TOP),
    )


def _domains(scopes: Sequence[str]) -> tuple[str, ...]:
    return tuple(scope.partition(":")[2] for scope in scopes)


def _json(path: Path) -> list[Json]:
    told: list[Json] = json.loads(need(path).read_text(encoding="utf-8"))
    return told
