"""Time zones of people: a zone by its name, the zone of the current call, and times as text.

Stored times and times on the wire are UTC. A zone decides how words such as "tomorrow at 10" are read and how
a time is printed. A clock time that a change of the clock skips is read with the offset before the change
(02:30 becomes 03:30); of one that occurs twice the first is meant.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from functools import lru_cache
from io import BytesIO
from struct import pack
from zoneinfo import ZoneInfo, available_timezones

from vestige.core.errors import InvalidInput, nearest_name
from vestige.core.patterns import lazy_pattern

MAX_ZONE_CHARS = 64
MAX_RULE_CHARS = 256
_OFFSET = lazy_pattern(
    r"(?:UTC|GMT)?(?P<sign>[+-])(?P<hours>[01]?\d)(?::?(?P<minutes>[0-5]\d))?", re.IGNORECASE
)
_UTC_NAMES = frozenset({"utc", "z", "gmt", "etc/utc"})


def zone_of(name: str) -> tzinfo:
    """The zone of a name of the tz database (Europe/Berlin), UTC, or an offset (+05:30); InvalidInput for any
    other name."""
    zone = known_zone(name)
    if zone is not None:
        return zone
    close = nearest_name(name, sorted(available_timezones()))
    raise InvalidInput(
        f"There is no time zone {name[:MAX_ZONE_CHARS]!r}.",
        hint=f"Did you mean {close}?" if close else "Give a name such as Europe/Berlin, UTC, or +05:30.",
        details={"argument": "timezone"},
    )


@lru_cache(maxsize=256)
def known_zone(name: str) -> tzinfo | None:
    """Like `zone_of`, but None for an unknown name."""
    plain = name.strip()
    if plain.casefold() in _UTC_NAMES:
        return UTC
    offset = _OFFSET.fullmatch(plain)
    if offset is not None:
        size = timedelta(hours=int(offset[2]), minutes=int(offset[3] or 0))
        return timezone(-size if offset[1] == "-" else size)
    if not plain or len(plain) > MAX_ZONE_CHARS:
        return None
    try:
        return ZoneInfo(plain)
    except (OSError, ValueError, KeyError):  # a folder of the database, not a name, or unknown
        return posix_zone(plain) if "," in plain else _in_any_case(plain)


def _in_any_case(name: str) -> tzinfo | None:
    wanted = name.casefold().replace(" ", "_")
    found = next((one for one in available_timezones() if one.casefold() == wanted), None)
    return ZoneInfo(found) if found else None


def posix_zone(rule: str) -> tzinfo | None:
    """The zone of a rule in the variable TZ, such as EST5EDT,M3.2.0,M11.1.0; None if it is not one."""
    if len(rule) > MAX_RULE_CHARS:
        return None
    counts = (0, 0, 0, 0, 1, 4)  # no transitions, one type of local time with a name of four bytes
    part = b"TZif2" + bytes(15) + pack(">6l", *counts) + pack(">lbb", 0, 0, 0) + b"UTC\0"
    try:
        data = part + part + b"\n" + rule.encode("ascii") + b"\n"
        return ZoneInfo.from_file(BytesIO(data), key=rule)
    except (ValueError, UnicodeEncodeError):
        return None


def zone_name(zone: tzinfo) -> str:
    """The name by which `zone_of` finds a zone again, or its rule."""
    if zone is UTC:
        return "UTC"
    return zone.key if isinstance(zone, ZoneInfo) and zone.key else _offset_text(zone.utcoffset(None))


def _offset_text(offset: timedelta | None) -> str:
    minutes = round((offset or timedelta()).total_seconds() / 60)
    sign, ahead = ("-", -minutes) if minutes < 0 else ("+", minutes)
    return f"{sign}{ahead // 60:02}:{ahead % 60:02}"


def local(moment: datetime, zone: tzinfo) -> datetime:
    """The moment in a zone; unchanged where the calendar ends."""
    try:
        return moment.astimezone(zone)
    except OverflowError:
        return moment


def at_clock(day: date, minute: int, zone: tzinfo) -> datetime:
    """A minute of a day in a zone, in UTC."""
    clock = time(*divmod(minute, 60))
    return datetime.combine(day, clock, zone).astimezone(UTC)


# -- The zone of the current call

_ZONE: ContextVar[tzinfo] = ContextVar("zone", default=UTC)


def current_zone() -> tzinfo:
    """The zone of the person that texts are for: that of the call, or of the user at the command line."""
    return _ZONE.get()


def show_times_in(zone: tzinfo) -> None:
    """Print times in this zone from now on: for a process with one user."""
    _ZONE.set(zone)


@contextmanager
def in_zone(zone: tzinfo) -> Iterator[None]:
    """Print times in this zone inside of the block."""
    before = _ZONE.set(zone)
    try:
        yield
    finally:
        _ZONE.reset(before)


# -- Times as text


def time_text(moment: datetime, zone: tzinfo | None = None, *, seconds: bool = False) -> str:
    """A time for a person, with its zone: `2026-03-02 09:00 EST`. Default: the zone of the current call."""
    shown = local(moment, zone or current_zone())
    clock = "%H:%M:%S" if seconds else "%H:%M"
    return f"{shown:%Y-%m-%d {clock}} {zone_label(shown)}"


def date_text(moment: datetime, zone: tzinfo | None = None) -> str:
    """The day of a time for a person: `2026-03-02`. Default: in the zone of the current call."""
    return f"{local(moment, zone or current_zone()):%Y-%m-%d}"


def zone_label(moment: datetime) -> str:
    """The short name of a moment's zone: EST, JST, UTC+03:00."""
    name = moment.tzname() or ""
    return name if name.isalpha() else f"UTC{_offset_text(moment.utcoffset())}"
