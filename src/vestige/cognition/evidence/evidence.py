"""Evidence: which memories correct, contradict or support each other, and which one answers best.

Relevance selects the topic; trust only decides between statements that cannot both be true. A trusted memory
about something else never becomes the answer.
"""

import enum
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import combinations, pairwise

from vestige.cognition.evidence.trust import origin, trust
from vestige.cognition.gate import relation
from vestige.cognition.gate.relation import Clash
from vestige.cognition.text.analyser import is_alike
from vestige.cognition.text.likeness import Words
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import MOST_SURE, Memory, Record, Revision

BELONGING = 0.6  # The share of the primary's relevance from which a memory belongs to the evidence.
DISTRUSTED = 0.35  # Below this trust a memory's correction of another is ignored.
DOUBT_LEFT = 0.85  # The factor by which each independent source that says the same reduces the doubt.
RESOLVED = 0.7  # The confidence from which a question counts as answered.
UNCONFIRMED = 0.9  # The most confidence in an answer that nothing confirms beside the search.
CLEAR_MARGIN = 0.35  # The difference in trust that settles a contradiction.


class Role(enum.StrEnum):
    """The role of a memory in the answer. A supporting one says the same; a related one is about the
    topic."""

    PRIMARY = "primary"
    CONTRADICTING = "contradicting"
    SUPPORTING = "supporting"
    SUPERSEDED = "superseded"
    RELATED = "related"


class AnswerStatus(enum.StrEnum):
    NO_MEMORIES = "no_memories"
    NO_EVIDENCE = "no_evidence"
    CONTRADICTIONS_FOUND = "contradictions_found"
    RESOLVED = "resolved"
    PARTIAL_EVIDENCE = "partial_evidence"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exhibit:
    """A memory as evidence: its search score, whether the search found it by itself and not over a link, and
    whether it was true at the time asked about."""

    record: Record
    relevance: float
    found: bool
    current: bool
    words: Words

    @property
    def memory(self) -> Memory:
        return self.record.memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Superseded:
    """A memory, by index, that is no longer true; `by` and `detail` as far as they are known."""

    older: int
    by: int | None
    detail: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The result of weighing the evidence. Exhibits are named by index; `roles` are those of relevant ones.
    `contradictions` are between statements that both still hold, the stronger one first. `confirmed_by` is
    the evidence for the primary one, in words."""

    primary: int | None
    roles: dict[int, Role]
    trusts: tuple[float, ...]
    superseded: tuple[Superseded, ...]
    contradictions: tuple[tuple[int, int, Clash], ...]
    corroborations: int
    confirmed_by: tuple[str, ...]
    confidence: float


def exhibit(record: Record, relevance: float, moment: datetime, *, found: bool = True) -> Exhibit:
    """A record as evidence on what was true at `moment`."""
    memory = record.memory
    return Exhibit(
        record=record,
        relevance=relevance,
        found=found,
        current=memory.valid_at(moment),
        words=relation.statement_words(memory),
    )


def weight(memory: Memory, trusted: float) -> tuple[float, datetime, str]:
    """The sort key between two memories: trust, and between equals (to a hundredth) the later one."""
    return round(trusted, 2), relation.stated_at(memory), memory.id


def settled_by(one: float, other: float) -> str | None:
    """What settles a contradiction between memories with this trust: a clear margin, or None."""
    return "trust" if abs(one - other) >= CLEAR_MARGIN else None


def judge(
    exhibits: Sequence[Exhibit],
    sure: float,
    moment: datetime,
    marks: Collection[frozenset[int]] = (),
    asked: Words = frozenset(),
) -> Findings:
    """Weigh the evidence. `sure` is the confidence of the search that the answer is there; `marks` are pairs
    of exhibits that links mark as contradicting; `asked` are the terms of the question."""
    clashes, agreeing = _compared(exhibits, marks)
    trusts = tuple(
        trust(one.record, moment, corroborations=len(_origins(exhibits, at, agreeing)))
        for at, one in enumerate(exhibits)
    )
    superseded = _superseded(exhibits, clashes, trusts)
    over = {one.older for one in superseded}
    standing = [
        clash
        for clash in clashes
        if clash.contradicts and clash.newer not in over and clash.older not in over
    ]
    primary = _primary(exhibits, superseded, standing, trusts, asked)
    roles = _roles(exhibits, primary, over, standing, agreeing)
    rivals = [trusts[at] for at, role in roles.items() if role is Role.CONTRADICTING]
    corroborations = 0 if primary is None else len(_origins(exhibits, primary, agreeing))
    believed = 0.0 if primary is None else trusts[primary]
    opposed = max(rivals, default=0.0)
    confirmed = _confirmed_by(exhibits, primary, corroborations, superseded)
    if opposed and believed > opposed and settled_by(believed, opposed):
        confirmed.append("it is trusted clearly more than what contradicts it")
    confidence = weighed(sure, corroborations, believed, opposed)
    return Findings(
        primary=primary,
        roles=roles,
        trusts=trusts,
        superseded=tuple(one for one in superseded if one.older in roles),
        contradictions=tuple(
            (*_by_strength(exhibits, trusts, clash), clash) for clash in standing if _belongs(clash, roles)
        ),
        corroborations=corroborations,
        confirmed_by=tuple(confirmed),
        confidence=confidence if confirmed else min(UNCONFIRMED, confidence),
    )


def _belongs(clash: Clash, roles: Mapping[int, Role]) -> bool:
    """Whether a contradiction is about the evidence: between two memories of it, or marked at one of them."""
    return (clash.newer in roles) + (clash.older in roles) >= (1 if clash.marked else 2)


def _confirmed_by(
    exhibits: Sequence[Exhibit], primary: int | None, corroborations: int, superseded: Sequence[Superseded]
) -> list[str]:
    """The evidence for the primary answer beside the search, in words."""
    if primary is None:
        return []
    record = exhibits[primary].record
    found = []
    if corroborations:
        found.append(f"{corroborations} other source{'s say' if corroborations > 1 else ' says'} the same")
    for one in superseded:
        if one.by == primary:
            verb = "corrects" if exhibits[one.older].current else "replaced"
            found.append(f"it {verb} [{exhibits[one.older].memory.id}]")
    if record.memory.pinned:
        found.append("it is pinned")
    if useful := record.strength.times_useful:
        found.append(f"it was rated useful {useful} time{'s' if useful > 1 else ''}")
    return found


def weighed(sure: float, corroborations: int, believed: float, opposed: float) -> float:
    """The confidence: every independent source that says the same removes some of the doubt, and
    contradicting memories take their share by trust. 0 without an answer, and never certain."""
    if not believed:
        return 0.0
    raised = 1.0 - (1.0 - sure) * DOUBT_LEFT**corroborations
    return min(MOST_SURE, raised * believed / (believed + opposed) if opposed else raised)


def status_of(findings: Findings) -> AnswerStatus:
    """How well findings with at least one exhibit answer the question."""
    if findings.primary is None:
        return AnswerStatus.NO_EVIDENCE
    trusts = findings.trusts
    if not all(settled_by(trusts[one], trusts[other]) for one, other, _ in findings.contradictions):
        return AnswerStatus.CONTRADICTIONS_FOUND
    return AnswerStatus.RESOLVED if findings.confidence >= RESOLVED else AnswerStatus.PARTIAL_EVIDENCE


def _compared(
    exhibits: Sequence[Exhibit], marks: Collection[frozenset[int]]
) -> tuple[list[Clash], set[frozenset[int]]]:
    """The clashes between any two exhibits, and the pairs that say the same."""
    clashes: list[Clash] = []
    agreeing: set[frozenset[int]] = set()
    memories, words = [one.memory for one in exhibits], [one.words for one in exhibits]
    for one, other in combinations(range(len(exhibits)), 2):
        pair = frozenset((one, other))
        if pair not in marks and not is_alike(words[one], words[other]):
            continue
        clash = relation.clash_between(memories, words, one, other, marked=pair in marks)
        if clash is not None:
            clashes.append(clash)
        elif relation.supports(memories[one], memories[other]):
            agreeing.add(pair)
    return clashes, agreeing


def _origins(exhibits: Sequence[Exhibit], at: int, agreeing: set[frozenset[int]]) -> set[str]:
    """The other known origins that say the same."""
    own = origin(exhibits[at].memory)
    if own is None:
        return set()
    there = {
        origin(other.memory)
        for index, other in enumerate(exhibits)
        if other.current and frozenset((at, index)) in agreeing
    }
    return {name for name in there if name is not None} - {own}


def _superseded(
    exhibits: Sequence[Exhibit], clashes: Sequence[Clash], trusts: Sequence[float]
) -> tuple[Superseded, ...]:
    """The memories that are no longer true: by their record, or because a newer trusted one says so."""
    index = {one.memory.id: at for at, one in enumerate(exhibits)}
    details = {(clash.older, clash.newer): clash.detail for clash in clashes}
    found: dict[int, Superseded] = {}
    for at, one in enumerate(exhibits):
        if not one.current:
            by = index.get(one.memory.superseded_by or "")
            detail = None if by is None else details.get((at, by))
            found[at] = Superseded(older=at, by=by, detail=detail)
    for clash in clashes:
        believed = exhibits[clash.newer].current and trusts[clash.newer] >= DISTRUSTED
        if clash.takes_over and believed and clash.older not in found:
            found[clash.older] = Superseded(older=clash.older, by=clash.newer, detail=clash.detail)
    return tuple(found[at] for at in sorted(found))


def _primary(
    exhibits: Sequence[Exhibit],
    superseded: Sequence[Superseded],
    standing: Sequence[Clash],
    trusts: Sequence[float],
    asked: Words,
) -> int | None:
    """The most relevant memory, or its successor, or the stronger one that contradicts it."""
    successor = {one.older: one.by for one in superseded}
    ranked = sorted(range(len(exhibits)), key=lambda at: (-exhibits[at].relevance, exhibits[at].memory.id))
    for start in ranked:
        at: int | None = start
        passed: set[int] = set()
        while at is not None and at in successor and at not in passed:
            passed.add(at)
            at = successor[at]
        if at is not None and at not in successor:
            return _strongest(exhibits, at, standing, trusts, asked)
    return None


def _strongest(
    exhibits: Sequence[Exhibit], at: int, standing: Sequence[Clash], trusts: Sequence[float], asked: Words
) -> int:
    """The strongest of a memory and those that contradict it, if they are relevant and have every term of the
    question that it has: trust does not make a note on free accounts the answer about paid ones. What only
    links lead to must also say something about the same in its words."""
    enough = BELONGING * exhibits[at].relevance
    fitting = asked & exhibits[at].words
    opposed = (clash for clash in standing if at in (clash.newer, clash.older))
    rivals = ((clash.older if clash.newer == at else clash.newer, clash.conflict) for clash in opposed)
    contenders = [
        at,
        *(
            rival
            for rival, conflict in rivals
            if exhibits[rival].relevance >= enough
            and fitting <= exhibits[rival].words
            and (exhibits[rival].found or conflict is not None)
        ),
    ]
    return max(contenders, key=lambda one: weight(exhibits[one].memory, trusts[one]))


def _by_strength(exhibits: Sequence[Exhibit], trusts: Sequence[float], clash: Clash) -> tuple[int, int]:
    pair = (clash.newer, clash.older)
    weaker, stronger = sorted(pair, key=lambda at: weight(exhibits[at].memory, trusts[at]))
    return stronger, weaker


def _roles(
    exhibits: Sequence[Exhibit],
    primary: int | None,
    over: set[int],
    standing: Sequence[Clash],
    agreeing: set[frozenset[int]],
) -> dict[int, Role]:
    """The roles of relevant memories, in the order of `Role`."""
    # What contradicts a memory that says the same as the primary one contradicts that too.
    side = {primary} | {at for pair in agreeing if primary in pair for at in pair}
    opposed = {at for clash in standing for at in _against(clash, side)}
    top = max((one.relevance for one in exhibits), default=0.0)
    enough = BELONGING * (top if primary is None else exhibits[primary].relevance)
    roles: dict[int, Role] = {}
    for at, one in enumerate(exhibits):
        if at == primary:
            roles[at] = Role.PRIMARY
        elif at in opposed:
            roles[at] = Role.CONTRADICTING
        elif one.relevance >= enough:
            same = frozenset((at, primary)) in agreeing
            roles[at] = Role.SUPERSEDED if at in over else Role.SUPPORTING if same else Role.RELATED
    order = list(Role)
    return dict(sorted(roles.items(), key=lambda item: order.index(item[1])))


def _against(clash: Clash, side: Collection[int | None]) -> list[int]:
    """The end of a clash that is not on a side, if the other one is."""
    ends = (clash.newer, clash.older)
    return [at for at in ends if at not in side] if any(at in side for at in ends) else []


# -- How something came to be as it is: every text it has had, in the order of time, with what changed

MOST_STEPS = 15
_ORDER = (Role.PRIMARY, Role.SUPERSEDED, Role.CONTRADICTING, Role.SUPPORTING, Role.RELATED)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvolutionStep:
    """The text of a memory from `at` on, and how it came about."""

    at: datetime
    memory: Memory
    change: str


def evolution(
    exhibits: Sequence[Exhibit],
    findings: Findings,
    revisions: Mapping[str, Sequence[Revision]],
    until: datetime,
) -> tuple[EvolutionStep, ...]:
    """The steps up to `until`, oldest first; if there are too many, those nearest to the answer."""
    replaces: dict[int, Superseded] = {one.by: one for one in findings.superseded if one.by is not None}
    ranked = sorted(findings.roles, key=lambda at: (_ORDER.index(findings.roles[at]), at))
    steps = [
        step
        for at in ranked
        for step in _steps(exhibits, at, replaces.get(at), revisions.get(exhibits[at].memory.id, ()))
        if step.at <= until
    ]
    return tuple(sorted(steps[:MOST_STEPS], key=lambda step: (step.at, step.memory.id, step.memory.revision)))


def _steps(
    exhibits: Sequence[Exhibit], at: int, replaced: Superseded | None, revisions: Sequence[Revision]
) -> Iterator[EvolutionStep]:
    now = exhibits[at].memory
    states = [*(one.memory for one in revisions), now]
    first = "stated"
    if replaced is not None:
        detail = f" ({replaced.detail})" if replaced.detail else ""
        first = f"replaces {exhibits[replaced.older].memory.id}{detail}"
    yield EvolutionStep(at=relation.stated_at(states[0]), memory=states[0], change=first)
    for before, after in pairwise(states):
        if after.content != before.content:
            yield EvolutionStep(at=after.updated_at, memory=after, change="revised")
    if now.valid_until is not None and now.superseded_by is None:
        yield EvolutionStep(at=now.valid_until, memory=now, change="not true any more")
