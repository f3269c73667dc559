"""Views of domains and proposals, as JSON and as text."""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from pydantic import Field

from vestige.cognition.graph.domains.assignment import OWN_SHARE
from vestige.core.documents import Document
from vestige.engine.domains.catalogue import score_line, short
from vestige.engine.domains.overview import DomainDetail, DomainOverview, DomainScore, DomainSummary
from vestige.operations.registry.arguments import Wire
from vestige.operations.shared.memory_view import MemoryView
from vestige.operations.shared.text import bar, clip, count, percent, styled, table

Origin = Literal["found", "hand"]


class DomainView(Wire):
    """A domain: a topic that was found in the memories, or made by hand."""

    id: str
    label: str
    origin: Origin
    memories: int
    terms: list[str]


class DomainsView(Wire):
    """The domains, the largest first, and the number of memories in none."""

    domains: list[DomainView]
    memories: int
    unclassified: int
    proposals: int | None = Field(None, description="Proposals that wait for a decision.")


class TopicView(Wire):
    """A topic within a domain."""

    label: str
    texts: int


class DomainDetailView(DomainView):
    """A domain with its topics, the evidence for it, the scores of its members and typical memories."""

    topics: list[TopicView]
    cohesion: float | None = Field(None, description="Mean cosine of its pairs when it was found.")
    conductance: float | None = Field(None, description="Share of its links that leave it.")
    recurrence: float | None = Field(None, description="Share of samples in which it was found again.")
    cut: float | None = Field(None, description="The score from which a new memory belongs to it.")
    low: float | None = Field(None, description="The score that 95 % of its members reach.")
    high: float | None = Field(None, description="The score that 5 % of its members reach.")
    histogram: list[int] = Field(description="Members by score, in ten steps from 0 to 1.")
    exemplars: list[MemoryView]


class ProposalPartView(Wire):
    """A group of memories in a proposal."""

    label: str
    terms: list[str]
    size: int
    exemplars: list[str]
    texts: list[str] = Field(description="The beginnings of the exemplars.")


class ProposalView(Wire):
    """A proposed change of domains."""

    id: str
    kind: Literal["split", "merge", "new", "retire"]
    status: Literal["pending", "accepted", "rejected", "undone"]
    domains: list[str] = Field(description="The domains it is about.")
    before: dict[str, int] = Field(description="Texts of these domains when it was made.")
    parts: list[ProposalPartView]
    terms_gained: list[str]
    terms_lost: list[str]
    confidence: float
    seen: int = Field(description="Discoveries in a row that proposed it.")
    created_at: datetime


class ProposalsView(Wire):
    """Proposals that wait for a decision. `unconfirmed` were found once only and are not shown yet."""

    proposals: list[ProposalView]
    unconfirmed: int


class ScoreView(Wire):
    """The score of a memory for a domain."""

    domain: str
    label: str
    score: float
    cut: float
    low: float
    high: float
    member: bool
    by_hand: bool
    line: str


class ExplainedDomains(Wire):
    """Why a memory is in its domains: its score for each, the highest first."""

    id: str
    domains: list[str]
    scores: list[ScoreView]


def domain_view(one: DomainSummary) -> DomainView:
    return DomainView.of(one, origin="found" if one.found else "hand", terms=list(one.terms))


def domains_view(found: DomainOverview) -> DomainsView:
    return DomainsView(
        domains=[domain_view(one) for one in found.domains],
        memories=found.memories,
        unclassified=found.unclassified,
        proposals=found.proposals or None,
    )


def detail_view(found: DomainDetail, exemplars: list[MemoryView]) -> DomainDetailView:
    body = found.document.body if found.document else {}
    evidence = body.get("evidence", {})
    limits = found.centre.range if found.centre else None
    return DomainDetailView.of(
        found.summary,
        origin="found" if found.summary.found else "hand",
        terms=list(found.summary.terms),
        topics=[TopicView(label=label, texts=size) for label, size in body.get("topics", ())],
        cohesion=evidence.get("cohesion"),
        conductance=evidence.get("conductance"),
        recurrence=evidence.get("recurrence"),
        cut=limits.cut if limits else None,
        low=limits.low if limits else None,
        high=limits.high if limits else None,
        histogram=list(found.histogram),
        exemplars=exemplars,
    )


def proposal_view(proposal: Document, terms: dict[str, list[str]], texts: Mapping[str, str]) -> ProposalView:
    """The view of a proposal; `terms` are those of the domains now, `texts` the beginnings of exemplars."""
    body = proposal.body
    before = [term for name in body["targets"] for term in terms.get(name, ())]
    after = [term for part in body["parts"] for term in part["terms"]]
    return ProposalView(
        id=proposal.id,
        kind=body["kind"],
        status=body["status"],
        domains=list(body["targets"]),
        before=dict(body.get("before", {})),
        parts=[
            ProposalPartView(**part, texts=[texts[one] for one in part["exemplars"] if one in texts])
            for part in body["parts"]
        ],
        terms_gained=[term for term in dict.fromkeys(after) if term not in before],
        terms_lost=[term for term in dict.fromkeys(before) if after and term not in after],
        confidence=body["confidence"],
        seen=body["seen"],
        created_at=proposal.created_at,
    )


def score_view(one: DomainScore) -> ScoreView:
    limits = one.centre.range
    needed = OWN_SHARE * limits.cut
    overlap = one.own is not None and one.own < needed
    why = f", own part {short(one.own or 0.0)} of {short(needed)}" if overlap else ""
    return ScoreView.of(
        one,
        cut=limits.cut,
        low=limits.low,
        high=limits.high,
        line=score_line(one.label, one.score, one.centre) + why,
    )


def render_domains(answer: DomainsView) -> str:
    rows = [
        (styled("id", one.id), one.label, one.memories, ", ".join(one.terms[:6])) for one in answer.domains
    ]
    rows.append((styled("quiet", "(unclassified)"), "", answer.unclassified, ""))
    shown = table(("id", "label", "memories", "terms"), rows)
    if not answer.domains:
        stored = f"{count(answer.memories, 'memory')} stored"
        shown = f"No domains yet; {stored}. `vestige domains discover` looks for some."
    waiting = answer.proposals
    return shown + (
        f"\n\n{count(waiting, 'proposal')} waiting: `vestige domains proposals`." if waiting else ""
    )


def render_detail(answer: DomainDetailView) -> str:
    lines = [f"{styled('strong', answer.label)}  {styled('id', answer.id)}"]
    lines.append(f"{count(answer.memories, 'memory')}, {_origin(answer.origin)}")
    if answer.terms:
        lines.append(f"Terms: {', '.join(answer.terms)}")
    if answer.topics:
        lines.append("Topics: " + "; ".join(f"{one.label} ({one.texts})" for one in answer.topics))
    if answer.cut is not None:
        lines.append(f"Members score {answer.low:.2f} to {answer.high:.2f}; cut {answer.cut:.2f}")
    most = max(answer.histogram, default=0)
    if most:
        lines.append("Scores of its members:")
        lines += [
            f"  {at / 10:.1f}-{(at + 1) / 10:.1f} {bar(number / most, 30)} {number}"
            for at, number in enumerate(answer.histogram)
        ]
    if answer.exemplars:
        lines.append("Typical memories:")
        lines += [f"  {styled('id', one.id[-8:])} {clip(one.content or '')}" for one in answer.exemplars]
    return "\n".join(lines)


def _origin(origin: Origin) -> str:
    return "found in the memories" if origin == "found" else "made by hand"


def render_proposals(answer: ProposalsView) -> str:
    if not answer.proposals:
        later = f" {answer.unconfirmed} wait for a second discovery." if answer.unconfirmed else ""
        return f"No proposals.{later}"
    return "\n\n".join(_proposal_text(one) for one in answer.proposals)


def _proposal_text(one: ProposalView) -> str:
    about = ", ".join(
        f"{name} ({count(one.before[name], 'text')})" if name in one.before else name for name in one.domains
    )
    lines = [f"{styled('id', one.id)}  {' '.join((one.kind, about)).strip()} ({percent(one.confidence)})"]
    for part in one.parts:
        terms = f"; {', '.join(part.terms[:6])}" if part.terms else ""
        lines.append(f"  {part.label}: {count(part.size, 'memory')}{terms}")
        lines += [f"    {styled('quiet', clip(text))}" for text in part.texts]
    lines += [
        f"  terms {verb}: {', '.join(words[:6])}"
        for verb, words in (("gained", one.terms_gained), ("lost", one.terms_lost))
        if words
    ]
    return "\n".join(lines)


def render_explained(answer: ExplainedDomains) -> str:
    if not answer.scores:
        return "No scores: there are no domains, or this memory has no vector."
    marks = {True: "in", False: "  "}
    return "\n".join(
        f"{marks[one.member]} {one.line}{', by hand' if one.by_hand else ''}" for one in answer.scores
    )
