"""The domains and proposals that the examples of `domains` are about."""

from datetime import datetime
from typing import Any

from vestige.core.documents import Document
from vestige.core.models import Memory
from vestige.operations.domains.domains import (
    EXAMPLE_ACCEPTED,
    EXAMPLE_DOMAIN,
    EXAMPLE_MEMBER,
    EXAMPLE_OTHER,
    EXAMPLE_PROPOSAL,
)
from vestige.store.contract.changes import Add, Change, Put


def domain_examples(now: datetime) -> list[Change]:
    """Changes that plant two domains, a memory in one of them, a proposal and an accepted one."""

    def document(of: str, name: str, **body: Any) -> Put:
        return Put(document=Document(kind=of, id=name, body=body, created_at=now, updated_at=now))

    def proposal(name: str, status: str, targets: list[str]) -> Put:
        parts = [{"label": "all", "terms": [], "size": 1, "exemplars": []}]
        return document(
            "domain_proposal",
            name,
            kind="merge",
            targets=targets,
            status=status,
            parts=parts,
            confidence=0.8,
            seen=2,
            run=1,
        )

    member = Memory(
        id=EXAMPLE_MEMBER,
        content="The boiler is in the attic.",
        created_at=now,
        updated_at=now,
        domains=(EXAMPLE_OTHER,),
    )
    return [
        Add(memory=member),
        document("domain", EXAMPLE_DOMAIN, label="Infra", origin="hand", terms=["router"]),
        document("domain", EXAMPLE_OTHER, label="Home", origin="hand", terms=["boiler"]),
        document("domain", "attic", label="Attic", origin="hand", terms=[], into=[EXAMPLE_OTHER]),
        proposal(EXAMPLE_PROPOSAL, "pending", [EXAMPLE_DOMAIN, EXAMPLE_OTHER]),
        proposal(EXAMPLE_ACCEPTED, "accepted", [EXAMPLE_OTHER, "attic"]),
    ]
