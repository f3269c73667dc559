"""Sessions of coding agents: the one shape that every reader of transcripts gives, and the index of sessions
keeps. A file becomes steps, in its order."""

import re
from collections.abc import Iterable
from typing import Literal

from vestige.core.lazy_dataclass import dataclass
from vestige.core.patterns import lazy_pattern

EntryRole = Literal["user", "assistant", "tool", "summary"]

_DEFAULT_TITLE = lazy_pattern(
    r"|new (?:agent|chat|session)|cli session|untitled|(?:new|child) session - \d{4}-[\dTZ:.-]{6,30}",
    re.IGNORECASE,
)
"""What clients call a session until they or the user name it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """A call of a tool: the command that it ran, the files that it named, and how it ended."""

    id: str
    name: str
    command: str | None = None
    files: tuple[str, ...] = ()
    detail: str = ""
    status: int | None = None
    """The exit status of a command; 0 or 1 where the client only says whether it failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The end of an action that began in an earlier record."""

    id: str
    status: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFacts:
    """What a record says about its session; what it leaves out stays empty."""

    id: str
    cwd: str | None = None
    repository: str | None = None
    branch: str | None = None
    title: str | None = None
    title_rank: int = 0
    """A higher rank replaces a lower one: 1 is a summary, 2 a title by the model, 3 one by the user."""
    parent: str | None = None
    """The session that started this one as a subagent, or that it was forked from."""
    subagent: bool | None = None
    started: float | None = None
    ended: float | None = None
    resume: str | None = None
    """What to resume it by, where that is not its id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A message or a part of one. The same `uid` again replaces it with `replaces`, else it is a copy."""

    session: str
    uid: str
    role: EntryRole
    at: float | None = None
    parent: str | None = None
    group: str | None = None
    """Parts with the same group are one message."""
    text: str = ""
    thought: str = ""
    output: str = ""
    actions: tuple[Action, ...] = ()
    results: tuple[Result, ...] = ()
    replaces: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Titled:
    """A title of the session that this entry is in, which may be another one than that of the file."""

    session: str
    leaf: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewound:
    """Back to before this entry, which the client drops with all after it; None: the whole session."""

    session: str
    uid: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RolledBack:
    """The last turns of the user were taken back, with what followed them."""

    session: str
    turns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Restarted:
    """What follows is all there is of the session: entries that do not come again are of no branch."""

    session: str


Step = SessionFacts | Entry | Titled | Rewound | RolledBack | Restarted


def is_title(title: str | None) -> bool:
    return title is not None and _DEFAULT_TITLE.fullmatch(title.strip()) is None


def merged(old: SessionFacts, new: SessionFacts) -> SessionFacts:
    """The facts of both; later ones win, but the start, the folder and the parent stay the first. A title
    that every new session of a client has counts as none."""
    started = min((one for one in (old.started, new.started) if one is not None), default=None)
    ended = max((one for one in (old.ended, new.ended) if one is not None), default=None)
    named, rank = (old.title, old.title_rank) if is_title(old.title) else (None, 0)
    retitled = is_title(new.title) and (named is None or new.title_rank >= max(rank, 1))
    return SessionFacts(
        id=old.id,
        cwd=old.cwd or new.cwd,
        repository=old.repository or new.repository,
        branch=new.branch or old.branch,
        title=new.title if retitled else named,
        title_rank=new.title_rank if retitled else rank,
        parent=old.parent or new.parent,
        subagent=new.subagent if old.subagent is None else old.subagent,
        started=started,
        ended=ended,
        resume=new.resume or old.resume,
    )


def side_branches(links: Iterable[tuple[str, str | None]]) -> set[str]:
    """The entries that no chain of parents from the last one reaches, where the entries have parents at all.

    A file can have several roots, for a compaction starts a new one: each root's tree keeps the branch that
    its own last entry is on.
    """
    parents = dict(links)
    if not any(parent in parents for parent in parents.values()):
        return set()
    root: dict[str, str] = {}
    last: dict[str, str] = {}
    for uid in parents:
        trail = []
        at = uid
        while at not in root:
            trail.append(at)
            root[at] = uid  # so that a circle of parents ends
            above = parents[at]
            if above is None or above not in parents:
                root[at] = at
                break
            at = above
        top = root[at]
        for one in trail:
            root[one] = top
        last[top] = uid
    kept: set[str] = set()
    for leaf in last.values():
        at_: str | None = leaf
        while at_ is not None and at_ in parents and at_ not in kept:
            kept.add(at_)
            at_ = parents[at_]
    return set(parents) - kept
