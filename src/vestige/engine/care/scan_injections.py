"""Scanning stored memories for orders to agents and hidden text."""

from dataclasses import field

from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import ANYTHING, Memory
from vestige.engine.care.quarantine import quarantine
from vestige.engine.care.scan_secrets import texts_of
from vestige.engine.context import Call
from vestige.engine.ingest.inbox import flags_in
from vestige.engine.ingest.orders import order_flags


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectionFinding:
    """A memory with the kinds of orders or hidden text in it."""

    id: str
    kinds: tuple[str, ...]
    origin: str | None
    scope: str
    pinned: bool = False


@dataclass(slots=True, kw_only=True)
class ScannedMemories:
    """What was scanned and found, and the ids of what was put into the review inbox."""

    memories: int = 0
    findings: list[InjectionFinding] = field(default_factory=list)
    moved: list[str] = field(default_factory=list)


def scan_injections(call: Call, *, into_inbox: bool = False) -> ScannedMemories:
    """Scan every memory, archived ones too, but for those that the user wrote or approved. With `into_inbox`,
    what is found waits in the review inbox, unless it is pinned."""
    seen, store = ScannedMemories(), call.engine.store
    total = store.count(ANYTHING, access=call.access)
    for batch in store.stream(ANYTHING, access=call.access):
        call.check()
        found = order_flags(call, [record.memory for record in batch], _by_rules)
        for record in batch:
            memory = record.memory
            if memory.id in found:
                finding = InjectionFinding(
                    id=memory.id,
                    kinds=found[memory.id],
                    origin=memory.origin,
                    scope=memory.scope,
                    pinned=memory.pinned,
                )
                seen.findings.append(finding)
        seen.memories += len(batch)
        call.progress(seen.memories, max(seen.memories, total), f"{seen.memories} memories scanned")
    if into_inbox:
        seen.moved = quarantine(call, {one.id: one.kinds for one in seen.findings if not one.pinned})
    return seen


def _by_rules(memory: Memory) -> tuple[str, ...]:
    """What the rules find in any text of a memory."""
    return flags_in(texts_of(memory), memory.origin)
