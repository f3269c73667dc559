"""The memory block against LlamaIndex: behind its `Memory`, with a short-term memory that overflows."""

import asyncio

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import Memory as ChatMemory
from vestige_llamaindex import VestigeMemoryBlock

from vestige import AsyncMemory


def said(role: str, text: str) -> ChatMessage:
    return ChatMessage(role=role, content=text)


def test_what_leaves_the_short_term_memory_is_found_again(async_memory: AsyncMemory) -> None:
    async def used() -> str:
        async with async_memory as memory:
            chat = ChatMemory.from_defaults(
                session_id="s1",
                token_limit=60,
                token_flush_size=20,
                chat_history_token_ratio=0.5,
                tokenizer_fn=str.split,
                memory_blocks=[VestigeMemoryBlock(memory=memory, priority=0)],
            )
            await chat.aput_messages(
                [said("user", "My dog is called Rex."), said("assistant", "A good name.")]
            )
            for number in range(8):
                await chat.aput(said("user", f"Let us talk about subject number {number} for a while."))
            await chat.aput(said("user", "What is my dog called?"))
            listed = await memory.memory.list(thread="llamaindex:s1")
            assert listed["total"] > 0
            shown = await chat.aget()
            return str(shown[0].content)

    assert "My dog is called Rex." in asyncio.run(used())


def test_it_says_nothing_when_nothing_is_relevant_or_asked(async_memory: AsyncMemory) -> None:
    async def used() -> None:
        async with async_memory as memory:
            block = VestigeMemoryBlock(memory=memory, min_confidence=0.5)
            assert await block.aget([]) == ""
            await block.aput([said("user", "My dog is called Rex."), said("user", " ")])
            assert await block.aget([said("assistant", "dog")]) == ""
            assert await block.aget([said("user", "What is the capital of France?")]) == ""

    asyncio.run(used())


def test_truncating_leaves_out_the_least_relevant_lines(async_memory: AsyncMemory) -> None:
    block = VestigeMemoryBlock(memory=async_memory)
    text = "\n".join(["first " * 10, "second " * 10, "third " * 10])
    kept = asyncio.run(block.atruncate(text, 10))
    assert kept is not None
    assert kept.startswith("first")
    assert "third" not in kept
    assert asyncio.run(block.atruncate(text, 10_000)) is None
