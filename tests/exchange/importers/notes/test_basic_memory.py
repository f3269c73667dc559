"""Notes of basic-memory: prose, observations and relations each find their form."""

from pathlib import Path

from testbed.world import World
from tests.exchange.importers.imports import DATA, imported, nodes, reasons
from vestige.core.models import EVERYTHING

GRINDER = "Burr grinder: About eighty euros"
REQUIRES = "Pour over requires Burr grinder"


def test_observations_and_relations_name_their_note(world: World) -> None:
    done = imported(world, DATA / "basic-memory")

    found = nodes(world)
    assert set(found) == {
        "Pour over\n\nA slow way to brew one cup.",
        "Pour over: Water at 93 degrees works best #temperature",
        "Pour over: Rinse the paper first",
        REQUIRES,
        "Pour over relates to Espresso",
        GRINDER,
    }
    water = found["Pour over: Water at 93 degrees works best #temperature"]
    assert water["tags"] == ["coffee", "brewing", "method", "temperature"]
    assert water["metadata"]["imported"] == {"context": "tried on Monday"}
    assert water["metadata"]["front_matter"]["permalink"] == "brewing/pour-over"
    assert (water["source"], water["createdAt"][:10]) == ("brewing/pour-over.md", "2026-01-20")
    assert reasons(done) == {("connection", "the note it leads to is not in the folder"): 1}


def test_a_relation_is_linked_to_both_notes(world: World) -> None:
    imported(world, DATA / "basic-memory")

    texts = {node["id"]: text for text, node in nodes(world).items()}
    edges = world.app.engine.store.edges(list(texts), access=EVERYTHING)
    ends = {texts[one.target_id] for one in edges if texts[one.source_id] == REQUIRES}
    assert ends == {"Pour over\n\nA slow way to brew one cup.", GRINDER}


def test_tasks_and_links_in_lists_are_prose(world: World, tmp_path: Path) -> None:
    body = "- [ ] buy a scale\n- [x] clean\n- [site](https://example.org) is good\n- a [[b]] in words\n"
    note = f"---\ntitle: List\ntype: note\npermalink: list\n---\n{body}"
    (tmp_path / "list.md").write_text(note, encoding="utf-8")

    done = imported(world, tmp_path)

    assert (done["format"], set(nodes(world))) == ("basic-memory", {f"List\n\n{body.strip()}"})
