"""The tool `codebase`: patterns and decisions are memories, found by their codebase, on every store."""

from pathlib import Path
from typing import Any

import pytest

from testbed.world import HandClock, World, open_world
from vestige.core.errors import Forbidden
from vestige.core.models import Access
from vestige.engine.context import Call
from vestige.operations.registry.groups import registry

IN_SHOP: dict[str, Any] = {"memory.scope": "/project/acme/shop"}
CONTEXT = registry.operations["codebase.get_context"]


def pattern(world: World, name: str, description: str, codebase: str | None, **arguments: Any) -> str:
    told = {"name": name, "description": description, "codebase": codebase, **arguments}
    return str(world.call("codebase", action="remember_pattern", **told)["nodeId"])


def decision(world: World, decision: str, rationale: str, codebase: str | None, **arguments: Any) -> str:
    told = {"decision": decision, "rationale": rationale, "codebase": codebase, **arguments}
    return str(world.call("codebase", action="remember_decision", **told)["nodeId"])


def context(world: World, **arguments: Any) -> dict[str, Any]:
    return world.call("codebase", action="get_context", **arguments)


def ids(part: dict[str, Any]) -> list[str]:
    return [item["id"] for item in part["items"]]


def test_a_pattern_is_a_memory_like_any_other(world: World) -> None:
    one = pattern(world, "Thin handlers", "HTTP handlers only parse.", "shop", files=["src/web.py"])

    node = world.get(one)

    assert node["content"] == (
        "# Code Pattern: Thin handlers\n\nHTTP handlers only parse.\n\n## Files:\n- src/web.py"
    )
    assert (node["nodeType"], node["source"], node["scope"]) == ("pattern", "shop", "/")
    assert node["tags"] == ["pattern", "codebase", "codebase:shop"]
    assert world.find("what do handlers do")[0] == node["content"]


def test_a_decision_keeps_why_and_what_else_was_considered(world: World) -> None:
    one = decision(world, "Use SQLite.", "One file.", "shop", alternatives=["PostgreSQL"], files=["db.py"])

    (item,) = context(world, codebase="shop")["decisions"]["items"]

    assert (item["id"], item["title"], item["files"], item["codebase"]) == (
        one,
        "Use SQLite.",
        ["db.py"],
        "shop",
    )
    assert "## Alternatives Considered:\n- PostgreSQL" in item["content"]
    assert item["tags"] == ["decision", "architecture", "codebase", "codebase:shop"]


def test_told_again_a_note_is_strengthened_and_not_doubled(world: World) -> None:
    first = world.call("remember_pattern", name="Retry", description="Try thrice.", codebase="shop")
    again = world.call("remember_pattern", name="Retry", description="Try thrice.", codebase="shop")

    assert (first["decision"], again["decision"], again["nodeId"]) == ("create", "reinforce", first["nodeId"])
    assert again["action"] == "remember_pattern"
    assert context(world, codebase="shop")["patterns"]["count"] == 1


def test_the_context_has_the_best_kept_first_then_the_newest_and_only_what_holds(world: World) -> None:
    old = pattern(world, "Alpha rule", "Sort imports by length.", "shop")
    world.clock.advance(days=20)
    new = pattern(world, "Beta rule", "Name tests as sentences.", "shop")
    newer = pattern(world, "Gamma rule", "Never mock your own code.", "shop")
    ended = pattern(world, "Delta rule", "Use tabs in makefiles.", "shop")
    world.call("memory", action="set_validity", id=ended, valid_until="2026-03-10")
    pattern(world, "Epsilon rule", "Elsewhere things differ.", "web")

    shown = context(world, codebase="shop")

    assert ids(shown["patterns"]) == [newer, new, old]
    limited = context(world, codebase="shop", limit=1)["patterns"]
    assert (limited["count"], ids(limited)) == (3, [newer])


def test_a_pattern_that_another_codebase_has_too_is_shown_with_its_codebase(world: World) -> None:
    pattern(world, "Thin handlers", "They only parse the request.", "shop")
    other = pattern(world, "Thin handlers", "Nothing but calling services.", "web")

    (item,) = context(world, codebase="shop")["crossProject"]["items"]

    assert (item["id"], item["codebases"], item["similarity"]) == (other, ["web"], 1.0)
    assert item["codebase"] == "web"


def test_a_new_codebase_is_shown_what_several_others_have(world: World) -> None:
    for codebase, how in (("web", "three times"), ("app", "until it works"), ("app", "with jitter")):
        pattern(world, "Retry remote calls", f"Requests are sent again {how}.", codebase)
    pattern(world, "Fat models", "Everything lives in the model class.", "web")

    shown = context(world, codebase="shop")

    assert shown["patterns"]["count"] == 0
    (item,) = shown["crossProject"]["items"]
    assert item["title"] == "Retry remote calls"
    assert set(item["codebases"]) == {"web", "app"}
    assert "similarity" not in item


def test_other_codebases_are_shown_only_within_the_callers_reach(world: World) -> None:
    pattern(world, "Thin handlers", "They only parse.", "shop", scope="/project/shop")
    pattern(world, "Thin handlers", "Nothing but calls.", "web", scope="/project/web")
    call = Call(engine=world.app.engine, access=Access(scopes=("/project/shop",)), scope="/project/shop")

    assert context(world, codebase="shop")["crossProject"]["count"] == 1
    assert CONTEXT.call(call, {})["crossProject"]["count"] == 0
    with pytest.raises(Forbidden):
        registry.operations["codebase.remember_pattern"].call(
            call, {"name": "A", "description": "b", "scope": "/project/web"}
        )


def test_the_codebase_is_the_callers_own_unless_it_is_named(tmp_path: Path) -> None:
    with open_world(tmp_path, **IN_SHOP) as world:
        own = pattern(world, "Thin handlers", "They only parse.", None)
        pattern(world, "Fat models", "All in the model.", None, scope="/project/acme/web")

        shown = context(world)

        assert (shown["codebase"], shown["scope"]) == ("shop", "/project/acme/shop")
        assert ids(shown["patterns"]) == [own]
        assert world.get(own)["scope"] == "/project/acme/shop"
        assert context(world, scope="/project/acme/web")["codebase"] == "web"


def test_outside_a_project_all_codebases_are_shown_and_a_note_may_name_none(world: World) -> None:
    mine = pattern(world, "Thin handlers", "They only parse.", "shop")
    nobodys = pattern(world, "Small commits", "One idea each.", None)

    shown = context(world)

    assert set(ids(shown["patterns"])) == {mine, nobodys}
    assert "codebase" not in shown
    assert "source" not in world.get(nobodys)


def test_the_structure_counts_the_notes_that_name_a_file(world: World) -> None:
    pattern(world, "Thin handlers", "They only parse.", "shop", files=["web.py", "api.py"])
    decision(world, "Use SQLite.", "One file.", "shop", files=["web.py"])
    pattern(world, "Fat models", "All in the model.", "web", files=["models.py"])

    shown = world.call("codebase", action="structure", codebase="shop")

    assert shown["files"] == [
        {"path": "web.py", "patterns": 1, "decisions": 1},
        {"path": "api.py", "patterns": 1, "decisions": 0},
    ]
    assert world.call("codebase", action="structure", limit=1)["total"] == 3


@pytest.mark.parametrize("uri", ["codebase://patterns", "codebase://decisions", "codebase://structure"])
def test_resources_show_the_codebase_or_the_project_asked_for(world: World, uri: str) -> None:
    pattern(world, "Thin handlers", "They only parse.", "shop", files=["web.py"])
    decision(world, "Use SQLite.", "One file.", "web", files=["db.py"])

    operation, given = registry.match_resource(f"{uri}?project=shop")
    answer = operation.call(Call(engine=world.app.engine), given)

    assert answer["codebase"] == "shop"
    assert ("web.py" in str(answer)) is (uri != "codebase://decisions")
    assert "db.py" not in str(answer)


def test_notes_survive_a_restart(tmp_path: Path) -> None:
    clock = HandClock()
    with open_world(tmp_path, clock=clock) as world:
        pattern(world, "Thin handlers", "They only parse.", "shop", files=["web.py"])
        before = context(world, codebase="shop")
    with open_world(tmp_path, clock=clock) as world:
        assert context(world, codebase="shop") == before


@pytest.mark.slow
def test_the_same_pattern_in_other_words_is_recognised_with_the_real_model(
    real_model_dir: Path, tmp_path: Path
) -> None:
    settings: dict[str, Any] = {"embeddings.cache_dir": str(real_model_dir.parent), "offline": True}
    with open_world(tmp_path, provider="local", **settings) as world:
        assert world.app.engine.embedders.get(60) is not None
        pattern(world, "Retry with backoff", "Every remote call is retried with exponential backoff.", "shop")
        other = pattern(
            world, "Exponential backoff for requests", "Outgoing requests wait twice as long each try.", "web"
        )
        pattern(world, "Feature flags", "New behaviour ships behind a toggle.", "web")

        (item,) = context(world, codebase="shop")["crossProject"]["items"]

        assert item["id"] == other
        assert 0.5 <= item["similarity"] < 1


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"action": "remember"}, "action"),
        ({"action": "remember_pattern", "name": "A"}, "description"),
        ({"action": "remember_pattern", "name": " ", "description": "b"}, "name"),
        ({"action": "remember_pattern", "name": "A", "description": "b", "files": [""]}, "files"),
        ({"action": "remember_decision", "decision": "A", "rationale": "\n"}, "rationale"),
        ({"action": "get_context", "limit": 51}, "limit"),
        ({"action": "get_context", "codebase": "a\nb"}, "codebase"),
        ({"action": "get_context", "include": []}, "include"),
        ({"action": "get_context", "include": ["all"]}, "include"),
    ],
)
def test_bad_input_is_refused_and_nothing_is_written(
    world: World, arguments: dict[str, Any], named: str
) -> None:
    error = world.refused("codebase", **arguments)

    assert error["code"] == "invalid_input"
    assert named in f"{error['message']} {error['details']}"
    assert world.call("system_status")["totalMemories"] == 0
