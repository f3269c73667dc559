"""The page about the API is true: its commands, its error and its program, run against a real server."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from testbed.patience import PATIENCE_SECONDS
from testbed.project import PROJECT
from tests.transports.http.support.harness import environment, key_in, serving

pytestmark = pytest.mark.slow

PAGE = PROJECT / "docs" / "howto" / "api.md"
ADDRESS = "http://127.0.0.1:3927"
"""Where the page says the server is."""


def block(language: str) -> str:
    """The only block of this language."""
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return str(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Somebody who does what the page says."""

    url: str
    env: dict[str, str]

    def ran(self, *command: str) -> str:
        told = [part.replace(ADDRESS, self.url) for part in command]
        done = subprocess.run(
            told, capture_output=True, encoding="utf-8", env=self.env, timeout=PATIENCE_SECONDS, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def asked(self, command: str) -> dict[str, Any]:
        """The answer to one of the page's commands, after what they all need but the key, which is set."""
        if shutil.which("curl") is None:
            pytest.skip("the commands of the page are for curl")
        (setting,) = [line for line in block("sh").splitlines() if line.startswith("export URL=")]
        answer: dict[str, Any] = json.loads(self.ran("bash", "-c", f"{setting}\n{command}"))
        return answer


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    with serving(tmp_path / "data") as server:
        key = key_in(tmp_path / "data")
        yield Reader(url=server.url, env=environment(tmp_path, VESTIGE_KEY=key))


def test_the_commands_find_list_and_delete_what_they_remembered(reader: Reader) -> None:
    remember, search, listing, delete = [line for line in block("sh").splitlines() if line.startswith("curl")]
    kept = reader.asked(remember)["nodeId"]
    assert [hit["id"] for hit in reader.asked(search)["results"]] == [kept]
    assert [one["id"] for one in reader.asked(listing)["results"]] == [kept]
    assert reader.asked(delete.replace("/ID", f"/{kept}"))["success"]
    assert reader.asked(listing)["results"] == []


def test_the_error_is_the_one_that_is_shown(reader: Reader) -> None:
    shown = json.loads(block("json"))
    told = reader.asked(f'curl -H "$AUTH" $URL/memories/{shown["details"]["id"]}')
    assert {**told, "requestId": shown["requestId"]} == shown
    assert list(told) == list(shown)


def test_the_program_finds_what_it_remembered_and_is_told_what_is_missing(reader: Reader) -> None:
    found, missing = reader.ran(sys.executable, "-c", block("python")).splitlines()
    assert found == "Harbour runs on PostgreSQL 16."
    assert missing == "There is no memory 0195c0de-0000-7000-8000-000000000000."
