"""Scanning stored memories for orders to agents and hidden text."""

from dataclasses import field

from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import ANYTHING
from vestige.engine.care.scan_secrets import texts_of
from vestige.engine.context import Call
from vestige.engine.ingest.inbox import flags_in


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectionFinding:
    """A memory with the kinds of orders or hidden text in it."""

    id: str
    kinds: tuple[str, ...]
    origin: str | None
    scope: str


@dataclass(slots=True, kw_only=True)
class ScannedMemories:
    memories: int = 0
    findings: list[InjectionFinding] = field(default_factory=list)


def scan_injections(call: Call) -> ScannedMemories:
    """Scan every memory, archived ones too, but for those that the user wrote."""
    seen, store = ScannedMemories(), call.engine.store
    total = store.count(ANYTHING, access=call.access)
    for batch in store.stream(ANYTHING, access=call.access):
        call.check()
        for record in batch:
            memory = record.memory
            kinds = flags_in(texts_of(memory), memory.origin)
            if kinds:
                finding = InjectionFinding(
                    id=memory.id, kinds=kinds, origin=memory.origin, scope=memory.scope
                )
                seen.findings.append(finding)
        seen.memories += len(batch)
        call.progress(seen.memories, max(seen.memories, total), f"{seen.memories} memories scanned")
    return seen
