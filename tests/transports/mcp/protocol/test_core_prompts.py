"""Prompts of the MCP server: filling them in, in both eras, and the ones that Vestige brings."""

import re
from typing import Any

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from testbed.failures import each
from tests.transports.mcp.apps import SmallApp
from tests.transports.mcp.harness import MODES, sdk_client
from tests.transports.mcp.lines import STAMP, ask, ask_modern, connect
from vestige.operations.registry.groups import registry
from vestige.operations.registry.prompts import INSTRUCTIONS, PROMPTS, PromptClause


def said(params: dict[str, Any]) -> str:
    """The text of the small catalog's prompt."""
    result = ask(connect("2025-11-25"), "prompts/get", {"name": "greet", **params})["result"]
    (message,) = result["messages"]
    assert message["role"] == "user"
    assert message["content"]["type"] == "text"
    return str(message["content"]["text"])


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"who": "Ada"}, "Say hello to Ada and nobody else."),
        ({"who": "Ada", "mood": "good"}, "Say hello to Ada and nobody else, in a good mood."),
        ({"who": "Ada", "mood": " "}, "Say hello to Ada and nobody else."),
        ({"who": "{}, {mood} and %s", "mood": "{who}"}, None),
    ],
)
def test_a_prompt_says_what_its_arguments_ask_for(arguments: dict[str, str], text: str | None) -> None:
    verbatim = "Say hello to {}, {mood} and %s and nobody else, in a {who} mood."
    assert said({"arguments": arguments}) == (text or verbatim)


def test_a_prompt_has_the_shape_of_its_era() -> None:
    params = {"name": "greet", "arguments": {"who": "Ada"}}
    content = {"type": "text", "text": "Say hello to Ada and nobody else."}
    body = {"description": "Say hello.", "messages": [{"role": "user", "content": content}]}

    assert ask(connect("2025-11-25"), "prompts/get", params)["result"] == body
    modern = ask_modern(connect(), "prompts/get", params)["result"]
    assert modern == {"resultType": "complete", **body, "_meta": STAMP}


@each(
    ("params", "message"),
    [
        ({}, '"name" must be a string'),
        ({"name": 3}, '"name" must be a string'),
        ({"name": "great"}, "Unknown prompt: great (did you mean greet?)"),
        ({"name": "xyz"}, "Unknown prompt: xyz"),
        ({"name": "greet"}, "The prompt greet needs the argument who"),
        ({"name": "greet", "arguments": None}, "The prompt greet needs the argument who"),
        ({"name": "greet", "arguments": {"who": ""}}, "The prompt greet needs the argument who"),
        ({"name": "greet", "arguments": []}, '"arguments" must be an object'),
        ({"name": "greet", "arguments": {"who": 3}}, 'the argument "who" must be a string'),
        (
            {"name": "greet", "arguments": {"who": "Ada", "mod": "x"}},
            "The prompt greet has no argument mod (did you mean mood?)",
        ),
    ],
)
def test_a_prompt_that_cannot_be_given_is_refused_in_both_eras(params: dict[str, Any], message: str) -> None:
    for error in (
        ask(connect("2025-11-25"), "prompts/get", params)["error"],
        ask_modern(connect(), "prompts/get", params)["error"],
    ):
        assert error["code"] == -32602
        assert error["message"].endswith(message)


@pytest.mark.parametrize("mode", MODES)
def test_the_official_client_lists_and_gets_every_prompt(mode: str) -> None:
    with sdk_client(SmallApp(), mode=mode) as call:
        listed = call.prompts()
        assert [prompt.name for prompt in listed] == ["warm_up", "recall", "save", "review"]
        for prompt in listed:
            (optional,) = prompt.arguments or []
            assert not optional.required
            plain, told = call.prompt(prompt.name), call.prompt(prompt.name, {optional.name: "12 herons"})
            assert plain.description == prompt.description
            assert "12 herons" not in text_of(plain)
            assert "12 herons" in text_of(told)
        with pytest.raises(MCPError, match="Unknown prompt"):
            call.prompt("nonsense")


def text_of(result: types.GetPromptResult) -> str:
    (message,) = result.messages
    assert isinstance(message.content, types.TextContent)
    return message.content.text


def test_every_clause_has_its_argument_and_one_gap() -> None:
    for prompt in PROMPTS:
        clauses = [part for part in prompt.parts if isinstance(part, PromptClause)]
        assert [clause.argument for clause in clauses] == [one.name for one in prompt.arguments]
        assert all(clause.text.count("{}") == 1 for clause in clauses)


def test_prompts_and_instructions_name_only_what_there_is() -> None:
    texts = [*INSTRUCTIONS.values()]
    for prompt in PROMPTS:
        texts += [part if isinstance(part, str) else part.text for part in prompt.parts]
    known = {*registry.tools, *(action for tool in registry.tools.values() for action in tool.actions)}
    for operation in registry.operations.values():
        known |= set(operation.arguments.model_fields)
    known |= {"newest", "oldest", "due"}  # values of `order`

    assert {name for text in texts for name in re.findall(r"`(\w+)`", text)} <= known


@pytest.mark.parametrize("mode", list(INSTRUCTIONS))
def test_the_instructions_say_when_to_search_save_promote_and_demote_and_what_is_only_data(mode: str) -> None:
    text = INSTRUCTIONS[mode].lower()

    for word in ("search", "save", "promote", "demote", "data", "never"):
        assert word in text
    assert "instructions" in text
