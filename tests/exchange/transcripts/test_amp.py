"""Amp: one JSON file for a thread, written anew with each message."""

import json
from pathlib import Path

from tests.exchange.transcripts.homes import read, talk


def test_a_thread_is_read_with_its_folder_and_title(tmp_path: Path) -> None:
    path = tmp_path / ".local/share/amp/threads/T-1.json"
    path.parent.mkdir(parents=True)
    thread = {
        "id": "T-1", "title": "Cart", "created": 1_700_000_000_000,
        "env": {"initial": {"trees": [{"uri": "file:///w/shop"}]}},
        "messages": [
            {"role": "user", "messageId": 0, "content": [{"type": "text", "text": "why?"}]},
            {"role": "assistant", "messageId": 1, "content": [{"type": "text", "text": "because"}]},
        ],
    }  # fmt: skip
    path.write_text(json.dumps(thread), encoding="utf-8")
    one = read(tmp_path, "amp")["T-1"]
    assert talk(one) == [("user", "why?"), ("assistant", "because")]
    assert (one.facts.title, one.facts.cwd) == ("Cart", "/w/shop")


def test_a_file_that_is_no_json_gives_nothing(tmp_path: Path) -> None:
    path = tmp_path / ".local/share/amp/threads/T-2.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"id": "T-2", "mess', encoding="utf-8")
    assert read(tmp_path, "amp") == {}
