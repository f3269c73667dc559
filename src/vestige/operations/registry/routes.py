"""REST routes of operations. An operation that is not listed has the default one: see `Route.default`.

GET is only for operations that change nothing and take no text to judge, because URLs get into logs. Only
operations that create something answer 201.
"""

from collections.abc import Mapping
from typing import Any

from vestige.operations.registry.registry import Registry
from vestige.operations.registry.route import Created, Method, always, never


def new_memory(answer: Mapping[str, Any]) -> bool:
    """Whether a text became a new memory, rather than updating an old one or repeating a request."""
    if answer["replayed"]:
        return False
    if "summary" in answer:
        return bool(answer["summary"]["created"])
    return answer["decision"] not in ("update", "reinforce", "pending")


ROUTES: dict[str, dict[str, tuple[Method, str]]] = {
    "Memories": {
        "smart_ingest": ("POST", "/memories"),
        "memory.list": ("GET", "/memories"),
        "memory.get": ("GET", "/memories/{id}"),
        "memory.get_batch": ("GET", "/memories/batch"),
        "memory.edit": ("PUT", "/memories/{id}"),
        "memory.delete": ("DELETE", "/memories/{id}"),
        "purge": ("POST", "/memories/{id}/purge"),
        "memory.state": ("GET", "/memories/{id}/state"),
        "memory.history": ("GET", "/memories/{id}/history"),
        "memory.tag": ("POST", "/memories/{id}/tags"),
        "memory.rename_tag": ("POST", "/tags/rename"),
        "memory.move": ("PUT", "/memories/{id}/scope"),
        "memory.pin": ("PUT", "/memories/{id}/pin"),
        "memory.unpin": ("DELETE", "/memories/{id}/pin"),
        "memory.set_validity": ("PUT", "/memories/{id}/validity"),
        "memory.trace": ("POST", "/memories/trace"),
        "memory.bulk": ("POST", "/memories/bulk"),
        "memory.bulk_runs": ("GET", "/memories/bulk"),
        "memory.bulk_undo": ("POST", "/memories/bulk/{id}/undo"),
    },
    "Recall": {
        "search": ("POST", "/search"),
        "deep_reference": ("POST", "/deep-reference"),
        "session_context": ("POST", "/session-context"),
        "predict": ("POST", "/predict"),
        "memory_timeline": ("GET", "/timeline"),
        "contradictions": ("GET", "/contradictions"),
        "importance_score": ("POST", "/importance"),
    },
    "Strength": {
        "memory.promote": ("POST", "/memories/{id}/promote"),
        "memory.demote": ("POST", "/memories/{id}/demote"),
        "memory.useful": ("POST", "/memories/{id}/useful"),
        "mark_reviewed": ("POST", "/memories/{id}/reviews"),
        "suppress": ("POST", "/memories/{id}/suppress"),
        "memory_health": ("GET", "/memory-health"),
    },
    "Connections": {
        "memory.link": ("POST", "/memories/{id}/links"),
        "memory.unlink": ("DELETE", "/memories/{id}/links/{target}"),
        "connections.associations": ("GET", "/connections/associations"),
        "connections.chain": ("GET", "/connections/chain"),
        "connections.bridges": ("GET", "/connections/bridges"),
        "memory_graph": ("GET", "/graph"),
    },
    "Duplicates": {
        "find_duplicates": ("GET", "/duplicates"),
        "dedup.plan": ("GET", "/duplicates/plan"),
        "dedup.apply": ("POST", "/merges"),
        "dedup.undo": ("POST", "/merges/{id}/undo"),
    },
    "Intentions": {
        "intention.set": ("POST", "/intentions"),
        "intention.list": ("GET", "/intentions"),
        "intention.check": ("POST", "/intentions/check"),
        "intention.update": ("PATCH", "/intentions/{id}"),
        "intention.delete": ("DELETE", "/intentions/{id}"),
    },
    "Codebases": {
        "codebase.get_context": ("GET", "/codebase"),
        "codebase.structure": ("GET", "/codebase/structure"),
        "codebase.remember_pattern": ("POST", "/codebase/patterns"),
        "codebase.remember_decision": ("POST", "/codebase/decisions"),
    },
    "Projects": {
        "project.init": ("POST", "/project/init"),
        "project.status": ("GET", "/project"),
        "project.refresh": ("POST", "/project/refresh"),
        "project.rebuild": ("POST", "/project/rebuild"),
        "project.search": ("POST", "/project/search"),
        "project.graph": ("GET", "/project/graph"),
        "project.doctor": ("GET", "/project/doctor"),
        "project.save": ("POST", "/project/memories"),
        "project.diary": ("POST", "/project/diary"),
        "project.forget": ("DELETE", "/project/memories/{id}"),
        "project.citations": ("GET", "/project/citations"),
        "project.verify": ("POST", "/project/citations/verify"),
        "project.export": ("POST", "/project/export"),
        "project.import": ("POST", "/project/import"),
        "project.backup": ("POST", "/project/backup"),
        "project.restore": ("POST", "/project/restore"),
        "project.share": ("POST", "/project/share"),
        "project_recall": ("POST", "/project/recall"),
        "project_warm_up": ("GET", "/project/warm-up"),
    },
    "Sleep": {
        "consolidate": ("POST", "/consolidate"),
        "dream": ("POST", "/dream"),
        "insights.list": ("GET", "/insights"),
        "insights.dismiss": ("DELETE", "/insights/{id}"),
        "insights.runs": ("GET", "/runs"),
        "gc": ("POST", "/gc"),
        "archive.list": ("GET", "/archive"),
        "archive.undo": ("POST", "/archive/{id}/undo"),
    },
    "Domains": {
        "domains.list": ("GET", "/domains"),
        "domains.create": ("POST", "/domains"),
        "domains.discover": ("POST", "/domains/discover"),
        "domains.proposals": ("GET", "/domains/proposals"),
        "domains.accept": ("POST", "/domains/proposals/{proposal}/accept"),
        "domains.reject": ("POST", "/domains/proposals/{proposal}/reject"),
        "domains.undo": ("POST", "/domains/proposals/{proposal}/undo"),
        "domains.map": ("GET", "/domains/map"),
        "domains.show": ("GET", "/domains/{domain}"),
        "domains.rename": ("PATCH", "/domains/{domain}"),
        "domains.remove": ("DELETE", "/domains/{domain}"),
        "domains.merge": ("POST", "/domains/{domain}/merge"),
        "domains.assign": ("POST", "/domains/{domain}/assign"),
        "domains.unassign": ("POST", "/domains/{domain}/unassign"),
        "domains.explain": ("GET", "/memories/{id}/domains"),
    },
    "Review": {
        "capture": ("POST", "/capture"),
        "review.list": ("GET", "/review"),
        "review.waiting": ("GET", "/review/waiting"),
        "review.policy": ("GET", "/review/policy"),
        "review.choose": ("PUT", "/review/policy"),
        "review.show": ("GET", "/review/{id}"),
        "review.approve": ("POST", "/review/{id}/approve"),
        "review.edit": ("PATCH", "/review/{id}"),
        "review.merge": ("POST", "/review/{id}/merge"),
        "review.reject": ("POST", "/review/{id}/reject"),
        "review.undo": ("POST", "/review/{id}/undo"),
        "review.delete": ("DELETE", "/review/{id}"),
    },
    "Agent": {
        "agent.context": ("POST", "/agent/context"),
        "agent.recall": ("POST", "/agent/recall"),
        "agent.hook": ("POST", "/agent/hooks/{client}"),
        "agent.log": ("POST", "/agent/sessions"),
        "agent.reflect": ("POST", "/agent/reflections"),
        "agent.remember": ("POST", "/agent/facts"),
        "agent.init": ("POST", "/agent/init"),
        "agent.rebuild": ("POST", "/agent/rebuild"),
        "agent.doctor": ("GET", "/agent"),
        "agent.impact": ("GET", "/agent/impact"),
        "agent.uninstall": ("DELETE", "/agent"),
    },
    "Sessions": {
        "recall_sessions": ("POST", "/sessions/search"),
        "sessions.list": ("GET", "/sessions"),
        "sessions.index": ("POST", "/sessions/index"),
        "sessions.archive": ("POST", "/sessions/archive"),
        "sessions.doctor": ("GET", "/sessions/doctor"),
        "read_session": ("GET", "/sessions/{session}"),
        "sessions.resume": ("GET", "/sessions/{session}/resume"),
    },
    "Administration": {
        "system_status": ("GET", "/stats"),
        "system_settings": ("GET", "/settings"),
        "memory_changelog": ("GET", "/changelog"),
        "doctor": ("POST", "/doctor"),
        "backup": ("POST", "/backup"),
        "installation.backups": ("GET", "/backups"),
        "installation.peers": ("GET", "/peers"),
        "export": ("POST", "/export"),
        "import": ("POST", "/import"),
        "tools.describe": ("GET", "/tools"),
        "keys.create": ("POST", "/keys"),
        "keys.list": ("GET", "/keys"),
        "keys.revoke": ("DELETE", "/keys/{id}"),
        "keys.rotate": ("POST", "/keys/{id}/rotate"),
    },
}
"""Group to operation to method and path."""

CREATING: dict[str, Created] = {
    "smart_ingest": new_memory,
    "codebase.remember_pattern": new_memory,
    "codebase.remember_decision": new_memory,
    "project.save": new_memory,
    "project.diary": always,
    "intention.set": always,
    "dedup.apply": always,
    "domains.create": always,
    "keys.create": always,
    "keys.rotate": always,
}


def declare(registry: Registry) -> None:
    """Register the routes."""
    for tag, offered in ROUTES.items():
        for name, (method, path) in offered.items():
            registry.route(name, method, path, tag=tag, created=CREATING.get(name, never))
