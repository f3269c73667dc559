"""Absent terms: literals, names, numbers and dates of a query that no accessible memory mentions."""

from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from vestige.cognition.query.analyse import Asked
from vestige.cognition.query.literals import Name, NamedDay, Numbered, Particular, literal_terms, written_in
from vestige.cognition.text.analyser import terms
from vestige.core.models import Filter, Memory
from vestige.engine.context import Call
from vestige.engine.recall.as_known import MOST_WORDINGS
from vestige.store.contract.search import Probe

READ = 200
"""The most memories that are read to be certain. If more have the rarest term of a literal, it is not
reported."""


def find_absent_terms(
    call: Call, asked: Asked, where: Filter, found: Sequence[Memory], *, answered: bool | None = None
) -> tuple[str, ...]:
    """The literals and names of the query that neither these nor any other accessible memory mentions.
    `answered` says whether a hit answers, maybe in other words: then no thing in lower case is reported. None
    if it is not known: then no common noun is."""
    things = () if answered else (*asked.things, *(asked.nouns if answered is False else ()))
    if not asked.literals and not asked.particulars and not things:
        return ()
    at_all_times = replace(where, valid_at=None)
    if where.known_at is not None:  # the indexes do not hold the wordings of then
        earlier = call.engine.store.reworded(
            (), at_all_times, access=call.access, limit=MOST_WORDINGS + 1
        ).records
        if len(earlier) > MOST_WORDINGS:
            return ()
        found = [*found, *(one.memory for one in earlier)]
    texts = [
        literal
        for literal in asked.literals
        if not any(written_in(memory, literal) for memory in found)
        and _is_nowhere(call, literal, at_all_times)
    ]
    for one in asked.particulars:
        known = any(one.text.casefold() in text.casefold() for text in texts)
        if not known and _is_unmentioned(call, one, at_all_times, found):
            texts.append(one.text)
    for thing in things:
        known = any(thing.stands_in(text) for text in texts)  # `things` and `nouns` may have the same
        if not known and _is_unknown_thing(call, thing, at_all_times, found):
            texts.append(thing.text)
    return tuple(texts)


def _is_nowhere(call: Call, literal: str, where: Filter) -> bool:
    store, terms = call.engine.store, sorted(literal_terms(literal))
    pool = store.gather(Probe(literals=(literal,), where=where, per_arm=1), access=call.access)
    if not terms or pool.by_literal.any():
        return False
    # Not certain yet: the store does not search every text for a literal that very many memories may hold.
    near = _memories_with(call, terms, where, postings=1)
    return near is not None and not any(written_in(memory, literal) for memory in near)


def _is_unmentioned(call: Call, one: Particular, where: Filter, found: Sequence[Memory]) -> bool:
    match one:
        case Name():
            return _is_unknown(call, one, where, found)
        case Numbered():
            return _has_no_such_number(call, one, where, found)
        case NamedDay():
            near = None if any(map(one.mentioned_in, found)) else _memories_with(call, one.numbers, where)
            return near is not None and not any(map(one.mentioned_in, near))
    assert_never(one)


def _is_unknown(call: Call, name: Name, where: Filter, found: Sequence[Memory]) -> bool:
    if any(map(name.mentioned_in, found)) or name.stands_in(call.scope, where.scope or ""):
        return False
    if call.engine.store.lexical(name.sought, where, access=call.access, limit=1):
        return False
    near = _memories_with(call, terms(" ".join(name.short_forms)), where)
    return near is not None and not any(map(name.shortened_in, near))


def _is_unknown_thing(call: Call, thing: Name, where: Filter, found: Sequence[Memory]) -> bool:
    written_out = any(map(thing.written_out_in, found))
    return not written_out and _is_unknown(call, thing, where, found)


def _has_no_such_number(call: Call, thing: Numbered, where: Filter, found: Sequence[Memory]) -> bool:
    """Whether the number occurs nowhere, or only with other things, while this thing has another number."""
    if any(map(thing.mentioned_in, found)):
        return False
    numbered = _memories_with(call, thing.sought, where)
    if numbered is not None and not any(map(thing.numbered_in, numbered)):
        return True
    if thing.name is None:
        return False
    named = _memories_with(call, thing.name.sought, where)
    near = named if numbered is None else numbered
    if near is None or any(map(thing.mentioned_in, near)):
        return False
    return any(map(thing.has_another_in, named or found))


def _memories_with(call: Call, terms: Sequence[str], where: Filter, **given: int) -> list[Memory] | None:
    """Every accessible memory with one of the terms; None if there are more than can be read."""
    store = call.engine.store
    near = store.lexical(terms, where, access=call.access, limit=READ + 1, **given)
    if len(near) > READ:
        return None
    found = store.get_many([one.memory_id for one in near], access=call.access)
    return [record.memory for record in found]
