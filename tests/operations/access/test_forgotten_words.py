"""What a caller deletes shows nothing of what it may not see: neither that others use its words, nor that
they do not."""

from pathlib import Path

import pytest

from testbed.world import World, open_world
from tests.operations.access.access_world import DOMAIN, LIMITS, MINE, Answer, Limit, options
from vestige.core.caller import Invocation
from vestige.core.models import Access

WORD = "zeppelin"
HIDDEN = f"The {WORD} of Bo lands on Friday."


def asked(world: World, known: Limit, name: str, **arguments: object) -> Answer:
    made = Invocation(name=name, arguments=arguments, caller=known.caller(), request_id="test")
    answer = world.app.call_operation(made)
    world.app.settle()
    return answer


def interests(folder: Path, known: Limit, *, hidden: bool, visible: bool = False) -> list[str]:
    """The words in which a limited caller is interested, after it deleted the memory that it had searched."""
    with open_world(folder, **options()) as world:
        scope, domains = known.outside[0]
        if hidden:
            world.remember(HIDDEN, scope=scope, domains=list(domains), force_create=True)
        mine = {"scope": MINE, "domains": [DOMAIN], "force_create": True}
        if visible:
            asked(world, known, "smart_ingest", content=f"Ada saw the {WORD}.", **mine)
        asked(world, known, "smart_ingest", content="Ada keeps the brass key.", **mine)
        made = asked(world, known, "smart_ingest", content=f"The {WORD} is late.", **mine)
        asked(world, known, "search", query=f"brass key {WORD}", scope=MINE, limit=1)
        asked(world, known, "memory.delete", id=made["nodeId"])
        found = asked(world, known, "predict", scope=MINE)
        return [one["topic"] for one in found["topInterests"]]


@pytest.mark.parametrize("limit", LIMITS.values(), ids=LIMITS)
def test_a_deletion_does_not_show_whether_a_word_is_used_out_of_reach(tmp_path: Path, limit: Limit) -> None:
    without = interests(tmp_path / "without", limit, hidden=False)
    assert interests(tmp_path / "with", limit, hidden=True) == without
    assert "brass" in without
    assert WORD not in without


@pytest.mark.parametrize("limit", LIMITS.values(), ids=LIMITS)
def test_a_word_stays_while_another_memory_in_reach_has_it(tmp_path: Path, limit: Limit) -> None:
    assert WORD in interests(tmp_path / "data", limit, hidden=False, visible=True)


@pytest.mark.parametrize("limit", LIMITS.values(), ids=LIMITS)
def test_what_others_delete_takes_no_words_from_a_search(tmp_path: Path, limit: Limit) -> None:
    elsewhere = "/project/canaryscope"
    others = Limit(access=Access(scopes=(elsewhere,)), outside=())
    with open_world(tmp_path / "data", **options()) as world:
        mine = {"scope": MINE, "domains": [DOMAIN], "force_create": True}
        asked(world, limit, "smart_ingest", content="Ada keeps the brass key.", **mine)
        made = asked(world, others, "smart_ingest", content=HIDDEN, scope=elsewhere, force_create=True)
        asked(world, limit, "search", query=f"brass key {WORD}", scope=MINE)
        asked(world, others, "memory.delete", id=made["nodeId"])
        found = asked(world, limit, "predict", scope=MINE)
    assert WORD in [one["topic"] for one in found["topInterests"]]
