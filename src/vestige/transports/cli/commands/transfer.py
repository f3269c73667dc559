"""`vestige migrate --from STORE --to STORE`: copies everything into a store of another kind."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from vestige.core.errors import StoreBusy, StoreError, StoreFull, StoreUnavailable
from vestige.operations.shared.text import count, fields, table
from vestige.store.transfer import move
from vestige.store.transfer.compare import Difference
from vestige.store.transfer.ends import End, Progress, RowRefusal
from vestige.store.transfer.move import Moved, TransferPlan
from vestige.transports.cli.session import CliSession, resumable
from vestige.transports.cli.terminal import ProgressLine

CONTINUE = "Run the same command again to continue."
CUT_OFF: dict[type[StoreError], str] = {
    StoreUnavailable: "Check that the server is running.",
    StoreBusy: "Wait for other writers.",
    StoreFull: "Free space on the disk.",
}
"""What to do first after an error that can interrupt a transfer."""
MOST_SHOWN = 20
"""Limit of rows in text output; JSON has all of them."""


def transfer(
    session: CliSession, source: str, destination: str, *, dry_run: bool = False, verify_only: bool = False
) -> bool:
    """Copy a store, plan it, or compare the two. Returns whether everything was copied, or would be."""
    origin, goal = session.open_ends(session.settings(), source, destination)
    with ProgressLine(colour=session.colour) as progress:
        if dry_run:
            plan = move.plan(origin, goal, progress)
        else:
            moved = (move.verify if verify_only else _move)(origin, goal, progress)
    ends = {"from": origin.name, "to": goal.name}
    if dry_run:
        planned = {**ends, **_planned(plan)}
        session.answer(planned, lambda: _planned_text(planned))
        return not plan.refused
    done = {**ends, **_done(moved), "settings": list(goal.settings)}
    session.answer(done, lambda: _done_text(done, verify_only=verify_only))
    return moved.is_whole


def _move(origin: End, goal: End, progress: Progress) -> Moved:
    """Copy; an error in the middle gets a hint that the copied rows stay."""
    begun = False

    def carrying(done: float, total: float | None, what: str | None) -> None:
        nonlocal begun
        begun = True
        progress(done, total, what)

    try:
        with resumable():
            return move.move(origin, goal, carrying)
    except StoreError as exc:
        if begun and type(exc) in CUT_OFF:
            exc.hint = f"{CUT_OFF[type(exc)]} {CONTINUE}"
        raise


def _planned(plan: TransferPlan) -> dict[str, Any]:
    return {
        "dryRun": True,
        "rows": plan.rows,
        "model": plan.model,
        "destination": dict(plan.outlook.facts),
        "resumes": plan.resumed,
        "done": plan.done,
        "notCarried": _refused(plan.refused),
    }


def _done(moved: Moved) -> dict[str, Any]:
    compared = moved.comparison
    return {
        "dryRun": False,
        "added": moved.added,
        "resumed": moved.resumed,
        "model": moved.model,
        "rows": compared.rows,
        "questions": compared.questions,
        "notCarried": _refused(moved.refused),
        "differences": _unlike(compared.differences),
        "sourceHash": moved.seal,
        "sourceUntouched": moved.untouched,
        "writtenMeanwhile": moved.overtaken,
        "whole": moved.is_whole,
    }


def _refused(rows: Iterable[RowRefusal]) -> list[dict[str, str]]:
    return [{"table": one.table, "id": one.name, "reason": one.reason} for one in rows]


def _unlike(rows: Iterable[Difference]) -> list[dict[str, str]]:
    return [{"table": one.table, "id": one.name, "reason": one.what} for one in rows]


def _planned_text(view: Mapping[str, Any]) -> str:
    lines = [
        f"From {view['from']} to {view['to']}:",
        table(("table", "rows"), [(name, f"{rows:,}") for name, rows in view["rows"].items()]),
        fields((*view["destination"].items(), ("vectors", view["model"]))),
    ]
    if view["done"]:
        lines.append("Everything is already there.")
    elif view["resumes"]:
        lines.append("Some of it is already there; the rest would be copied.")
    lines += _rows("would not be copied", view["notCarried"])
    return "\n".join([*lines, "Nothing has been changed."])


def _done_text(view: Mapping[str, Any], *, verify_only: bool) -> str:
    rows = sum(view["rows"].values())
    same = f"{count(rows, 'row')} in {count(len(view['rows']), 'table')} are the same"
    asked = f", and {count(view['questions'], 'query')} have the same answers" if view["questions"] else ""
    lines = [] if verify_only else [_carried(view)]
    lines += [f"Compared: {same}{asked if not view['differences'] else ''}."]
    lines += _rows("were not copied", view["notCarried"])
    lines += _rows("are different", view["differences"])
    if view["writtenMeanwhile"]:
        lines.append("! Other processes wrote to the source in the meantime; their writes were not copied.")
    elif not view["sourceUntouched"]:
        lines.append(
            "Another process checkpointed the source file in the meantime; its contents are unchanged."
        )
    elif view["sourceHash"]:
        lines.append(f"The source is unchanged, byte for byte ({view['sourceHash'][:16]}…).")
    if view["whole"] and not verify_only:
        lines.append(f"To use {view['to']}: {'; and '.join(view['settings'])}.")
        lines.append(f"{view['from']} was not removed: delete it when you no longer need it.")
    return "\n".join(lines)


def _carried(view: Mapping[str, Any]) -> str:
    if not view["added"]:
        return f"Everything is already in {view['to']}: nothing was added."
    again = " Continued an earlier, interrupted run." if view["resumed"] else ""
    return f"{count(view['added'], 'row')} copied from {view['from']} to {view['to']}.{again}"


def _rows(what: str, rows: Sequence[Mapping[str, str]]) -> list[str]:
    if not rows:
        return []
    shown = [f"  {one['table']} {one['id']}: {one['reason']}" for one in rows[:MOST_SHOWN]]
    more = [f"  … and {len(rows) - MOST_SHOWN:,} more (--json shows all)"] if len(rows) > MOST_SHOWN else []
    return [f"! {count(len(rows), 'row')} {what}:", *shown, *more]
