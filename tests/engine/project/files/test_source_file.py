"""Files are read without following links, with limits, and without their secrets."""

import os
from pathlib import Path

import pytest

from vestige.engine.project.files.fail_safe import MAX_LINE_CHARS, Skip
from vestige.engine.project.files.source_file import current_hash, read_source

KEY = "AKIA" + "Q7R2ZK5N3JV8XWTM"


def test_the_text_comes_without_a_byte_order_mark(root: Path) -> None:
    (root / "a.py").write_bytes(b"\xef\xbb\xbfx = 1\n")
    found = read_source(root, "a.py")
    assert found is not None
    assert found.text == "x = 1\n"


def test_invalid_bytes_are_replaced(root: Path) -> None:
    (root / "a.py").write_bytes(b"name = '\xff\xfe'\n")
    found = read_source(root, "a.py")
    assert found is not None
    assert found.text == "name = '\ufffd\ufffd'\n"
    assert found.skip is None


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("a.dat", b"text\0more", Skip.BINARY),
        ("a.js", b"x" * (MAX_LINE_CHARS + 1), Skip.MINIFIED),
        ("a.md", b"x" * (MAX_LINE_CHARS + 1), None),
        ("a.js", b"x\n" * MAX_LINE_CHARS, None),
    ],
)
def test_what_the_content_shows_is_a_reason_too(
    root: Path, name: str, data: bytes, reason: Skip | None
) -> None:
    (root / name).write_bytes(data)
    found = read_source(root, name)
    assert found is not None
    assert found.skip is reason
    assert bool(found.text) == (reason is None)


def test_a_link_is_not_read_wherever_it_is(root: Path, tmp_path: Path) -> None:
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "a.py").write_text("x = 1\n", encoding="utf-8")
    (root / "folder").symlink_to(tmp_path / "private")
    (root / "a.py").symlink_to(tmp_path / "private" / "a.py")
    assert read_source(root, "folder/a.py") is None
    assert read_source(root, "a.py") is None
    assert current_hash(root, "folder/a.py") is None


def test_a_pipe_does_not_block(root: Path) -> None:
    os.mkfifo(root / "pipe")
    assert read_source(root, "pipe") is None


def test_a_secret_is_replaced_and_the_lines_stay(root: Path) -> None:
    (root / "a.py").write_text(f"a = 1\naws_key = '{KEY}'\nb = 2\n", encoding="utf-8")
    found = read_source(root, "a.py")
    assert found is not None
    assert KEY not in found.text
    assert found.redacted == 1
    assert found.text.split("\n")[0::2] == ["a = 1", "b = 2"]


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("a.md", "Pass `xIsNext`, `currentSquares` and `handlePlay` as props."),
        ("a.md", "it from the proto you pass in, which may not be `Object.prototype.`"),
        ("a.ts", "// Pass 'configResult' to the middleware"),
        ("a.rb", 'pass if request.path_info == "/index"'),
    ],
)
def test_a_value_that_is_passed_is_no_secret(root: Path, name: str, line: str) -> None:
    (root / name).write_text(f"{line}\n", encoding="utf-8")
    source = read_source(root, name)
    assert source is not None
    assert (source.text, source.redacted) == (f"{line}\n", 0)


@pytest.mark.parametrize(
    "line",
    [
        "pass: Kx7-hunter-42q",
        'PASS = "Kx7-hunter-42q"',
        "mysql --pass Kx7-hunter-42q",
        "login: bob / pass Kx7-hunter-42q",
    ],
)
def test_a_password_after_the_same_word_is_one(root: Path, line: str) -> None:
    (root / "notes.md").write_text(f"{line}\n", encoding="utf-8")
    source = read_source(root, "notes.md")
    assert source is not None
    assert "hunter" not in source.text


def test_a_private_key_keeps_its_lines(root: Path) -> None:
    line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"
    body = "\n".join(f"{line}{number:02d}" for number in range(9))
    text = f"one\n-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\ntwo\n"
    (root / "key.txt").write_text(text, encoding="utf-8")
    found = read_source(root, "key.txt")
    assert found is not None
    assert "MIIE" not in found.text
    assert found.text.count("\n") == text.count("\n")
    assert found.text.endswith("two\n")


@pytest.mark.parametrize("path", ["../private/a.py", "shop/../../private/a.py", "./a.py", "shop//a.py", ""])
def test_a_path_that_leaves_the_project_is_not_read(root: Path, tmp_path: Path, path: str) -> None:
    for place in (tmp_path / "private", root, root / "shop"):
        place.mkdir(exist_ok=True)
        (place / "a.py").write_text("x = 1\n", encoding="utf-8")
    assert read_source(root, path) is None
    assert current_hash(root, path) is None


@pytest.mark.parametrize("path", [".env", "deploy/id_rsa", "server.pem", ".git/config", "a/.vestige/b.md"])
def test_a_file_that_is_never_indexed_is_not_read_either(root: Path, path: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text("harbour\n", encoding="utf-8")
    found = read_source(root, path)
    assert found is not None
    assert found.skip is Skip.SECRET
    assert not found.text
