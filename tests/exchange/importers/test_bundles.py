"""Archives are read within bounds, and long arrays one element at a time."""

import io
import json
import tracemalloc
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vestige.core.errors import InvalidInput, TooLarge
from vestige.exchange.importers import bundles
from vestige.exchange.importers.bundles import array_elements, bundle

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


def elements(text: str | bytes) -> list[object]:
    data = text if isinstance(text, bytes) else text.encode()
    return list(array_elements(io.BytesIO(data), "a file"))


class SlowFile(io.BytesIO):
    """A file that gives a few bytes at a time, as a socket or an archive may."""

    def read(self, size: int | None = -1) -> bytes:
        return super().read(min(7, size) if size and size > 0 else 7)


@given(st.lists(VALUES, max_size=6), st.sampled_from([None, 1]), st.booleans())
def test_an_array_is_read_as_the_standard_library_reads_it(
    values: list[object], indent: int | None, ascii_only: bool
) -> None:
    data = json.dumps(values, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    assert list(array_elements(SlowFile(data), "a file")) == json.loads(data)


@pytest.mark.parametrize("text", ["", "{}", "[1", "[1,", "[1 2]", '["a', "[" * 100_000, b"[\xff]", "[nope]"])
def test_what_is_not_an_array_is_refused(text: str | bytes) -> None:
    with pytest.raises((InvalidInput, TooLarge)):
        elements(text)


@pytest.mark.parametrize("number", ["-1.5", "1e5", "1E+5", "2.25e-10"])
def test_a_number_may_be_cut_anywhere(number: str) -> None:
    for spaces in range(8):
        data = f"{' ' * spaces}[{number},{number}]".encode()
        assert list(array_elements(SlowFile(data), "a file")) == [float(number)] * 2


@pytest.mark.parametrize("value", ['"a"', "1", "{}", "true"])
def test_a_missing_comma_is_reported_without_reading_on(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundles, "CHUNK_BYTES", 100)
    file = io.BytesIO(f"[{value}x{' ' * 10_000}".encode())

    with pytest.raises(InvalidInput, match="a comma is missing"):
        list(array_elements(file, "a file"))
    assert file.tell() == 100


def test_a_record_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundles, "MAX_ELEMENT_CHARS", 1_000)
    monkeypatch.setattr(bundles, "CHUNK_BYTES", 100)
    with pytest.raises(TooLarge):
        elements(json.dumps(["x" * 5_000]))


def test_a_long_array_does_not_stay_in_memory() -> None:
    data = json.dumps([{"text": "x" * 10_000}] * 2_000).encode()
    tracemalloc.start()
    count = sum(1 for _ in array_elements(io.BytesIO(data), "a file"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert (count, peak < len(data) / 2) == (2_000, True)


def test_a_decompression_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", b"[" + b" " * 40_000_000)

    with pytest.raises(TooLarge, match="40,000,001 bytes"), bundle(tmp_path / "bomb.zip"):
        pass


def test_an_archive_that_is_damaged_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("conversations.json", json.dumps(["x" * 100]))
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"xxxx", b"yyyy"))

    with bundle(path) as files, pytest.raises(InvalidInput, match="unpacked"):
        list(files.elements("conversations.json"))
    path.write_bytes(whole[:-30])
    with pytest.raises(InvalidInput), bundle(path):
        pass


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_damaged_file_is_refused_whatever_packed_it(tmp_path: Path, method: int) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("a.json", json.dumps(list(range(500))))
        packed_bytes = archive.getinfo("a.json").compress_size
    whole = path.read_bytes()
    start = 30 + len("a.json")  # the header of a packed file and its name

    for at in range(start + 9, start + packed_bytes - 9, 7):  # not all bits at the ends matter to LZMA
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        with bundle(path) as files, pytest.raises(InvalidInput):
            list(files.elements("a.json"))


def test_a_failure_of_the_disk_is_not_called_damage(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a.json", "[1]")

    with bundle(tmp_path / "a.zip") as files, pytest.raises(FileNotFoundError), files.open("a.json"):
        (tmp_path / "gone").read_bytes()


def test_links_hidden_files_and_unknown_names_are_not_files_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("[1]", encoding="utf-8")
    (tmp_path / ".b.json").write_text("[1]", encoding="utf-8")
    (tmp_path / "c.json").symlink_to("/etc/passwd")

    with bundle(tmp_path) as files:
        assert files.names == ("a.json",)
        with pytest.raises(InvalidInput, match="has no file"):
            files.load("c.json", 100)
