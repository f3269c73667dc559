"""How far the model is on its way from nothing to ready."""

import enum
from collections.abc import Callable


class ModelStep(enum.StrEnum):
    """What is being done to bring the model."""

    FETCHING = "fetching"
    CHECKING = "checking"
    CONVERTING = "converting"
    LOADING = "loading"


Progress = Callable[[ModelStep, float], None]
"""Called with the step that begins and the share of the whole work (0..1) that is done."""


def silent(_step: ModelStep, _share: float) -> None:
    """Progress that nobody watches."""
