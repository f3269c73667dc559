"""`vestige db`: maintenance of the database."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any, Literal

import click

from vestige.core.errors import NotFound
from vestige.operations.shared.text import count, day, fields, table
from vestige.store.contract.store import MemoryStore
from vestige.store.contract.trouble import Connected, DatabaseStatus, Upgrade
from vestige.transports.cli.session import CliSession

State = Literal["ready", "outdated", "newer", "absent", "incomplete", "damaged"]

# The model and the mechanisms are not needed here.
_QUIET = {"embeddings.provider": "off", "mechanisms.autopilot": False}


def init(session: CliSession) -> None:
    """Create what a store needs in the database: extension, schema and tables.

    Running it again changes nothing. It is only needed if normal commands run as a database user without the
    right to create objects; otherwise the first command does the same.
    """
    before = session.database().status()
    node = _opened(session)
    after = session.database().status()
    made = list(_made(before, after))
    value = {"made": made, "node": node, **_summary(after)}
    done = [f"Created {one}." for one in made] or ["Everything exists already: nothing was changed."]
    session.answer(value, lambda: "\n".join([*done, f"The store is {after.place}."]))


def status(session: CliSession) -> None:
    """Show the status of the database: versions, schema, sizes, vectors, connections and the current writer.

    Creates nothing. The exit code is 1 if there is no store, if its schema is older or newer, if a transfer
    into it is incomplete, or if a table, an index or a view is missing.
    """
    found = session.database().status()
    value = {**_summary(found), **_details(found)}
    if value["state"] == "ready":
        with session.open(**_QUIET) as app:
            value |= _inside(app.engine.store)
    session.answer(value, lambda: _shown(value))
    if value["state"] != "ready":
        click.get_current_context().exit(1)


def migrate_options() -> list[click.Parameter]:
    return [click.Option(["--dry-run"], is_flag=True, help="Only show what would be done.")]


def migrate(session: CliSession, dry_run: bool) -> None:
    """Upgrade the schema of the store to this version, or with --dry-run show the steps.

    Every command does so when it opens the store. Use this to do it first, as a user with the rights to.
    """
    found = session.database().upgrade()
    if not found.schema:
        raise NotFound("There is no store yet.", hint="Create one with `vestige db init`.")
    value = {"dryRun": dry_run, **_schema(found)}
    if not dry_run:
        _opened(session)
    session.answer(value, lambda: _steps(found, dry_run=dry_run))


def _opened(session: CliSession) -> str:
    """Open the store, which creates what is missing; returns its node."""
    with session.open(**_QUIET) as app:
        return app.engine.store.node


def _state(found: DatabaseStatus) -> State:
    if not found.upgrade.schema:
        return "absent"
    if found.upgrade.newer is not None:
        return "newer"
    if not found.complete:
        return "incomplete"
    if found.missing:
        return "damaged"
    return "outdated" if found.upgrade.steps else "ready"


def _made(before: DatabaseStatus, after: DatabaseStatus) -> Iterator[str]:
    for name, version in after.extensions.items():
        if version != before.extensions.get(name):
            yield f"the extension {name} {version}"
    old, new = before.upgrade.schema, after.upgrade.schema
    if not old:
        yield f"a store with schema {new}"
    elif old != new:
        yield f"schema {new} of schema {old}"


def _summary(found: DatabaseStatus) -> dict[str, Any]:
    return {
        "state": _state(found),
        "place": found.place,
        "server": found.server,
        "extensions": dict(found.extensions),
        **_schema(found.upgrade),
        "readOnly": found.read_only,
        **({"missing": list(found.missing)} if found.missing else {}),
    }


def _details(found: DatabaseStatus) -> dict[str, Any]:
    return {
        "sizeBytes": found.size_bytes,
        "tables": [{"name": one.name, "rows": one.rows, "sizeBytes": one.size_bytes} for one in found.tables],
        "connections": [_connected(one) for one in found.connections],
        "writer": None if found.writer is None else _connected(found.writer),
    }


def _schema(upgrade: Upgrade) -> dict[str, Any]:
    newer = {} if upgrade.newer is None else {"writtenBy": upgrade.newer}
    return {"schema": upgrade.schema, "known": upgrade.known, "steps": list(upgrade.steps), **newer}


def _connected(one: Connected) -> dict[str, Any]:
    return {**asdict(one), "since": one.since.isoformat()}


def _inside(store: MemoryStore) -> dict[str, Any]:
    index = store.index_status()
    return {
        "node": store.node,
        "readOnly": store.read_only,
        "profiles": [
            {
                "profile": one.signature.profile,
                "state": one.state.value,
                "memories": one.memories,
                "pieces": one.pieces,
            }
            for one in store.profiles()
        ],
        "index": {"vectors": index.vectors, "indexed": index.indexed, "sizeBytes": index.size_bytes},
        "processes": [
            {"pid": one.pid, "command": one.command, "since": one.since.isoformat(), "server": one.server}
            for one in store.processes()
        ],
    }


def _shown(view: Mapping[str, Any]) -> str:
    lines = [
        fields(
            (
                ("store", view["place"]),
                ("state", _in_words(view)),
                ("server", view["server"]),
                *(
                    (f"extension {name}", known or "not installed")
                    for name, known in view["extensions"].items()
                ),
                ("schema", f"{view['schema']} of {view['known']}"),
                ("node", view.get("node")),
                ("writable", "no" if view["readOnly"] else "yes"),
                ("size", _size(view["sizeBytes"])),
                *((f"vectors {one['state']}", _profile(one)) for one in view.get("profiles", ())),
                ("indexed", _index(view["index"]) if "index" in view else None),
                ("processes", "; ".join(f"{p['command']} ({p['pid']})" for p in view.get("processes", ()))),
                ("connections", len(view["connections"]) or None),
                ("writes now", _session(view["writer"]) if view["writer"] else None),
            )
        )
    ]
    if view["tables"]:
        rows = [(one["name"], f"{one['rows']:,}", _size(one["sizeBytes"])) for one in view["tables"]]
        lines += ["", table(("table", "rows", "size"), rows)]
    if view["connections"]:
        sessions = [_row(one) for one in view["connections"]]
        lines += ["", table(("session", "user", "program", "from", "state", "since"), sessions)]
    return "\n".join(lines)


def _in_words(view: Mapping[str, Any]) -> str:
    if view["state"] == "absent":
        return "there is no store yet; create one with `vestige db init`"
    if view["state"] == "outdated":
        return f"{count(len(view['steps']), 'step')} behind this version; upgrade with `vestige db migrate`"
    if view["state"] == "newer":
        return f"written by Vestige {view['writtenBy']}, which is newer: upgrade Vestige to open it"
    if view["state"] == "incomplete":
        return "a transfer into it is incomplete; run the same `vestige migrate --from … --to …` again"
    if view["state"] == "damaged":
        lacks = ", ".join(view["missing"])
        return f"it lacks {lacks}; `vestige doctor --repair` recreates indexes and views"
    return "ready"


def _profile(one: Mapping[str, Any]) -> str:
    return f"{one['profile']}: {count(one['memories'], 'memory')} in {count(one['pieces'], 'piece')}"


def _index(one: Mapping[str, Any]) -> str:
    return f"{one['indexed']:,} of {count(one['vectors'], 'vector')}, {_size(one['sizeBytes'])}"


def _row(one: Mapping[str, Any]) -> Sequence[str]:
    since = day(datetime.fromisoformat(one["since"]))
    address = one["address"] or "this machine"
    return (str(one["session"]), one["user"], one["program"], address, one["state"], since)


def _session(one: Mapping[str, Any]) -> str:
    return f"session {one['session']} of {one['user']} from {one['address'] or 'this machine'}"


def _size(size_bytes: int | None) -> str:
    if size_bytes is None:
        return ""
    return f"{size_bytes:,} bytes" if size_bytes < 1_000_000 else f"{size_bytes / 1_000_000:,.1f} MB"


def _steps(found: Upgrade, *, dry_run: bool) -> str:
    if not found.steps:
        return f"The store has schema {found.schema}, the current one: nothing to do."
    if dry_run:
        return "\n".join(
            [
                f"The store has schema {found.schema}, this version needs {found.known}.",
                *(f"{step} would be applied." for step in found.steps),
                "Nothing has been changed.",
            ]
        )
    return f"Upgraded the schema from {found.schema} to {found.known} ({', '.join(found.steps)})."
