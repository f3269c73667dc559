from hypothesis import given
from hypothesis import strategies as st

from vestige.core.origin import Origin, lowest

ORIGINS = st.sampled_from([*(one.value for one in Origin), None, "of a newer version"])


def test_the_least_trusted_origin_is_that_of_a_derived_text() -> None:
    assert lowest(["user", "document", "assistant"]) == "document"
    assert lowest(["user", "user"]) == "user"
    assert lowest(["user", None]) is None
    assert lowest([None, "import"]) == "import"
    assert lowest(["tool", "of a newer version"]) == "of a newer version"
    assert lowest([]) is None


@given(st.lists(ORIGINS, min_size=1), st.lists(ORIGINS, min_size=1))
def test_deriving_in_steps_never_raises_an_origin(some: list[str | None], others: list[str | None]) -> None:
    whole = lowest([*some, *others])
    assert lowest([lowest(some), lowest(others)]) == whole
    assert lowest([whole, *some]) == whole
