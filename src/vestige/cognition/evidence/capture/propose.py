"""Proposals from a transcript, by rules: decisions with their reason, fixes, preferences, corrections, and
procedures that worked three times.

A rule proposes rather too little: what it proposes is read by a person.
"""

from collections.abc import Sequence

from vestige.cognition.evidence.capture.commands import fixes, procedures
from vestige.cognition.evidence.capture.statements import stated
from vestige.cognition.evidence.capture.turns import Proposal, Turn


def propose(turns: Sequence[Turn]) -> list[Proposal]:
    """What of a transcript may be worth keeping, in its order; each text once."""
    found = [*stated(turns), *fixes(turns), *procedures(turns)]
    found.sort(key=lambda one: one.position)
    return list({one.content: one for one in reversed(found)}.values())[::-1]
