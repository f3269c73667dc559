"""Notes in Markdown become a memory for each section, which can be understood alone."""

import os
import socket
from pathlib import Path
from typing import Any

import pytest

from testbed.world import START, World
from vestige.engine.context import Call
from vestige.exchange.importers.notes.markdown import MAX_SECTION_CHARS, front_matter, sections, split
from vestige.operations.registry.groups import registry

IMPORT = registry.operations["import"]
NOTE = """---
title: The garden
date: 2025-05-04
tags: [plants, "home"]
---
All about it.

# The garden

## Tomatoes ##

They need *sun*.

```
# not a heading
```

## Roses

### Red

Cut them in March.

## Empty
"""


def imported(world: World, path: Path, **arguments: Any) -> dict[str, Any]:
    return IMPORT.call(Call(engine=world.app.engine, local=True), {"path": str(path), **arguments})


def nodes(world: World) -> dict[str, dict[str, Any]]:
    listed = world.call("memory", action="list", limit=100)["results"]
    return {node["content"]: world.get(node["id"]) for node in listed}


def test_a_note_becomes_its_sections_with_title_tags_date_and_neighbours(
    world: World, tmp_path: Path
) -> None:
    (tmp_path / "garden.md").write_text(NOTE, encoding="utf-8")

    done = imported(world, tmp_path / "garden.md")

    found = nodes(world)
    assert (done["format"], done["imported"]) == ("markdown", 3)
    assert set(found) == {
        "The garden\n\nAll about it.",
        "The garden › Tomatoes\n\nThey need *sun*.\n\n```\n# not a heading\n```",
        "The garden › Roses › Red\n\nCut them in March.",
    }
    red = found["The garden › Roses › Red\n\nCut them in March."]
    assert (red["tags"], red["source"], red["thread"], red["position"]) == (
        ["plants", "home"], "garden.md", "garden.md", 3,
    )  # fmt: skip
    assert (red["createdAt"][:10], red["nodeType"]) == ("2025-05-04", "note")


def test_a_folder_is_read_with_what_is_below_it(world: World, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    (notes / "sub").mkdir(parents=True)
    (notes / ".obsidian").mkdir()
    (notes / "a.md").write_text("Alpha.", encoding="utf-8")
    (notes / "sub" / "b.markdown").write_text("Beta.", encoding="utf-8")
    (notes / ".obsidian" / "c.md").write_text("Hidden.", encoding="utf-8")
    (notes / "d.txt").write_text("No note.", encoding="utf-8")
    (notes / "empty.md").write_text("---\ntags: x\n---\n", encoding="utf-8")
    (notes / "latin.md").write_bytes("Gr\xfc\xdfe".encode("latin-1"))
    (notes / "link.md").symlink_to(notes / "a.md")
    for path in notes.rglob("*.m*"):
        os.utime(path, (START.timestamp() - 86_400, START.timestamp() - 86_400), follow_symlinks=False)

    done = imported(world, notes)

    found = nodes(world)
    assert set(found) == {"a\n\nAlpha.", "b\n\nBeta."}
    assert found["b\n\nBeta."]["source"] == "sub/b.markdown"
    assert found["b\n\nBeta."]["createdAt"][:10] == "2026-02-28"
    assert {one["place"]: one["what"] for one in done["examples"]} == {
        "empty.md": "the note has no text",
        "latin.md": "the note is not UTF-8",
        "link.md": "the note is a link to another file",
        "d.txt": "not a note: .txt",
    }
    assert imported(world, notes)["imported"] == 0


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_only_plain_files_are_opened_and_the_others_are_named(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Opening a pipe that nobody writes to would wait for ever."""
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "a.md").write_text("Alpha.", encoding="utf-8")
    os.mkfifo(notes / "pipe.md")
    with socket.socket(socket.AF_UNIX) as listening:
        monkeypatch.chdir(notes)  # the name of a socket may not be long
        listening.bind("socket.md")

        done = imported(world, notes)

    assert (done["imported"], done["left"]) == (1, 2)
    assert {one["place"]: one["what"] for one in done["examples"]} == {
        "pipe.md": "it is not a plain file",
        "socket.md": "it is not a plain file",
    }


def test_a_note_that_shows_json_is_a_note(world: World, tmp_path: Path) -> None:
    (tmp_path / "api.md").write_text('# Api\n\n```\n{"content": "x"}\n```\n', encoding="utf-8")

    assert imported(world, tmp_path / "api.md")["format"] == "markdown"


def test_a_long_section_is_taken_apart_between_paragraphs_and_nothing_is_lost() -> None:
    text = "\n\n".join([f"Paragraph {n}. " + "word " * 100 for n in range(20)] + ["x" * 5000, "One. " * 1000])

    parts = split(text)

    assert all(0 < len(part) <= MAX_SECTION_CHARS for part in parts)
    assert "".join("".join(parts).split()) == "".join(text.split())
    assert split("Short.") == ["Short."]


@pytest.mark.parametrize(
    ("head", "tags"),
    [
        ("tags: [a, 'b c']", ["a", "b c"]),
        ('tags:\n  - a\n  - "b c"', ["a", "b c"]),
        ("tags: '#a'", "a"),
        ("title: x\ntags: a, b", "a, b"),
    ],
)
def test_front_matter_is_read_as_notes_write_it(head: str, tags: object) -> None:
    found, rest = front_matter(f"---\n{head}\n---\nText.\n")

    assert (found["tags"], rest) == (tags, "Text.\n")


def test_a_rule_at_the_top_of_a_note_is_no_front_matter() -> None:
    assert front_matter("---\nJust a line") == ({}, "---\nJust a line")
    assert [one.text for one in sections("---\n\nText", "t")] == ["---\n\nText"]
