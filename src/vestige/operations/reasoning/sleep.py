"""Dreams and consolidation: `dream` and `consolidate`."""

from typing import Annotated

from pydantic import Field

from vestige.cognition.graph.dreams.replay import LINKS_EACH
from vestige.core.models import Filter
from vestige.engine.context import Call, require_scope
from vestige.engine.sleep.dream import Dreamed, DreamQuery
from vestige.engine.sleep.dream import dream as dream_of
from vestige.engine.sleep.schedule import LEAST_SIMILARITY
from vestige.engine.sleep.schedule import sleep as consolidate_all
from vestige.operations.reasoning.insights import InsightView, insight_lines, insight_view
from vestige.operations.registry.arguments import Arguments, InheritedScope, Wire
from vestige.operations.registry.registry import registry
from vestige.operations.shared.filters import scoped, used
from vestige.operations.shared.memory_view import EdgeView, edge_view
from vestige.operations.shared.text import count, table

SHOWN_LINKS = 20


class DreamArguments(Arguments):
    """How many memories to replay, and where."""

    memory_count: int | None = Field(
        None, ge=5, le=500, description="Maximum number of memories to replay. Default: the setting (50)."
    )
    min_similarity: float = Field(
        LEAST_SIMILARITY, ge=0.1, le=1, description="Minimum similarity of linked memories."
    )
    links_per_memory: int = Field(
        LINKS_EACH, ge=0, le=10, description="Maximum number of new links per memory; 0 creates none."
    )
    scope: InheritedScope = None


class LinkView(EdgeView):
    """A link created by a dream."""


class DreamStats(Wire):
    """Counts of a dream.

    `strengthened` memories were replayed for the first time in a day; `by_words` means that there were no
    vectors to compare.
    """

    new_connections_found: int
    connections_reinforced: int
    connections_pruned: int
    memories_strengthened: int
    by_words: bool | None = None
    duration_ms: Annotated[float, Field(alias="duration_ms")]


class DreamView(Wire):
    """The results of a dream. `connections` shows the strongest new links."""

    status: str
    dream_id: str
    scope: str
    memories_replayed: int
    waking_tags_processed: int
    insights: list[InsightView]
    insights_persisted: int
    connections_persisted: int
    connections: list[LinkView]
    stats: DreamStats


def render_dream(dreamed: DreamView) -> str:
    stats = dreamed.stats
    summary = (
        f"Replayed {count(dreamed.memories_replayed, 'memory')} of {dreamed.scope}: "
        f"{count(dreamed.connections_persisted, 'new link')}, {stats.connections_reinforced} reinforced, "
        f"{stats.connections_pruned} pruned, {count(dreamed.insights_persisted, 'insight')}."
    )
    return "\n\n".join(part for part in (insight_lines(dreamed.insights), summary) if part)


@registry.operation(
    "dream", permission="write", long=True, example={"memory_count": 5}, title="Dream", render=render_dream
)
def dream(call: Call, asked: DreamArguments) -> DreamView:
    """Replay memories, link similar ones, and draw insights.

    Replays recent important memories, the newest, and some of every age. Links each to similar ones in the
    scope, strengthens replayed memories (at most once a day), prunes faded links, and draws insights that
    cite their sources. No text is changed; pinned memories only get links. Needs 5 memories.
    """
    now = call.engine.now()
    require_scope(call, asked.scope)
    query = DreamQuery(
        where=scoped(call, Filter(valid_at=now, include_suppressed=False), asked.scope),
        scope=used(call, asked.scope),
        memories=asked.memory_count or call.engine.settings.sleep.dream_memories,
        least=asked.min_similarity,
        links_each=asked.links_per_memory,
    )
    return _dream_view(dream_of(call, query))


def _dream_view(dreamed: Dreamed) -> DreamView:
    heaviest = sorted(dreamed.linked, key=lambda edge: (-edge.weight, edge.source_id, edge.target_id))
    return DreamView(
        status="dreamed",
        dream_id=dreamed.id,
        scope=dreamed.scope,
        memories_replayed=dreamed.replayed,
        waking_tags_processed=dreamed.salient,
        insights=[insight_view(one) for one in dreamed.insights],
        insights_persisted=len(dreamed.insights),
        connections_persisted=len(dreamed.linked),
        connections=[LinkView.of(edge_view(edge)) for edge in heaviest[:SHOWN_LINKS]],
        stats=DreamStats(
            new_connections_found=len(dreamed.linked),
            connections_reinforced=dreamed.reinforced,
            connections_pruned=dreamed.pruned,
            memories_strengthened=dreamed.strengthened,
            by_words=dreamed.by_words or None,
            duration_ms=dreamed.duration_ms,
        ),
    )


class SleepStepView(Wire):
    """One step of a consolidation: its count and a note."""

    step: str
    count: int
    note: str | None = None


class ConsolidationView(Wire):
    """The effects of a consolidation.

    `decay_applied` counts memories that changed their state, `activations_computed` faded links,
    `nodes_promoted` memories that a dream strengthened. Nothing is merged or removed automatically, so
    `duplicates_merged` and `nodes_pruned` are always 0; review the `duplicates_found`.
    """

    nodes_processed: int
    nodes_promoted: int
    nodes_pruned: int = 0
    decay_applied: int
    embeddings_generated: int
    duplicates_found: int
    duplicates_merged: int = 0
    activations_computed: int
    w20_optimized: Annotated[bool, Field(alias="w20Optimized")]
    duration_ms: float
    steps: list[SleepStepView]
    dream: DreamView | None = None


def render_consolidation(done: ConsolidationView) -> str:
    steps = table(("step", "count", "note"), ((one.step, one.count, one.note) for one in done.steps))
    return f"{steps}\n\n{count(done.nodes_processed, 'memory')} processed."


@registry.operation(
    "consolidate", permission="write", long=True, example={}, title="Consolidate", render=render_consolidation
)
def consolidate(call: Call) -> ConsolidationView:
    """Run maintenance now: what the autopilot does when the store is idle.

    Records which memories changed state, embeds memories without vectors, fits the forgetting curve to the
    reviews, lets links fade, finishes suppressions, counts duplicates, dreams if a dream is due, and takes a
    snapshot for the trend in `memory_health`. No text is changed, merged or removed. Fails while another
    consolidation runs, in this process or another.
    """
    done = consolidate_all(call)
    return ConsolidationView(
        nodes_processed=done.memories,
        nodes_promoted=done.dreamed.strengthened if done.dreamed else 0,
        decay_applied=done.count("states"),
        embeddings_generated=done.count("embeddings"),
        duplicates_found=done.count("duplicates"),
        activations_computed=done.count("links"),
        w20_optimized=done.tuned,
        duration_ms=done.duration_ms,
        steps=[SleepStepView(step=one.name, count=one.count, note=one.note) for one in done.steps],
        dream=_dream_view(done.dreamed) if done.dreamed else None,
    )
