"""Memories stay where their owner put them, and nobody else hears of them."""

import os
import stat
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from testbed.world import open_world
from tests.engine.recall.sessions.transcripts import call_of, index_of, plant
from tests.system.hostile.mutations import fill
from tests.transports.cli.harness import invoke
from vestige.core.errors import VestigeError
from vestige.engine.context import Call
from vestige.engine.recall.sessions.archive import archive
from vestige.operations.registry.groups import registry

REMEMBER_AND_FIND = """
import sys
from vestige.app.app import open_app
from vestige.core.caller import Invocation
with open_app({"data_dir": sys.argv[1], "embeddings.cache_dir": sys.argv[2], "offline": True}) as app:
    def call(tool, **arguments):
        return app.call_tool(Invocation(name=tool, arguments=arguments))
    call("smart_ingest", content="The heron stands in the pond.")
    while call("search", query="a bird in the water")["method"] != "hybrid":
        pass  # the model is still being loaded
"""


@pytest.mark.slow
def test_the_model_reports_to_nobody(real_model_dir: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    environ = {name: value for name, value in os.environ.items() if "TELEMETRY" not in name}
    environ |= {"HOME": str(home), "XDG_CACHE_HOME": str(home / ".cache")}

    done = subprocess.run(
        [sys.executable, "-c", REMEMBER_AND_FIND, str(tmp_path / "data"), str(real_model_dir.parent)],
        env=environ,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    # onnxruntime would have left a device id and a queue of reports here.
    assert [path for path in home.rglob("*") if path.is_file()] == []


@pytest.mark.skipif(os.name != "posix", reason="there are no such permissions")
def test_whatever_is_done_no_file_of_the_data_directory_is_open_to_others(tmp_path: Path) -> None:
    home, data, code = tmp_path / "home", tmp_path / "data", tmp_path / "code"
    for folder in (home, data, code / ".git"):
        folder.mkdir(parents=True)
    (code / "shop.py").write_text("def price():\n    return 1\n", encoding="utf-8")
    before = os.umask(0)
    try:
        settings: dict[str, Any] = {"sessions.home": str(home), "data_dir": str(data)}
        with open_world(home, template=False, place=code, **settings) as world:
            plant(home)
            fill(world)
            archive(call_of(world), index_of(world))
            for operation in registry.operations.values():
                arguments = dict(operation.example)
                arguments |= {"project": str(code)} if "project" in arguments else {}
                with suppress(VestigeError):
                    operation.answer(Call(engine=world.app.engine, local=True), arguments)
            world.app.settle()
    finally:
        os.umask(before)
    files = {one: stat.S_IMODE(one.stat().st_mode) for one in data.rglob("*") if one.is_file()}
    assert {"agent", "backups", "exports", "session-archive"} <= {
        one.relative_to(data).parts[0] for one in files
    }
    assert {one: oct(mode) for one, mode in files.items() if mode & 0o077} == {}


def test_a_project_that_links_its_database_elsewhere_is_refused(tmp_path: Path) -> None:
    data = tmp_path / ".vestige"
    data.mkdir()
    (data / "vestige.db").symlink_to(tmp_path / "published.db")

    with pytest.raises(VestigeError) as refused, open_world(data):
        pass

    assert refused.value.code == "config"
    assert not (tmp_path / "published.db").exists()


def test_the_root_of_a_repository_is_no_data_directory(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()

    with pytest.raises(VestigeError) as refused, open_world(tmp_path):
        pass

    assert refused.value.code == "config"
    assert sorted(path.name for path in tmp_path.iterdir()) == [".git"]


@pytest.mark.parametrize("name", [".vestige", "memory"])
def test_a_new_directory_in_a_project_hides_itself_from_git(tmp_path: Path, name: str) -> None:
    (tmp_path / ".git").mkdir()

    with open_world(tmp_path / name, template=False) as world:
        world.remember("Only for this project.")

    assert (tmp_path / name / ".gitignore").read_text(encoding="utf-8") == "*\n"


def test_a_directory_that_was_there_before_gets_no_gitignore(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "notes").mkdir()

    with open_world(tmp_path / "notes", template=False) as world:
        world.remember("Beside the notes.")

    assert not (tmp_path / "notes" / ".gitignore").exists()


def test_a_memory_cannot_drive_the_terminal(tmp_path: Path) -> None:
    flags = ["--data-dir", str(tmp_path)]
    invoke(["ingest", *flags, "x \x1b]0;pwned\x07 \x1b[31mRED \x9b2J"])

    for words in (["memory", "list"], ["search", "pwned"], ["timeline"]):
        shown = invoke([*words, *flags, "--table"]).stdout
        assert "pwned" in shown
        assert not [sign for sign in shown if ord(sign) < 32 and sign not in "\n\t"]
        assert "\x9b" not in shown
