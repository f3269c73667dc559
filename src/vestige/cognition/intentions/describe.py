"""A trigger in words, so that the user can see how it was understood."""

from datetime import tzinfo
from typing import assert_never

from vestige.cognition.intentions import triggers
from vestige.cognition.intentions.recurrence import LAST, Daily, Interval, Monthly, Recurrence, Weekly
from vestige.cognition.time.calendar import MONTHS, WEEKDAYS
from vestige.core.timezone import time_text, zone_name


def in_words(trigger: triggers.Trigger, zone: tzinfo) -> str:
    """A trigger in words, with moments in the reader's zone."""
    match trigger:
        case triggers.Manual():
            return "not by itself"
        case triggers.Time(at=at):
            return f"at {time_text(at, zone)}"
        case triggers.ContextTrigger():
            return _context(trigger)
        case triggers.EventTrigger(condition=condition):
            return f'when it is reported that "{condition}"'
        case triggers.Recurring(rule=rule):
            return _rule(rule, zone)
        case triggers.Compound(mode=mode, parts=parts):
            joint = " and " if mode == "all" else " or "
            said = (in_words(part, zone) for part in parts)
            return joint.join(f"({one})" if joint in one else one for one in said)
    assert_never(trigger)


def _context(context: triggers.ContextTrigger) -> str:
    parts = (
        ("in the codebase", context.codebase),
        ("in a file like", context.file_pattern),
        ("about", context.topic),
    )
    return "when " + " and ".join(f"{lead} {name}" for lead, name in parts if name is not None)


def _rule(rule: Recurrence, zone: tzinfo) -> str:
    ending = f" until {time_text(rule.until, zone)}" if rule.until is not None else ""
    clock = f"{rule.at // 60:02}:{rule.at % 60:02} {zone_in_words(rule.zone)}"
    match rule.pattern:
        case Interval(minutes=minutes):
            hours = minutes % 60 == 0
            return (
                f"every {_many(minutes // 60 if hours else minutes, 'hour' if hours else 'minute')}{ending}"
            )
        case Daily(every=every):
            return f"every {_many(every, 'day')} at {clock}{ending}"
        case Weekly(every=every, weekdays=weekdays):
            days = ", ".join(WEEKDAYS[number] for number in weekdays)
            return f"every {days if every == 1 else f'{every} weeks on {days}'} at {clock}{ending}"
        case Monthly(every=every, day=day, months=months):
            where = " in " + ", ".join(MONTHS[number - 1] for number in months) if months else ""
            on = "the last day" if day == LAST else f"day {day}"
            return f"on {on} of every {_many(every, 'month')}{where} at {clock}{ending}"


def zone_in_words(zone: tzinfo) -> str:
    """A zone for the reader: its name, and UTC before an offset."""
    name = zone_name(zone)
    return f"UTC{name}" if name[:1] in "+-" else name


def _many(number: int, unit: str) -> str:
    return unit if number == 1 else f"{number} {unit}s"
