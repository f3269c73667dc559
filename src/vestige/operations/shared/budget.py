"""Making an answer fit a budget of tokens, exactly.

Tokens are counted over the JSON of the whole answer by `cognition.pieces.estimate_tokens`, which is fitted to
word pieces on the high side.
"""

from collections.abc import Iterable, Iterator, Sequence

import orjson

from vestige.cognition.text.pieces import estimate_tokens
from vestige.operations.memory.search_view import Found, HitView
from vestige.operations.registry.arguments import Wire
from vestige.operations.shared.text import clip

ECHOED_CHARS = 100
"""Of the query, in an answer that has a budget."""
LEAST_CHARS = 40
"""A shorter beginning of a text tells nothing."""
MOST_CHARS_PER_TOKEN = 10
"""More than any text has that is not blank."""


def within(answer: Found, token_budget: int, shorter: Iterable[HitView]) -> Found:
    """The best hits that fit, the answer around them included, and the ids of the others as far as they fit.

    Where none fits, the first of `shorter` that does stands for the best. What was rejected has to fit like
    any hit.
    """
    offered = answer.results or answer.rejected or []
    shells = _shells(answer.model_copy(update={"token_budget": token_budget}), len(offered))
    shell, kept = _chosen(shells, offered, shorter, token_budget)
    shown = {hit.id for hit in kept}
    left_out = [hit.id for hit in offered if hit.id not in shown]
    shell = shell.model_copy(update={"left_out": len(left_out)})
    while left_out and tokens_of(_filled(shell, kept, left_out)) > token_budget:
        left_out.pop()
    return _counted(_filled(shell, kept, left_out))


def _chosen(
    shells: Sequence[Found], offered: Sequence[HitView], shorter: Iterable[HitView], token_budget: int
) -> tuple[Found, list[HitView]]:
    """What is shown, and the longest shell in which that fits."""
    rooms = [token_budget - tokens_of(shell) for shell in shells]
    for shell, room in zip(shells, rooms, strict=True):
        kept = list(_fitting(offered, room))
        if kept:
            return shell, kept
    for short in shorter if offered else ():
        for shell, room in zip(shells, rooms, strict=True):
            fitted = _fitted(short, room)
            if fitted is not None:
                return shell, [fitted]
    return shells[0], []


def _fitting(offered: Sequence[HitView], room: int) -> Iterator[HitView]:
    for hit in offered:
        tokens = _tokens(hit)
        if tokens <= room:
            room -= tokens
            yield hit


def tokens_of(answer: Wire) -> int:
    """The tokens of an answer as JSON."""
    return estimate_tokens(orjson.dumps(answer.wire()).decode("utf-8"))


def _tokens(hit: HitView) -> int:
    return tokens_of(hit) + 1  # and the comma


def _fitted(hit: HitView, room: int) -> HitView | None:
    """The hit, if it fits; one that shows the beginning of its text, with as much of it as fits."""
    if _tokens(hit) <= room:
        return hit
    if hit.shortened != "beginning" or hit.content is None:
        return None
    fits, too_long = 0, min(len(hit.content), max(0, MOST_CHARS_PER_TOKEN * room)) + 1
    while fits + 1 < too_long:
        middle = (fits + too_long) // 2
        if _tokens(_begun(hit, middle)) <= room:
            fits = middle
        else:
            too_long = middle
    return _begun(hit, fits) if fits >= LEAST_CHARS else None


def _begun(hit: HitView, chars: int) -> HitView:
    return hit.model_copy(update={"content": f"{(hit.content or '')[:chars].rstrip()}…"})


def _shells(answer: Found, hits: int) -> list[Found]:
    """The answer without its hits, counted as if all were there, from the longest that fits its budget on."""
    budget = answer.token_budget or 0
    empty: dict[str, object] = {
        "results": [], "total": hits, "left_out": hits, "expandable": [], "tokens_used": budget,
    }  # fmt: skip
    if answer.abstained:
        empty["rejected"] = []
    # The caller knows the query, and what the note says in words is said by other fields too.
    lacking: list[dict[str, object]] = [{"query": clip(answer.query, ECHOED_CHARS)}, {"query": "…"}]
    for names in (("context_reinstatement",), ("note",), ("missing", "time")):
        lacking.append(lacking[-1] | dict.fromkeys(names))
    lacking.append(lacking[-1] | {"scope": "…"})
    shells = [answer.model_copy(update=empty | less) for less in lacking]
    return [shell for shell in shells if tokens_of(shell) <= budget] or shells[-1:]


def _filled(shell: Found, kept: list[HitView], left_out: list[str]) -> Found:
    held: dict[str, object] = {"results": kept, "total": len(kept)}
    if shell.abstained:
        held = {"rejected": kept or None, "total": 0}
    return shell.model_copy(update={**held, "expandable": left_out or None})


def _counted(answer: Found) -> Found:
    """The answer with its tokens, counted again while the number of them becomes shorter by that."""
    while (tokens := tokens_of(answer)) != answer.tokens_used:
        answer = answer.model_copy(update={"tokens_used": tokens})
    return answer
