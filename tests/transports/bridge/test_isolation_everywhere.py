"""Agents kept apart: whatever one asks for, it is told the same whether another is there or not."""

import re
from pathlib import Path
from typing import Any

import pytest

from testbed.world import open_world
from tests.transports.bridge.harness import Bridged, bridged
from vestige.transports.bridge import isolation
from vestige.transports.bridge.requests import READERS

pytestmark = pytest.mark.slow

MINE, THEIRS = "zeppelim", "zeppelin"
"""Names as like as two can be, so that whatever looks for what is alike finds the other."""
SECRET = "quicksilver"
FACTS = (
    "The crane in the harbour is painted red.",
    "Tulips are planted in October.",
    "The tax office closes at noon on Fridays.",
    "Sourdough needs flour, water and salt.",
    "The violin was made in Cremona.",
)
HOME = f"/agent/{MINE}"
NEVER = "01890000-0000-7000-8000-00000000dead"

_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{11,12}|\b[0-9a-f]{32}\b")
_CHANGING = re.compile(r"\d{4}-\d\d-\d\d[T ][\d:.]+(?:Z|\+00:00| UTC)?|-?\d+\.\d+")


def test_nothing_is_told_that_depends_on_another_agent(tmp_path: Path) -> None:
    told: list[list[tuple[object, ...]]] = []
    for company in (False, True):
        with bridged(tmp_path / str(company), bridge__isolate_agents=True) as bridge:
            options: dict[str, Any] = {"memory.scope": "/shared"}
            with open_world(bridge.folder, **options) as operator:
                operator.remember("The office opens at nine.")
            theirs = plant(bridge) if company else []
            asker = Asker(bridge)
            asker.ask_everything()
            for path, body, answer in asker.told:
                leaked = [word for word in (THEIRS, SECRET, *theirs) if word in str(answer)]
                assert leaked == [], (path, body, answer)
            told.append(
                [(path, body, plain(answer)) for path, body, answer in asker.told if compared(path, body)]
            )
    alone, beside = told
    assert len(alone) == len(beside) > 100
    for one, other in zip(alone, beside, strict=True):
        assert plain(list(one)) == plain(list(other)), f"alone: {one}\nbeside: {other}"


def compared(path: str, body: dict[str, Any]) -> bool:
    """Whether an answer is the same each time. What is learned from searches is there a little later."""
    return path not in ("/predict", "/importance_score") and not body.get("include_predictions")


def plant(bridge: Bridged) -> list[str]:
    """Have the other agent do all that an agent can; the ids of what it has."""
    ids = [
        bridge.remember(
            f"{fact} {SECRET} {number}", THEIRS, tags=[SECRET], domains=[SECRET], force_create=True
        )
        for number, fact in enumerate(FACTS * 2)
    ]
    bridge.data("/promote", {"memory_id": ids[0]}, THEIRS)
    bridge.data("/demote", {"memory_id": ids[1]}, THEIRS)
    bridge.data("/memory", {"action": "delete", "memory_id": ids[2]}, THEIRS)
    trigger = {"type": "context", "topic": "harbour"}
    set_up = bridge.data(
        "/intention", {"action": "set", "description": f"Buy {SECRET}", "trigger": trigger}, THEIRS
    )
    decision = {"action": "remember_decision", "decision": f"Use {SECRET}", "rationale": "It shines"}
    bridge.data("/codebase", {**decision, "codebase": "harbour", "files": ["a.py"]}, THEIRS)
    for query in ("harbour crane", "tulips in October"):
        bridge.data("/search", {"query": query, "context_session": "morning"}, THEIRS)
    bridge.data("/dream", {}, THEIRS)
    bridge.data("/session_context", {"queries": ["harbour"], "context": {"codebase": "harbour"}}, THEIRS)
    return [*ids, set_up["intentionId"]]


class Asker:
    """The agent that asks, with what it was told."""

    def __init__(self, bridge: Bridged) -> None:
        self._bridge = bridge
        self.told: list[tuple[str, dict[str, Any], Any]] = []

    def ask(self, path: str, **body: Any) -> Any:
        """What is answered, as data if the tool did what it was asked for."""
        answer = self._bridge.post(path, body, MINE).json()
        if answer.get("success"):
            answer = answer["data"]["structured"]
        self.told.append((path, body, answer))
        return answer

    def ask_everything(self) -> None:
        """First with nothing of its own, then with something."""
        self._read()
        for scope in (HOME, f"{HOME}/attic"):
            self.ask("/dream", scope=scope)
        ids = [
            self.ask("/ingest", content=fact, tags=["mine"], force_create=True)["nodeId"] for fact in FACTS
        ]
        self.ask("/smart_ingest", content=FACTS[0])
        self.ask("/smart_ingest", items=[{"content": FACTS[1]}])
        self._note()
        self._read()
        self._change(ids[0])
        self.ask("/dream", min_similarity=0.1)
        for path in ("/promote", "/demote"):
            self.ask(path, memory_id=ids[1])
            self.ask(path, memory_id=NEVER)
        for action in ("associations", "chain", "bridges"):
            self.ask("/explore_connections", **{"action": action, "from": ids[1], "to": ids[2]})
        for path in ("/consolidate", "/backup"):
            self.ask(path)

    def _note(self) -> None:
        decision = {"action": "remember_decision", "decision": "Use brass", "rationale": "It shines"}
        pattern = {"action": "remember_pattern", "name": "Brass", "description": "Polish it."}
        self.ask("/codebase", **decision, codebase="harbour", files=["a.py"])
        self.ask("/codebase", **pattern, codebase="harbour", files=["a.py"])
        trigger = {"type": "context", "topic": "harbour"}
        told = self.ask("/intention", action="set", description="Buy brass", trigger=trigger)
        for status in ("snooze", "resume", "complete", "complete"):
            self.ask("/intention", action="update", id=told["intentionId"], status=status)
        for action in ("update", "delete"):
            self.ask("/intention", action=action, id=NEVER)

    def _read(self) -> None:
        about = {"codebase": "harbour", "topics": ["harbour"], "file": "a.py"}
        for more in (
            {}, {"retrieval_mode": "exhaustive", "explain": True}, {"scope": HOME}, {"scope": "/shared"},
            {"scope": f"{HOME}/attic"}, {"tags": [SECRET[:-1]]}, {"domains": [SECRET[:-1]]}, {"limitt": 1},
            {"context_session": "morning", "context_codebase": "harbour", "detail_level": "full"},
            {"scope": "/"}, {"scope": "/agent"}, {"token_budget": 200},
        ):  # fmt: skip
            self.ask("/search", query="What colour has the crane in the harbour?", **more)
        asked: dict[str, Any] = {"queries": ["harbour crane"], "context": about}
        for foresee in (False, True):
            self.ask("/session_context", **asked, include_predictions=foresee)
        self.ask("/session_context", scope="/shared", include_status=True, include_predictions=False)
        for action in ("get_context", "structure"):
            self.ask("/codebase", action=action, codebase="harbour")
            self.ask("/codebase", action=action)
        self.ask("/intention", action="check", context={"topics": ["harbour"]}, include_snoozed=True)
        self.ask("/intention", action="list", filter_status="all")
        self.ask("/predict", context={"current_topics": ["harbour"], "codebase": "harbour"})
        self.ask("/predict")
        for content in (*FACTS[:2], "Something else altogether."):
            self.ask("/importance_score", content=content, context_topics=["harbour"])
        for more in ({}, {"scope": f"{HOME}/attic"}, {"scope": "/shared"}, {"tags": [SECRET[:-1]]}):
            self.ask("/memory", action="list", detail_level="full", **more)

    def _change(self, memory_id: str) -> None:
        more: dict[str, dict[str, Any]] = {
            "delete": {"with_merges": True, "with_parts": True},
            "edit": {"content": FACTS[0]},
            "purge": {"confirm": True},
            "set_validity": {"valid_until": "2999-01-01"},
            "tag": {"add": ["new"], "remove": ["odd"]},
        }
        actions = sorted(name.partition(".")[2] for name in isolation.READS_OF_ONE | isolation.WRITES_OF_ONE)
        for asked in (NEVER, memory_id[:-1], memory_id):
            for action in [*actions, "history", "get_batch", "link", "rename_tag", "odd", "get"]:
                self.ask("/memory", action=action, memory_id=asked, **more.get(action, {}))


def plain(value: object) -> object:
    """An answer without what differs from run to run, and with lists in an order of their own."""
    match value:
        case dict():
            skipped = ("requestId", "tokensUsed")  # an id may have more tokens than another
            return {name: plain(one) for name, one in sorted(value.items()) if name not in skipped}
        case list():
            return sorted((plain(one) for one in value), key=str)
        case float():
            return "number"
        case str():
            lines = _CHANGING.sub("number", _ID.sub("id", value)).split("\n")
            return sorted(lines)
        case _:
            return value


def test_every_address_and_every_action_is_asked_for() -> None:
    here = Path(__file__).read_text(encoding="utf-8")
    assert [path for path in READERS if f'"{path}"' not in here] == []
    actions = {
        name.partition(".")[2] for name in isolation.READS | isolation.WRITES | isolation.INTENTIONS
    } - {""}
    assert [action for action in sorted(actions) if f'"{action}"' not in here] == []
