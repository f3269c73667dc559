"""Ids that a person shortened: the beginning or the end of an id stands for it, if only one id has it."""

from vestige.core.documents import PENDING
from vestige.core.errors import InvalidInput
from vestige.engine.context import Call
from vestige.engine.memory.archive import ARCHIVE
from vestige.engine.sleep.insights import INSIGHT

LEAST_CHARS = 4
"""Shorter texts stand for nothing but themselves."""
FULL_CHARS = 36
MOST_NAMED = 6
"""Candidates that an error names, at most."""
MOST_DOCUMENTS = 10_000
MEMORY = "memory"
_DOCUMENTS = {
    "archive": ARCHIVE,
    "bulk": "bulk",
    "insight": INSIGHT,
    "intention": "intention",
    "review": PENDING,
}


def full_id(call: Call, kind: str, given: str) -> str:
    """The id that a text stands for. A text that fits no id is returned as it is, and the operation
    reports it. InvalidInput if it fits several."""
    part = given.strip().lower()
    if len(part) < LEAST_CHARS or len(part) >= FULL_CHARS:
        return given
    found = _candidates(call, kind, part)
    if given in found or part in found:
        return given
    if len(found) > 1:
        named = ", ".join(found[: MOST_NAMED - 1]) + (", …" if len(found) >= MOST_NAMED else "")
        raise InvalidInput(
            f"`{given}` is the beginning or end of several ids.",
            hint=f"Give more of it. It fits {named}.",
            details={"candidates": found[: MOST_NAMED - 1]},
        )
    return found[0] if found else given


def _candidates(call: Call, kind: str, part: str) -> list[str]:
    store, found = call.engine.store, []
    if kind in _DOCUMENTS:
        documents = store.documents(_DOCUMENTS[kind], access=call.access, limit=MOST_DOCUMENTS)
        # Documents with a space in their id are further portions of the one before it.
        ids = [one.id for one in documents if " " not in one.id]
        found = [one for one in ids if one.startswith(part) or one.endswith(part)]
    if kind in (MEMORY, ARCHIVE):  # an archive can be named by a memory in it
        found += store.ids_like(part, access=call.access, limit=MOST_NAMED)
    return found
