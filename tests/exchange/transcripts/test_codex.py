"""Codex: legacy and paginated histories, compressed files, rollbacks, compaction."""

import importlib
import sys
from pathlib import Path

import pytest

from tests.exchange.transcripts.homes import Record, found, read, talk, write_lines
from vestige.exchange.transcripts import files

THREAD = "0199aaaa-0000-7000-8000-000000000001"
FILE = Path(f".codex/sessions/2026/08/20/rollout-2026-08-20T10-00-00-{THREAD}.jsonl")


def record(kind: str, payload: Record, **more: object) -> Record:
    return {"timestamp": "2026-08-20T10:00:00.000Z", "type": kind, "payload": payload, **more}


def meta(**more: object) -> Record:
    git = {"branch": "main", "repository_url": "git@host:a/shop.git", "commit_hash": "abc"}
    return record("session_meta", {"id": THREAD, "cwd": "/w/shop", "source": "cli", "git": git, **more})


def message(role: str, text: str) -> Record:
    kind = "input_text" if role == "user" else "output_text"
    return record(
        "response_item", {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
    )


def event(kind: str, **more: object) -> Record:
    return record("event_msg", {"type": kind, **more})


LEGACY = [
    meta(),
    record("turn_context", {"cwd": "/w/shop", "model": "gpt-5.5"}),
    message("user", "<environment_context>\n<cwd>/w/shop</cwd>\n</environment_context>"),
    message("user", "# AGENTS.md instructions for /w/shop\n<INSTRUCTIONS>be nice</INSTRUCTIONS>"),
    message("user", "fix the login test"),
    event("user_message", message="fix the login test"),
    record("response_item", {"type": "function_call", "name": "shell", "call_id": "c1",
           "arguments": '{"command": ["bash", "-lc", "pytest tests/login"]}'}),
    record("response_item", {"type": "function_call_output", "call_id": "c1",
           "output": '{"output": "1 failed", "metadata": {"exit_code": 1}}'}),
    record("response_item", {"type": "custom_tool_call", "name": "apply_patch", "call_id": "c2",
           "input": "*** Begin Patch\n*** Update File: login.py\n+x\n*** End Patch"}),
    message("assistant", "The token had expired."),
    event("agent_message", message="The token had expired."),
]  # fmt: skip


def test_a_legacy_history_gives_each_message_once_without_instructions(tmp_path: Path) -> None:
    write_lines(tmp_path / FILE, LEGACY)
    one = read(tmp_path, "codex")[THREAD]
    assert talk(one) == [("user", "fix the login test"), ("assistant", "The token had expired.")]
    actions = [action for entry in one.turns() for action in entry.actions]
    assert [(action.command, action.status, action.files) for action in actions] == [
        ("pytest tests/login", 1, ()), (None, None, ("login.py",)),
    ]  # fmt: skip
    assert (one.facts.repository, one.facts.branch, one.facts.cwd) == (
        "git@host:a/shop.git",
        "main",
        "/w/shop",
    )


PAGINATED = [
    meta(history_mode="paginated"),
    event("item_completed", turn_id="1", item={"id": "i1", "type": "UserMessage",
          "content": [{"type": "text", "text": "why is it slow?"}]}),
    message("user", "why is it slow?"),
    event("item_completed", turn_id="1", item={"id": "i2", "type": "CommandExecution",
          "command": "make bench", "aggregated_output": "12 s", "exit_code": 0}),
    event("item_completed", turn_id="1", item={"id": "i3", "type": "FileChange",
          "changes": [{"path": "src/cache.py", "kind": "update"}]}),
    event("item_completed", turn_id="1", item={"id": "i4", "type": "AgentMessage",
          "content": [{"type": "Text", "text": "It had no cache."}]}),
    message("assistant", "It had no cache."),
]  # fmt: skip


def test_a_paginated_history_is_read_from_its_items_only(tmp_path: Path) -> None:
    write_lines(tmp_path / FILE, PAGINATED)
    one = read(tmp_path, "codex")[THREAD]
    assert talk(one) == [("user", "why is it slow?"), ("assistant", "It had no cache.")]
    actions = [action for entry in one.turns() for action in entry.actions]
    assert [(action.command, action.status, action.files) for action in actions] == [
        ("make bench", 0, ()), (None, None, ("src/cache.py",)),
    ]  # fmt: skip


def test_turns_that_were_rolled_back_are_kept_as_a_side_branch(tmp_path: Path) -> None:
    lines = [
        meta(), message("user", "one"), message("assistant", "first"), message("user", "two"),
        message("assistant", "second"), event("thread_rolled_back", num_turns=1), message("user", "three"),
    ]  # fmt: skip
    write_lines(tmp_path / FILE, lines)
    one = read(tmp_path, "codex")[THREAD]
    assert [text for _, text in talk(one)] == ["one", "first", "three"]
    assert len(one.side) == 2


def test_a_compaction_is_a_summary_and_its_replacement_is_not_repeated(tmp_path: Path) -> None:
    compacted = record("compacted", {"message": "They fixed the login.", "replacement_history": [{"x": 1}]})
    write_lines(tmp_path / FILE, [meta(), message("user", "one"), compacted, message("user", "two")])
    assert talk(read(tmp_path, "codex")[THREAD]) == [
        ("user", "one"), ("summary", "They fixed the login."), ("user", "two"),
    ]  # fmt: skip


def test_a_subagent_and_a_fork_name_their_parent(tmp_path: Path) -> None:
    write_lines(
        tmp_path / FILE,
        [
            meta(source={"subagent": {"kind": "review"}}, parent_thread_id="p"),
            meta(id="the origin of a fork"),
        ],
    )
    one = read(tmp_path, "codex")[THREAD]
    assert (one.facts.subagent, one.facts.parent) == (True, "p")


def compressed(raw: bytes) -> bytes:
    """As Codex compresses; by Python itself from 3.14 on, else by what the extra `zstd` installs."""
    if sys.version_info >= (3, 14):
        return bytes(importlib.import_module("compression.zstd").compress(raw, level=3))
    return bytes(importlib.import_module("zstandard").ZstdCompressor(level=3).compress(raw))


def test_a_compressed_file_gives_the_same_and_a_plain_one_beside_it_wins(tmp_path: Path) -> None:
    plain = write_lines(tmp_path / FILE, LEGACY)
    expected = talk(read(tmp_path, "codex")[THREAD])
    packed = plain.with_name(f"{plain.name}.zst")
    packed.write_bytes(compressed(plain.read_bytes()))
    assert [source.path for source in found(tmp_path, "codex")] == [plain]
    plain.unlink()
    assert [source.path for source in found(tmp_path, "codex")] == [packed]
    assert talk(read(tmp_path, "codex")[THREAD]) == expected


@pytest.mark.parametrize("bomb", [b"\n" * 3_000_000, b"x" * 3_000_000, b"{}\n" * 1_000_000])
def test_of_a_compressed_file_that_grows_without_end_a_part_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bomb: bytes
) -> None:
    monkeypatch.setattr(files, "MOST_UNPACKED_BYTES", 100_000)
    monkeypatch.setattr(files, "MOST_EXPANSION", 10)
    monkeypatch.setattr(files, "MAX_LINE_BYTES", 50_000)
    plain = write_lines(tmp_path / FILE, LEGACY)
    packed = plain.with_name(f"{plain.name}.zst")
    packed.write_bytes(compressed(plain.read_bytes() + bomb))
    expected = talk(read(tmp_path, "codex")[THREAD])
    plain.unlink()
    assert talk(read(tmp_path, "codex")[THREAD]) == expected
    (source,) = found(tmp_path, "codex")
    *_, last = files.batches(source, None)
    assert (last.damage, last.checkpoint.modified_ns > 0) == (
        "damaged: it unpacks to more than 10 times its size",
        True,
    )
    assert list(files.batches(source, last.checkpoint)) == [], "it is not read again"


def test_a_compressed_file_that_was_cut_off_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    plain = write_lines(tmp_path / FILE, LEGACY * 50)
    packed = plain.with_name(f"{plain.name}.zst")
    whole = compressed(plain.read_bytes())
    packed.write_bytes(b"not zstd" + whole)
    plain.unlink()
    (source,) = found(tmp_path, "codex")
    (batch,) = files.batches(source, None)
    assert (batch.steps, str(batch.damage).startswith("damaged: ")) == ([], True)
