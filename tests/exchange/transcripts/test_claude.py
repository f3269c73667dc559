"""Claude Code: messages over several lines, branches, copies, subagents, broken lines."""

from pathlib import Path

from tests.exchange.transcripts.homes import Record, read, talk, write_lines

SESSION = "4f0e6f1e-0000-4000-8000-000000000001"
FOLDER = Path(".claude/projects/-w-shop")


def line(uid: str, parent: str | None, kind: str, content: object, **more: object) -> Record:
    message: Record = {"role": kind, "content": content}
    if kind == "assistant":
        message |= {"id": more.pop("message_id", f"msg_{uid}"), "model": "claude-opus-4"}
    return {
        "type": kind, "uuid": uid, "parentUuid": parent, "sessionId": SESSION, "cwd": "/w/shop",
        "gitBranch": "main", "timestamp": "2026-08-20T10:00:00.000Z", "isSidechain": False,
        "message": message, **more,
    }  # fmt: skip


def text(words: str) -> list[Record]:
    return [{"type": "text", "text": words}]


def session(home: Path, *records: Record | str, name: str = SESSION) -> None:
    write_lines(home / FOLDER / f"{name}.jsonl", records)


def test_blocks_of_one_message_keep_their_group_and_the_prompt_its_role(tmp_path: Path) -> None:
    session(
        tmp_path,
        line("u1", None, "user", "why is the cart empty?"),
        line("a1", "u1", "assistant", [{"type": "thinking", "thinking": "look at cart.py"}], message_id="m"),
        line("a2", "a1", "assistant", text("The total is never saved."), message_id="m"),
        line("a3", "a2", "assistant", [{"type": "tool_use", "id": "t1", "name": "Bash",
             "input": {"command": "pytest -q", "description": "run"}}], message_id="m"),
        line("r1", "a3", "user", [{"type": "tool_result", "tool_use_id": "t1", "is_error": True,
             "content": "Exit code 2\nE   KeyError"}]),
    )  # fmt: skip
    one = read(tmp_path, "claude")[SESSION]
    assert talk(one) == [("user", "why is the cart empty?"), ("assistant", "The total is never saved.")]
    assert {one.entries[uid].group for uid in ("a1", "a2", "a3")} == {"m"}
    assert one.entries["a1"].thought == "look at cart.py"
    (ran,) = one.entries["a3"].actions
    assert (ran.command, ran.status) == ("pytest -q", 2)
    assert one.entries["r1"].output == "Exit code 2\nE   KeyError"
    assert (one.facts.cwd, one.facts.branch) == ("/w/shop", "main")


def test_an_edited_prompt_leaves_a_side_branch_that_is_kept(tmp_path: Path) -> None:
    session(
        tmp_path,
        line("u1", None, "user", "first"),
        line("a1", "u1", "assistant", text("old answer")),
        line("u2", "a1", "user", "a question that was taken back"),
        line("u3", "a1", "user", "the question asked instead"),
        line("a3", "u3", "assistant", text("new answer")),
    )
    one = read(tmp_path, "claude")[SESSION]
    assert one.side == {"u2"}
    assert "u2" in one.entries


def test_a_compaction_starts_a_new_root_and_hides_nothing(tmp_path: Path) -> None:
    boundary: Record = {
        "type": "system", "subtype": "compact_boundary", "uuid": "s1", "parentUuid": None,
        "logicalParentUuid": "a1", "sessionId": SESSION, "timestamp": "2026-08-20T11:00:00Z",
    }  # fmt: skip
    session(
        tmp_path,
        line("u1", None, "user", "first"),
        line("a1", "u1", "assistant", text("answer")),
        boundary,
        line("u2", "s1", "user", "The summary of it all", isCompactSummary=True),
        line("u3", "u2", "user", "go on"),
    )
    one = read(tmp_path, "claude")[SESSION]
    assert one.side == set()
    assert talk(one) == [
        ("user", "first"), ("assistant", "answer"), ("summary", "The summary of it all"), ("user", "go on"),
    ]  # fmt: skip


def test_lines_copied_into_a_resumed_session_count_once(tmp_path: Path) -> None:
    session(tmp_path, line("u1", None, "user", "only once"), line("u1", None, "user", "only once"))
    assert talk(read(tmp_path, "claude")[SESSION]) == [("user", "only once")]


def test_broken_lines_cost_only_themselves(tmp_path: Path) -> None:
    session(
        tmp_path,
        line("u1", None, "user", "before"),
        '{"type": "user", "uuid": "broken", "message": {"con',
        "[1, 2]",
        "\x00\x00",
        line("u2", "u1", "user", "after"),
    )
    assert talk(read(tmp_path, "claude")[SESSION]) == [("user", "before"), ("user", "after")]


def test_what_the_client_and_hooks_put_in_is_left_out(tmp_path: Path) -> None:
    session(
        tmp_path,
        line("u0", None, "user", "Caveat: generated", isMeta=True),
        line("u1", "u0", "user", "<command-name>/clear</command-name>"),
        line("u2", "u1", "user", "fix it <system-reminder>hook says hello</system-reminder>"),
        line("a1", "u2", "assistant", text("API Error"), isApiErrorMessage=True),
    )
    assert talk(read(tmp_path, "claude")[SESSION]) == [("user", "fix it")]


def test_a_subagent_is_a_session_of_its_own_with_its_parent(tmp_path: Path) -> None:
    session(tmp_path, line("u1", None, "user", "search the code"))
    write_lines(
        tmp_path / FOLDER / SESSION / "subagents" / "agent-a1b2.jsonl",
        [line("x1", None, "user", "find the cart", isSidechain=True, agentId="a1b2")],
    )
    made = read(tmp_path, "claude")
    sub = made[f"{SESSION}/agent-a1b2"]
    assert (sub.facts.subagent, sub.facts.parent) == (True, SESSION)
    assert made[SESSION].facts.subagent is False
    assert talk(sub) == [("user", "find the cart")]


def test_a_summary_names_the_session_that_its_leaf_is_in(tmp_path: Path) -> None:
    other = "4f0e6f1e-0000-4000-8000-000000000002"
    session(tmp_path, line("u1", None, "user", "hello"), line("u2", "u1", "user", "bye"))
    session(
        tmp_path,
        {"type": "summary", "summary": "The empty cart", "leafUuid": "u2"},
        line("v1", None, "user", "something else"),
        name=other,
    )
    made = read(tmp_path, "claude")
    assert made[SESSION].facts.title == "The empty cart"
    assert made[other].facts.title is None


def test_a_title_by_the_user_beats_one_by_the_model(tmp_path: Path) -> None:
    session(
        tmp_path,
        line("u1", None, "user", "hello"),
        {"type": "custom-title", "customTitle": "mine"},
        {"type": "ai-title", "aiTitle": "theirs"},
    )
    assert read(tmp_path, "claude")[SESSION].facts.title == "mine"
