"""The composition root: when the model is loaded, installed or refused, and how everything ends."""

import logging
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from testbed.patience import PATIENCE_SECONDS
from testbed.world import HandClock, open_world
from tests.embed import fake_endpoint
from tests.embed.minilm.silent_index import SilentIndex
from vestige.app.app import App, machine_id, machine_without_id, open_app, open_server
from vestige.core.caller import Invocation
from vestige.embed.background import RETRY_SECONDS, EmbedderSource, EmbedderState
from vestige.embed.hashing import HashingEmbedder
from vestige.embed.protocol import Encoded


def local(tmp_path: Path, **settings: Any) -> dict[str, Any]:
    """Options for the local model with an empty cache."""
    return {
        "data_dir": str(tmp_path / "data"),
        "storage.backend": "memory",
        "embeddings.cache_dir": str(tmp_path / "models"),
        **settings,
    }


def call(app: App, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    return app.call_tool(Invocation(name=tool, arguments=arguments))


def test_ctrl_c_while_everything_is_imported_leaves_no_traceback() -> None:
    code = (
        "import sys\n"
        "class Interrupted:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'vestige.app':\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupted())\n"
        "from vestige.__main__ import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "")


# -- when the model is brought ------------------------------------------------------------------------


def test_an_operation_that_needs_no_model_does_not_load_it(tmp_path: Path) -> None:
    with open_world(tmp_path) as world:
        world.call("memory_timeline")
        assert world.app.engine.embedders.status().state is EmbedderState.ABSENT
        world.remember("Ada prefers tea.")
        assert world.app.engine.embedders.status().state is EmbedderState.READY


def test_a_short_lived_app_installs_nothing_and_says_how_to(tmp_path: Path) -> None:
    with open_app(local(tmp_path), environ={}) as app:
        answer = call(app, "search", {"query": "tea"})
        assert answer["method"] == "keyword"
        assert "`vestige model install`" in answer["note"]
        assert app.engine.embedders.status().state is EmbedderState.ABSENT
    assert not (tmp_path / "models").exists()


@pytest.mark.slow
def test_a_server_installs_an_absent_model_by_itself_and_stops_that_when_it_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SilentIndex() as index:
        for name, value in index.pip_settings.items():
            monkeypatch.setenv(name, value)
        with open_server(local(tmp_path)) as app:
            pip = index.asked()
            assert app.engine.embedders.status().state is EmbedderState.INSTALLING
            assert call(app, "search", {"query": "tea"})["method"] == "keyword"
        index.hung_up(pip)
    assert [path.name for path in (tmp_path / "models").iterdir()] == [".install.lock"]


def test_a_server_is_warm_before_anybody_asks_for_the_model(tmp_path: Path) -> None:
    ready = threading.Event()
    with open_server(local(tmp_path, **{"embeddings.provider": "hashing"})) as app:
        app.engine.embedders.on_ready(lambda _embedder: ready.set())
        assert ready.wait(PATIENCE_SECONDS)


def test_a_model_that_failed_to_load_is_tried_again_and_what_it_missed_is_embedded(tmp_path: Path) -> None:
    clock = HandClock()
    with fake_endpoint.serving() as endpoint:
        endpoint.script.append((404, {}, {"error": "the model is still being pulled"}))
        options: dict[str, Any] = {"embeddings.url": endpoint.url}
        with open_world(tmp_path, clock=clock, provider="openai", **options) as world:
            embedded = world.app.embed_missing_when_ready()
            assert world.app.engine.embedders.get(PATIENCE_SECONDS) is None
            memory_id = world.remember("Ada prefers tea.")
            assert world.get(memory_id)["hasEmbedding"] is False
            clock.advance(hours=RETRY_SECONDS / 3600)
            found = world.call("search", query="Ada prefers tea.")  # vectors are random: other words are far
            assert found["total"] == 1
            assert embedded.wait(PATIENCE_SECONDS)
            assert world.get(memory_id)["hasEmbedding"] is True


# -- the network --------------------------------------------------------------------------------------


def remote(tmp_path: Path, url: str) -> dict[str, Any]:
    return {
        "data_dir": str(tmp_path),
        "storage.backend": "memory",
        "embeddings.provider": "openai",
        "embeddings.url": url,
        "offline": True,
    }


def test_offline_a_remote_endpoint_is_never_asked(tmp_path: Path) -> None:
    with open_app(remote(tmp_path, "http://192.0.2.1:9/v1"), environ={}) as app:
        assert app.engine.embedders.get(PATIENCE_SECONDS) is None
        status = app.engine.embedders.status()
    assert status.state is EmbedderState.OFFLINE
    assert "192.0.2.1" in status.detail
    assert "VESTIGE_OFFLINE" in status.detail
    assert status.error is not None
    assert "localhost" in status.error["hint"]


def test_offline_an_endpoint_on_this_machine_is_used(tmp_path: Path) -> None:
    with fake_endpoint.serving() as endpoint, open_app(remote(tmp_path, endpoint.url), environ={}) as app:
        assert app.engine.embedders.get(PATIENCE_SECONDS) is not None


# -- the end ------------------------------------------------------------------------------------------


class Stuck(HashingEmbedder):
    """Says that it began, and embeds only when it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = threading.Event()
        self.release = threading.Event()

    def encode_documents(self, texts: Sequence[str]) -> list[Encoded]:
        self.begun.set()
        assert self.release.wait(PATIENCE_SECONDS)
        return super().encode_documents(texts)


def as_soon_as(begun: threading.Event, let_go: threading.Event) -> None:
    """Let somebody go on when something has begun."""

    def wait() -> None:
        assert begun.wait(PATIENCE_SECONDS)
        let_go.set()

    threading.Thread(target=wait).start()


def test_closing_gives_up_on_a_slice_that_does_not_end_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stuck = Stuck()
    with open_world(tmp_path, provider="off") as world:
        world.remember("Written while no model was there.")
        engine = replace(world.app.engine, embedders=EmbedderSource.of(stuck))
        app = App(engine, close_seconds=0.01)
        done = app.embed_missing_when_ready()
        assert stuck.begun.wait(PATIENCE_SECONDS)
        with caplog.at_level(logging.WARNING):
            app.close()
        assert not done.is_set()
        stuck.release.set()
        assert done.wait(PATIENCE_SECONDS)
    assert "Closing without waiting" in caplog.text


def test_closing_lets_the_slice_under_way_finish_and_begins_no_other(tmp_path: Path) -> None:
    stuck = Stuck()
    with open_world(tmp_path, provider="off") as world:
        for number in range(200):
            world.remember(f"Fact {number} about the number {number}.", thread="numbers", position=number)
        engine = replace(world.app.engine, embedders=EmbedderSource.of(stuck))
        app = App(engine)
        done = app.embed_missing_when_ready()
        assert stuck.begun.wait(PATIENCE_SECONDS)
        as_soon_as(app._closing, stuck.release)
        app.close()
        assert done.is_set()
    with open_world(tmp_path, provider="off") as world:
        assert 0 < world.call("system_status")["withEmbeddings"] < 200


def test_nothing_is_embedded_by_an_app_that_was_closed_before_its_model_came(tmp_path: Path) -> None:
    release, stuck = threading.Event(), Stuck()

    def load(_progress: object) -> HashingEmbedder:
        assert release.wait(PATIENCE_SECONDS)
        return stuck

    with open_world(tmp_path, provider="off") as world:
        world.remember("Written while no model was there.")
        app = App(replace(world.app.engine, embedders=EmbedderSource(load)))
        app.embed_missing_when_ready()
        as_soon_as(app._closing, release)
        app.close()
    assert not stuck.begun.is_set()


@pytest.mark.parametrize(
    "text", ["", "\n", "uninitialized\n", "0" * 32, "00000000-0000-0000-0000-000000000000"]
)
def test_an_empty_or_constant_machine_id_is_no_identity(tmp_path: Path, text: str) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text(text, encoding="utf-8")
    assert machine_id(first, second) is None
    second.write_text("0123456789abcdef0123456789abcdef\n", encoding="utf-8")
    assert machine_id(first, second) == "0123456789abcdef0123456789abcdef"


def test_a_machine_without_an_id_is_named_by_its_card_but_not_by_a_number_that_python_made_up() -> None:
    assert machine_without_id("host", 0x00_0000_000002) == "host-2"
    assert machine_without_id("host", 0x01_0000_0000 << 8) == machine_without_id("host", 0x0100_0000_0003)


FRESH = """
import sys
from vestige.app.app import FIRST_TOOLS, open_app
from vestige.core.caller import Invocation
app = open_app({"data_dir": sys.argv[1], "embeddings.provider": "off"})
app.call_tool(Invocation(name="smart_ingest", arguments={"content": "The vault opens at nine."}))
app.call_tool(Invocation(name="session_context", arguments={"queries": ["vault"]}))
app.call_tool(Invocation(name="search", arguments={"query": "vault"}))
print("vestige.operations.registry.groups" in sys.modules)
app.call_tool(Invocation(name="memory", arguments={"action": "list"}))
from vestige.operations.registry.groups import registry
print({registry.operations[name].module == module for name, module in FIRST_TOOLS.items()})
app.close()
"""


def test_the_tools_that_agents_call_first_import_no_others(tmp_path: Path) -> None:
    answer = subprocess.run(
        [sys.executable, "-c", FRESH, str(tmp_path)], capture_output=True, text=True, timeout=120, check=True
    )
    assert answer.stdout.split("\n")[:2] == ["False", "{True}"]
