"""How people find commands: sections of the help, and the short names that they type. All of it is data."""

SHORT_NAMES = {
    "add": "smart_ingest",
    "remember": "smart_ingest",
    "recall": "search",
    "ls": "memory.list",
    "list": "memory.list",
    "show": "memory.get",
    "edit": "memory.edit",
    "rm": "memory.delete",
    "forget": "memory.delete",
    "pin": "memory.pin",
    "history": "memory.history",
    "remind": "intention.set",
    "due": "intention.check",
    "ask": "deep_reference",
}
"""Short name to operation. A short name is a command of its own in every way but one: there is no second
description of it."""

SECTIONS: dict[str, tuple[str, ...]] = {
    "Everyday": ("add", "search", "ls", "show", "edit", "rm", "remind", "status", "backup", "connect"),
    "Find and understand": (
        "ask", "session", "sessions", "timeline", "graph", "connections", "contradictions", "predict",
        "insights", "changelog", "codebase", "project", "importance-score", "impact",
    ),
    "Change": (
        "memory", "intention", "review", "capture", "grade", "suppress", "dedup", "find-duplicates",
        "domains", "agent", "archive", "purge",
    ),
    "Care": (
        "health", "doctor", "consolidate", "dream", "gc", "scan", "rebuild", "backups", "index", "model",
        "migrate", "db",
    ),
    "Move": ("import", "export", "sync", "peers", "restore"),
    "Serve": ("serve", "dashboard", "mcp", "bridge", "keys", "events"),
    "About": ("config", "settings", "docs", "tools", "completion", "version", "uninstall", "bench"),
}  # fmt: skip
"""The commands in the help, in order. The names are those of the command line; a short name stands for the
command it means. A command that is in no section is listed last."""

OTHER_COMMANDS = {
    "search": "find query lookup grep q where",
    "add": "new store save note put create insert write remeber",
    "show": "get view cat read open",
    "rm": "delete remove del erase",
    "edit": "update change correct",
    "ls": "all memories dir",
    "status": "info stats state",
    "remind": "reminder reminders todo remindme schedule",
    "intention": "snooze done complete",
    "connect": "install setup init client",
    "serve": "start run server up",
    "dashboard": "browser ui web gui page open",
    "export": "dump",
    "review": "inbox pending approve",
    "grade": "rate reviewed",
    "import": "load",
    "sessions": "transcripts transcript chats chat conversations",
}
"""Commands under the words that people try first."""
