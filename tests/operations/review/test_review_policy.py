"""`review policy` and `review choose`: what waits in a scope, chosen while Vestige runs."""

from pathlib import Path
from typing import Any

import pytest

from testbed.world import World, open_world
from vestige.core.caller import Caller, Invocation
from vestige.core.errors import VestigeError
from vestige.core.models import Access
from vestige.engine.context import Call
from vestige.operations.registry.groups import registry


def status(world: World, scope: str) -> str:
    return str(world.call("smart_ingest", content=f"Bo walks in {scope}.", scope=scope)["status"])


def choose(world: World, scope: str, policy: str) -> dict[str, Any]:
    """As the user does at the command line."""
    call = Call(engine=world.app.engine, local=True)
    return registry.operations["review.choose"].call(call, {"scope": scope, "policy": policy})


def as_key(world: World, *scopes: str, **arguments: Any) -> dict[str, Any]:
    access = Access(scopes=scopes)
    caller = Caller(name="key", permissions=frozenset({"read", "write", "admin"}), access=access)
    return world.app.call_tool(Invocation(name="review", arguments=arguments, caller=caller))


def test_a_chosen_policy_decides_at_once_and_after_a_restart(tmp_path: Path) -> None:
    with open_world(tmp_path) as world:
        assert status(world, "/project/closed") == "saved"
        answer = world.call("review", action="choose", scope="/project", policy="all")
        assert (answer["scope"], answer["policy"], answer["setIn"]) == ("/project", "all", "/project")
        assert status(world, "/project/closed/deep") == "pending"
        assert status(world, "/elsewhere") == "saved"
    with open_world(tmp_path) as world:
        assert status(world, "/project/closed/deeper") == "pending"


def test_the_nearest_scope_decides_and_a_choice_replaces_a_setting(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"review.scopes": "/project=all,/project/open=off"}
    with open_world(tmp_path, **settings) as world:
        choose(world, "/project", "off")
        choose(world, "/project/open", "all")
        assert status(world, "/project/other") == "saved"
        assert status(world, "/project/open/deep") == "pending"
        shown = world.call("review", action="policy", scope="/project/open/deep")
        assert (shown["policy"], shown["setIn"]) == ("all", "/project/open")
        assert shown["policies"] == [
            {"scope": "/", "policy": "low_trust", "chosen": False},
            {"scope": "/project", "policy": "off", "chosen": True},
            {"scope": "/project/open", "policy": "all", "chosen": True},
        ]


def test_the_default_lets_the_settings_decide_again(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"review.scopes": "/project=all"}
    with open_world(tmp_path, **settings) as world:
        choose(world, "/project", "off")
        assert status(world, "/project/one") == "saved"
        assert choose(world, "/project", "default")["policy"] == "all"
        assert status(world, "/project/two") == "pending"


def test_an_agent_lets_more_texts_wait_but_not_fewer(world: World) -> None:
    world.call("review", action="choose", scope="/project", policy="all")
    for policy in ("low_trust", "off", "default"):
        with pytest.raises(VestigeError, match="must not let fewer texts wait") as refused:
            world.call("review", action="choose", scope="/project", policy=policy)
        assert "vestige review choose /project" in (refused.value.hint or "")
    assert status(world, "/project/closed") == "pending"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"scope": "/project", "policy": "some"}, "policy"),
        ({"scope": "/a/../b", "policy": "all"}, "not a plain path"),
        ({"scope": " ", "policy": "all"}, "scope"),
        ({"scope": "/project"}, "policy"),
    ],
)
def test_a_scope_or_policy_that_is_none_is_refused(world: World, given: dict[str, str], message: str) -> None:
    with pytest.raises(VestigeError, match=message):
        world.call("review", action="choose", **given)


def test_a_key_sees_and_chooses_only_policies_of_its_scopes_and_of_those_above(world: World) -> None:
    choose(world, "/theirs", "all")
    choose(world, "/", "all")
    as_key(world, "/mine", action="choose", scope="/mine/deep", policy="all")
    shown = as_key(world, "/mine", action="policy", scope="/mine")
    assert [one["scope"] for one in shown["policies"]] == ["/", "/mine/deep"]
    for action, more in (("policy", {}), ("choose", {"policy": "all"})):
        with pytest.raises(VestigeError, match="no access to /theirs"):
            as_key(world, "/mine", action=action, scope="/theirs", **more)


def test_a_choice_does_not_leave_its_store(world: World) -> None:
    choose(world, "/project", "all")
    world.remember("Ada drinks tea.")
    sent = str(list(world.app.engine.store.histories(access=Access())))
    assert "Ada drinks tea." in sent
    assert "review_policy" not in sent


def test_a_key_for_a_domain_sees_the_policies_above_the_scope_it_names_only(tmp_path: Path) -> None:
    with open_world(tmp_path) as world:
        choose(world, "/project/secret-plan", "all")
        choose(world, "/project/mine", "all")
        for scopes in (None, ("/project",)):
            access = Access(scopes=scopes, domains=("home",))
            caller = Caller(name="key", permissions=frozenset({"read"}), access=access)
            arguments = {"action": "policy", "scope": "/project/mine"}
            shown = world.app.call_tool(Invocation(name="review", arguments=arguments, caller=caller))
            assert [one["scope"] for one in shown["policies"]] == ["/", "/project/mine"]
            assert shown["setIn"] == "/project/mine"
