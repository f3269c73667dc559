"""Notes on three topics that share no word, for the hashing embedder."""

from typing import Any

from testbed.world import World

TOPICS = {
    "dev": "rust async trait compiler borrow crate",
    "infra": "bgp router vlan switch firewall subnet",
    "home": "boiler garden kwh heating kitchen lamp",
}
LIMITS: dict[str, Any] = {"domains.discovery_threshold": 60}
IN_MEMORY: dict[str, Any] = {"storage.backend": "memory", **LIMITS}
EACH = 24


def notes(topic: str, count: int = EACH, *, seed: int = 0) -> list[str]:
    """Texts on a topic: its words, and one of their own; every fourth of the first ones has more of these, so
    that members of a domain are not all equally near to its middle."""
    more = [
        " ".join(f"{topic}{at}y{part}" for part in range(3)) if at % 4 == 3 else "" for at in range(count)
    ]
    return [f"{TOPICS[topic]} {topic}{seed}x{at} {more[at]}".strip() for at in range(count)]


def store_all(world: World, texts: list[str], **fields: Any) -> list[str]:
    """Store texts as memories of their own; their ids."""
    items = [{"content": text, **fields} for text in texts]
    answers = [world.call("smart_ingest", items=items[at : at + 20]) for at in range(0, len(items), 20)]
    return [one["nodeId"] for answer in answers for one in answer["results"]]


def three_topics(world: World) -> dict[str, list[str]]:
    """Store notes on three topics; the ids by topic."""
    return {topic: store_all(world, notes(topic)) for topic in TOPICS}


def discovered(world: World) -> dict[str, list[str]]:
    """Store notes on three topics and find their domains; the ids of the notes by domain."""
    stored = three_topics(world)
    assert world.call("domains", action="discover")["applied"] is True
    return {domain_of(world, ids[0])[0]: ids for ids in stored.values()}


def domain_of(world: World, memory_id: str) -> list[str]:
    domains: list[str] = world.get(memory_id).get("domains", [])
    return domains


def membership(world: World) -> dict[str, tuple[str, ...]]:
    """The domains of every memory."""
    from vestige.core.models import EVERYTHING, Filter

    stream = world.app.engine.store.stream(Filter(archived=None), access=EVERYTHING)
    return {one.memory.id: one.memory.domains for batch in stream for one in batch}
