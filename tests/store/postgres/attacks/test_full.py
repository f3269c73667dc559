"""A tablespace that is full: the error is named, what was acknowledged stays, and work goes on when there is
room again."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from testbed.project import PROJECT

pytestmark = pytest.mark.slow  # starts a server

MEGABYTES = 48
# The work of a child that sees the small disk at argv[1]: it runs a server with a tablespace there.
FULL = """
import json, sys
from contextlib import closing
from pathlib import Path
from testbed.postgres_server import own_server
from tests.store.support.generators import T0, a_memory, add
from tests.store.support.postgres_stores import open_at, query
from vestige.core.errors import StoreError
from vestige.core.models import ANYTHING, EVERYTHING

room = Path(sys.argv[1])
(room / "space").mkdir()
said = {}

def tried(name, call):
    try:
        call()
    except StoreError as error:
        said[name] = error.value()
        return False
    return True

def fill():
    with (room / "filler").open("wb", buffering=0) as file:
        for size in (1 << 20, 4096):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                pass

def texts(store):
    return {one.memory.id: one.memory.content for one in store.find(ANYTHING, access=EVERYTHING, limit=9999)}

with own_server({}) as server:
    query(server.url(), f"CREATE TABLESPACE small LOCATION '{room / 'space'}'")
    query(server.url(), "CREATE DATABASE filled TEMPLATE template0 TABLESPACE small")
    url = server.url("filled")
    with closing(open_at(url)) as store:
        acknowledged = {}
        for number in range(2000):
            if number == 20:
                fill()
            text = f"Stone {number}. " + f"granite{number} " * 200
            if not tried("write", lambda: add(store, a_memory(f"m{number}", text))):
                break
            acknowledged[f"m{number}"] = text
        said["acknowledged"] = len(acknowledged)
        said["read"] = texts(store) == acknowledged
        tried("make", lambda: open_at(url, schema="other").close())
        (room / "filler").unlink()
        said["kept"] = texts(store) == acknowledged
        said["again"] = tried("write again", lambda: add(store, a_memory("later")))
        said["made"] = tried("make again", lambda: open_at(url, schema="other").close())
        said["broken"] = [one.message for one in store.examine(T0, deep=True) if one.severity == "broken"]
print(json.dumps(said, default=str))
"""


@pytest.fixture
def small_disk(tmp_path: Path) -> list[str]:
    """The words that run a program, not as root, with a small disk at tmp_path/disk."""
    (tmp_path / "disk").mkdir()
    mounted = (
        f'mount -t tmpfs -o size={MEGABYTES}m,mode=777 none "{tmp_path}/disk"'
        ' && exec unshare --user --map-user=1000 --map-group=1000 "$@"'
    )
    words = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mounted, "sh"]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*words, "true"], check=False, capture_output=True).returncode
    ):
        pytest.skip("A FULL TABLESPACE IS NOT TESTED: this system lets nobody mount a disk")
    return words


def test_a_full_tablespace_is_named_and_costs_nothing_that_was_acknowledged(
    tmp_path: Path, small_disk: list[str]
) -> None:
    done = subprocess.run(
        [*small_disk, sys.executable, "-c", FULL, str(tmp_path / "disk")],
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
        cwd=PROJECT,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{PROJECT / 'src'}:{PROJECT}"},
    )
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    assert said["acknowledged"] >= 20
    for name in ("write", "make"):
        assert said[name]["code"] == "store_full", said[name]
        assert "disk space" in said[name]["hint"]
    assert said["read"]
    assert said["kept"]
    assert said["again"], said
    assert said["made"], said
    assert said["broken"] == []
