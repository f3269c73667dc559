"""A vault comes with its links, tags and front matter; what is not a note is counted."""

from pathlib import Path

from testbed.world import World
from tests.exchange.importers.imports import imported, nodes, reasons
from vestige.core.models import EVERYTHING

HIVES = """---
title: Hives
tags: [bees]
aliases: [Beehives]
status: active
author: Lea
created: 2025-04-01
updated: 2025-05-01
---
See [[Honey|the harvest]] and [[Honey#Jars]], [a plan](plans/Spring%20plan.md), [[Nowhere]], ![[hive.png]].
#insects/flying `#code` and issue #12.

## Care

Not for [[Beehives]] alone: [[Node.js]] too.
"""


def vault(folder: Path) -> Path:
    (folder / ".obsidian").mkdir(parents=True)
    (folder / "plans").mkdir()
    for name, text in {
        "Hives.md": HIVES, "Honey.md": "Sweet.", "plans/Spring plan.md": "Sow. Back to [[hives]].",
        "Node.js.md": "A server.", "hive.png": "x", "board.canvas": "{}",
    }.items():  # fmt: skip
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_links_lead_from_a_section_to_the_beginning_of_a_note(world: World, tmp_path: Path) -> None:
    done = imported(world, vault(tmp_path / "vault"))

    found = nodes(world)
    texts = {node["id"]: text.split("\n")[0] for text, node in found.items()}
    edges = world.app.engine.store.edges(list(texts), access=EVERYTHING)
    assert done["format"] == "obsidian"
    assert {(texts[one.source_id], texts[one.target_id]) for one in edges} == {
        ("Hives", "Honey"), ("Hives", "Spring plan"), ("Hives › Care", "Hives"), ("Hives › Care", "Node.js"),
        ("Spring plan", "Hives"),
    }  # fmt: skip
    assert {one.kind for one in edges} == {"user_defined"}
    assert reasons(done) == {
        ("connection", "the note it leads to is not in the folder"): 1,
        ("connection", "it shows a file that is not a note"): 1,
        ("file", "not a note: .png"): 1,
        ("file", "not a note: .canvas"): 1,
    }


def test_tags_dates_author_and_other_front_matter_are_kept(world: World, tmp_path: Path) -> None:
    imported(world, vault(tmp_path / "vault"))

    hives = next(node for text, node in nodes(world).items() if text.startswith("Hives\n"))
    assert (hives["tags"], hives["author"]) == (["bees", "insects/flying"], "Lea")
    assert (hives["createdAt"][:10], hives["updatedAt"][:10]) == ("2025-04-01", "2025-05-01")
    assert hives["metadata"]["front_matter"] == {"aliases": ["Beehives"], "status": "active"}


def test_a_vault_that_came_as_a_plain_folder_adds_nothing(world: World, tmp_path: Path) -> None:
    folder = vault(tmp_path / "vault")
    imported(world, folder, **{"from": "markdown"})

    assert imported(world, folder)["imported"] == 0
