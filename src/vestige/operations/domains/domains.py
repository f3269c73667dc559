"""Domains, topics that are found in the memories: the tool `domains`."""

from typing import Annotated, Literal

from pydantic import Field

from vestige.core.events import preview
from vestige.engine.context import Call
from vestige.engine.domains import changes, overview
from vestige.engine.domains import proposals as pending
from vestige.engine.domains.catalogue import all_domains
from vestige.engine.domains.moves import memories_of
from vestige.operations.domains.view import (
    DomainDetailView,
    DomainsView,
    ExplainedDomains,
    ProposalsView,
    detail_view,
    domains_view,
    proposal_view,
    render_detail,
    render_domains,
    render_explained,
    render_proposals,
    score_view,
)
from vestige.operations.memory.read import EXAMPLE_ID
from vestige.operations.registry.arguments import MemoryId, Wire
from vestige.operations.registry.registry import registry
from vestige.operations.shared.memory_view import view
from vestige.operations.shared.text import count

TEXT_CHARS = 120
EXAMPLE_MEMBER = "01890000-0000-7000-8000-0000000000f1"
EXAMPLE_DOMAIN, EXAMPLE_OTHER, EXAMPLE_PROPOSAL, EXAMPLE_ACCEPTED = (
    "infra",
    "home",
    "merge-infra-home-1",
    "merge-1",
)

Ids = Annotated[list[MemoryId], Field(min_length=1, max_length=500, description="The memories.")]
DomainName = Annotated[str, Field(min_length=1, max_length=200, description="Id or label of the domain.")]
ProposalName = Annotated[str, Field(min_length=1, max_length=200, description="Id of the proposal.")]
Label = Annotated[str, Field(min_length=1, max_length=100, description="Label of the domain.")]


class Discovered(Wire):
    """What a discovery found. `applied`: the domains are in use; else the differences wait as proposals."""

    applied: bool
    memories: int
    clusters: int
    domains: list[str]
    unclassified: int
    several: int = Field(description="Memories in more than one domain.")
    weak: int = Field(description="Clusters that became no domain: too few samples show them again.")
    proposals: int
    shown: int = Field(description="Proposals that were found twice in a row, which `proposals` lists.")
    message: str


class DomainChanged(Wire):
    """A change of domains. `undo` is the id with which `undo` reverts it."""

    domains: list[str]
    moved: int
    undo: str | None = None
    skipped: int | None = None
    message: str


def _changed(change: changes.DomainChange, message: str) -> DomainChanged:
    return DomainChanged(
        domains=list(change.domains),
        moved=change.moved,
        undo=change.undo,
        skipped=change.skipped or None,
        message=message,
    )


@registry.operation(
    "domains.discover",
    permission="write",
    example={"min_cluster_size": 2, "force": True},
    title="Discover domains",
    render=lambda answer: answer.message,
)
def discover(
    call: Call,
    min_cluster_size: Annotated[
        int | None, Field(ge=2, le=10_000, description="Least size of a domain. Default: the setting.")
    ] = None,
    method: Annotated[
        Literal["leiden", "hdbscan"],
        Field(description="`leiden` finds communities of neighbours; `hdbscan` needs scikit-learn."),
    ] = "leiden",
    force: Annotated[
        bool, Field(description="Also with fewer memories than `domains.discovery_threshold`.")
    ] = False,
) -> Discovered:
    """Find domains: topics among all memories, by the nearest neighbours of their vectors.

    The first discovery is applied at once. Later ones change nothing: they propose splits, merges, new
    domains and empty ones to retire; a proposal is shown after two discoveries in a row.
    """
    # Imported late: only a discovery needs it.
    from vestige.engine.domains.discovery import run_discovery

    run = run_discovery(call, least_size=min_cluster_size, method=method, force=force)
    if run.applied:
        message = (
            f"{count(len(run.domains), 'domain')} found in {count(run.memories, 'memory')}; "
            f"{run.unclassified} unclassified, {run.several} in several."
        )
        if run.weak:
            message += f" {count(run.weak, 'cluster')} left out: too few samples of the memories show them."
    else:
        message = (
            f"{count(run.clusters, 'cluster')} found in {count(run.memories, 'memory')}; nothing was "
            f"changed. {count(run.proposals, 'proposal')}, {run.shown} of them shown."
        )
    return Discovered(
        applied=run.applied,
        memories=run.memories,
        clusters=run.clusters,
        domains=list(run.domains),
        unclassified=run.unclassified,
        several=run.several,
        weak=run.weak,
        proposals=run.proposals,
        shown=run.shown,
        message=message,
    )


@registry.operation(
    "domains.list", permission="read", effect="none", example={}, title="List domains", render=render_domains
)
def list_domains(call: Call) -> DomainsView:
    """List the domains with their terms and the number of memories, the largest first."""
    return domains_view(overview.overview(call))


@registry.operation(
    "domains.show",
    permission="read",
    effect="none",
    example={"domain": EXAMPLE_DOMAIN},
    title="Show a domain",
    render=render_detail,
)
def show(call: Call, domain: DomainName) -> DomainDetailView:
    """Show a domain: terms, topics, evidence, the scores of its members and typical memories."""
    found, now = overview.detail(call, domain), call.engine.now()
    return detail_view(found, [view(one, now, "summary") for one in found.exemplars])


@registry.operation(
    "domains.create",
    permission="write",
    example={"label": "Garden"},
    title="Create a domain",
    render=lambda answer: answer.message,
)
def create(call: Call, label: Label) -> DomainChanged:
    """Create a domain by hand. Memories that carry its id as a domain already are its members."""
    name = changes.create(call, label)
    return DomainChanged(domains=[name], moved=0, message=f"The domain {name} was created.")


@registry.operation(
    "domains.rename",
    permission="write",
    example={"domain": EXAMPLE_DOMAIN, "label": "Infrastructure"},
    title="Rename a domain",
    render=lambda answer: answer.message,
)
def rename(call: Call, domain: DomainName, label: Label) -> DomainChanged:
    """Give a domain another label. Its id stays, so that filters and keys keep working."""
    found = changes.rename(call, domain, label)
    return DomainChanged(
        domains=[found.id], moved=0, message=f"The domain {found.id} is now {found.label!r}."
    )


@registry.operation(
    "domains.merge",
    permission="write",
    example={"domain": EXAMPLE_DOMAIN, "other": EXAMPLE_OTHER},
    title="Merge two domains",
    render=lambda answer: answer.message,
)
def merge(
    call: Call,
    domain: DomainName,
    other: Annotated[str, Field(min_length=1, max_length=200, description="The domain to merge with it.")],
    into: Annotated[str | None, Field(description="Which of the two stays. Default: the first.")] = None,
) -> DomainChanged:
    """Merge two domains. Filters and keys that name the other one follow. `undo` reverts it."""
    change = changes.merge(call, domain, other, into)
    return _changed(change, f"Merged into {change.domains[0]}; {count(change.moved, 'memory')} moved.")


@registry.operation(
    "domains.remove",
    permission="write",
    effect="delete",
    example={"domain": EXAMPLE_DOMAIN},
    title="Remove a domain",
    render=lambda answer: answer.message,
)
def remove(call: Call, domain: DomainName) -> DomainChanged:
    """Remove a domain. Its memories stay, without it."""
    change = changes.remove(call, domain)
    return _changed(
        change, f"The domain {change.domains[0]} was removed from {count(change.moved, 'memory')}."
    )


@registry.operation(
    "domains.assign",
    permission="write",
    example={"domain": EXAMPLE_DOMAIN, "ids": [EXAMPLE_ID]},
    title="Assign memories to a domain",
    render=lambda answer: answer.message,
)
def assign(call: Call, domain: DomainName, ids: Ids) -> DomainChanged:
    """Put memories into a domain by hand. No discovery moves them again."""
    change = changes.assign(call, domain, ids, member=True)
    return _changed(change, f"{count(change.moved, 'memory')} assigned to {change.domains[0]}.")


@registry.operation(
    "domains.unassign",
    permission="write",
    example={"domain": EXAMPLE_OTHER, "ids": [EXAMPLE_MEMBER]},
    title="Take memories out of a domain",
    render=lambda answer: answer.message,
)
def unassign(call: Call, domain: DomainName, ids: Ids) -> DomainChanged:
    """Take memories out of a domain by hand. No discovery puts them back."""
    change = changes.assign(call, domain, ids, member=False)
    return _changed(change, f"{count(change.moved, 'memory')} taken out of {change.domains[0]}.")


@registry.operation(
    "domains.proposals",
    permission="read",
    effect="none",
    example={},
    title="List proposals",
    render=render_proposals,
)
def proposals(
    call: Call,
    all: Annotated[bool, Field(description="Also those found once only, and decided ones.")] = False,
) -> ProposalsView:
    """List proposed changes of domains, with counts, terms and confidence."""
    call.require_everything()
    found = pending.all_proposals(call)
    shown = [one for one in found if all or pending.is_shown(one)]
    terms = {name: list(one.terms) for name, one in all_domains(call.engine.store).items()}
    named = [memory for one in shown for part in one.body["parts"] for memory in part["exemplars"]]
    exemplars = memories_of(call, list(dict.fromkeys(named)))
    texts = {one.id: preview(one.content, TEXT_CHARS) for one in exemplars}
    return ProposalsView(
        proposals=[proposal_view(one, terms, texts) for one in shown],
        unconfirmed=sum(one.body["status"] == "pending" and not pending.is_shown(one) for one in found),
    )


@registry.operation(
    "domains.accept",
    permission="write",
    example={"proposal": EXAMPLE_PROPOSAL},
    title="Accept a proposal",
    render=lambda answer: answer.message,
)
def accept(call: Call, proposal: ProposalName) -> DomainChanged:
    """Do what a proposal says, in one transaction. `undo` reverts it.

    If its memories have changed since, nothing is done: it is brought up to date, and an error says so.
    """
    change = changes.accept(call, proposal)
    return _changed(change, f"Accepted; {count(change.moved, 'memory')} moved.")


class Rejected(Wire):
    """A rejected proposal."""

    proposal: str
    message: str


@registry.operation(
    "domains.reject",
    permission="write",
    example={"proposal": EXAMPLE_PROPOSAL},
    title="Reject a proposal",
    render=lambda answer: answer.message,
)
def reject(call: Call, proposal: ProposalName) -> Rejected:
    """Reject a proposal. It is not shown again for five discoveries, unless it becomes much clearer."""
    changes.reject(call, proposal)
    return Rejected(proposal=proposal, message=f"The proposal {proposal} is rejected; nothing was changed.")


@registry.operation(
    "domains.undo",
    permission="write",
    example={"proposal": EXAMPLE_ACCEPTED},
    title="Undo a change of domains",
    render=lambda answer: answer.message,
)
def undo(call: Call, proposal: ProposalName) -> DomainChanged:
    """Undo an accepted proposal, a merge or a removal. Memories that were moved again since stay."""
    change = changes.undo(call, proposal)
    stay = f" {change.skipped} were moved again since and stay." if change.skipped else ""
    return _changed(change, f"Undone; {count(change.moved, 'memory')} moved back.{stay}")


@registry.operation(
    "domains.explain",
    permission="read",
    effect="none",
    example={"id": EXAMPLE_ID},
    title="Explain the domains of a memory",
    render=render_explained,
)
def explain(call: Call, id: MemoryId) -> ExplainedDomains:
    """Show the score of a memory for every domain, beside those of the domain's members."""
    memory, scores = overview.explain(call, id)
    return ExplainedDomains(
        id=memory.id, domains=list(memory.domains), scores=[score_view(one) for one in scores]
    )
