"""Whether the store is well, and mending it: `doctor`."""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from vestige.core.errors import StoreError
from vestige.engine.care.doctor import (
    OPENING,
    DoctorFinding,
    DoctorReport,
    doctor,
    post_mortem,
    repairs,
    severity_of,
)
from vestige.engine.context import Call
from vestige.operations.registry.arguments import Switch, Wire
from vestige.operations.registry.registry import registry
from vestige.operations.shared.text import count
from vestige.store.contract.trouble import Trouble


class FindingView(Wire):
    """Something that is not as it should be.

    `broken` means that answers are wrong or something is lost; a `warning` is worth knowing. `ids` are some
    of the memories it is about, `count` says how many there are. `repair` names what `repair: true` does
    about it; without one nothing here can put it right.
    """

    check: str
    severity: Literal["warning", "broken"]
    message: str
    count: int
    ids: list[str]
    repair: str | None = None
    repaired: bool


class Examined(Wire):
    """How the store is: what was found, what was looked at, what it runs on, and who else has it open."""

    status: Literal["ok", "warnings", "broken"]
    findings: list[FindingView]
    checked: list[str]
    versions: dict[str, str]
    processes: list[str]
    message: str

    @property
    def exit_code(self) -> int:
        """1 while something is broken, for scripts."""
        return 1 if self.status == "broken" else 0


def render_doctor(result: Examined) -> str:
    """What was found, for a person."""
    lines = [_line(one) for one in result.findings]
    if len(result.processes) > 1:
        lines.append(f"At work on this store: {'; '.join(result.processes)}.")
    runs_on = ", ".join(f"{name} {version}" for name, version in result.versions.items())
    return "\n".join([*lines, f"Looked at: {', '.join(result.checked)}. ({runs_on})", result.message])


def _line(one: FindingView) -> str:
    mark = "mended" if one.repaired else one.severity
    some = f" ({one.count:,})" if one.count > 1 else ""
    named = f"\n    {', '.join(one.ids)}" if one.ids and not one.repaired else ""
    return f"{mark}: {one.check}: {one.message}{some}{named}"


def without_store(why: StoreError, troubles: Sequence[Trouble]) -> Examined:
    """The answer where the store cannot be opened."""
    return view(post_mortem(why, troubles))


@registry.operation(
    "doctor",
    permission="admin",
    effect="write",
    example={},
    lane="long",
    title="Examine the store",
    render=render_doctor,
    without_store=without_store,
)
def examine_store(
    call: Call,
    repair: Annotated[Switch, Field(description="Put right what is derived, then look again.")] = False,
    deep: Annotated[Switch, Field(description="Read every page and index of the file; slower.")] = False,
) -> Examined:
    """Look whether everything in the store is whole, and say what is not.

    The file, the log, texts against what they are found by, vectors, links, strengths, files around it, the
    model and the last backup are looked at. `repair` makes again what is derived: words, strengths, links,
    vectors, index files, rows without a memory, permissions, files left behind. Memories and the log are
    never changed. On the command line the exit code is 1 while something is broken.
    """
    report = doctor(call, repair=repair, deep=deep)
    return view(report, SALVAGE[call.engine.settings.storage.backend])


FROM_FILE = (
    "restore a backup (`vestige restore FILE`), or carry what can be read to a server with `vestige migrate "
    "--from sqlite --to postgresql://…`, which names what it leaves out."
)
SALVAGE = {
    "postgres": "bring back the server's own backup, or carry what can be read into a file with `vestige "
    "migrate --from postgres --to PATH`, which names what it leaves out; the way back into an empty schema "
    "is the same.",
    "sqlite": FROM_FILE,
    "memory": "import an export of it into a new store.",
}
"""What helps where something is lost, by what memories are kept in."""


def view(report: DoctorReport, salvage: str = FROM_FILE) -> Examined:
    """The report as it is answered; `salvage` says what to do about what is lost."""
    worst = severity_of(report)
    status: Literal["ok", "warnings", "broken"] = (
        "ok" if worst is None else "warnings" if worst == "warning" else "broken"
    )
    return Examined(
        status=status,
        findings=[_view(one) for one in report.findings],
        checked=list(report.checked),
        versions=report.versions,
        processes=[str(who) for who in report.others],
        message=_message(report, salvage),
    )


def _view(one: DoctorFinding) -> FindingView:
    trouble = one.trouble
    return FindingView(
        check=trouble.check,
        severity=trouble.severity,
        message=trouble.message,
        count=trouble.count,
        ids=list(trouble.ids),
        repair=trouble.repair,
        repaired=one.repaired,
    )


def _message(report: DoctorReport, salvage: str) -> str:
    left = [one.trouble for one in report.findings if not one.repaired]
    mended = len(report.findings) - len(left)
    sentences = [f"{count(mended, 'trouble')} mended."] if mended else []
    if not left:
        return " ".join([*sentences, "Everything is as it should be."])
    sentences.append(f"{count(len(left), 'trouble')} found.")
    mendable = repairs(left)
    if mendable:
        sentences.append("`vestige doctor --repair` mends what is derived.")
    if {one.repair for one in left} - {None, *mendable}:
        sentences.append("What would be derived from what is broken was left as it is.")
    if any(one.severity == "broken" and one.repair is None and one.check != OPENING for one in left):
        sentences.append(f"What is broken and has no repair is not derived: {salvage}")
    return " ".join(sentences)
