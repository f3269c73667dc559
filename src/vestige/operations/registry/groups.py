"""Imports every operation, which fills the registry, and declares MCP tool groups, aliases and resources."""

from vestige.operations.agent import agent, vendors
from vestige.operations.care import (
    archive,
    backup,
    changelog,
    doctor,
    export,
    health,
    import_,
    index,
    keys,
    scan,
    settings,
    status,
    sync,
    trace,
)
from vestige.operations.domains import domains
from vestige.operations.domains import map as domain_map
from vestige.operations.intentions import intentions
from vestige.operations.memory import (
    bulk,
    change,
    codebase,
    connections,
    contradictions,
    dedup,
    forget,
    graph,
    ingest,
    read,
    search,
    timeline,
)
from vestige.operations.project import durable as project_durable
from vestige.operations.project import exchange as project_exchange
from vestige.operations.project import graph as project_graph
from vestige.operations.project import index as project_index
from vestige.operations.project import recall as project_recall
from vestige.operations.project import search as project_search
from vestige.operations.project import share as project_share
from vestige.operations.reasoning import importance, insights, prediction, reference, session, sleep
from vestige.operations.registry import gateway, routes
from vestige.operations.registry.registry import registry
from vestige.operations.review import capture, inbox, policy, review
from vestige.operations.sessions import sessions

__all__ = [
    "agent", "archive", "backup", "bulk", "capture", "change", "changelog", "codebase", "connections",
    "contradictions", "dedup", "doctor", "domain_map", "domains", "export", "forget", "gateway",
    "graph", "health", "import_", "importance", "inbox", "index", "ingest", "insights", "intentions",
    "keys", "policy", "prediction", "project_durable", "project_exchange", "project_graph", "project_index",
    "project_recall", "project_search", "project_share", "read", "reference", "registry", "review", "routes",
    "scan", "search", "session", "sessions", "settings", "sleep", "status", "sync", "timeline", "trace",
    "vendors",
]  # fmt: skip

TOOLS = (
    "system_status", "gc", "backup", "memory_changelog", "smart_ingest", "find_duplicates",
    "contradictions", "doctor", "export", "mark_reviewed", "suppress", "purge", "memory_graph",
    "memory_health", "importance_score", "import", "predict", "deep_reference", "search",
    "session_context", "dream", "consolidate", "memory_timeline", "vestige", "memory", "codebase",
    "dedup", "explore_connections", "archive", "insights", "intention", "domains", "project",
    "project_recall", "project_warm_up", "agent", "keys", "review", "recall_sessions", "read_session",
    "sessions", "capture", "system_settings", "installation",
)  # fmt: skip
"""The order of `tools/list`. Clients cut or cache the list, so it does not follow the imports."""

registry.group(
    "memory",
    title="One memory",
    description=(
        "Work with memories by id: get, get_batch, list, state, history; trace (all that hold a phrase); "
        "edit, tag, rename_tag, move (to a scope), pin, unpin, set_validity; link, unlink; promote (it was "
        "right), demote (it was wrong), useful; delete; purge (erase from every file; needs confirm); bulk "
        "(change all that a filter selects; a dry run by default), bulk_runs, bulk_undo."
    ),
    actions={
        action: f"memory.{action}"
        for action in (
            "get", "get_batch", "list", "state", "history", "edit", "tag", "rename_tag", "move", "pin",
            "unpin", "set_validity", "link", "unlink", "promote", "demote", "useful", "delete", "bulk",
            "bulk_runs", "bulk_undo", "trace",
        )
    } | {"purge": "purge"},
)  # fmt: skip

registry.group(
    "codebase",
    title="Codebase memory",
    description=(
        "Remember how a codebase does things: remember_pattern, remember_decision; get_context lists them, "
        "with patterns of other codebases that apply here too; structure lists the files they name."
    ),
    actions={
        action: f"codebase.{action}"
        for action in ("remember_pattern", "remember_decision", "get_context", "structure")
    },
)

registry.group(
    "dedup",
    title="Duplicates",
    description=(
        "Merge duplicate memories: scan finds them, plan previews a merge, apply merges, undo reverts a "
        "merge; protect pins a memory against merging, unprotect unpins it."
    ),
    actions={
        "scan": "find_duplicates",
        "plan": "dedup.plan",
        "apply": "dedup.apply",
        "undo": "dedup.undo",
        "protect": "memory.pin",
        "unprotect": "memory.unpin",
    },
)

registry.group(
    "explore_connections",
    title="Connections",
    description=(
        "Follow the links between memories: associations lists the neighbours of one, chain finds the path "
        "between two, bridges finds the memories that connect them."
    ),
    actions={action: f"connections.{action}" for action in ("chain", "associations", "bridges")},
)

registry.group(
    "archive",
    title="Archive",
    description=(
        "Memories archived by `gc`: list shows the runs with the ids they archived, undo restores a run or "
        "one memory."
    ),
    actions={action: f"archive.{action}" for action in ("list", "undo")},
)

registry.group(
    "insights",
    title="Insights",
    description=(
        "Insights from dreams: list shows them with their source memories, dismiss removes one for good, "
        "runs lists dream and consolidation runs."
    ),
    actions={action: f"insights.{action}" for action in ("list", "dismiss", "runs")},
)

registry.group(
    "intention",
    title="Reminders",
    description=(
        "Reminders triggered by time, context or event: set one, check which are due now, update "
        "(complete, snooze, cancel, resume, edit), list, delete (erases the text)."
    ),
    actions={action: f"intention.{action}" for action in ("set", "check", "update", "list", "delete")},
)

registry.group(
    "domains",
    title="Domains",
    description=(
        "Topics found in the memories: discover finds them (later it only proposes changes); list, show, "
        "explain (why a memory is in its domains); create, rename, merge, remove; assign, unassign memories; "
        "proposals, accept, reject, undo; map places memories."
    ),
    actions={
        action: f"domains.{action}"
        for action in (
            "discover", "list", "show", "explain", "create", "rename", "merge", "remove", "assign",
            "unassign", "proposals", "accept", "reject", "undo", "map",
        )
    },
)  # fmt: skip

registry.group(
    "agent",
    title="A persistent agent",
    description=(
        "Files of a persistent agent: context (what a session begins with), recall (for a prompt), log a "
        "session, reflect, remember (a line of MEMORY.md); init, rebuild (read the files), doctor, impact "
        "(what hooks did), uninstall; hook answers a hook of a client."
    ),
    actions={
        action: f"agent.{action}"
        for action in (
            "context", "recall", "log", "reflect", "remember", "init", "rebuild", "doctor", "impact",
            "uninstall", "hook",
        )
    },
)  # fmt: skip

registry.group(
    "sessions",
    title="Sessions of coding agents",
    description=(
        "Transcripts of coding agents on this machine: list sessions; resume (the command for it); index "
        "(read new ones), archive (copy before clients delete them), doctor (what will vanish when)."
    ),
    actions={action: f"sessions.{action}" for action in ("list", "resume", "index", "archive", "doctor")},
)

registry.group(
    "project",
    title="Project",
    description=(
        "The code of the project you work in: init indexes it (nothing is indexed before), search finds "
        "sections of its files, graph what belongs to a file, symbol or package, status says what is indexed "
        "and how fresh it is; refresh, rebuild, doctor. "
        "Its memories: save (with the code they cite), diary, forget, citations (checks cited code), verify "
        "(records the check); export, import, backup, restore; share (as files of the repository)."
    ),
    actions={
        action: f"project.{action}"
        for action in (
            "init",
            "status",
            "refresh",
            "rebuild",
            "search",
            "graph",
            "doctor",
            "save",
            "diary",
            "forget",
            "citations",
            "verify",
            "export",
            "import",
            "backup",
            "restore",
            "share",
        )
    },
)

registry.group(
    "installation",
    title="Backups and sync",
    description="backups lists the backups of this store, peers the installations it synchronises with.",
    actions={"backups": "installation.backups", "peers": "installation.peers"},
)

registry.group(
    "keys",
    title="API keys",
    description="API keys for network clients: create, list, revoke, rotate.",
    actions={action: f"keys.{action}" for action in ("create", "list", "revoke", "rotate")},
)

registry.group(
    "review",
    title="Review inbox",
    description=(
        "Texts that wait for the user's decision and are found nowhere else: list, show; approve (store it), "
        "edit, merge (into a memory), reject, undo; delete (erases the text); policy, choose (what waits); "
        "waiting lists contradictions, duplicates, insights and proposed domains too."
    ),
    actions={
        action: f"review.{action}"
        for action in (
            "list",
            "show",
            "approve",
            "edit",
            "merge",
            "reject",
            "undo",
            "delete",
            "policy",
            "choose",
            "waiting",
        )
    },
)

registry.order_tools(*TOOLS)

registry.alias("ingest", "smart_ingest")
registry.alias("session_checkpoint", "smart_ingest")
registry.alias("hybrid_search", "search")
registry.alias("semantic_search", "search")
registry.alias("recall", "search")
registry.alias("restore", "import")
registry.alias("cross_reference", "deep_reference")
registry.alias("get_knowledge", "memory", action="get")
registry.alias("delete_knowledge", "memory", action="delete")
registry.alias("get_memory_state", "memory", action="state")
registry.alias("promote_memory", "memory", action="promote")
registry.alias("demote_memory", "memory", action="demote")
registry.alias("remember_pattern", "codebase", action="remember_pattern")
registry.alias("remember_decision", "codebase", action="remember_decision")
registry.alias("get_codebase_context", "codebase", action="get_context")
registry.alias("set_intention", "intention", action="set")
registry.alias("check_intentions", "intention", action="check")
registry.alias("complete_intention", "intention", action="update", status="complete")
registry.alias("snooze_intention", "intention", action="update", status="snooze")
registry.alias("list_intentions", "intention", action="list")
registry.alias("health_check", "system_status")
registry.alias("stats", "system_status")

registry.resource("memory://stats", "stats", "Counts, retention and the state of the model.", "system_status")
registry.resource(
    "memory://recent", "recent", "The newest memories; `n` sets how many (default 10).", "memory.list",
    query={"n": "limit"}, limit=10,
)  # fmt: skip
registry.resource(
    "memory://decaying", "decaying", "Memories that are fading, weakest first.", "memory.list",
    query={"n": "limit"}, order="retention", max_retention=0.5, current=True,
)  # fmt: skip
registry.resource(
    "memory://due", "due", "Memories due for review.", "memory.list",
    query={"n": "limit"}, order="due", due=True,
)  # fmt: skip
registry.resource(
    "memory://insights", "insights", "Insights from dreams, newest first.", "insights.list",
    query={"n": "limit"},
)  # fmt: skip
registry.resource(
    "memory://consolidation-log", "consolidation-log", "Consolidation runs and their effects.",
    "insights.runs", query={"n": "limit"}, kind="consolidation",
)  # fmt: skip
registry.resource("memory://memories/{id}", "memory", "One memory in full.", "memory.get")
registry.resource(
    "codebase://patterns", "patterns", "Patterns of the current codebase, or of `project`.",
    "codebase.get_context", query={"project": "codebase"}, include=["patterns"], limit=50,
)  # fmt: skip
registry.resource(
    "codebase://decisions", "decisions", "Decisions of the current codebase, or of `project`.",
    "codebase.get_context", query={"project": "codebase"}, include=["decisions"], limit=50,
)  # fmt: skip
registry.resource(
    "codebase://structure", "structure", "Files named by notes about the current codebase, or about "
                                         "`project`.",
    "codebase.structure", query={"project": "codebase"},
)  # fmt: skip

registry.resource(
    "memory://intentions", "intentions", "Open intentions (reminders).", "intention.list",
    query={"n": "limit"}, filter_status="open", limit=100,
)  # fmt: skip
registry.resource(
    "memory://intentions/due", "intentions due", "Intentions (reminders) that are due now.", "intention.list",
    query={"n": "limit"}, filter_status="due", limit=100,
)  # fmt: skip

registry.recalls(
    "search", "session_context", "deep_reference", "memory", "memory_timeline", "codebase", "contradictions",
    "gc", "find_duplicates", "dedup", "explore_connections", "memory_graph", "predict", "intention",
    "dream", "insights", "consolidate", "domains", "agent", "review", "recall_sessions", "read_session",
    "sessions", "project", "project_recall", "project_warm_up", "capture",
)  # fmt: skip

registry.answers_up_to("search", 300_000)
registry.answers_up_to("memory_timeline", 200_000)
registry.answers_up_to("memory", 100_000)
registry.answers_up_to("codebase", 100_000)
registry.answers_up_to("find_duplicates", 200_000)
registry.answers_up_to("dedup", 200_000)
registry.answers_up_to("intention", 200_000)
registry.answers_up_to("memory_graph", 300_000)
registry.answers_up_to("recall_sessions", 200_000)
registry.answers_up_to("read_session", 300_000)
registry.answers_up_to("project", 300_000)
registry.answers_up_to("project_recall", 300_000)
registry.answers_up_to("project_warm_up", 300_000)

# The core profile: tools that an agent needs at all times. The gateway runs the others.
registry.list_in_core("session_context", "queries", "token_budget", "context")
registry.list_in_core("search", "query", "limit", "scope", "tags", "as_of", "token_budget")
registry.list_in_core("deep_reference", "query", "depth", "scope", "as_of")
registry.list_in_core(
    "smart_ingest", "content", "items", "tags", "node_type", "source", "scope", "valid_from", "valid_until"
)
registry.list_in_core("memory", "action", "id", "ids", "content", "order", "limit", "due")
registry.list_in_core("vestige", "tool", "arguments")
registry.list_in_core("project_recall", "task", "token_budget", "session", in_project=True)
registry.list_in_core("project_warm_up", "token_budget", in_project=True)

registry.concerns_everything(
    "backup", "doctor", "import", "index.rebuild", "index.status", "rebuild", "scan", "sync",
    "installation.backups", "installation.peers", "system_settings", "memory.trace",
    "keys.create", "keys.list", "keys.revoke", "keys.rotate",
    "domains.show", "domains.discover", "domains.create", "domains.rename", "domains.merge",
    "domains.remove", "domains.assign", "domains.unassign", "domains.proposals", "domains.accept",
    "domains.reject", "domains.undo", "agent.init", "agent.context", "agent.recall", "agent.log",
    "agent.reflect", "agent.remember", "agent.rebuild", "agent.doctor", "agent.impact", "agent.uninstall",
    "agent.hook", "recall_sessions", "read_session", "sessions.list", "sessions.resume", "sessions.index",
    "sessions.archive", "sessions.doctor", "domains.map", "project.init", "project.status",
    "project.refresh", "project.rebuild", "project.search", "project.graph", "project.doctor",
    "project_recall", "project_warm_up", "project.save", "project.diary", "project.forget",
    "project.citations", "project.verify", "project.export", "project.import", "project.backup",
    "project.restore", "project.share", "agent.import", "agent.rules",
)  # fmt: skip

# Names that a Python program expects of a memory; the generated classes have both names.
registry.shorten(
    "add", "smart_ingest", requires=("content",), without=("items",), answers=ingest.SmartIngested
)
registry.shorten("get", "memory.get")
registry.shorten("update", "memory.edit")
registry.shorten("forget", "memory.delete")

routes.declare(registry)
