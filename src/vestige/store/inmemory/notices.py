"""What those who share an in-memory store tell each other."""

import json
from collections.abc import Sequence

from vestige.store.answers import MOST_NOTICES, Notice
from vestige.store.inmemory.state import State


def add(state: State, process: str, messages: Sequence[str]) -> None:
    """Add these at the end, without those that quote a deleted memory, and keep the last ones."""
    told = [message for message in messages if state.buried.keys().isdisjoint(_quoted(message))]
    numbered = enumerate(told, state.told + 1)
    new = [Notice(id=number, process=process, message=message) for number, message in numbered]
    state.told += len(new)
    state.notices = (*state.notices, *new)[-MOST_NOTICES:]


def _quoted(message: str) -> list[str]:
    quoted: list[str] = json.loads(message).get("quotes", [])
    return quoted
