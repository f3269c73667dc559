"""Documents: records that are not memories, such as an intention, an insight, a pattern or a run; and the
schema of the body of each kind.

A body is checked whenever a document is made: when a mechanism writes it, when it comes from another store,
and when it is read back. So no mechanism needs to doubt a document that it gets.
"""

import re
from base64 import b64decode
from collections.abc import Callable, Mapping
from dataclasses import field
from datetime import UTC, datetime
from typing import Any

from vestige.core import models
from vestige.core.errors import InvalidInput
from vestige.core.lazy_dataclass import dataclass
from vestige.core.patterns import lazy_pattern

LOCAL = frozenset(
    {
        "running", "peer", "backup", "bulk", "domain_centroids", "domain_proposal", "domain_moves",
        "domain_run", "review_policy",
    }
)  # fmt: skip
"""Kinds that never leave an installation: running processes, sync peers, the last backup, bulk changes that
can be undone here, which texts wait for a review here; and of domains what is derived from vectors, or
waits for a decision here."""
STAYING = frozenset({"running", "peer", "backup"})
"""Kinds that a migration to another database leaves behind: its processes, sync peers and backups are others.
All else belongs to the memories, which move as a whole."""
PENDING = "pending"
"""The kind of texts that wait for a review, or had one: they are not memories, so nothing else reads them."""
WAITING = "waiting"
"""The status of a pending text before its review: a name in its `terms`."""


# -- The schema of bodies: every field with its type and its range

_NUMBERS, _LISTS = (int, float), (list, tuple)
"""Not made for each value: a habit has hundreds of them, and is checked whenever it is read."""

Check = Callable[[Any], bool]
"""Whether a value that was read from JSON is valid."""
MOST = 2**53
"""The highest count: above it JSON numbers are not exact."""
_CLOCK_TIME = lazy_pattern(r"([01]\d|2[0-3]):[0-5]\d[+-]([01]\d|2[0-3]):[0-5]\d")
_HOUR = lazy_pattern(r"1?[0-9]|2[0-3]")


def number(low: float, high: float) -> Check:
    """A number within a range; not NaN, true or false."""
    return lambda value: type(value) in _NUMBERS and low <= value <= high


def whole(low: int, high: int) -> Check:
    return lambda value: type(value) is int and low <= value <= high


def one_of(*values: str) -> Check:
    return lambda value: isinstance(value, str) and value in values


def like(pattern: re.Pattern[str]) -> Check:
    return lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None


def null_or(check: Check) -> Check:
    return lambda value: value is None or check(value)


def list_of(check: Check, least: int = 0, most: int = MOST) -> Check:
    return lambda value: isinstance(value, _LISTS) and least <= len(value) <= most and all(map(check, value))


def row_of(*checks: Check) -> Check:
    """A list with exactly these values."""
    return lambda value: (
        isinstance(value, _LISTS) and len(value) == len(checks) and all(map(_passes, checks, value))
    )


def _passes(check: Check, value: Any) -> bool:
    return check(value)


def table_of(check: Check, names: Check = lambda name: True) -> Check:
    """An object whose values, and names, are all valid."""
    return lambda value: (
        isinstance(value, Mapping) and all(map(names, value)) and all(map(check, value.values()))
    )


def text(value: Any) -> bool:
    return isinstance(value, str)


def label(value: Any) -> bool:
    """A text that is neither blank nor long."""
    return isinstance(value, str) and bool(value.strip()) and len(value) <= 300


def scope(value: Any) -> bool:
    """A scope in normal form."""
    return (
        isinstance(value, str)
        and value[:1] == "/"
        and "/" + "/".join(filter(None, value.split("/"))) == value
    )


def flag(value: Any) -> bool:
    return isinstance(value, bool)


def moment(value: Any) -> bool:
    """A time in ISO 8601 with its offset, which UTC can express."""
    try:
        read = datetime.fromisoformat(value)
        return read.tzinfo is UTC or (read.tzinfo is not None and read.astimezone(UTC) == read)
    except (TypeError, ValueError, OverflowError):
        return False


@dataclass(frozen=True, slots=True)
class Fields:
    """An object with these fields. Fields of a newer version are allowed, if `others` holds for them; `also`
    must hold for the object as a whole."""

    required: Mapping[str, Check]
    optional: Mapping[str, Check] = field(default_factory=dict)
    others: Check = lambda value: True
    also: Check = lambda value: True

    def fault(self, value: Any) -> str | None:
        """What is wrong with a value; None for a valid one."""
        if not isinstance(value, Mapping):
            return "it is not an object"
        for name in self.required:
            if name not in value:
                return f"`{name}` is missing"
        for name, one in value.items():
            check = self.required.get(name) or self.optional.get(name) or self.others
            if not check(one):
                return f"`{name}` is invalid"
        return None if self.also(value) else "its fields do not fit together"

    def __call__(self, value: Any) -> bool:
        return self.fault(value) is None


COUNT, SHARE, CREDIT = whole(0, MOST), number(0.0, 1.0), number(0.0, 1e9)


def _tie(value: Any) -> bool:
    """A tie of a habit: two credits and a time. In one go, because a search checks hundreds."""
    if not isinstance(value, _LISTS) or len(value) != 3:
        return False
    base, credit, at = value
    return CREDIT(base) and CREDIT(credit) and moment(at)


DEEPEST = 8
"""How deep a trigger may be nested."""
MOST_PARTS = 20
_STEPS = whole(1, 10_000)


def _day(value: Any) -> bool:
    """A day of the month; -1 is the last."""
    return value != 0 and whole(-1, 31)(value)


_RULE = {"every": one_of("minute", "hour", "day", "week", "month"), "interval": _STEPS, "start": moment}
_CLOCK = {"at": like(_CLOCK_TIME), "timezone": label, "until": moment}
_WEEKDAY = one_of("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_TRIGGERS: Mapping[str, Fields] = {
    "manual": Fields({}),
    "time": Fields({"at": moment}),
    "duration": Fields({"at": moment}, {"in_minutes": number(0, 1e9)}),
    "context": Fields({}, dict.fromkeys(("codebase", "file_pattern", "topic"), label)),
    "event": Fields({"condition": label}),
    "recurring": Fields(
        _RULE,
        {
            **_CLOCK,
            "timezone": label,
            "days": list_of(_WEEKDAY, 1, 7),
            "day": _day,
            "months": list_of(whole(1, 12), 0, 12),
        },
    ),
}
_NEEDED = {"week": "days", "month": "day"}
"""The fields that a rule of these steps needs besides."""


def trigger(value: Any, depth: int = 0) -> bool:
    """The trigger of an intention, as JSON."""
    kind = value.get("type") if isinstance(value, Mapping) else None
    if kind in ("all", "any"):
        parts = list_of(lambda part: trigger(part, depth + 1), 2, MOST_PARTS)
        return depth < DEEPEST and parts(value.get(kind))
    known = _TRIGGERS.get(kind) if isinstance(kind, str) else None
    return known is not None and known(value) and _NEEDED.get(value.get("every"), "type") in value


_FIRING = Fields(
    {"at": moment, "due_at": moment, "missed": COUNT, "reminders": COUNT}, {"reminded_at": moment}
)
_INTENTION = Fields(
    {"description": text, "trigger": trigger, "priority": whole(1, 4), "armed_at": moment},
    {
        "said": text,
        "timezone": label,
        "met": table_of(moment),
        "firing": _FIRING,
        "ended": one_of("fulfilled", "cancelled"),
        **dict.fromkeys(("deadline", "snoozed_until", "since", "announced", "closed_at"), moment),
    },
)
_INSIGHT = Fields(
    {"type": text, "insight": text, "confidence": SHARE, "novelty": SHARE, "texts": list_of(text)}
)
_DISMISSED = Fields({"type": text, "dismissed": moment})
_PROCESS = Fields({"id": text, "scopes": null_or(list_of(text)), "since": moment, "until": moment})
_DOMAIN = Fields(
    {"label": label, "origin": one_of("found", "hand"), "terms": list_of(text)},
    {
        "topics": list_of(row_of(text, COUNT)),
        "evidence": table_of(SHARE),
        "into": list_of(label),
        "split_from": label,
    },
)
_INFINITE = bytes(byte for byte in range(256) if byte & 0x7C == 0x7C)
"""The upper bytes of half-precision numbers that are infinite or no number."""


def packed_vector(value: Any) -> bool:
    """A vector of finite half-precision numbers, as base64."""
    try:
        packed = b64decode(value, validate=True)
    except (TypeError, ValueError):
        return False
    finite = packed[1::2].translate(None, _INFINITE)
    return len(packed) > 0 and 2 * len(finite) == len(packed)


_CENTROIDS = Fields(
    {
        "profile": text,
        "rows": list_of(
            row_of(label, text, list_of(text), packed_vector, *(number(-1.0, 1.0) for _ in range(3)), COUNT)
        ),
    }
)


def _fits_its_kind(proposal: Mapping[str, Any]) -> bool:
    """Whether a proposal is about as many domains as its kind of change needs."""
    targets = len(proposal["targets"])
    match proposal["kind"]:
        case "merge":
            return targets > 1
        case "split":
            return targets == 1 and len(proposal["parts"]) > 0
        case "retire":
            return targets == 1
    return True


_PROPOSAL = Fields(
    {
        "kind": one_of("split", "merge", "new", "retire"),
        "targets": list_of(label),
        "status": one_of("pending", "accepted", "rejected", "undone"),
        "parts": list_of(
            Fields({"label": text, "terms": list_of(text), "size": COUNT, "exemplars": list_of(text)})
        ),
        "confidence": SHARE,
        "seen": COUNT,
        "run": COUNT,
    },
    {
        "resolved": moment,
        "created": list_of(label),
        "before": table_of(COUNT),
        "removed": table_of(_DOMAIN),
        "terms": table_of(list_of(text)),
    },
    also=_fits_its_kind,
)
_PLANNED, _MOVED = row_of(text, COUNT, text), row_of(text, list_of(text), list_of(text))
"""A memory with the part of a proposal that it would be in and the domain it is in; and one that was moved,
with its domains before and after."""


def _move(value: Any) -> bool:
    return _PLANNED(value) or _MOVED(value)


_GIVEN = Fields(
    {},
    {
        **dict.fromkeys(("tags", "domains"), list_of(text)),
        **dict.fromkeys(("source", "author", "agent_id", "session_id", "thread"), null_or(text)),
        **dict.fromkeys(("occurred_at", "valid_from", "valid_until"), null_or(moment)),
        **dict.fromkeys(("pinned", "force_create"), flag),
        "node_type": text,
        "position": null_or(whole(-MOST, MOST)),
        "metadata": table_of(lambda value: True),
    },
)
"""The fields of a text that wait with it."""
_STORED = Fields(
    {
        "versions": list_of(table_of(lambda value: True), 1),
        "strength": table_of(lambda value: True),
        "links": list_of(row_of(label, label, label, SHARE)),
        "ended": table_of(row_of(null_or(moment), null_or(moment))),
    }
)
"""What a memory in quarantine was; versions and strength are checked where they are read."""
_PENDING = Fields(
    {"content": text, "origin": text, "reason": text, "terms": table_of(flag)},
    {
        "given": _GIVEN,
        "stored": _STORED,
        "flags": list_of(text),
        "original": text,
        "outcome": one_of("approved", "merged", "rejected"),
        "resolved": moment,
        "memory": label,
        "decision": label,
    },
)
"""`terms` names the status, because stores can filter by it."""
_BACKUP = Fields({}, {"at": moment, "path": text, "bytes": COUNT, "why": text})


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """The schema of a kind of document, and how many memories it must cite at least."""

    fields: Fields
    cites: int = 0


BODIES: Mapping[str, Body] = {
    "review_policy": Body(fields=Fields({"scopes": table_of(one_of("off", "low_trust", "all"), scope)})),
    "intention": Body(fields=_INTENTION),
    PENDING: Body(fields=_PENDING),
    "importance": Body(
        fields=Fields(
            dict.fromkeys(("composite", "novelty", "arousal", "reward", "attention"), SHARE)
            | {"boost": number(0.0, 100.0)},
            {"valence": null_or(number(-1.0, 1.0)), "category": null_or(text), "flashbulb": flag},
        )
    ),
    "pattern": Body(
        fields=Fields(
            {
                "together": table_of(_tie),
                "hours": table_of(CREDIT, like(_HOUR)),
                "terms": table_of(CREDIT),
                "shown": CREDIT,
                "last": null_or(moment),
                "credit": CREDIT,
            }
        )
    ),
    "attention": Body(fields=Fields({"number": COUNT, "at": moment, "terms": table_of(text)})),
    "prediction": Body(
        fields=Fields({"waiting": list_of(row_of(moment, list_of(text))), "outcomes": list_of(whole(0, 1))})
    ),
    "capture": Body(
        fields=Fields(
            {
                "event": one_of("user_flag", "novelty_spike", "emotional_content"),
                "at": moment,
                "until": moment,
                "captured": table_of(SHARE),
            }
        ),
        cites=1,
    ),
    "recall": Body(fields=Fields({"labile_until": moment})),
    "rivalry": Body(fields=Fields({"times": COUNT})),
    "cascade": Body(fields=Fields({"neighbors": COUNT})),
    "archive": Body(
        fields=Fields(
            {"ids": list_of(text), "minRetention": SHARE, "maxAgeDays": null_or(number(0, 1e6))},
            {"restoredAt": moment},
        )
    ),
    "bulk": Body(
        fields=Fields(
            {
                "change": one_of("pin", "unpin", "tag", "move", "suppress", "archive"),
                "memories": table_of(COUNT),
                "at": moment,
                "terms": table_of(flag),
            },
            {"undoneAt": moment},
        )
    ),
    "dream": Body(fields=Fields({"turn": COUNT}, others=COUNT)),
    "replayed": Body(fields=Fields({"memories": list_of(text)})),
    "consolidation": Body(
        fields=Fields(
            {
                "memories": COUNT,
                "steps": list_of(Fields({"step": text, "count": COUNT}, {"note": null_or(text)})),
                "duration_ms": number(0.0, 1e12),
            },
            others=COUNT,
        )
    ),
    "snapshot": Body(fields=Fields({"memories": COUNT, "retention": SHARE, "recall": null_or(SHARE)})),
    "insight": Body(fields=_INSIGHT),
    "running": Body(fields=Fields({}, {"holds": list_of(_PROCESS)})),
    "backup": Body(fields=_BACKUP),
    "domain": Body(fields=_DOMAIN),
    "domain_hand": Body(fields=Fields({"assigned": list_of(label), "unassigned": list_of(label)}), cites=1),
    "domain_centroids": Body(fields=_CENTROIDS),
    "domain_run": Body(fields=Fields({"run": COUNT})),
    "domain_proposal": Body(fields=_PROPOSAL),
    "domain_moves": Body(fields=Fields({"rows": list_of(_move)})),
    "peer": Body(
        fields=Fields(
            {},
            {
                "digest": text,
                "names": list_of(text),
                "removed": list_of(text),
                "folder": text,
                "at": moment,
                "refused": Fields({"reason": text, "size": COUNT, "mtime_ns": whole(-(MOST**2), MOST**2)}),
            },
        )
    ),
}
"""The schema of each kind of document. A kind that is not here is of a newer version: nothing reads it."""


def check_body(document: "Document") -> None:
    """Reject a document whose body does not fit its kind."""
    schema = BODIES.get(document.kind)
    if schema is None:
        return
    fields = _DISMISSED if document.kind == "insight" and "insight" not in document.body else schema.fields
    wrong = fields.fault(document.body)
    if wrong is None and len(document.cites) < schema.cites:
        wrong = "it cites no memory"
    if wrong is not None:
        raise InvalidInput(
            f"The {document.kind} {document.id[:80]!r} does not fit its kind: {wrong}.",
            details={"kind": document.kind, "id": document.id},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A value of some kind under an id, in a scope, kept until it is dropped.

    `cites` are the memories it refers to: it is deleted with any of them, so that no text outlives its
    source. A document must not quote memories that it does not cite. `version` counts its changes, from 1.
    """

    kind: str
    id: str
    body: Mapping[str, Any] = field(default_factory=lambda: models.NO_METADATA)
    scope: str = models.ROOT_SCOPE
    cites: tuple[str, ...] = ()
    version: int = 1
    created_at: datetime
    updated_at: datetime

    def __post_init__(self) -> None:
        models.check_label("kind", self.kind)
        models.check_label("id", self.id)
        for name in self.cites:
            models.check_label("cites", name)
        most = models.MAX_PENDING_BYTES if self.kind == PENDING else models.MAX_METADATA_BYTES
        models.check_metadata(self.body, most)
        if self.scope != models.normal_scope(self.scope):
            raise InvalidInput(f"The scope {self.scope!r} is not in normal form.")
        if self.version < 1:
            raise InvalidInput("The version of a document starts at 1.", details={"version": self.version})
        models.check_moment("created_at", self.created_at)
        models.check_moment("updated_at", self.updated_at)
        check_body(self)
