"""Clients with SQLite: OpenCode, Goose, the editor Cursor."""

import json
from pathlib import Path

from tests.exchange.transcripts.homes import found, read, talk, write_database
from vestige.exchange.transcripts.files import batches

OPENCODE = Path(".local/share/opencode/opencode.db")
SESSION_COLUMNS = (
    "id PRIMARY KEY, project_id, parent_id, directory, title, time_created, time_updated, revert"
)
SESSION_ROW = ("ses_1", "p", None, "/w/shop", "The cart", 1_700_000_000_000, 1_700_000_100_000, None)


def opencode_parts() -> dict[str, tuple[str, list[tuple[object, ...]]]]:
    def part(name: str, message: str, **data: object) -> tuple[object, ...]:
        return (name, message, "ses_1", json.dumps(data))

    tool = {
        "input": {"command": "make"}, "status": "completed", "output": "ok", "metadata": {"exit": 3},
    }  # fmt: skip
    return {
        "session": (SESSION_COLUMNS, [SESSION_ROW]),
        "message": (
            "id PRIMARY KEY, session_id, time_created, data",
            [
                ("msg_1", "ses_1", 1, json.dumps({"role": "user", "time": {"created": 1_700_000_000_000}})),
                ("msg_2", "ses_1", 2, json.dumps({"role": "assistant"})),
                ("msg_3", "ses_1", 3, json.dumps({"role": "user"})),
            ],
        ),
        "part": (
            "id PRIMARY KEY, message_id, session_id, data",
            [
                part("p1", "msg_1", type="text", text="build it"),
                part("p2", "msg_2", type="tool", tool="bash", callID="c", state=tool),
                part("p3", "msg_2", type="text", text="It is built."),
                part("p4", "msg_3", type="text", text="taken back"),
                ("p5", "msg_3", "ses_1", None),
            ],
        ),
    }


def test_opencode_joins_parts_to_messages_and_follows_a_revert(tmp_path: Path) -> None:
    tables = opencode_parts()
    row = (*SESSION_ROW[:-1], json.dumps({"messageID": "msg_3"}))
    tables["session"] = (SESSION_COLUMNS, [row])
    write_database(tmp_path / OPENCODE, tables)
    one = read(tmp_path, "opencode")["ses_1"]
    assert talk(one) == [("user", "build it"), ("assistant", "It is built.")]
    assert one.side == {"ses_1:msg_3"}
    (ran,) = one.entries["ses_1:msg_2"].actions
    assert (ran.command, ran.status) == ("make", 3)
    assert (one.facts.title, one.facts.cwd) == ("The cart", "/w/shop")


def test_opencode_reads_the_newer_table_instead_where_it_exists(tmp_path: Path) -> None:
    tables = opencode_parts()
    tables["session_message"] = (
        "id PRIMARY KEY, session_id, type, seq, data",
        [
            ("m1", "ses_1", "user", 1, json.dumps({"text": "a new question"})),
            ("m2", "ses_1", "assistant", 2, json.dumps({"content": [{"type": "text", "text": "an answer"}]})),
        ],
    )
    write_database(tmp_path / OPENCODE, tables)
    assert talk(read(tmp_path, "opencode")["ses_1"]) == [
        ("user", "a new question"),
        ("assistant", "an answer"),
    ]


def test_only_a_session_that_changed_is_read_again(tmp_path: Path) -> None:
    path = write_database(tmp_path / OPENCODE, opencode_parts())
    (source,) = found(tmp_path, "opencode")
    (first,) = batches(source, None)
    assert first.steps
    assert list(batches(source, first.checkpoint)) == []
    other = ("ses_2", "p", None, "/w/other", "Another", 1, 2, None)
    write_database(path, {"session": (SESSION_COLUMNS, [other])})
    (second,) = batches(source, first.checkpoint)
    assert {getattr(step, "session", None) or getattr(step, "id", None) for step in second.steps} == {"ses_2"}


def test_goose_reads_tool_requests_and_their_responses(tmp_path: Path) -> None:
    request = {"type": "toolRequest", "id": "c", "toolCall": {"status": "success", "value": {
        "name": "shell", "arguments": {"command": "cargo test"}}}}  # fmt: skip
    response = {"type": "toolResponse", "id": "c", "toolResult": {"status": "error", "error": "exit 101"}}
    rows: list[tuple[object, ...]] = [
        (1, "g1", "user", json.dumps([{"type": "text", "text": "test it"}]), 1_700_000_000),
        (2, "g1", "assistant", json.dumps([request]), 1_700_000_001),
        (3, "g1", "user", json.dumps([response]), 1_700_000_002),
        (4, "g1", "assistant", "not JSON", 1_700_000_003),
    ]
    write_database(
        tmp_path / ".local/share/goose/sessions/sessions.db",
        {
            "sessions": (
                "id, name, working_dir, session_type, created_at, updated_at",
                [("g1", "Tests", "/w/rust", "user", "2026-08-20T10:00:00Z", "2026-08-20T11:00:00Z")],
            ),
            "messages": ("id, session_id, role, content_json, created_timestamp", rows),
        },
    )
    one = read(tmp_path, "goose")["g1"]
    assert talk(one) == [("user", "test it")]
    (ran,) = one.entries["g1:2"].actions
    assert (ran.command, ran.status, one.entries["g1:3"].output) == ("cargo test", 1, "exit 101")


def test_cursor_orders_bubbles_by_the_list_of_the_composer_and_survives_garbage(tmp_path: Path) -> None:
    headers = [{"bubbleId": "b2", "type": 1}, {"bubbleId": "b1", "type": 2}, {"bubbleId": "gone", "type": 2}]
    composer = {"name": "Cart", "createdAt": 1_700_000_000_000, "lastUpdatedAt": 1_700_000_500_000,
                "fullConversationHeadersOnly": headers}  # fmt: skip
    tool = {"toolCallId": "c", "name": "edit_file", "params": json.dumps({"target_file": "cart.py"})}
    rows: list[tuple[object, ...]] = [
        ("bubbleId:c1:b1", json.dumps({"type": 2, "text": "Done.", "toolFormerData": tool})),
        ("bubbleId:c1:b2", json.dumps({"type": 1, "text": "edit it", "workspaceProjectDir": "/w/shop"})),
        ("bubbleId:c9:b1", "{"),
        ("composerData:c1", json.dumps(composer)),
        ("composerData:c2", None),
        ("composerData:c3", b"\x00\xff"),
    ]
    write_database(
        tmp_path / ".config/Cursor/User/globalStorage/state.vscdb",
        {"cursorDiskKV": ("key PRIMARY KEY, value", rows)},
    )
    made = read(tmp_path, "cursor")
    assert list(made) == ["c1"]
    assert talk(made["c1"]) == [("user", "edit it"), ("assistant", "Done.")]
    assert made["c1"].entries["c1:b1"].actions[0].files == ("cart.py",)
    assert made["c1"].facts.cwd == "/w/shop"
