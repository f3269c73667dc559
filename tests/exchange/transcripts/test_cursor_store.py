"""Cursor's command line: `store.db`, written here as Cursor writes it."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.exchange.transcripts.homes import found, read, steps_of, talk, write_database, write_lines
from vestige.exchange.transcripts.cursor_store import asked
from vestige.exchange.transcripts.files import batches
from vestige.exchange.transcripts.shape import conversations

SESSION = "f1ff7b74-0000-4000-8000-000000000001"
FOLDER = "/w/shop"
INFO = f"<user_info>\nOS Version: linux\nWorkspace Path: {FOLDER}\n</user_info>\n"
MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": "You are a coding agent."},
    {"role": "user", "content": [
        {"type": "text", "text": f"{INFO}<user_query>\nfix the cart\n</user_query>"},
    ]},
    {"role": "assistant", "id": "1", "content": [
        {"type": "reasoning", "text": "The sum is wrong.", "signature": "x"},
        {"type": "text", "text": "I run the tests."},
        {"type": "tool-call", "toolCallId": "t1", "toolName": "Shell",
         "args": {"command": "pytest tests/cart"}},
    ]},
    {"role": "tool", "id": "t1", "content": [
        {"type": "tool-result", "toolCallId": "t1", "toolName": "Shell", "result": "1 failed: rounding"},
    ]},
    {"role": "assistant", "id": "2", "content": [{"type": "text", "text": "Rounding was the cause."}]},
    {"role": "user", "content": [{"type": "text", "text": "<user_query>yes</user_query>"}]},
]  # fmt: skip


def field(number: int, value: bytes) -> bytes:
    """A field of Protocol Buffers with bytes, shorter than 128."""
    return bytes([number << 3 | 2, len(value)]) + value


def store(home: Path, messages: list[dict[str, Any]], *, older: list[dict[str, Any]] | None = None,
          root: bytes | None = None, **meta: Any) -> Path:  # fmt: skip
    """A store with these messages listed by its newest root, after older ones that it does not list."""
    blobs: dict[str, bytes] = {}
    ids = []
    for message in (*(older or []), *messages):
        data = json.dumps(message).encode()
        blobs[hashlib.sha256(data).hexdigest()] = data
    for message in messages:
        ids.append(hashlib.sha256(json.dumps(message).encode()).digest())
    if root is None:
        number = bytes([5 << 3, 0x96, 0x01])  # a number that is of no interest
        root = b"".join(field(1, one) for one in ids) + number + field(9, f"file://{FOLDER}".encode())
    name = hashlib.sha256(root).hexdigest()
    blobs[name] = root
    facts = {
        "agentId": SESSION, "latestRootBlobId": name, "name": "Cart sums", "mode": "default",
        "createdAt": 1_781_256_145_540, "lastUsedModel": "m", **meta,
    }  # fmt: skip
    path = home / ".cursor" / "chats" / hashlib.md5(FOLDER.encode()).hexdigest() / SESSION / "store.db"
    path.unlink(missing_ok=True)
    tables: dict[str, tuple[str, list[tuple[object, ...]]]] = {
        "blobs": ("id TEXT PRIMARY KEY, data BLOB", list(blobs.items())),
        "meta": ("key TEXT PRIMARY KEY, value TEXT", [("0", json.dumps(facts).encode().hex())]),
    }
    return write_database(path, tables)


def test_messages_tool_calls_and_facts_are_read(tmp_path: Path) -> None:
    store(tmp_path, MESSAGES)
    one = read(tmp_path, "cursor-cli")[SESSION]
    assert talk(one) == [
        ("user", "fix the cart"), ("assistant", "I run the tests."),
        ("assistant", "Rounding was the cause."), ("user", "yes"),
    ]  # fmt: skip
    assert (one.facts.cwd, one.facts.title, one.facts.started) == (FOLDER, "Cart sums", 1_781_256_145.54)
    called = one.turns()[1]
    assert (called.thought, called.actions[0].command) == ("The sum is wrong.", "pytest tests/cart")
    result = one.turns()[2]
    assert (result.role, result.output, result.results[0].id) == ("tool", "1 failed: rounding", "t1")


def test_an_answer_that_was_given_twice_is_there_twice(tmp_path: Path) -> None:
    store(tmp_path, [*MESSAGES, MESSAGES[-1]])
    assert [text for _, text in talk(read(tmp_path, "cursor-cli")[SESSION])][-2:] == ["yes", "yes"]


def test_what_the_newest_root_does_not_list_is_a_branch_that_was_left(tmp_path: Path) -> None:
    edited = {"role": "user", "content": "fix the basket"}
    store(tmp_path, MESSAGES, older=[edited])
    one = read(tmp_path, "cursor-cli")[SESSION]
    assert [one.entries[uid].text for uid in one.side] == ["fix the basket"]
    assert ("user", "fix the basket") not in talk(one)


@pytest.mark.parametrize("root", [b"", b"\x0a\xff\xff\xff\xff\x7f", b"\xff" * 40, b"\x0f", b"\x0a\x20abc"])
def test_without_a_root_that_can_be_read_the_order_is_that_of_the_file(tmp_path: Path, root: bytes) -> None:
    store(tmp_path, MESSAGES, root=root)
    one = read(tmp_path, "cursor-cli")[SESSION]
    assert talk(one)[0] == ("user", "fix the cart")
    assert len(one.turns()) == 5
    assert one.facts.cwd == FOLDER  # from the facts that Cursor tells the model


def test_a_store_that_did_not_change_costs_no_entries_and_a_new_root_is_read(tmp_path: Path) -> None:
    store(tmp_path, MESSAGES[:3])
    (source,) = found(tmp_path, "cursor-cli")
    (batch,) = batches(source, None)
    assert list(batches(source, batch.checkpoint)) == []
    store(tmp_path, MESSAGES)
    (later,) = batches(source, batch.checkpoint)
    assert talk(conversations(later.steps)[SESSION])[-1] == ("user", "yes")
    (again,) = batches(source, later.checkpoint.__class__(state=later.checkpoint.state))
    assert again.steps == []


@pytest.mark.parametrize("name", ["New Agent", "New Chat", "CLI Session", "Untitled", ""])
def test_the_name_of_every_new_session_is_no_title(name: str, tmp_path: Path) -> None:
    store(tmp_path, MESSAGES, name=name)
    assert read(tmp_path, "cursor-cli")[SESSION].facts.title is None


def test_the_file_beside_it_has_the_title_and_says_whether_it_is_a_subagent(tmp_path: Path) -> None:
    path = store(tmp_path, MESSAGES, createdAt="1781256145540")
    assert read(tmp_path, "cursor-cli")[SESSION].facts.started == 1_781_256_145.54
    beside = {"title": "Sums", "cwd": "/w/other", "isSubagent": True, "updatedAtMs": 1_781_256_999_000}
    path.with_name("meta.json").write_text(json.dumps(beside), encoding="utf-8")
    facts = read(tmp_path, "cursor-cli")[SESSION].facts
    assert (facts.title, facts.cwd, facts.subagent, facts.ended) == ("Sums", "/w/other", True, 1_781_256_999)


def test_a_session_with_a_store_is_not_read_from_its_transcript_too(tmp_path: Path) -> None:
    folder = tmp_path / ".cursor/projects/w-shop/agent-transcripts"
    for name in (SESSION, "other"):
        write_lines(
            folder / name / f"{name}.jsonl", [{"role": "user", "message": {"content": "fix the cart"}}]
        )
    store(tmp_path, MESSAGES)
    assert [source.form for source in found(tmp_path, "cursor-cli")] == ["database", "lines"]
    assert sorted(read(tmp_path, "cursor-cli")) == sorted([SESSION, "other"])


def test_other_databases_and_garbage_in_the_tables_are_survived(tmp_path: Path) -> None:
    path = store(tmp_path, MESSAGES)
    path.unlink()
    write_database(path, {"other": ("a, b", [(1, 2)])})
    assert steps_of(tmp_path, "cursor-cli") == []
    path.unlink()
    rows: list[tuple[object, ...]] = [
        ("a", b"{broken"), ("b", None), ("c", 7), ("d", b"\xff\xfe"), ("e", b"[1]"),
        ("f", json.dumps({"role": "user", "content": [{"type": "text"}, 3, None]}).encode()),
        ("g", json.dumps({"role": "tool", "content": [{"type": "tool-result", "result": [1]}]}).encode()),
        ("h", json.dumps({"role": "user", "content": "hello"}).encode()),
    ]  # fmt: skip
    write_database(path, {"blobs": ("id, data", rows), "meta": ("key, value", [("0", "zz"), ("1", None)])})
    assert talk(read(tmp_path, "cursor-cli")[SESSION]) == [("user", "hello")]


def test_only_the_words_of_the_user_are_kept() -> None:
    assert asked(f"{INFO}<user_query>\na\n</user_query> x <user_query>b</user_query>") == "a\nb"
    assert asked(f"{INFO}plain") == "plain"
