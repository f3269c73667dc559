"""How much a test makes up: little in `make quick` and `make test`, much in `make nightly`.

The tier is in the variable TEST_EFFORT, which `make nightly` sets to `nightly`: Hypothesis and constants of
modules need it before pytest has read its options.
"""

import os

NIGHTLY = os.environ.get("TEST_EFFORT") == "nightly"


def effort(usual: int, *, nightly: int) -> int:
    """How many there are of something in this run."""
    return nightly if NIGHTLY else usual
