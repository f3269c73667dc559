"""The toolset against Pydantic AI: an agent with a scripted model calls the tools."""

import asyncio
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelRetry
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from vestige_pydantic_ai import VestigeToolset

from vestige import AsyncMemory


def scripted(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Remembers what is a statement, recalls what is a question, and says what the tool returned."""
    last = messages[-1].parts[-1]
    if isinstance(last, ToolReturnPart):
        return ModelResponse(parts=[TextPart(str(last.content))])
    assert {tool.name for tool in info.function_tools} == {"remember", "recall", "correct", "forget"}
    prompt = str(last.content)
    if prompt.endswith("?"):
        return ModelResponse(parts=[ToolCallPart("recall", {"query": prompt})])
    return ModelResponse(parts=[ToolCallPart("remember", {"text": prompt, "tags": ["said"]})])


def test_an_agent_remembers_from_one_run_to_the_next(async_memory: AsyncMemory) -> None:
    async def used() -> str:
        async with async_memory as memory:
            agent = Agent(FunctionModel(scripted), toolsets=[VestigeToolset(memory)])
            await agent.run("Ada drinks tea.")
            return (await agent.run("What does Ada drink?")).output

    assert "Ada drinks tea." in asyncio.run(used())


def test_the_agent_is_told_how_to_use_its_memory(async_memory: AsyncMemory) -> None:
    shown: list[Any] = []

    def listening(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        shown.append(getattr(messages[0], "instructions", None) or info.instructions)
        return ModelResponse(parts=[TextPart("Yes.")])

    async def used() -> None:
        async with async_memory as memory:
            await Agent(FunctionModel(listening), toolsets=[VestigeToolset(memory)]).run("Hello?")

    asyncio.run(used())
    assert "long-term memory" in str(shown[0])


def test_a_memory_is_corrected_and_forgotten_and_a_wrong_id_is_for_the_model(
    async_memory: AsyncMemory,
) -> None:
    async def used() -> None:
        async with async_memory as memory:
            tools = VestigeToolset(memory)
            made = (await tools.remember("Ada drinks tea."))["id"]
            assert (await tools.correct(made, "Ada drinks coffee."))["changed"]
            assert [one["text"] for one in await tools.recall("What does Ada drink?")] == [
                "Ada drinks coffee."
            ]
            assert (await tools.forget(made))["deleted"]
            assert await tools.recall("What does Ada drink?") == []
            for call in (tools.forget(made), tools.correct(made, "x"), tools.remember("")):
                with pytest.raises(ModelRetry):
                    await call

    asyncio.run(used())
