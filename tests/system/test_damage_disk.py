"""A disk that is full, files that cannot be written or read: it is told clearly, and nothing is lost."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from testbed.project import PROJECT
from testbed.world import open_world

NOBODY = 65534
MEGABYTES = 6

# The work of a child: it opens the store in argv[1], runs each call, and prints what came of it as JSON.
PREPARED = """
import json, os, resource, sys
from pathlib import Path
from testbed.world import HandClock, open_world
from vestige.core.errors import VestigeError
import vestige.engine.exchange.import_portable, vestige.operations.registry.groups
from vestige.store.sqlite import opening
opening.schema()
home = Path(sys.argv[1])
told = {}

def tried(name, call):
    try:
        told[name] = call()
    except VestigeError as error:
        told[name] = error.value()

opened = 0

def clock():
    global opened  # no two of them give the same ids
    opened += 1
    late = HandClock()
    for _ in range(10_000 * opened):
        late.new_id()
    return late
"""

FULL = (
    PREPARED
    + """
def fill(folder):
    with (folder / "filler").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass

def texts(world):
    found = world.call("memory", action="list", limit=100)["results"]
    return sorted(one["content"] for one in found)

with open_world(home, clock=clock()) as world:
    world.remember("Ada prefers tea.")
    world.call("export", format="json")
with open_world(home / "other", clock=clock()) as world:
    for number in range(40):
        world.remember(f"Tree {number}. " + f"birch{number} " * 60, force_create=True)
    world.call("export", format="portable", path="all.jsonl", scope="/")
(home / "other" / "exports" / "all.jsonl").rename(home / "exports" / "all.jsonl")
acknowledged = ["Ada prefers tea."]
with open_world(home, clock=clock()) as world:
    fill(home)
    for number in range(200):
        text = f"Stone {number}. " + f"granite{number} " * 60
        tried("ingest", lambda: world.remember(text, force_create=True))
        if isinstance(told["ingest"], dict):
            break
        acknowledged.append(text.strip())
    told["read"] = texts(world) == sorted(acknowledged)
    tried("backup", lambda: world.call("backup"))
    tried("rotate", lambda: world.call("backup", rotate=True))
    tried("snapshot", lambda: world.call("backup", snapshot=True))
    tried("export", lambda: world.call("export", format="json"))
    tried("import", lambda: world.call("import", path="all.jsonl"))
told["left"] = sorted(path.name for path in home.rglob("*") if path.name.endswith(".partial"))
(home / "filler").unlink()
with open_world(home, clock=clock()) as world:
    told["kept"] = texts(world) == sorted(acknowledged)
    tried("import again", lambda: world.call("import", path="all.jsonl") and len(texts(world)))
    tried("again", lambda: world.remember("Ben runs on Fridays."))
    tried("backup again", lambda: world.call("backup"))
print(json.dumps(told, default=str))
"""
)

MIGRATING = (
    PREPARED
    + """
import gzip, sqlite3
database = home / "vestige.db"
database.write_bytes(gzip.decompress(Path(sys.argv[2]).read_bytes()))
with (home / "filler").open("wb") as file:
    free = os.statvfs(home)
    file.write(bytes(max(0, free.f_bavail * free.f_frsize - 200_000)))

def held():
    with sqlite3.connect(database) as db:
        versions = [row[0] for row in db.execute("SELECT version FROM schema_migrations")]
        count = "SELECT (SELECT count(*) FROM memories), (SELECT count(*) FROM events)"
        return [versions, *db.execute(count).fetchone()]

before = held()

def count():
    with open_world(home, clock=clock()) as world:
        return world.call("system_status")["totalMemories"]

tried("open", count)
told["same"] = held() == before
(home / "filler").unlink()
tried("again", count)
told["held"] = held()[1]
print(json.dumps(told, default=str))
"""
)

LIMITED = (
    PREPARED
    + """
with open_world(home, clock=clock()) as world:
    world.remember("Ada prefers tea.")
    size = (home / "vestige.db").stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (65_536, resource.RLIM_INFINITY))
    tried("backup", lambda: world.call("backup"))
    tried("snapshot", lambda: world.call("backup", snapshot=True))
    for number in range(200):
        tried("ingest", lambda: world.remember(f"Stone {number}. " + f"granite{number} " * 60))
        if isinstance(told["ingest"], dict):
            break
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    told["found"] = world.find("Ada tea")
told["left"] = sorted(path.name for path in home.rglob("*") if path.name.endswith(".partial"))
print(json.dumps(told, default=str))
"""
)

UNPRIVILEGED = (
    PREPARED
    + f"""
import tempfile

def everything(home):
    def with_world(call):
        with open_world(home, clock=clock()) as world:
            return call(world)

    tried("status", lambda: with_world(lambda world: world.call("system_status")["readOnly"]))
    tried("search", lambda: with_world(lambda world: world.find("tea")))
    tried("ingest", lambda: with_world(lambda world: world.remember("Ben runs on Fridays.")))
    tried("backup", lambda: with_world(lambda world: world.call("backup")))
    tried("snapshot", lambda: with_world(lambda world: world.call("backup", snapshot=True)))
    tried("export", lambda: with_world(lambda world: world.call("export", format="json")))

# All that is imported late is imported now: the interpreter's own files may be out of the other user's reach.
with tempfile.TemporaryDirectory() as rehearsal:
    everything(Path(rehearsal) / "data")
if os.geteuid() == 0:
    os.setgroups([])
    os.setresgid({NOBODY}, {NOBODY}, {NOBODY})
    os.setresuid({NOBODY}, {NOBODY}, {NOBODY})
everything(home)
print(json.dumps(told, default=str))
"""
)


def run_child(script: str, *words: str, before: Sequence[str] = ()) -> dict[str, Any]:
    done = subprocess.run(
        [*before, sys.executable, "-c", script, *words],
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
        cwd=PROJECT,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.returncode == 0, done.stderr
    value: dict[str, Any] = json.loads(done.stdout)
    return value


@pytest.fixture
def small_disk(tmp_path: Path) -> list[str]:
    """The words that run a program with a disk of a few megabytes at tmp_path/data."""
    (tmp_path / "data").mkdir()
    mounted = f'mount -t tmpfs -o size={MEGABYTES}m,mode=700 none "{tmp_path}/data" && exec "$@"'
    words = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mounted, "sh"]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*words, "true"], check=False, capture_output=True).returncode
    ):
        pytest.skip("A SMALL DISK IS NOT TESTED: this system lets nobody mount one")
    return words


@pytest.mark.slow
def test_a_full_disk_is_told_by_every_way_to_write_and_costs_nothing(
    tmp_path: Path, small_disk: list[str]
) -> None:
    told = run_child(FULL, str(tmp_path / "data"), before=small_disk)
    for name in ("ingest", "backup", "rotate", "snapshot", "export", "import"):
        assert told[name]["code"] in ("store_full", "store"), name
        assert told[name]["hint"], name
    assert told["ingest"]["code"] == told["backup"]["code"] == "store_full"
    assert told["left"] == []
    assert told["read"]
    assert told["kept"]
    assert told["import again"] >= 41
    assert isinstance(told["again"], str)
    assert told["backup again"]["sizeBytes"] > 0


@pytest.mark.slow
def test_a_disk_too_full_to_migrate_leaves_the_store_as_it_was(tmp_path: Path, small_disk: list[str]) -> None:
    old = PROJECT / "tests" / "store" / "old" / "schema1.db.gz"
    told = run_child(MIGRATING, str(tmp_path / "data"), str(old), before=small_disk)
    assert told["open"]["code"] == "store_full"
    assert told["open"]["hint"]
    assert told["same"]
    assert told["again"] == told["held"] > 0


@pytest.mark.slow
def test_a_file_that_may_not_grow_is_told_and_costs_nothing(tmp_path: Path) -> None:
    told = run_child(LIMITED, str(tmp_path / "data"))
    for name in ("backup", "snapshot", "ingest"):
        assert told[name]["code"] in ("store_full", "store"), name
        assert told[name]["hint"], name
    assert told["found"][0] == "Ada prefers tea."
    assert told["left"] == []


# -- what may not be written, or not even read ---------------------------------------------------------


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A data directory with a memory in a place that other users can reach, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    with open_world(folder / "data") as world:
        world.remember("Ada prefers tea.")
    yield folder / "data"
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o700)
    shutil.rmtree(folder)


@pytest.mark.slow
def test_a_store_that_may_only_be_read_is_read_and_says_why_it_takes_nothing(reachable: Path) -> None:
    for path in reachable.rglob("*"):
        path.chmod(0o555 if path.is_dir() else 0o444)
    reachable.chmod(0o555)
    before = (reachable / "vestige.db").read_bytes()
    told = run_child(UNPRIVILEGED, str(reachable))
    assert told["status"] is True
    assert told["search"] == ["Ada prefers tea."]
    assert told["ingest"]["code"] == "store_read_only"
    assert told["ingest"]["hint"]
    for name in ("backup", "snapshot", "export"):
        assert told[name]["code"] in ("store", "store_read_only"), name
        assert told[name]["hint"], name
    assert (reachable / "vestige.db").read_bytes() == before


@pytest.mark.slow
def test_a_store_that_may_not_be_read_says_so(reachable: Path) -> None:
    (reachable / "vestige.db").chmod(0o000)
    reachable.chmod(0o755)
    told = run_child(UNPRIVILEGED, str(reachable))
    for name, answer in told.items():
        assert answer["code"] in ("store_read_only", "store"), name
        assert answer["hint"], name
        assert "vestige.db" in answer["message"], name
