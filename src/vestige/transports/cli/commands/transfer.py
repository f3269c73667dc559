"""`vestige migrate --from STORE --to STORE`: everything goes into a store of another kind."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from vestige.core.errors import StoreBusy, StoreError, StoreFull, StoreUnavailable
from vestige.operations.shared.text import count, fields, table
from vestige.store.transfer import move
from vestige.store.transfer.compare import Difference
from vestige.store.transfer.ends import End, Progress, RowRefusal
from vestige.store.transfer.move import Moved, TransferPlan
from vestige.transports.cli.session import CliSession, ProgressLine, resumable

GOES_ON = "Run the same command again: it goes on where it was."
CUT_OFF: dict[type[StoreError], str] = {
    StoreUnavailable: "Check that the server runs.",
    StoreBusy: "Wait for the others.",
    StoreFull: "Make room on the disk.",
}
"""What to do first about an error that can end a transfer anywhere."""
MOST_SHOWN = 20
"""Rows that are told to people; programs get all of them."""


def transfer(
    session: CliSession,
    source: str,
    destination: str,
    *,
    dry_run: bool = False,
    verify_only: bool = False,
) -> bool:
    """Carry a store, or only say what that would do, or whether both are the same. True if everything is
    there, or would be."""
    origin, goal = session.open_ends(session.settings(), source, destination)
    with ProgressLine() as progress:
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
    """Carry; whoever is cut off in the middle is told that what arrived stays."""
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
            exc.hint = f"{CUT_OFF[type(exc)]} {GOES_ON}"
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


# -- for people ----------------------------------------------------------------------------------------


def _planned_text(told: Mapping[str, Any]) -> str:
    lines = [
        f"From {told['from']} to {told['to']}:",
        table(("table", "rows"), [(name, f"{rows:,}") for name, rows in told["rows"].items()]),
        fields((*told["destination"].items(), ("vectors", told["model"]))),
    ]
    if told["done"]:
        lines.append("All of it is there already.")
    elif told["resumes"]:
        lines.append("A part of it is there already; the rest would follow.")
    lines += _rows("would not be carried", told["notCarried"])
    return "\n".join([*lines, "Nothing has been changed."])


def _done_text(told: Mapping[str, Any], *, verify_only: bool) -> str:
    rows = sum(told["rows"].values())
    same = f"{count(rows, 'row')} in {count(len(told['rows']), 'table')} are the same"
    asked = f", and {count(told['questions'], 'question')} are answered alike" if told["questions"] else ""
    lines = [] if verify_only else [_carried(told)]
    lines += [f"Compared: {same}{asked if not told['differences'] else ''}."]
    lines += _rows("were not carried", told["notCarried"])
    lines += _rows("are not the same", told["differences"])
    if told["writtenMeanwhile"]:
        lines.append("! Others wrote to the source meanwhile; what they wrote was not carried.")
    elif not told["sourceUntouched"]:
        lines.append("The file of the source was tidied up by others meanwhile; what it holds is the same.")
    elif told["sourceHash"]:
        lines.append(f"The source is as it was, byte for byte ({told['sourceHash'][:16]}…).")
    if told["whole"] and not verify_only:
        lines.append(f"To work with {told['to']}: {'; and '.join(told['settings'])}.")
        lines.append(f"{told['from']} was left in its place: remove it when you no longer need it.")
    return "\n".join(lines)


def _carried(told: Mapping[str, Any]) -> str:
    if not told["added"]:
        return f"Everything is in {told['to']} already: nothing was added."
    again = " This went on where an earlier run had stopped." if told["resumed"] else ""
    return f"{count(told['added'], 'row')} carried from {told['from']} to {told['to']}.{again}"


def _rows(what: str, rows: Sequence[Mapping[str, str]]) -> list[str]:
    if not rows:
        return []
    shown = [f"  {one['table']} {one['id']}: {one['reason']}" for one in rows[:MOST_SHOWN]]
    more = [f"  … and {len(rows) - MOST_SHOWN:,} more (--json shows all)"] if len(rows) > MOST_SHOWN else []
    return [f"! {count(len(rows), 'row')} {what}:", *shown, *more]
