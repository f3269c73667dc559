"""Checking and repairing the store: `doctor`."""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from vestige.core.errors import StoreError
from vestige.engine.care.doctor import OPENING, DoctorReport, doctor, post_mortem, repairs, severity_of
from vestige.engine.context import Call
from vestige.operations.registry.arguments import Switch, Wire
from vestige.operations.registry.registry import registry
from vestige.operations.shared.text import Role, count, styled
from vestige.store.contract.trouble import Trouble


class FindingView(Wire):
    """A problem of the store.

    `broken` means that answers are wrong or data is lost; a `warning` is worth knowing. `ids` are some of the
    memories affected, `count` their number. `repair` names what `repair: true` does about it; without it
    there is no automatic repair.
    """

    check: str
    severity: Literal["warning", "broken"]
    message: str
    count: int
    ids: list[str]
    repair: str | None = None
    repaired: bool


class Examined(Wire):
    """The result of a check: findings, what was checked, versions, and processes that have the store open."""

    status: Literal["ok", "warnings", "broken"]
    findings: list[FindingView]
    checked: list[str]
    versions: dict[str, str]
    processes: list[str]
    message: str

    @property
    def exit_code(self) -> int:
        """1 if something is broken, for scripts."""
        return 1 if self.status == "broken" else 0


def render_doctor(result: Examined) -> str:
    lines = [_line(one) for one in result.findings]
    if len(result.processes) > 1:
        lines.append(f"Processes using this store: {'; '.join(result.processes)}.")
    runs_on = ", ".join(f"{name} {version}" for name, version in result.versions.items())
    return "\n".join([*lines, f"Checked: {', '.join(result.checked)}. ({runs_on})", result.message])


_ROLES: dict[str, Role] = {"error": "error", "warning": "warning", "info": "quiet", "note": "quiet"}


def _line(one: FindingView) -> str:
    mark = (
        styled("good", "repaired")
        if one.repaired
        else styled(_ROLES.get(one.severity, "warning"), one.severity)
    )
    some = f" ({one.count:,})" if one.count > 1 else ""
    named = f"\n    {', '.join(one.ids)}" if one.ids and not one.repaired else ""
    return f"{mark}: {one.check}: {one.message}{some}{named}"


def without_store(why: StoreError, troubles: Sequence[Trouble]) -> Examined:
    """The result if the store cannot be opened."""
    return view(post_mortem(why, troubles))


@registry.operation(
    "doctor",
    permission="admin",
    example={},
    long=True,
    title="Check the store",
    render=render_doctor,
    without_store=without_store,
)
def examine_store(
    call: Call,
    repair: Annotated[
        Switch, Field(description="Rebuild derived data that is wrong, then check again.")
    ] = False,
    deep: Annotated[Switch, Field(description="Read every page and index of the file; slower.")] = False,
) -> Examined:
    """Check the integrity of the store and report problems.

    Checks the file, the log, the search index against the texts, vectors, links, strengths, other files, the
    model and the last backup. `repair` rebuilds derived data: words, strengths, links, vectors, index files,
    orphaned rows, permissions, leftover files. Memories and the log are never changed. On the command line
    the exit code is 1 if something is broken.
    """
    report = doctor(call, repair=repair, deep=deep)
    return view(report, SALVAGE[call.engine.settings.storage.backend])


FROM_FILE = (
    "restore a backup (`vestige restore FILE`), or copy what can be read to a server with `vestige migrate "
    "--from sqlite --to postgresql://…`, which reports what it leaves out."
)
SALVAGE = {
    "postgres": "restore the server's own backup, or copy what can be read into a file with `vestige "
    "migrate --from postgres --to PATH`, which reports what it leaves out; copy it back into "
    "an empty schema the same way.",
    "sqlite": FROM_FILE,
    "memory": "import an export of it into a new store.",
}
"""How to recover lost data, by storage backend."""


def view(report: DoctorReport, salvage: str = FROM_FILE) -> Examined:
    """The report as an answer; `salvage` states how to recover lost data."""
    worst = severity_of(report)
    status: Literal["ok", "warnings", "broken"] = (
        "ok" if worst is None else "warnings" if worst == "warning" else "broken"
    )
    return Examined(
        status=status,
        findings=[FindingView.of(one.trouble, repaired=one.repaired) for one in report.findings],
        checked=list(report.checked),
        versions=report.versions,
        processes=[str(who) for who in report.others],
        message=_message(report, salvage),
    )


def _message(report: DoctorReport, salvage: str) -> str:
    left = [one.trouble for one in report.findings if not one.repaired]
    repaired = len(report.findings) - len(left)
    sentences = [f"{count(repaired, 'problem')} repaired."] if repaired else []
    if not left:
        return " ".join([*sentences, "No problems left."])
    sentences.append(f"{count(len(left), 'problem')} found.")
    repairable = repairs(left)
    if repairable:
        sentences.append("`vestige doctor --repair` repairs derived data.")
    if {one.repair for one in left} - {None, *repairable}:
        sentences.append("Data derived from broken records was left unchanged.")
    if any(one.severity == "broken" and one.repair is None and one.check != OPENING for one in left):
        sentences.append(f"Broken data without a repair is original data: {salvage}")
    return " ".join(sentences)
