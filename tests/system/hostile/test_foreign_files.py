"""Files of other programs that somebody changed: each is read or refused by name, within bounds."""

import copy
import json
import os
import shutil
import sqlite3
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest

from testbed.effort import effort
from tests.exchange.importers.chats.test_chatgpt import BEANS
from tests.exchange.importers.chats.test_claude import MEMORY, PROJECT, TALK
from tests.exchange.importers.imports import DATA
from tests.exchange.importers.test_laws import TARGET
from vestige.core.errors import InvalidInput, TooLarge, VestigeError
from vestige.exchange.importers import bundles, json_files
from vestige.exchange.importers.notes import markdown
from vestige.exchange.importers.recognition import ImportFormat, located, reading, recognise
from vestige.exchange.importers.records import Brought, BroughtMemory, UnreadRecords
from vestige.exchange.portable import file as portable
from vestige.store.sqlite.file import foreign

MUTANTS = effort(60, nightly=2_000)
HOSTILE: tuple[object, ...] = (
    None, True, 0, -1, 2**63, 10**300, 1e308, "", "\0", "x" * 5_000, [], {}, [[]], {"a": {}}, ["a", ["b"]],
    "9999-12-31T23:59:59+14:00", "[1]", "{}", "../../etc/passwd", {"id": []}, "\x1b[31m",
)  # fmt: skip


def records(path: Path, form: ImportFormat) -> list[Brought]:
    with reading(path, form, TARGET) as opened:
        return list(opened.records)


def tried(path: Path, *forms: ImportFormat) -> None:
    """Read a file as what it seems to be, and as each of these: nothing but a named error is raised."""
    for form in (None, *forms):
        try:
            records(path, form or recognise(path))
        except VestigeError:
            continue


def mutated(rng: Random, value: object) -> Any:  # Any: JSON
    """A value of which a few parts were replaced or removed."""
    value = copy.deepcopy(value)
    for _ in range(rng.randrange(1, 4)):
        spots: list[tuple[Any, Any]] = []
        left: list[Any] = [value]
        while left:
            one = left.pop()
            keys = list(one) if isinstance(one, dict) else range(len(one)) if isinstance(one, list) else ()
            spots += [(one, key) for key in keys]
            left += [one[key] for key in keys]
        if spots:
            holder, key = rng.choice(spots)
            if isinstance(holder, dict) and rng.random() < 0.2:
                del holder[key]
            else:
                holder[key] = copy.deepcopy(rng.choice(HOSTILE))
    return value


def chatgpt(rng: Random, path: Path) -> None:
    path.write_text(json.dumps([mutated(rng, BEANS)]))
    tried(path, ImportFormat.CHATGPT)


def claude(rng: Random, path: Path) -> None:
    path.write_text(json.dumps([mutated(rng, one) for one in (TALK, PROJECT, MEMORY)]))
    tried(path, ImportFormat.CLAUDE)


def hindsight(rng: Random, path: Path) -> None:
    with zipfile.ZipFile(DATA / "hindsight.zip") as given, zipfile.ZipFile(path, "w") as made:
        changed = rng.choice([name for name in given.namelist() if name.endswith(".json")])
        for name in given.namelist():
            raw = given.read(name)
            made.writestr(name, json.dumps(mutated(rng, json.loads(raw))) if name == changed else raw)
    tried(path, ImportFormat.HINDSIGHT)


def exports(rng: Random, path: Path) -> None:
    given = rng.choice((DATA / "mcp-memory-service.json", DATA / "mem0" / "get_all.json"))
    path.write_text(json.dumps(mutated(rng, json.loads(given.read_text()))))
    tried(path, ImportFormat.MCP_MEMORY_SERVICE, ImportFormat.MEM0, ImportFormat.JSON)


def archive(rng: Random, path: Path) -> None:
    raw = bytearray((DATA / "hindsight.zip").read_bytes())
    first = max(0, len(raw) - 300) if rng.random() < 0.6 else 0  # mostly in the list of files
    for _ in range(rng.randrange(1, 6)):
        raw[rng.randrange(first, len(raw))] = rng.choice((0, 255, rng.randrange(256)))
    path.write_bytes(raw)
    tried(path, ImportFormat.HINDSIGHT, ImportFormat.CHATGPT)


def database(rng: Random, path: Path) -> None:
    given = rng.choice(("claude-mem.db", "openmemory.sqlite", "mem0/history.db"))
    raw = bytearray((DATA / given).read_bytes())
    for _ in range(rng.randrange(1, 30)):
        raw[rng.randrange(16, len(raw))] = rng.randrange(256)
    path.write_bytes(raw)
    tried(path)


@pytest.mark.parametrize("change", [chatgpt, claude, hindsight, exports, archive, database])
def test_a_changed_file_is_read_or_refused_with_a_named_error(
    tmp_path: Path, change: Callable[[Random, Path], None]
) -> None:
    for seed in range(MUTANTS):
        change(Random(f"{change.__name__} {seed}"), tmp_path / "given")


@pytest.mark.parametrize("node", [[], {}, [["root"]]])
def test_a_conversation_whose_last_message_is_not_an_id_is_read(tmp_path: Path, node: object) -> None:
    (tmp_path / "c.json").write_text(json.dumps([{**BEANS, "current_node": node}]))
    assert any(isinstance(one, BroughtMemory) for one in records(tmp_path / "c.json", ImportFormat.CHATGPT))


def test_names_in_an_archive_that_are_empty_or_not_text_are_refused_or_left(tmp_path: Path) -> None:
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("conversations.json", json.dumps([BEANS]))
        packed.writestr("né.json", "[]")
    raw = path.read_bytes()
    path.write_bytes(raw.replace("né".encode(), b"n\xff\xff"))
    with pytest.raises(InvalidInput):
        recognise(path)
    end = raw.rindex(b"PK\x01\x02")
    path.write_bytes(raw[: end + 28] + b"\0\0" + raw[end + 30 :])  # the last name has no characters
    tried(path, ImportFormat.CHATGPT)


# -- What a small file may cost


def test_files_that_share_their_packed_bytes_are_refused_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundles, "UNSUSPICIOUS_BYTES", 10_000)
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("conversations.json", "[" + " " * 9_000 + "]")
        (info,) = packed.infolist()
        for number in range(50):  # entries of the list for the same bytes
            twin = copy.copy(info)
            twin.filename = f"{number:02}/conversations.json"
            packed.filelist.append(twin)
    with pytest.raises(TooLarge, match="more than 100 times"):
        recognise(path)


def test_a_record_or_file_of_very_many_values_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A value of two characters takes 64 bytes in memory."""
    many = "[" + "[]," * portable.MAX_VALUES + "[]]"
    (tmp_path / "a.json").write_text(f"[{many}]")
    with pytest.raises(TooLarge, match="values"):
        records(tmp_path / "a.json", ImportFormat.CHATGPT)
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        packed.writestr("manifest.json", many)
    with bundles.bundle(tmp_path / "a.zip") as files, pytest.raises(TooLarge, match="values"):
        files.load("manifest.json", 100_000_000)
    (tmp_path / "a.jsonl").write_text(f'{{"content": "a", "x": {many}}}\n{{"content": "b"}}\n')
    broken, whole = records(tmp_path / "a.jsonl", ImportFormat.JSONL)
    assert isinstance(broken, UnreadRecords)
    assert isinstance(whole, BroughtMemory)
    monkeypatch.setattr(json_files, "MAX_VALUES", 1_000)
    with pytest.raises(TooLarge, match="values"):
        json_files.load(tmp_path / "a.json")


def test_what_all_parts_of_a_note_share_is_short(tmp_path: Path) -> None:
    """A long heading, name or head of a note would be copied as often as the note has parts."""
    long, part = "x" * 100_000, "# A\n\nText.\n"
    heading, body = markdown.sections(f"# {long}\n\nFirst.\n\n" + part, "Title")
    assert heading.text == f"# {long}\n\nFirst."
    assert body.headings == ("Title", "A")
    front, rest = markdown.front_matter(f"---\ntitle: {long}\n---\n{part}")
    assert (front, rest) == ({}, f"---\ntitle: {long}\n---\n{part}")
    listed, _ = markdown.front_matter("---\naliases:\n" + "- a\n" * 3_000 + "---\n")
    assert len(listed["aliases"]) == 3_000
    conversation = {**BEANS, "title": long, "conversation_id": long}
    (tmp_path / "c.json").write_text(json.dumps([conversation]))
    found = records(tmp_path / "c.json", ImportFormat.CHATGPT)
    turns = [one.memory for one in found if isinstance(one, BroughtMemory) and one.memory.node_type == "turn"]
    assert turns
    assert all(len(json.dumps(dict(one.metadata), default=str)) < 5_000 for one in turns)


# -- Databases and folders


def hostile_database(path: Path, *statements: str) -> Path:
    with closing(sqlite3.connect(path)) as db:
        for one in statements:
            db.execute(one)
        db.commit()
    return path


def test_a_computed_column_of_a_foreign_table_is_not_computed(tmp_path: Path) -> None:
    costly = "CAST(length(hex(zeroblob(20000000 + id))) AS TEXT)"
    path = hostile_database(
        tmp_path / "a.db",
        f"CREATE TABLE memories (id INTEGER PRIMARY KEY, content, x GENERATED ALWAYS AS ({costly}) NOT NULL)",
        "INSERT INTO memories (content) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
        "WHERE i < 3) SELECT 'text' FROM n",
    )
    asked: list[str] = []
    with foreign.opened(path) as file:
        file.db.set_trace_callback(asked.append)
        assert list(file.rows("memories")) == [{"id": n, "content": "text"} for n in (1, 2, 3)]
    assert not any("x" in one.split(" FROM ")[0] for one in asked)


def test_a_foreign_database_is_only_read(tmp_path: Path) -> None:
    path = hostile_database(tmp_path / "a.db", "CREATE TABLE notes (text)")
    with foreign.opened(path) as file:
        for statement in ("INSERT INTO notes VALUES (1)", "ATTACH ':memory:' AS other", "DROP TABLE notes"):
            with pytest.raises(sqlite3.DatabaseError):
                file.db.execute(statement)
        assert file.db.execute("PRAGMA trusted_schema").fetchone() == (0,)


def test_a_statement_that_does_not_come_to_an_end_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreign, "LEAST_STEPS", 100_000)
    monkeypatch.setattr(foreign, "STEPS_PER_BYTE", 0)
    path = hostile_database(
        tmp_path / "a.db",
        "CREATE TABLE notes (text)",
        "INSERT INTO notes VALUES " + ", ".join(["(1)"] * 1_000),
    )
    endless = "SELECT count(*) FROM notes a, notes b, notes c, notes d WHERE a.text + b.text + d.text"
    with foreign.opened(path) as file, pytest.raises(sqlite3.OperationalError, match="interrupted"):
        file.db.execute(endless).fetchone()


def test_a_virtual_table_in_disguise_is_not_read(tmp_path: Path) -> None:
    path = hostile_database(
        tmp_path / "a.db",
        "CREATE VIRTUAL TABLE memories USING fts5(content)",
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_master SET sql = replace(sql, 'CREATE VIRTUAL', 'CREATE/**/VIRTUAL')",
    )
    with foreign.opened(path) as file:
        assert not file.has("memories")


@pytest.mark.skipif(not hasattr(os, "symlink") or os.name == "nt", reason="links need permission there")
@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("claude-mem.db", DATA / "claude-mem.db"),
        ("chroma.sqlite3", DATA / "mempalace" / "palace" / "chroma.sqlite3"),
        ("palace/chroma.sqlite3", DATA / "mempalace" / "palace" / "chroma.sqlite3"),
        ("collection/c/storage.sqlite", DATA / "mem0/qdrant/collection/mem0/storage.sqlite"),
    ],
)
def test_a_folder_does_not_bring_a_database_that_is_elsewhere(
    tmp_path: Path, name: str, source: Path
) -> None:
    private = tmp_path / "private.db"
    shutil.copyfile(source, private)
    link = tmp_path / "given" / name
    link.parent.mkdir(parents=True)
    link.symlink_to(private)
    with pytest.raises(InvalidInput, match="is a link to a file outside"):
        records(path := located(tmp_path / "given"), recognise(path))
