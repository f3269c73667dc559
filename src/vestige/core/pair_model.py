"""The relation of a new note to an older one, as a model judges it.

The embedder gives the scores, and the gate uses them. This module is the value that both know.
"""

import enum

from vestige.core.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationScores:
    """The probability of each relation between an old note and a new one. They sum to one.

    `same`: the new note says what the old one says. `corrects`: it makes the old one false. `unclear`: the
    two conflict, but the new one is hedged, measured or an opinion. `elaborates`: it repeats the old
    one and adds to it. `other`: the old one stays true.
    """

    same: float
    corrects: float
    unclear: float
    elaborates: float
    other: float


class PairModelState(enum.StrEnum):
    """Whether an embedder has a pair model; `outdated`: it was built from other weights than this version
    of Vestige has.
    """

    READY = "ready"
    ABSENT = "absent"
    OUTDATED = "outdated"
    UNSUPPORTED = "unsupported"
