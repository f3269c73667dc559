"""What requests mean, without a process behind them."""

import pytest

from vestige.core.errors import InvalidInput, TooLarge
from vestige.transports.bridge.answers import answer, truncated
from vestige.transports.bridge.requests import READERS, RequestOrigin, ToolCall, read

NOBODY = RequestOrigin(agent=None, idempotency_key="k")


def asked(path: str, **body: object) -> ToolCall:
    return read(path, body, NOBODY)


def test_a_context_that_each_of_several_gets_is_short() -> None:
    assert asked("/ingest", context="x" * 1_000, items=[{}]).arguments["items"] == [{"source": "x" * 1_000}]
    with pytest.raises(TooLarge, match="`context` has 1,001 characters"):
        asked("/ingest", context="x" * 1_001, items=[{}])


@pytest.mark.parametrize("path", [path for path in READERS if path not in ("/ingest", "/smart_ingest")])
def test_only_what_reads_may_be_sent_twice(path: str) -> None:
    writing = {
        "/promote", "/demote", "/dream", "/consolidate", "/backup",
        "/memory edit", "/memory delete", "/memory promote", "/memory purge", "/memory anything",
        "/codebase remember_pattern", "/codebase remember_decision", "/intention set", "/intention update",
        "/intention delete",
    }  # fmt: skip
    reading = {
        "/search", "/session_context", "/explore_connections", "/predict", "/importance_score",
        "/memory get", "/memory state", "/memory check_state", "/codebase get_context", "/intention check",
        "/intention list",
    }  # fmt: skip
    cases = [case for case in writing | reading if case.split()[0] == path]
    assert cases
    for case in cases:
        _, _, action = case.partition(" ")
        call = asked(path, memory_id="x", **({"action": action} if action else {}))
        assert call.again == (case in reading), case


def test_a_text_to_remember_may_be_sent_twice_because_it_has_a_key() -> None:
    call = asked("/ingest", content="x")
    assert call.again
    assert call.arguments["idempotency_key"]
    assert call.arguments == asked("/smart_ingest", content="x").arguments
    assert (
        call.arguments
        != read("/ingest", {"content": "x"}, RequestOrigin(agent=None, idempotency_key="l")).arguments
    )


def test_a_key_in_the_body_counts_and_each_agent_has_its_own() -> None:
    own = asked("/ingest", content="x", idempotencyKey="mine").arguments["idempotency_key"]
    assert own != asked("/ingest", content="x").arguments["idempotency_key"]
    agent = RequestOrigin(agent="a", idempotency_key="mine")
    assert read("/ingest", {"content": "x"}, agent).arguments["idempotency_key"] != own


@pytest.mark.parametrize("path", ["/dream", "/consolidate", "/backup"])
def test_long_work_has_more_time(path: str) -> None:
    assert asked(path).long
    assert not asked("/search", query="x").long


def test_null_is_the_same_as_nothing_said() -> None:
    assert asked("/search", query="x", threshold=None, limit=None).arguments == {"query": "x"}


def test_nothing_is_lost_on_the_way_to_the_tool() -> None:
    given = {"query": "x", "retrieval_mode": "precise", "whatever": [1]}
    assert asked("/search", **given).arguments == given


def test_an_argument_that_is_spelt_twice_is_refused() -> None:
    with pytest.raises(InvalidInput, match="given twice"):
        asked("/search", query="x", contextTopics=["a"], context_topics=["b"])


def test_a_search_that_failed_is_not_cut() -> None:
    result: dict[str, object] = {"isError": True, "structuredContent": {"results": [{"content": "long"}]}}
    assert truncated(result, 1) is result


def test_a_process_that_tells_only_words_is_understood() -> None:
    words: list[object] = [{"type": "text", "text": "no such thing"}]
    assert answer({"content": words}) == {
        "success": True,
        "data": {"content": words, "structured": None},
        "error": None,
    }
    failed = answer({"content": words, "isError": True})
    assert failed == {"success": False, "data": None, "error": "no such thing", "code": "tool_error"}
