"""Duplicates: `find_duplicates`, and merging them with `dedup`."""

from datetime import datetime
from hashlib import blake2b
from typing import Annotated

from pydantic import Field

from vestige.cognition.evidence.duplicates import MOST_MEMBERS
from vestige.cognition.fsrs.strength import retention_of
from vestige.cognition.text.analyser import fingerprint
from vestige.core.models import Filter, Record, estimate
from vestige.engine.context import Call, require_scope
from vestige.engine.memory import merge
from vestige.engine.memory.duplicates import DuplicateCluster, find_duplicates
from vestige.operations.reasoning.reference_view import quoted
from vestige.operations.registry.arguments import Arguments, MemoryId, ScopeBelow, Switch, Tags, Wire
from vestige.operations.registry.registry import registry
from vestige.operations.shared.filters import scoped, used
from vestige.operations.shared.memory_view import MemoryView, memory_card, view
from vestige.operations.shared.text import clip, count, day, fields, percent, short_id

PREVIEW_CHARS = 120
EXAMPLE_PARTS = ["01890000-0000-7000-8000-0000000000d1", "01890000-0000-7000-8000-0000000000d2"]
"""Ids of two memories that examples merge …"""
EXAMPLE_PLAN = "1bcf202bda40de732bcf1c98"
"""… the plan of that merge …"""
EXAMPLE_MERGED = "01890000-0000-7000-8000-0000000000d5"
"""… and the id of a merge that examples undo; the parity tests create them."""

Ids = Annotated[list[MemoryId], Field(min_length=2, max_length=MOST_MEMBERS)]


class DuplicateView(Wire):
    """A memory of a cluster, with its provenance."""

    id: str
    content_preview: str
    retention: float
    created_at: datetime
    tags: list[str]
    similarity_to_anchor: float
    source: str | None = None
    author: str | None = None


class ClusterView(Wire):
    """Similar memories; every two of them are similar. The leading one (the anchor) is first.

    `merge_score` is the score of the least similar pair; `reasons` state why to review before merging.
    """

    cluster_id: str
    size: int
    members: list[DuplicateView]
    merge_score: float
    suggested_action: str
    reasons: list[str] | None = None


class Duplicates(Wire):
    """Clusters, best to merge first, and how much was compared.

    `compared_by_words` memories have no vectors or exceed the number compared by vectors; `left_out` ones
    were not compared at all.
    """

    scope: str
    total_clusters: int
    offset: int
    clusters: list[ClusterView]
    memories_analyzed: int
    pairs_checked: int
    compared_by_words: int | None = None
    left_out: int | None = None


class DuplicatesArguments(Arguments):
    """Where to look, and the similarity of duplicates."""

    similarity_threshold: float = Field(
        0.80, ge=0.5, le=1, description="Minimum similarity of any two memories in a cluster."
    )
    limit: int = Field(20, ge=1, le=100, description="Maximum number of clusters.")
    offset: int = Field(0, ge=0, le=1_000_000, description="Clusters to skip.")
    tags: Tags = Field([], description="Only memories with any of these tags.")
    scope: ScopeBelow = None


class PartView(Wire):
    """A memory that the merge would end, with its text and provenance."""

    id: str
    content: str
    tags: list[str]
    created_at: datetime
    source: str | None = None
    author: str | None = None
    valid_from: datetime | None = None
    revision: int
    ends_at: datetime | None = None


class Planned(Wire):
    """A preview of a merge. Nothing is stored; pass `plan_id` to `apply`."""

    action: str = "plan"
    plan_id: str
    scope: str
    content: str
    phrasings: list[str]
    tags: list[str]
    node_type: str
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    parts: list[PartView]
    warning: str | None = None


class Applied(Wire):
    """The merged memory and the ids of its parts, which have ended."""

    action: str = "apply"
    success: bool = True
    merged_from: list[str]
    node: MemoryView


class MergeUndone(Wire):
    """The restored parts, and the merged memory, which has ended."""

    action: str = "undo"
    success: bool = True
    restored: list[MemoryView]
    node: MemoryView


def render_duplicates(answer: Duplicates) -> str:
    lines = []
    for cluster in answer.clusters:
        lines.append(
            f"{cluster.suggested_action}: {cluster.size} similar, score {percent(cluster.merge_score)}"
        )
        lines += [_member_line(member) for member in cluster.members]
        lines += [f"  {clip(reason, 200)}" for reason in cluster.reasons or []]
        lines.append("")
    shown = f"{len(answer.clusters)} of {count(answer.total_clusters, 'cluster')} in {answer.scope}."
    looked = f"{count(answer.memories_analyzed, 'memory')} and {count(answer.pairs_checked, 'pair')} checked"
    by_words = f"; {answer.compared_by_words:,} compared by words only" if answer.compared_by_words else ""
    left_out = f"; {answer.left_out:,} not compared" if answer.left_out else ""
    return "\n".join([*lines, shown, f"{looked}{by_words}{left_out}."])


def _member_line(member: DuplicateView) -> str:
    origin = "".join(f", {clip(name)}" for name in (member.source, member.author) if name)
    facts = f"{day(member.created_at)}, {percent(member.similarity_to_anchor)}{origin}"
    return f"  {quoted(member.content_preview)} [{short_id(member.id)}] ({facts})"


def render_plan(planned: Planned) -> str:
    """A plan as text: the merged memory, then its parts."""
    facts = fields(
        (
            ("plan", planned.plan_id),
            ("scope", planned.scope),
            ("type", planned.node_type),
            ("tags", ", ".join(planned.tags)),
            ("true from", day(planned.valid_from)),
            ("until", day(planned.valid_until)),
            ("other wordings", " | ".join(planned.phrasings)),
            ("warning", planned.warning),
        )
    )
    parts = "\n".join(f"ends: {quoted(part.content)} [{short_id(part.id)}]" for part in planned.parts)
    return f"{planned.content}\n\n{facts}\n\n{parts}"


def _render_applied(applied: Applied) -> str:
    return f"Merged {', '.join(map(short_id, applied.merged_from))}.\n\n{memory_card(applied.node)}"


def _render_undone(undone: MergeUndone) -> str:
    lines = [f"restored: {quoted(part.content or '')} [{short_id(part.id)}]" for part in undone.restored]
    return "\n".join([f"Undone: {short_id(undone.node.id)} has ended.", *lines])


@registry.operation(
    "find_duplicates",
    permission="read",
    long=True,
    example={"similarity_threshold": 0.8, "limit": 5},
    title="Find duplicates",
    render=render_duplicates,
)
def duplicates(call: Call, asked: DuplicatesArguments) -> Duplicates:
    """Find duplicates: clusters of memories that say the same.

    `suggested_action` is `merge` for small clusters without objections, else `review`. Only memories that are
    true now, not pinned and not part of a thread are compared, each scope separately. Changes nothing;
    `dedup` merges.
    """
    now = call.engine.now()
    where = Filter(valid_at=now, pinned=False, include_suppressed=False, tags_any=tuple(asked.tags))
    found = find_duplicates(
        call,
        scoped(call, where, asked.scope),
        least=asked.similarity_threshold,
        limit=asked.limit,
        offset=asked.offset,
    )
    if not found.memories:
        require_scope(call, asked.scope)
    return Duplicates(
        scope=used(call, asked.scope),
        total_clusters=found.total,
        offset=asked.offset,
        clusters=[_cluster_view(cluster, now) for cluster in found.clusters],
        memories_analyzed=found.memories,
        pairs_checked=found.pairs,
        compared_by_words=found.by_words or None,
        left_out=found.left_out or None,
    )


def _cluster_view(cluster: DuplicateCluster, now: datetime) -> ClusterView:
    ids = sorted(record.memory.id for record in cluster.records)
    marks = [fingerprint(record.memory.content) for record in cluster.records]  # one: identical texts
    return ClusterView(
        cluster_id=blake2b("\0".join(ids).encode(), digest_size=6).hexdigest(),
        size=len(ids),
        members=[
            _duplicate_view(record, similarity if mark == marks[0] else estimate(similarity), now)
            for record, similarity, mark in zip(cluster.records, cluster.similarities, marks, strict=True)
        ],
        merge_score=round(cluster.score, 4) if len(set(marks)) == 1 else estimate(cluster.score),
        suggested_action="review" if cluster.objections else "merge",
        reasons=list(cluster.objections) or None,
    )


def _duplicate_view(record: Record, similarity: float, now: datetime) -> DuplicateView:
    memory = record.memory
    return DuplicateView.of(
        memory,
        content_preview=clip(memory.content, PREVIEW_CHARS),
        retention=round(retention_of(record.strength, now), 4),
        similarity_to_anchor=round(similarity, 4),
    )


@registry.operation("dedup.plan", permission="read", example={"ids": EXAMPLE_PARTS}, render=render_plan)
def dedup_plan(
    call: Call, ids: Annotated[Ids, Field(description="The memories to merge: 2 to 20.")]
) -> Planned:
    """Preview a merge of these memories without doing it.

    The merged text is the longest one, followed by sentences of the others that it lacks, in order of time.
    Tags and other wordings are combined. Pass the answer's `plan_id` to `apply`.
    """
    plan = merge.plan(call, ids)
    merged = plan.merged
    return Planned.of(
        merged,
        action="plan",
        plan_id=plan.plan_id,
        parts=[PartView.of(part.memory, ends_at=merged.valid_from) for part in plan.parts],
        warning="Too long to be checked for contradictions." if plan.unchecked else None,
    )


@registry.operation(
    "dedup.apply",
    permission="write",
    example={"ids": EXAMPLE_PARTS, "plan_id": EXAMPLE_PLAN},
    positional=("ids",),
    render=_render_applied,
)
def dedup_apply(
    call: Call,
    ids: Annotated[Ids, Field(description="The memories of the plan.")],
    plan_id: Annotated[str, Field(min_length=1, max_length=64, description="Id that `plan` returned.")],
) -> Applied:
    """Merge memories as planned; fails if any of them changed since the plan.

    The merged memory is new. Its parts end and stay in the history; `undo` restores them.
    """
    record = merge.apply(call, ids, plan_id)
    return Applied(merged_from=merge.part_ids(record.memory), node=view(record, call.engine.now()))


@registry.operation("dedup.undo", permission="write", example={"id": EXAMPLE_MERGED}, render=_render_undone)
def dedup_undo(
    call: Call,
    id: MemoryId,
    even_changed: Annotated[
        Switch, Field(description="Undo even if the merged memory was changed since.")
    ] = False,
) -> MergeUndone:
    """Undo a merge, by the id of the merged memory: its parts are restored as they were before.

    The merged memory ends and stays in the history. If it was merged again, undo the last merge first.
    """
    undone, now = merge.undo(call, id, even_changed=even_changed), call.engine.now()
    return MergeUndone(restored=[view(part, now) for part in undone.parts], node=view(undone.merged, now))
