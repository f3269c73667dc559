"""Gemini CLI: replaced messages, patches, rewinds, checkpoints, the old file."""

import json
from pathlib import Path

from tests.exchange.transcripts.homes import Record, found, read, talk, write_lines

SESSION = "11112222-0000-4000-8000-000000000001"
FILE = Path(".gemini/tmp/shop-1/chats/session-2026-08-20T10-00-11112222.jsonl")
HEADER: Record = {
    "sessionId": SESSION, "projectHash": "x", "startTime": "2026-08-20T10:00:00Z",
    "lastUpdated": "2026-08-20T10:00:00Z", "kind": "main",
}  # fmt: skip


def message(name: str, kind: str, content: object, **more: object) -> Record:
    return {"id": name, "timestamp": "2026-08-20T10:01:00Z", "type": kind, "content": content, **more}


def session(home: Path, *records: Record) -> None:
    write_lines(home / FILE, [HEADER, *records])


def test_a_message_with_a_known_id_replaces_the_earlier_one(tmp_path: Path) -> None:
    call = {"id": "c", "name": "run_shell_command", "args": {"command": "ls"}, "status": "success",
            "resultDisplay": "cart.py"}  # fmt: skip
    session(
        tmp_path,
        message("m1", "user", [{"text": "list the files"}]),
        message("m2", "gemini", ""),
        message(
            "m2",
            "gemini",
            "Here they are.",
            toolCalls=[call],
            thoughts=[{"subject": "s", "description": "d"}],
        ),
        message("m3", "info", "not talk"),
    )
    one = read(tmp_path, "gemini")[SESSION]
    assert talk(one) == [("user", "list the files"), ("assistant", "Here they are.")]
    answer = one.entries[f"{SESSION}:m2"]
    assert (answer.actions[0].command, answer.actions[0].status, answer.output) == ("ls", 0, "cart.py")


def test_a_rewind_leaves_the_message_and_all_after_it_as_a_side_branch(tmp_path: Path) -> None:
    session(
        tmp_path, message("m1", "user", "one"), message("m2", "gemini", "two"),
        message("m3", "user", "three"), {"$rewindTo": "m2"}, message("m4", "user", "four"),
    )  # fmt: skip
    one = read(tmp_path, "gemini")[SESSION]
    assert [text for _, text in talk(one)] == ["one", "four"]
    assert len(one.entries) == 4


def test_a_rewind_to_an_unknown_message_drops_all(tmp_path: Path) -> None:
    session(tmp_path, message("m1", "user", "one"), {"$rewindTo": "?"}, message("m2", "user", "two"))
    assert [text for _, text in talk(read(tmp_path, "gemini")[SESSION])] == ["two"]


def test_a_checkpoint_rebuilds_the_conversation(tmp_path: Path) -> None:
    kept = [message("m1", "user", "one"), message("m9", "gemini", "nine")]
    session(
        tmp_path, message("m1", "user", "one"), message("m2", "gemini", "two"),
        {"$set": {"summary": "Counting", "messages": kept}},
    )  # fmt: skip
    one = read(tmp_path, "gemini")[SESSION]
    assert [text for _, text in talk(one)] == ["one", "nine"]
    assert one.facts.title == "Counting"


def test_the_old_file_is_one_object_whatever_its_name_ends_with(tmp_path: Path) -> None:
    whole = {**HEADER, "messages": [message("m1", "user", "one"), message("m2", "gemini", "two")]}
    for name in ("session-a.json", "session-b.jsonl"):
        path = tmp_path / FILE.parent / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({**whole, "sessionId": name}, indent=2), encoding="utf-8")
        assert [text for _, text in talk(read(tmp_path, "gemini")[name])] == ["one", "two"]


def test_the_folder_comes_from_the_list_of_projects_and_subagents_from_theirs(tmp_path: Path) -> None:
    session(tmp_path, message("m1", "user", "one"))
    (tmp_path / ".gemini/projects.json").write_text('{"projects": {"/w/shop": "shop-1"}}', encoding="utf-8")
    write_lines(tmp_path / FILE.parent / SESSION / "sub.jsonl", [{**HEADER, "sessionId": "sub"}])
    made = read(tmp_path, "gemini")
    assert made[SESSION].facts.cwd == "/w/shop"
    assert (made["sub"].facts.parent, made["sub"].facts.subagent) == (SESSION, True)


def test_chats_expire_after_thirty_days_or_as_the_settings_say(tmp_path: Path) -> None:
    session(tmp_path)
    assert found(tmp_path, "gemini")[0].expires_days == 30
    settings = tmp_path / ".gemini/settings.json"
    settings.write_text('{"general": {"sessionRetention": {"maxAge": "2w"}}}', encoding="utf-8")
    assert found(tmp_path, "gemini")[0].expires_days == 14
    settings.write_text('{"general": {"sessionRetention": {"enabled": false}}}', encoding="utf-8")
    assert found(tmp_path, "gemini")[0].expires_days is None
