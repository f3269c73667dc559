"""Progress of bringing a model: its steps."""

import enum
from collections.abc import Callable


class ModelStep(enum.StrEnum):
    FETCHING = "fetching"
    CHECKING = "checking"
    CONVERTING = "converting"
    LOADING = "loading"


Progress = Callable[[ModelStep, float], None]
"""Called with the step that begins and the share of the whole work (0..1) that is done."""


def silent(_step: ModelStep, _share: float) -> None:
    """Progress without an observer."""
