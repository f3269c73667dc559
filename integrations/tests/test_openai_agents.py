"""The session against the OpenAI Agents SDK: its runner uses it; its SQLite session says what is right."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from agents import Agent, ModelResponse, RunConfig, Runner, Session, SQLiteSession, Usage
from agents.models.interface import Model
from openai.types.responses import ResponseOutputMessage, ResponseOutputText
from vestige_openai_agents import VestigeSession

from vestige import AsyncMemory

ITEMS: list[Any] = [
    {"role": "user", "content": "I drink tea."},
    {"role": "assistant", "content": [{"type": "output_text", "text": "Noted."}]},
    {"type": "function_call", "name": "look", "arguments": "{}", "call_id": "c1"},
    {"type": "function_call_output", "call_id": "c1", "output": ""},
    {"role": "user", "content": "I drink tea."},
]


class ScriptedModel(Model):
    """Says how many messages it was shown."""

    async def get_response(
        self, system_instructions: Any, input: Any, *rest: Any, **named: Any
    ) -> ModelResponse:
        said = f"I see {len(input)} items."
        text = ResponseOutputText(text=said, type="output_text", annotations=[])
        message = ResponseOutputMessage(
            id="m1", type="message", role="assistant", content=[text], status="completed"
        )
        return ModelResponse(output=[message], usage=Usage(), response_id=None)

    async def stream_response(self, *given: Any, **named: Any) -> AsyncIterator[Any]:
        raise NotImplementedError
        yield


async def compared(session: Session, other: Session) -> None:
    assert await session.get_items() == await other.get_items()


def test_it_does_what_the_session_of_the_library_does(async_memory: AsyncMemory) -> None:
    async def used() -> None:
        async with async_memory as memory:
            ours, theirs = VestigeSession("s1", memory), SQLiteSession("s1")
            assert isinstance(ours, Session)
            for session in (ours, theirs):
                await session.add_items(ITEMS[:2])
                await session.add_items(ITEMS[2:])
                await session.add_items([])
            await compared(ours, theirs)
            for limit in (0, 1, 3, 99):
                assert await ours.get_items(limit) == await theirs.get_items(limit)
            assert await ours.pop_item() == await theirs.pop_item() == ITEMS[-1]
            await compared(ours, theirs)
            for session in (ours, theirs):
                await session.add_items(ITEMS[:1])
            await compared(ours, theirs)
            for session in (ours, theirs):
                await session.clear_session()
            assert await ours.get_items() == await theirs.get_items() == []
            assert await ours.pop_item() is None
            theirs.close()

    asyncio.run(used())


def test_a_turn_reads_as_much_of_a_long_conversation_as_of_a_short_one() -> None:
    async def read_by_a_turn(turns: int) -> int:
        read: list[int] = []
        async with AsyncMemory(":memory:", settings={"embeddings.provider": "hashing"}) as memory:
            session = VestigeSession("s1", memory)
            said: list[Any] = [{"role": "user", "content": f"Message {n}."} for n in range(turns)]
            await session.add_items(said)
            listed = memory.memory.list

            async def counted(**asked: Any) -> Any:
                page = await listed(**asked)
                read.append(len(page["results"]))
                return page

            memory.memory.list = counted  # type: ignore[method-assign]  # only counts
            await session.add_items([{"role": "user", "content": "The last one."}])
            assert await session.get_items(3) == [*said[-2:], {"role": "user", "content": "The last one."}]
            assert await session.pop_item() == {"role": "user", "content": "The last one."}
        return sum(read)

    short, long = (asyncio.run(read_by_a_turn(turns)) for turns in (500, 2_000))

    assert long <= short


def test_sessions_do_not_see_each_other_but_a_search_finds_what_was_said(async_memory: AsyncMemory) -> None:
    async def used() -> None:
        async with async_memory as memory:
            await VestigeSession("s1", memory).add_items(ITEMS)
            assert await VestigeSession("s2", memory).get_items() == []
            found = await memory.search("What do I drink?")
            assert "I drink tea." in [hit.get("content") for hit in found["results"]]

    asyncio.run(used())


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_an_agent_sees_the_earlier_turns(async_memory: AsyncMemory) -> None:
    async def used() -> list[str]:
        async with async_memory as memory:
            agent = Agent(name="clerk", model=ScriptedModel())
            session = VestigeSession("s1", memory)
            config = RunConfig(tracing_disabled=True)
            first = await Runner.run(agent, "I drink tea.", session=session, run_config=config)
            second = await Runner.run(agent, "What do I drink?", session=session, run_config=config)
            assert len(await session.get_items()) == 4
            return [first.final_output, second.final_output]

    assert asyncio.run(used()) == ["I see 1 items.", "I see 3 items."]
