"""Proposals: old and new domains are matched one to one, and only clear differences are proposed."""

from hypothesis import given
from hypothesis import strategies as st

from vestige.cognition.graph.domains.proposals import FoundDomain, matched, propose


def ids(begin: int, end: int) -> frozenset[str]:
    return frozenset(f"{number:04}" for number in range(begin, end))


def found(members: frozenset[str], confidence: float = 0.9, *, stable: bool = True) -> FoundDomain:
    return FoundDomain(members=members, confidence=confidence, stable=stable)


def kinds(old: dict[str, frozenset[str]], *new: FoundDomain) -> list[tuple[str, tuple[str, ...]]]:
    return [(one.kind, one.targets) for one in propose(old, new, least_size=10)]


def test_domains_that_are_found_again_need_no_proposal() -> None:
    old = {"dev": ids(0, 40), "infra": ids(40, 80)}
    assert kinds(old, found(ids(0, 42)), found(ids(42, 85))) == []
    assert matched(old, [ids(42, 85), ids(0, 42)]) == {"dev": 1, "infra": 0}


def test_two_halves_of_a_domain_are_a_split_and_only_one_can_continue_it() -> None:
    old = {"dev": ids(0, 40)}
    assert kinds(old, found(ids(0, 25)), found(ids(25, 40))) == [("split", ("dev",))]
    assert matched(old, [ids(0, 25), ids(25, 40)]) == {"dev": 0}


def test_an_unstable_or_small_half_is_no_split() -> None:
    old = {"dev": ids(0, 40)}
    assert kinds(old, found(ids(0, 25)), found(ids(25, 40), stable=False)) == []
    assert kinds(old, found(ids(0, 32)), found(ids(32, 40))) == []


def test_two_domains_that_go_into_one_are_a_merge_into_the_larger() -> None:
    old = {"a": ids(0, 20), "b": ids(20, 60)}
    assert kinds(old, found(ids(0, 60))) == [("merge", ("b", "a"))]


def test_a_group_outside_all_domains_is_new_and_an_empty_domain_is_retired() -> None:
    old = {"dev": ids(0, 40), "old": ids(100, 103)}
    new = propose(old, [found(ids(0, 40)), found(ids(40, 60), 0.5)], least_size=10)
    assert [(one.kind, one.targets, one.parts) for one in new] == [
        ("retire", ("old",), ()),
        ("new", (), (1,)),
    ]


groups = st.lists(st.integers(0, 4), min_size=30, max_size=30)


@given(groups, groups)
def test_matching_is_one_to_one_and_needs_a_common_member(before: list[int], after: list[int]) -> None:
    old = {
        str(name): frozenset(str(at) for at, own in enumerate(before) if own == name) for name in set(before)
    }
    new = [frozenset(str(at) for at, own in enumerate(after) if own == name) for name in sorted(set(after))]
    pairs = matched(old, new)
    assert len(set(pairs.values())) == len(pairs)
    assert all(old[name] & new[number] for name, number in pairs.items())
    assert len(pairs) > 0
