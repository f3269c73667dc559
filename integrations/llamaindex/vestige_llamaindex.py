"""A memory block of LlamaIndex in Vestige: long-term memory behind the short-term memory of a chat.

`Memory` of LlamaIndex hands a block the messages that leave the short-term memory, and asks it what belongs
to the current ones.
"""

from typing import Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.bridge.pydantic import Field
from llama_index.core.memory import BaseMemoryBlock

from vestige.client import AsyncOperations

MOST_AT_ONCE = 500


class VestigeMemoryBlock(BaseMemoryBlock[str]):
    """`memory` is a `vestige.AsyncMemory` or a `vestige.client.AsyncClient`. The block finds what was said in
    any conversation in its scope, and says nothing if nothing is relevant."""

    name: str = Field(default="long_term_memory")
    memory: Any = Field(exclude=True, description="A vestige.AsyncMemory or vestige.client.AsyncClient.")
    scope: str = Field(default="/agent/llamaindex", description="The scope of its memories.")
    limit: int = Field(default=5, description="Most memories that it returns.")
    min_confidence: float | None = Field(
        default=None, description="Say nothing below this confidence. Default: the setting of the memory."
    )

    @property
    def operations(self) -> AsyncOperations:
        memory: AsyncOperations = self.memory
        return memory

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        asked = [one.content for one in messages or [] if one.role == MessageRole.USER and one.content]
        if not asked:
            return ""
        found = await self.operations.search(
            asked[-1], scope=self.scope, limit=self.limit, min_confidence=self.min_confidence
        )
        return "\n".join(hit["content"] for hit in found["results"] if "content" in hit)

    async def _aput(self, messages: list[ChatMessage]) -> None:
        said = [one for one in messages if one.content and one.content.strip()]
        for start in range(0, len(said), MOST_AT_ONCE):
            await self.operations.smart_ingest(
                items=[self._item(one) for one in said[start : start + MOST_AT_ONCE]]
            )

    def _item(self, message: ChatMessage) -> Any:
        session = message.additional_kwargs.get("session_id")
        return {
            "content": message.content,
            "author": message.role.value,
            "scope": self.scope,
            "node_type": "message",
            **({"session_id": session, "thread": f"llamaindex:{session}"} if session else {}),
        }

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        """Leave out the last lines, which are the least relevant; four characters are about a token."""
        kept = content[: max(0, len(content) - 4 * tokens_to_truncate)].rpartition("\n")[0]
        return kept or None
