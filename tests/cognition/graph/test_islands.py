"""Islands: every memory is in one, connected, the largest first."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from vestige.cognition.graph.islands import islands, joined
from vestige.core.models import Edge

AT = datetime(2026, 3, 1, tzinfo=UTC)
pairs = st.tuples(st.integers(0, 12), st.integers(0, 12)).filter(lambda pair: pair[0] != pair[1])


def edges(*ends: tuple[int, int]) -> list[Edge]:
    return [
        Edge(source_id=f"{one:02}", target_id=f"{other:02}", kind="related", weight=0.5, created_at=AT)
        for one, other in ends
    ]


def test_the_largest_part_comes_first_and_begins_with_its_most_linked_memory() -> None:
    assert islands(edges((1, 2), (3, 4), (4, 5), (4, 6))) == [["04", "03", "05", "06"], ["01", "02"]]
    assert islands([]) == []


@given(st.lists(pairs, max_size=20))
def test_every_beginning_of_an_island_is_connected(ends: list[tuple[int, int]]) -> None:
    found = islands(edges(*ends))
    assert sorted(one for island in found for one in island) == sorted({f"{n:02}" for p in ends for n in p})
    near = {frozenset(f"{n:02}" for n in pair) for pair in ends}
    for island in found:
        for at in range(1, len(island)):
            assert any(frozenset((island[at], earlier)) in near for earlier in island[:at])


def test_what_does_not_fit_is_left_out_from_the_end() -> None:
    parts = [["a", "b", "c"], ["d", "e"], ["f", "g"]]
    assert joined(parts, 10) == list("abcdefg")
    assert joined(parts, 4) == list("abc")
    assert joined(parts, 2) == list("ab")
    assert joined([["a"], ["b"]], 2) == ["a", "b"]
