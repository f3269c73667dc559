"""Fits a search answer into a token budget.

Tokens are counted over the JSON of the whole answer by `cognition.text.form.estimate_tokens`, which
estimates on the high side.
"""

from collections.abc import Iterable, Iterator, Sequence

import orjson

from vestige.cognition.text.form import estimate_tokens
from vestige.operations.memory.search_view import Found, HitView
from vestige.operations.registry.arguments import Wire
from vestige.operations.shared.text import clip

ECHOED_CHARS = 100
"""Characters of the query that an answer with a budget repeats."""
LEAST_CHARS = 40
"""A shorter excerpt is useless."""
MOST_CHARS_PER_TOKEN = 10
"""Upper bound for any text that is not blank."""


def within(answer: Found, token_budget: int, shorter: Iterable[HitView]) -> Found:
    """The best hits that fit the budget together with the answer around them, and ids of the others.

    If no hit fits, the first of `shorter` that fits stands for the best one. Rejected hits count like hits.
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
    """The hits to show, and the longest shell in which they fit."""
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
    """The estimated tokens of an answer as JSON."""
    return estimate_tokens(orjson.dumps(answer.wire()).decode("utf-8"))


def _tokens(hit: HitView) -> int:
    return tokens_of(hit) + 1  # and the comma


def _fitted(hit: HitView, room: int) -> HitView | None:
    """The hit if it fits; if it is an excerpt, cut to what fits."""
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
    """The answer without hits, sized as if all were there: variants that fit the budget, longest first."""
    budget = answer.token_budget or 0
    empty: dict[str, object] = {
        "results": [], "total": hits, "left_out": hits, "expandable": [], "tokens_used": budget,
    }  # fmt: skip
    if answer.abstained:
        empty["rejected"] = []
    # The caller knows the query, and other fields repeat what the note says.
    lacking: list[dict[str, object]] = [{"query": clip(answer.query, ECHOED_CHARS)}, {"query": "…"}]
    for names in (("context_reinstatement",), ("note",), ("missing", "time", "weaker_left_out")):
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
    """The answer with its token count. Recounts until stable, because the number is part of the answer."""
    while (tokens := tokens_of(answer)) != answer.tokens_used:
        answer = answer.model_copy(update={"tokens_used": tokens})
    return answer
