"""What is noticed when an installed model changes on disk."""

import json
import os
import shutil
from pathlib import Path

import pytest

from vestige.core.errors import ModelDamaged
from vestige.core.pair_model import PairModelState
from vestige.embed.minilm.manifest import MODEL_FILES, PAIR_FILES, PAIR_MODEL, VERIFIED, read_manifest, verify
from vestige.embed.minilm.weights import PairDelta
from vestige.embed.onnx import OnnxEmbedder


@pytest.fixture
def folder(tiny_model: Path, tmp_path: Path) -> Path:
    copy = tmp_path / "model"
    shutil.copytree(tiny_model, copy)
    verify(copy)
    return copy


@pytest.fixture
def pair_folder(tiny_pair_model: Path, tmp_path: Path) -> Path:
    copy = tmp_path / "pairs"
    shutil.copytree(tiny_pair_model, copy)
    verify(copy)
    return copy


def flip_a_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)


def test_an_untouched_model_is_good_and_knows_its_size(folder: Path) -> None:
    manifest = verify(folder, full=True)
    assert manifest.size == sum((folder / name).stat().st_size for name in MODEL_FILES)


@pytest.mark.parametrize("name", MODEL_FILES)
def test_a_flipped_byte_is_noticed(name: str, folder: Path) -> None:
    flip_a_byte(folder / name)
    with pytest.raises(ModelDamaged, match=f"content of {name}") as caught:
        verify(folder)
    assert caught.value.hint == "vestige model install --force"
    assert caught.value.code == "model_damaged"


def test_a_damaged_or_missing_pair_graph_leaves_a_model_that_embeds(
    pair_folder: Path, tiny_delta: PairDelta
) -> None:
    manifest = verify(pair_folder, full=True)
    assert manifest.files.keys() == {*MODEL_FILES, *PAIR_FILES}
    assert manifest.pair_model == tiny_delta.sha256
    flip_a_byte(pair_folder / PAIR_MODEL)
    assert verify(pair_folder).pair_model is None
    (pair_folder / PAIR_MODEL).unlink()
    manifest = verify(pair_folder)
    assert (set(manifest.files), manifest.pair_model) == ({*MODEL_FILES}, None)
    assert OnnxEmbedder(pair_folder, threads=1).pair_model_state is PairModelState.ABSENT
    flip_a_byte(pair_folder / "model.onnx")
    with pytest.raises(ModelDamaged, match=r"content of model\.onnx"):
        verify(pair_folder)


def test_a_manifest_of_an_earlier_version_is_that_of_a_folder_without_the_pair_graph(folder: Path) -> None:
    content = json.loads((folder / "manifest.json").read_bytes())
    del content["pairs"]
    (folder / "manifest.json").write_text(json.dumps(content), encoding="utf-8")
    assert verify(folder).pair_model is None


def test_a_flipped_byte_is_noticed_when_the_modification_time_was_set_back(folder: Path) -> None:
    path = folder / "embeddings.bin"
    before = path.stat()
    flip_a_byte(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(ModelDamaged, match="content of embeddings"):
        verify(folder)


@pytest.mark.parametrize("name", MODEL_FILES)
def test_a_truncated_file_is_noticed(name: str, folder: Path) -> None:
    os.truncate(folder / name, (folder / name).stat().st_size // 2)
    with pytest.raises(ModelDamaged, match="bytes instead of"):
        verify(folder)


@pytest.mark.parametrize("name", MODEL_FILES)
def test_a_missing_file_is_noticed(name: str, folder: Path) -> None:
    (folder / name).unlink()
    with pytest.raises(ModelDamaged, match=f"{name} is missing"):
        verify(folder)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"format": 1}', b'{"format": 99}', b"null", b"\xff"])
def test_a_manifest_that_cannot_be_understood_is_a_damaged_model(content: bytes, folder: Path) -> None:
    (folder / "manifest.json").write_bytes(content)
    with pytest.raises(ModelDamaged):
        read_manifest(folder)


def test_a_good_model_is_read_in_full_only_once(folder: Path) -> None:
    """The note about the last verification is what saves the reading: forging it fools a quick look."""
    flip_a_byte(folder / "model.onnx")
    stats = {name: (folder / name).stat() for name in MODEL_FILES}
    note = {name: [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns] for name, stat in stats.items()}
    (folder / VERIFIED).write_text(json.dumps(note), encoding="utf-8")
    verify(folder)
    with pytest.raises(ModelDamaged):
        verify(folder, full=True)


@pytest.mark.parametrize("note", [b"", b"{}", b"\x00garbage"])
def test_a_lost_or_torn_note_means_reading_again(note: bytes, folder: Path) -> None:
    good = (folder / VERIFIED).read_bytes()
    (folder / VERIFIED).write_bytes(note)
    verify(folder)
    assert (folder / VERIFIED).read_bytes() == good


def test_a_copied_model_is_good(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "copy")
    assert verify(tmp_path / "copy").signature == verify(folder).signature
