"""Keeping account of the records of an import: imported + present + left = read."""

from collections import Counter
from dataclasses import dataclass

SHOWN = 20
"""So many of the records that were left are named; all are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What became of the records of a kind: imported + present + left = read."""

    read: int
    imported: int
    present: int
    left: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What is to be said about so many records of a kind; `place` is where the first of them stands."""

    kind: str
    place: str
    what: str
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """An import, kind by kind. `left` has every reason with the number of records it is true of, `examples`
    the first of these records. `notes` tell what was changed or left out of records that were imported."""

    tallies: dict[str, Tally]
    left: tuple[Said, ...] = ()
    examples: tuple[Said, ...] = ()
    notes: tuple[Said, ...] = ()


class Account:
    """The account of an import while it runs. Every record is entered once."""

    def __init__(self) -> None:
        self._imported: Counter[str] = Counter()
        self._present: Counter[str] = Counter()
        self._reasons: Counter[tuple[str, str]] = Counter()
        self._notes: Counter[tuple[str, str]] = Counter()
        self._places: dict[tuple[str, str], str] = {}
        self._examples: list[Said] = []

    def imported(self, kind: str, place: str, notes: tuple[str, ...]) -> None:
        """This record was taken in, with these changes."""
        self._imported[kind] += 1
        for note in notes:
            self._notes[kind, note] += 1
            self._places.setdefault((kind, note), place)

    def present(self, kind: str) -> None:
        """This record was here already."""
        self._present[kind] += 1

    def left(self, kind: str, place: str, reason: str, count: int = 1) -> None:
        """So many records were not taken in."""
        if not count:
            return
        self._reasons[kind, reason] += count
        self._places.setdefault((kind, reason), place)
        if len(self._examples) < SHOWN:
            self._examples.append(Said(kind=kind, place=place, what=reason, count=count))

    def outcome(self) -> Outcome:
        """The account as it stands."""
        left: Counter[str] = Counter()
        for (kind, _), count in self._reasons.items():
            left[kind] += count
        kinds = dict.fromkeys([*self._imported, *self._present, *left])
        return Outcome(
            tallies={kind: self._tally(kind, left[kind]) for kind in kinds},
            left=self._said(self._reasons),
            examples=tuple(self._examples),
            notes=self._said(self._notes),
        )

    def _tally(self, kind: str, left: int) -> Tally:
        imported, present = self._imported[kind], self._present[kind]
        return Tally(read=imported + present + left, imported=imported, present=present, left=left)

    def _said(self, counted: Counter[tuple[str, str]]) -> tuple[Said, ...]:
        return tuple(
            Said(kind=kind, place=self._places[kind, what], what=what, count=count)
            for (kind, what), count in counted.most_common()
        )
