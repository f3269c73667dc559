"""Intentions and their triggers as JSON, and back. A trigger has the fields of the tool's argument."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any, Literal, assert_never

from vestige.cognition.intentions import triggers
from vestige.cognition.intentions.intention import Firing, Intention, IntentionStatus, Priority
from vestige.cognition.intentions.recurrence import Daily, Interval, Monthly, Pattern, Recurrence, Weekly
from vestige.cognition.time.calendar import WEEKDAYS
from vestige.core.timezone import known_zone, local, zone_name

Form = dict[str, Any]  # A JSON object.

MINUTES_PER_HOUR = 60
_ENDS: dict[str, Literal[IntentionStatus.FULFILLED, IntentionStatus.CANCELLED]] = {
    "fulfilled": IntentionStatus.FULFILLED,
    "cancelled": IntentionStatus.CANCELLED,
}


def body_of(intention: Intention) -> Form:
    """An intention as the body of a document, which itself holds id, scope, version and times."""
    return _given(
        {
            "description": intention.description,
            "said": intention.said,
            "trigger": form_of(intention.trigger),
            "priority": int(intention.priority),
            "deadline": _text(intention.deadline),
            "snoozed_until": _text(intention.snoozed_until),
            "armed_at": _text(intention.armed_at),
            "timezone": None if intention.zone is UTC else zone_name(intention.zone),
            "since": _text(intention.since),
            "met": {place: _text(at) for place, at in intention.met.items()} or None,
            "firing": None if intention.firing is None else _firing_form(intention.firing),
            "announced": _text(intention.announced),
            "ended": intention.ended,
            "closed_at": _text(intention.closed_at),
        }
    )


def intention_of(
    body: Mapping[str, Any], *, id: str, scope: str, version: int, created_at: datetime, updated_at: datetime
) -> Intention:
    firing = body.get("firing")
    return Intention(
        id=id,
        scope=scope,
        version=version,
        created_at=created_at,
        updated_at=updated_at,
        description=body["description"],
        said=body.get("said"),
        trigger=trigger_of(body["trigger"]),
        priority=Priority(body["priority"]),
        deadline=_moment(body, "deadline"),
        snoozed_until=_moment(body, "snoozed_until"),
        armed_at=datetime.fromisoformat(body["armed_at"]),
        zone=_zone(body) or UTC,
        since=_moment(body, "since"),
        met={place: datetime.fromisoformat(at) for place, at in body.get("met", {}).items()},
        firing=None if firing is None else _firing(firing),
        announced=_moment(body, "announced"),
        ended=_ENDS.get(body.get("ended", "")),
        closed_at=_moment(body, "closed_at"),
    )


def form_of(trigger: triggers.Trigger) -> Form:
    match trigger:
        case triggers.Manual():
            return {"type": "manual"}
        case triggers.Time(at=at, minutes=None):
            return {"type": "time", "at": _text(at)}
        case triggers.Time(at=at, minutes=minutes):
            return {"type": "duration", "in_minutes": minutes, "at": _text(at)}
        case triggers.ContextTrigger(codebase=codebase, file_pattern=pattern, topic=topic):
            parts = {"codebase": codebase, "file_pattern": pattern, "topic": topic}
            return {"type": "context", **_given(parts)}
        case triggers.EventTrigger(condition=condition):
            return {"type": "event", "condition": condition}
        case triggers.Recurring(rule=rule):
            return {"type": "recurring", **_rule_form(rule)}
        case triggers.Compound(mode=mode, parts=parts):
            return {"type": mode, mode: [form_of(part) for part in parts]}
    assert_never(trigger)


def trigger_of(form: Mapping[str, Any]) -> triggers.Trigger:
    match form["type"]:
        case "time" | "duration":
            return triggers.Time(at=datetime.fromisoformat(form["at"]), minutes=form.get("in_minutes"))
        case "context":
            return triggers.ContextTrigger(
                codebase=form.get("codebase"), file_pattern=form.get("file_pattern"), topic=form.get("topic")
            )
        case "event":
            return triggers.EventTrigger(condition=form["condition"])
        case "recurring":
            return triggers.Recurring(rule=_rule(form))
        case "all":
            return triggers.Compound(mode="all", parts=tuple(map(trigger_of, form["all"])))
        case "any":
            return triggers.Compound(mode="any", parts=tuple(map(trigger_of, form["any"])))
        case _:
            return triggers.Manual()


def _firing_form(firing: Firing) -> Form:
    return _given(
        {
            "at": _text(firing.at),
            "due_at": _text(firing.due_at),
            "missed": firing.missed,
            "reminders": firing.reminders,
            "reminded_at": _text(firing.reminded_at),
        }
    )


def _firing(form: Mapping[str, Any]) -> Firing:
    return Firing(
        at=datetime.fromisoformat(form["at"]),
        due_at=datetime.fromisoformat(form["due_at"]),
        missed=form["missed"],
        reminders=form["reminders"],
        reminded_at=_moment(form, "reminded_at"),
    )


# -- Recurrence rules


def _rule_form(rule: Recurrence) -> Form:
    bounds = _given({"start": _text(rule.start), "until": _text(rule.until)})
    match rule.pattern:
        case Interval(minutes=minutes):
            whole = minutes % MINUTES_PER_HOUR == 0
            every = "hour" if whole else "minute"
            return {"every": every, "interval": minutes // (MINUTES_PER_HOUR if whole else 1), **bounds}
        case Daily(every=interval):
            own: Form = {"every": "day", "interval": interval}
        case Weekly(every=interval, weekdays=weekdays):
            days = [WEEKDAYS[number].casefold() for number in weekdays]
            own = {"every": "week", "interval": interval, "days": days}
        case Monthly(every=interval, day=day, months=months):
            own = {"every": "month", "interval": interval, "day": day, "months": list(months) or None}
    clock = clock_text(rule.at, local(rule.start, rule.zone).utcoffset())
    return _given({**own, "at": clock, "timezone": _named_zone(rule.zone), **bounds})


def _rule(form: Mapping[str, Any]) -> Recurrence:
    at, offset = clock_of(form["at"]) if "at" in form else (0, UTC)
    return Recurrence(
        pattern=_pattern(form),
        start=datetime.fromisoformat(form["start"]),
        until=_moment(form, "until"),
        at=at,
        zone=_zone(form) or offset,
    )


def _pattern(form: Mapping[str, Any]) -> Pattern:
    interval = form["interval"]
    match form["every"]:
        case "minute":
            return Interval(minutes=interval)
        case "hour":
            return Interval(minutes=interval * MINUTES_PER_HOUR)
        case "day":
            return Daily(every=interval)
        case "week":
            names = [name.casefold() for name in WEEKDAYS]
            return Weekly(every=interval, weekdays=tuple(names.index(name) for name in form["days"]))
        case _:
            return Monthly(every=interval, day=form["day"], months=tuple(form.get("months", ())))


def clock_text(at: int, offset: timedelta | None) -> str:
    """A clock time with its offset from UTC: `09:00+02:00`."""
    minutes = round((offset or timedelta()).total_seconds() / 60)
    sign, ahead = ("-", -minutes) if minutes < 0 else ("+", minutes)
    return f"{at // 60:02}:{at % 60:02}{sign}{ahead // 60:02}:{ahead % 60:02}"


def clock_of(text: str) -> tuple[int, tzinfo]:
    """The minute of the day, and the offset from UTC, of what `clock_text` writes."""
    hour, minute, ahead, rest = int(text[:2]), int(text[3:5]), int(text[6:8]), int(text[9:11])
    offset = timedelta(hours=ahead, minutes=rest)
    return 60 * hour + minute, timezone(-offset if text[5] == "-" else offset) if offset else UTC


def _named_zone(zone: tzinfo) -> str | None:
    """The name of a zone whose offset changes; None for a fixed offset, which the clock time has."""
    return zone_name(zone) if zone.utcoffset(None) is None else None


def _zone(form: Mapping[str, Any]) -> tzinfo | None:
    """The zone of a form; None without one, and for a name that this machine does not know."""
    return known_zone(form["timezone"]) if "timezone" in form else None


def _given(form: Form) -> Form:
    return {name: value for name, value in form.items() if value is not None}


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _moment(form: Mapping[str, Any], name: str) -> datetime | None:
    return datetime.fromisoformat(form[name]) if name in form else None
