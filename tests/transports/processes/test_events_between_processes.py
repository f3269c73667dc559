"""What happens in one process is told in the others: real servers, commands and followers on one store."""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

from testbed.patience import PATIENCE_SECONDS
from testbed.world import open_world
from tests.conftest import store_of
from tests.transports.cli.harness import ENVIRONMENT
from tests.transports.mcp.harness import sdk_process
from vestige.core.events import Event

pytestmark = pytest.mark.slow

SERVER = str(Path(sys.executable).with_name("vestige-mcp"))
VESTIGE = [sys.executable, "-m", "vestige"]

TEXTS = [
    "Ada plays the violin in the city orchestra.",
    "The orchestra of Ada rehearses in the city.",
    "Ada bought strings for her violin.",
    "Grace maintains the parser.",
    "Deploys happen on Friday.",
]


def environment(home: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", **ENVIRONMENT}


class Follower:
    """A running `vestige events`, and the lines it has written."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout
        assert process.stderr
        self.process, self.stdout, self.stderr = process, process.stdout, process.stderr
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()

    def read(self) -> None:
        """Begin to read: in the background, so that nobody waits for a line for ever."""
        threading.Thread(target=self._read, args=(self.stdout,), daemon=True).start()

    def until(self, kind: str) -> list[dict[str, Any]]:
        """What it tells up to the first event of a type."""
        told: list[dict[str, Any]] = []
        while not told or told[-1]["type"] != kind:
            told.append(json.loads(self._lines.get(timeout=PATIENCE_SECONDS)))
        return told

    def _read(self, lines: IO[str]) -> None:
        for line in lines:
            self._lines.put(line)


@contextmanager
def following(folder: Path, *options: str) -> Iterator[Follower]:
    """A follower that is there already: what happens from now on is told."""
    with subprocess.Popen(
        [*VESTIGE, "events", "--data-dir", str(folder), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env=environment(folder),
    ) as process:
        try:
            follower = Follower(process)
            assert follower.stderr.readline() == "Listening for events; press Ctrl-C to stop.\n"
            yield follower
        finally:
            process.kill()


def vestige(folder: Path, *words: str) -> dict[str, Any]:
    done = subprocess.run(
        [*VESTIGE, "--data-dir", str(folder), *words],
        capture_output=True,
        encoding="utf-8",
        env=environment(folder),
        timeout=PATIENCE_SECONDS,
        check=True,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.fixture(params=["sqlite", "postgres"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A data directory whose settings name each kind of store in turn."""
    with store_of(request) as settings:
        if url := settings.get("storage.postgres.url"):
            (tmp_path / "vestige.toml").write_text(
                f'[storage]\nbackend = "postgres"\n[storage.postgres]\nurl = "{url}"\nschema = "public"\n',
                encoding="utf-8",
            )
        yield tmp_path


def test_what_two_servers_do_is_told_by_a_third_process(folder: Path) -> None:
    with (
        following(folder) as follower,
        sdk_process(SERVER, "--data-dir", str(folder), **environment(folder)) as one,
        sdk_process(SERVER, "--data-dir", str(folder), **environment(folder)) as two,
    ):
        follower.read()
        stored = one.tool("smart_ingest", {"content": TEXTS[0]}).structured_content
        assert stored
        created = follower.until("MemoryCreated")[-1]["data"]
        assert (created["id"], created["content_preview"]) == (stored["nodeId"], TEXTS[0])

        two.tool("smart_ingest", {"items": [{"content": text} for text in TEXTS[1:]]})
        dream = two.tool("dream", {"memory_count": 5}).structured_content
        assert dream
        told = follower.until("DreamCompleted")
        assert sum(event["type"] == "MemoryCreated" for event in told) == len(TEXTS) - 1
        assert told[-1]["data"]["memories_replayed"] == 5


def test_a_command_tells_what_it_did_and_a_follower_ends_after_as_many_as_it_was_asked_for(
    folder: Path,
) -> None:
    with following(folder, "--type", "MemoryCreated", "--type", "MemoryDeleted", "--limit", "2") as follower:
        follower.read()
        memory = vestige(folder, "ingest", TEXTS[0])["nodeId"]
        (created,) = follower.until("MemoryCreated")  # before the deletion, which takes it away
        vestige(folder, "search", "violin")
        vestige(folder, "memory", "delete", memory, "--yes")
        (deleted,) = follower.until("MemoryDeleted")

        assert created["data"]["id"] == deleted["data"]["id"] == memory
        assert follower.process.wait(PATIENCE_SECONDS) == 0
        assert follower.stderr.read() == ""


def test_people_get_a_line_for_each_event(tmp_path: Path) -> None:
    with following(tmp_path, "--table", "--type", "MemoryCreated", "--limit", "1") as follower:
        vestige(tmp_path, "ingest", "Tea\x1b[2J is hot.")
        told, _ = follower.process.communicate(timeout=PATIENCE_SECONDS)
    (line,) = told.splitlines()
    assert "  MemoryCreated           scope=" in line
    assert "content_preview=Tea\\x1b[2J is hot." in line


def test_ctrl_c_ends_a_follower_without_a_word(tmp_path: Path) -> None:
    with following(tmp_path) as follower:
        follower.process.send_signal(signal.SIGINT)
        told, complaints = follower.process.communicate(timeout=PATIENCE_SECONDS)
    assert (told, complaints.strip(), follower.process.returncode) == ("", "", 130)


def test_a_reader_that_goes_away_ends_a_follower_though_nothing_happens(tmp_path: Path) -> None:
    with following(tmp_path) as follower:
        follower.stdout.close()
        assert follower.process.wait(PATIENCE_SECONDS) == 0
        assert follower.stderr.read() == ""


def test_an_event_of_another_process_reaches_who_listens_everywhere_and_nothing_reacts_to_it(
    tmp_path: Path,
) -> None:
    everywhere: queue.SimpleQueue[Event] = queue.SimpleQueue()
    with open_world(tmp_path) as world:
        app = world.app
        app.autopilot.start()
        app.exchange_events()
        with app.engine.events.listening(everywhere.put, everywhere=True):
            memory = vestige(tmp_path, "ingest", TEXTS[0])["nodeId"]
            while (told := everywhere.get(timeout=PATIENCE_SECONDS).message())["type"] != "MemoryCreated":
                pass
        assert told["data"]["id"] == memory
        app.settle()
        assert app.autopilot.status().handled == 0
        assert world.heard == []
