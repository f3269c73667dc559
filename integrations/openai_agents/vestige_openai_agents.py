"""A session of the OpenAI Agents SDK in Vestige: the history of a conversation, which others can find.

Each item is a memory in the thread of the session: its text is what searches find, and the item itself is in
the metadata, so that `get_items` returns exactly what was added.
"""

import json
from collections.abc import Mapping
from typing import Any

from agents import SessionSettings, TResponseInputItem
from agents.memory.session_settings import resolve_session_limit

from vestige.client import AsyncOperations

KIND = "openai-agents"
PAGE = 200
MOST_AT_ONCE = PAGE
"""Items of one call are stored at one time, in any order: the latest page has all of the last call."""


class VestigeSession:
    """The history of the conversation `session_id`. `memory` is a `vestige.AsyncMemory` or a
    `vestige.client.AsyncClient`. Sessions with the same id and scope are the same conversation. `secrets`
    says what happens to a text with a key or password in it: `refuse`, `redact` or `allow`; by default the
    setting of the memory decides.
    """

    session_settings: SessionSettings | None = None

    def __init__(
        self,
        session_id: str,
        memory: AsyncOperations,
        *,
        scope: str = "/agent/openai-agents",
        secrets: Any = None,
        session_settings: SessionSettings | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings = session_settings
        self._memory = memory
        self._scope = scope
        self._secrets = secrets
        self._next = 0
        """The position after those that this session has stored itself."""

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The items in order; with a limit the latest ones."""
        most = resolve_session_limit(limit, self.session_settings)
        if most is not None and most <= 0:
            return []
        items = [node["metadata"][KIND] for node in await self._nodes(most)]
        return items if most is None else items[-most:]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        nodes = await self._nodes(1)
        first = max(self._next, nodes[-1]["position"] + 1 if nodes else 0)
        self._next = first + len(items)
        for start in range(0, len(items), MOST_AT_ONCE):
            part = items[start : start + MOST_AT_ONCE]
            await self._memory.smart_ingest(
                items=[
                    {
                        "content": _text(item),
                        "author": str(item.get("role") or item.get("type") or "agent"),
                        "scope": self._scope,
                        "session_id": self.session_id,
                        "thread": self._thread,
                        "position": first + start + number,
                        "node_type": KIND,
                        "metadata": {KIND: dict(item)},
                        "pinned": True,  # no other memory may change what was said
                        "force_create": True,
                    }
                    for number, item in enumerate(part)
                ],
                secrets=self._secrets,
            )

    async def pop_item(self) -> TResponseInputItem | None:
        nodes = await self._nodes(1)
        if not nodes:
            return None
        await self._memory.forget(nodes[-1]["id"], even_pinned=True)
        last: TResponseInputItem = nodes[-1]["metadata"][KIND]
        return last

    async def clear_session(self) -> None:
        for node in await self._nodes():
            await self._memory.forget(node["id"], even_pinned=True)

    @property
    def _thread(self) -> str:
        return f"{KIND}:{self.session_id}"

    async def _nodes(self, most: int | None = None) -> list[Mapping[str, Any]]:
        """The memories of the session in order; with `most`, at least that many of the latest ones. A turn
        reads a page or two then, however long the conversation is."""
        found: list[Mapping[str, Any]] = []
        while True:
            page = await self._memory.memory.list(
                scope=self._scope,
                thread=self._thread,
                include_types=[KIND],
                include_suppressed=True,
                detail_level="full",
                order="newest",
                limit=PAGE,
                offset=len(found),
            )
            found += page["results"]
            enough = most is not None and len(found) >= most + PAGE - 1
            if len(page["results"]) < PAGE or enough:
                return sorted(found, key=lambda node: node["position"])


def _text(item: Mapping[str, Any]) -> str:
    """What an item says: the text of a message, else all of it."""
    content = item.get("content")
    if isinstance(content, str) and content.strip():
        return content
    if isinstance(content, list):
        parts = [
            part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)
        ]
        if any(part.strip() for part in parts):
            return "\n".join(parts)
    return json.dumps(item, ensure_ascii=False)
