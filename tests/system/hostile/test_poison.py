"""What a store could poison another with: it is refused at the door, and cured where it is already inside."""

import gzip
import json
import os
import subprocess
import sys
import tracemalloc
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from testbed.world import START, HandClock, World, open_world
from tests.conftest import BACKENDS, POSTGRES, store_of
from tests.system.hostile.mutations import AFTERWARDS, Elsewhere, Lines, fill, full_lines, sealed
from vestige.core.clock import LAST_READING, tick
from vestige.core.documents import BODIES, LOCAL, Document
from vestige.core.errors import InvalidInput, VestigeError
from vestige.core.models import EVERYTHING
from vestige.engine.context import Call
from vestige.exchange.portable.file import MAX_LINE_BYTES
from vestige.operations.registry.groups import registry
from vestige.store.contract.changes import CREATED, Put
from vestige.store.merge.absorb import PAYLOADS
from vestige.store.merge.forks import named_by_content
from vestige.store.merge.histories import MemoryHistory
from vestige.store.merge.union import NEEDED

MEBIBYTE = 1024 * 1024


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Lines:
    return full_lines(tmp_path_factory.mktemp("full"))


@contextmanager
def opened(request: pytest.FixtureRequest, folder: Path) -> Iterator[World]:
    with (
        store_of(request) as settings,
        open_world(folder / "data", clock=HandClock(AFTERWARDS), **settings) as world,
    ):
        yield world


@pytest.fixture(params=[*BACKENDS, POSTGRES])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """A store of each kind that is offered something."""
    with opened(request, tmp_path) as one:
        yield one


@pytest.fixture(params=["sqlite", POSTGRES])
def full(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """A store with everything in it, in which something can be planted."""
    with opened(request, tmp_path) as one:
        one.clock.now = START
        fill(one)
        yield one


def run(world: World, name: str, **arguments: Any) -> dict[str, Any]:
    return registry.operations[name].call(Call(engine=world.app.engine, local=True), arguments)


def refused(world: World, path: Path, lines: Lines) -> str:
    """Why a file is not imported."""
    path.write_bytes(sealed(lines, zipped=False))
    with pytest.raises(InvalidInput) as caught:
        run(world, "import", path=str(path))
    assert run(world, "memory.list")["total"] == 0
    return caught.value.message


def plant(world: World, sql: str, *values: Any) -> None:
    """Write a row past all checks, as a version did that had none."""
    connections: Any = world.app.engine.store._connections  # type: ignore[attr-defined]  # of both databases
    connections.written(lambda db: db.execute(sql, values) and None)


def work(world: World) -> None:
    """What crashed: each works, and none is refused."""
    memory_id = world.remember("The tea house opens at ten.")
    run(world, "memory.get", id=memory_id)
    run(world, "search", query="deploy script")
    run(world, "session_context", queries=["deploy"])
    run(world, "predict")
    run(world, "dream", memory_count=5)
    run(world, "consolidate")
    run(world, "memory_changelog", limit=50)
    run(world, "intention.list")
    run(world, "insights.list")
    run(world, "insights.runs")
    run(world, "archive.list")
    world.app.settle()
    assert world.app.autopilot.status().failed == 0


def findings(world: World, *, repair: bool = False) -> dict[str, bool]:
    """The checks that found something, each with whether it was repaired."""
    found = run(world, "doctor", repair=repair)["findings"]
    return {one["check"]: one["repaired"] for one in found if one["check"] not in ("model", "backup")}


def altered(lines: Lines, kind: str, **changed: Any) -> Lines:
    """The lines with other fields in the last event of the first line of a type."""
    number = next(at for at, one in enumerate(lines) if one.get("type") == kind)
    *events, last = lines[number]["events"]
    return [
        *lines[:number],
        {**lines[number], "events": [*events, {**last, **changed}]},
        *lines[number + 1 :],
    ]


# -- The curve


@pytest.mark.parametrize("w20", [1e308, 5e-324, -1.0, 0, 2.5, "0.2", None, True])
def test_a_curve_out_of_range_is_refused_and_named(
    world: World, lines: Lines, tmp_path: Path, w20: object
) -> None:
    why = refused(world, tmp_path / "file", altered(lines, "curve", payload={"w20": w20}))
    assert "Line 2" in why
    assert "w20" in why


def test_a_curve_out_of_range_that_is_inside_does_no_harm_and_is_cured(full: World) -> None:
    plant(
        full,
        "INSERT INTO events (position, node, seq, clock, at, kind, memory_id, scope, payload)"
        " SELECT max(position) + 1, 'other', 1, max(clock), max(at), 'curve.tuned', NULL, '/', ? FROM events",
        '{"w20": 1e308}',
    )
    plant(full, "UPDATE curve SET w20 = ?", 1e308)
    work(full)
    assert "events" in findings(full)
    assert findings(full, repair=True)["events"]
    assert all(findings(full, repair=True).values())
    assert findings(full) == {}
    work(full)


# -- Clocks


def test_a_clock_that_is_more_than_a_day_ahead_is_refused_and_named(
    world: World, lines: Lines, tmp_path: Path
) -> None:
    path = tmp_path / "file"
    assert "more than a day ahead" in refused(world, path, altered(lines, "memory", clock=LAST_READING))
    soon = tick(0, AFTERWARDS + timedelta(days=1, minutes=1))
    assert "2027-04-10" in refused(world, path, altered(lines, "memory", clock=soon))
    (tmp_path / "other").write_bytes(
        sealed(altered(lines, "memory", clock=tick(0, AFTERWARDS + timedelta(hours=23))), zipped=False)
    )
    run(world, "import", path=str(tmp_path / "other"))
    assert findings(world) == {}


def test_a_clock_that_is_ahead_and_inside_is_found_and_set_back(full: World, tmp_path: Path) -> None:
    plant(full, "UPDATE clock SET reading = ?", LAST_READING - 5)
    work(full)
    run(full, "export", path=str(tmp_path / "ahead.jsonl"), format="portable", scope="/")
    with open_world(tmp_path / "fresh", clock=HandClock(full.clock.now)) as fresh:
        with pytest.raises(InvalidInput, match="more than a day ahead"):
            run(fresh, "import", path=str(tmp_path / "ahead.jsonl"))
        assert "clock" in findings(full)
        assert findings(full, repair=True)["clock"]
        assert findings(full) == {}
        run(full, "export", path=str(tmp_path / "cured.jsonl"), format="portable", scope="/")
        run(fresh, "import", path=str(tmp_path / "cured.jsonl"))
        assert findings(fresh) == {}
    work(full)
    assert findings(full) == {}


@contextmanager
def two_stores(folder: Path) -> Iterator[tuple[World, World]]:
    """Two stores with ids of their own, on one day."""
    with (
        open_world(folder / "one", clock=HandClock()) as one,
        open_world(folder / "other", clock=Elsewhere()) as other,
    ):
        for world in (one, other):
            world.clock.now = AFTERWARDS
        yield one, other


def test_stores_that_shared_a_clock_ahead_agree_again_once_each_is_repaired(tmp_path: Path) -> None:
    with two_stores(tmp_path) as (one, other):
        shared = one.remember("The tea house opens at ten.")
        plant(one, "UPDATE clock SET reading = ?", LAST_READING - 500)
        one.call("memory", action="tag", id=shared, add=["tea"])
        told = [life for batch in one.app.engine.store.histories(access=EVERYTHING) for life in batch]
        other.app.engine.store.absorb(told, access=EVERYTHING)  # as a version did that did not look
        other.call("memory", action="tag", id=shared, add=["opening"])
        one.call("memory", action="edit", id=shared, content="The tea house opens at eleven.")
        folder = tmp_path / "shared"
        assert run(one, "sync", folder=str(folder))["met"] == []
        assert [met["state"] for met in run(other, "sync", folder=str(folder))["met"]] == ["unusable"]

        for world in (one, other):
            assert findings(world, repair=True) == {"clock": True}
        run(one, "sync", folder=str(folder))  # the file of the other one is still as it was before its repair
        for world in (other, one):
            met = run(world, "sync", folder=str(folder))["met"]
            assert [peer["state"] for peer in met] == ["new"]
        for world in (one, other):
            node = world.get(shared)
            assert node["content"] == "The tea house opens at eleven."
            assert sorted(node["tags"]) == ["opening", "tea"]
            assert findings(world) == {}


def test_a_change_between_the_repairs_of_two_stores_is_the_same_in_both(tmp_path: Path) -> None:
    with two_stores(tmp_path) as (one, other):
        shared = one.remember("The tea house opens at ten.")
        plant(one, "UPDATE clock SET reading = ?", LAST_READING - 500)
        one.call("memory", action="edit", id=shared, content="The tea house opens at nine.")
        told = [life for batch in one.app.engine.store.histories(access=EVERYTHING) for life in batch]
        other.app.engine.store.absorb(told, access=EVERYTHING)  # as a version did that did not look
        folder = tmp_path / "shared"

        assert findings(one, repair=True) == {"clock": True}
        one.call("memory", action="edit", id=shared, content="The tea house opens at eleven.")
        run(one, "sync", folder=str(folder))
        assert [met["state"] for met in run(other, "sync", folder=str(folder))["met"]] == ["new"]
        assert other.get(shared)["content"] == "The tea house opens at eleven."
        assert findings(other, repair=True) == {"clock": True}
        for world in (other, one, other):
            run(world, "sync", folder=str(folder))
        for world in (one, other):
            assert world.get(shared)["content"] == "The tea house opens at eleven."
            assert findings(world) == {}
        assert log(one) == log(other)


# -- Repairs in one of two stores that share events


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[World, World]]:
    """Two stores that have met, and share a memory of the first."""
    with two_stores(tmp_path) as (one, other):
        shared = one.remember("The tea house opens at ten.")
        one.call("memory", action="promote", id=shared)
        other.remember("The coffee machine is on floor two.")
        for world in (one, other, one):
            meet(world, tmp_path)
        yield one, other


def meet(world: World, folder: Path) -> None:
    done = run(world, "sync", folder=str(folder / "shared"))
    assert [done["forks"], [peer["state"] for peer in done["met"] if peer["state"] == "unusable"]] == [[], []]


def log(world: World) -> list[Any]:
    return sorted(
        (event.node, event.seq, event.clock, event.kind, event.memory_id, sorted(event.payload.items()))
        for event in world.app.engine.store.log(access=EVERYTHING)
    )


def cured(world: World, check: str) -> None:
    found = findings(world, repair=True)
    assert found[check]
    assert all(found.values())


def repaired_one_after_the_other(pair: tuple[World, World], folder: Path, check: str) -> None:
    """The first is repaired and writes on before the other, which has its events, is repaired."""
    one, other = pair
    nodes, count = [world.app.engine.store.node for world in pair], len(log(one))
    cured(one, check)
    one.remember("Lunch is at noon on Tuesdays.")
    meet(one, folder)
    meet(other, folder)
    cured(other, check)
    for world in (other, one, other):
        meet(world, folder)
    assert [world.app.engine.store.node for world in pair] == nodes
    assert log(one) == log(other)
    assert len(log(one)) == count + 1
    assert findings(one) == findings(other) == {}


def test_a_clock_repaired_in_one_of_two_stores_makes_no_clone_of_the_other(
    pair: tuple[World, World], tmp_path: Path
) -> None:
    ahead = tick(0, AFTERWARDS + timedelta(days=3650))
    for world in pair:
        plant(
            world,
            "UPDATE events SET clock = ? + position WHERE node = ?",
            ahead,
            pair[0].app.engine.store.node,
        )
        plant(world, "UPDATE clock SET reading = ?", ahead + 1000)
    repaired_one_after_the_other(pair, tmp_path, "clock")


def spoil(world: World, node: str) -> None:
    plant(world, "UPDATE events SET payload = ? WHERE node = ? AND kind = 'memory.created'", SPOILT, node)


SPOILT = '{"weight": 7}'


def test_a_payload_reduced_in_one_of_two_stores_makes_no_clone_of_the_other(
    pair: tuple[World, World], tmp_path: Path
) -> None:
    for world in pair:
        spoil(world, pair[0].app.engine.store.node)
    repaired_one_after_the_other(pair, tmp_path, "events")


def test_what_a_repair_leaves_of_an_event_is_what_its_kind_requires() -> None:
    assert {kind: set(PAYLOADS[kind].required) for kind in NEEDED} == NEEDED


def test_an_event_that_is_here_twice_once_it_is_repaired_becomes_one(full: World) -> None:
    """As an older version left it, which took a repaired event for that of a clone."""
    run(full, "rebuild")  # assigns memories to domains, so that a repair does not
    memory_id = full.remember("The tea house opens at ten.")
    store = full.app.engine.store
    before = len(log(full))
    made = next(one for one in store.log(access=EVERYTHING, memory_id=memory_id) if one.kind == CREATED)
    good = named_by_content(replace(made, payload={})).node
    ill = named_by_content(replace(made, payload={"weight": 7})).node
    plant(full, "UPDATE events SET payload = '{}', node = ? WHERE position = ?", good, made.position)
    life = next(
        one
        for batch in store.histories(access=EVERYTHING)
        for one in batch
        if isinstance(one, MemoryHistory) and one.memory_id == memory_id
    )
    twin = replace(made, node="other", payload={}, position=0)
    store.absorb([replace(life, events=(twin,), embedded=None)], access=EVERYTHING)
    assert full.get(memory_id)["revision"] == 2
    plant(full, "UPDATE events SET payload = ?, node = ? WHERE node = 'other'", SPOILT, ill)
    cured(full, "events")
    assert findings(full) == {}
    assert len(log(full)) == before
    assert full.get(memory_id)["revision"] == 1


def test_an_invalid_event_of_the_store_itself_does_not_keep_others_from_their_repair(full: World) -> None:
    for node in (full.app.engine.store.node, "other"):
        plant(
            full,
            "INSERT INTO events (position, node, seq, clock, at, kind, memory_id, scope, payload)"
            " SELECT max(position) + 1, ?, max(seq) + 1, max(clock) + 1, max(at), 'curve.tuned', NULL, '/', ?"
            " FROM events",
            node,
            '{"w20": 1e308}',
        )
    found = run(full, "doctor", repair=True)["findings"]
    events = [
        (one["repaired"], "this store itself" in one["message"]) for one in found if one["check"] == "events"
    ]
    assert sorted(events) == [(False, True), (True, False)]
    left = [one for one in run(full, "doctor")["findings"] if one["check"] == "events"]
    assert ["this store itself" in one["message"] for one in left] == [True]


def test_a_memory_dated_in_the_far_future_does_not_set_our_clock(full: World) -> None:
    memory_id = full.remember("The tea house opens at ten.")
    plant(
        full, "UPDATE memories SET updated_at = ? WHERE id = ?", "2999-01-01T00:00:00.000000+00:00", memory_id
    )
    full.call("memory", action="tag", id=memory_id, add=["tea"])
    assert "clock" not in findings(full)


# -- Documents


@pytest.mark.parametrize("body", ["{}", '{"x": []}', "[]", '{"terms": 1, "at": 7}'])
def test_documents_of_another_shape_are_passed_over_found_and_removed(full: World, body: str) -> None:
    plant(full, "UPDATE documents SET body = ?", body)
    work(full)
    assert "documents" in findings(full)
    work(full)
    assert findings(full, repair=True)["documents"]
    assert findings(full) == {}
    work(full)


def row(vector: bytes | str) -> list[Any]:
    packed = vector if isinstance(vector, str) else b64encode(vector).decode()
    return ["infra", "Infra", ["router"], packed, 0.1, 0.1, 0.1, 3]


PROPOSED: dict[str, Any] = {"status": "pending", "parts": [], "confidence": 1.0, "seen": 2, "run": 1}
PART = {"label": "a", "terms": [], "size": 1, "exemplars": []}
UNFIT: tuple[tuple[str, dict[str, Any]], ...] = (
    ("domain_centroids", {"rows": [row("no base64")]}),
    ("domain_centroids", {"rows": [row(b"")]}),
    ("domain_centroids", {"rows": [row(b"odd")]}),
    ("domain_centroids", {"rows": [row(b"\0\x7c" * 256)]}),
    ("domain_centroids", {"rows": [row(b"\xff\xff" * 256)]}),
    ("domain_moves", {"rows": [[]]}),
    ("domain_moves", {"rows": [["a", 1]]}),
    ("domain_moves", {"rows": [[7, ["infra"], []]]}),
    ("domain_proposal", {**PROPOSED, "kind": "merge", "targets": []}),
    ("domain_proposal", {**PROPOSED, "kind": "merge", "targets": ["infra"]}),
    ("domain_proposal", {**PROPOSED, "kind": "retire", "targets": []}),
    ("domain_proposal", {**PROPOSED, "kind": "split", "targets": ["infra", "home"], "parts": [PART]}),
    ("domain_proposal", {**PROPOSED, "kind": "split", "targets": ["infra"]}),
)
"""Bodies of documents of domains whose values do not fit together."""


@pytest.mark.parametrize(("kind", "body"), UNFIT)
def test_documents_of_domains_that_do_not_fit_do_no_harm_and_are_cured(
    full: World, kind: str, body: dict[str, Any]
) -> None:
    profile = full.app.engine.store.signature().profile  # type: ignore[union-attr]  # it has vectors
    name = "unfit/undo/0000" if kind == "domain_moves" else "unfit"
    at: Any = {"created_at": full.clock.now, "updated_at": full.clock.now}
    fit: dict[str, Any] = {
        "domain_centroids": {"profile": profile, "rows": []},
        "domain_moves": {"rows": []},
        "domain_proposal": {**PROPOSED, "kind": "retire", "targets": ["infra"]},
    }
    accepted = {**PROPOSED, "kind": "retire", "targets": ["infra"], "status": "accepted"}
    documents = [Document(kind=kind, id=name, body=fit[kind], **at)]
    if kind == "domain_moves":
        documents.append(Document(kind="domain_proposal", id="unfit", body=accepted, **at))
    full.app.engine.store.commit([Put(document=one) for one in documents], access=EVERYTHING)
    planted = json.dumps(body if kind != "domain_centroids" else {"profile": profile, **body})
    plant(full, "UPDATE documents SET body = ? WHERE kind = ? AND id = ?", planted, kind, name)
    for _ in range(2):
        work(full)
        for action in ("list", "map", "proposals"):
            run(full, f"domains.{action}")
        run(full, "domains.explain", id=full.remember("The router is in the attic."))
        for action in ("accept", "undo", "reject"):
            with suppress(VestigeError):
                run(full, f"domains.{action}", proposal="unfit")
        if "documents" in findings(full):
            cured(full, "documents")
    assert findings(full) == {}


def test_a_centroid_of_another_length_is_passed_over(full: World) -> None:
    profile = full.app.engine.store.signature().profile  # type: ignore[union-attr]  # it has vectors
    rows = [row(bytes(4)), ["home", *row(bytes(6))[1:]]]
    document = Document(
        kind="domain_centroids",
        id="short",
        body={"profile": profile, "rows": rows},
        created_at=full.clock.now,
        updated_at=full.clock.now,
    )
    full.app.engine.store.commit([Put(document=document)], access=EVERYTHING)
    work(full)
    run(full, "domains.map")
    run(full, "domains.explain", id=full.remember("The router is in the attic."))


def test_every_kind_of_document_that_a_store_makes_has_a_schema(lines: Lines) -> None:
    made = {one["kind"] for one in lines if one.get("type") == "document"}
    assert made <= BODIES.keys()
    assert BODIES.keys() >= LOCAL
    assert len(made) > 12


def test_a_document_of_another_shape_is_refused_and_named(world: World, lines: Lines, tmp_path: Path) -> None:
    for number, one in enumerate(lines):
        if "put" in one and one["put"]["body"]:
            changed = {**one, "put": {**one["put"], "body": {name: [None] for name in one["put"]["body"]}}}
            why = refused(world, tmp_path / "file", [*lines[:number], changed, *lines[number + 1 :]])
            assert one["kind"] in why


# -- Packed files


def test_a_packed_file_takes_no_more_memory_than_its_size_allows(world: World, tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    bomb = folder / "other.vestige.jsonl.gz"
    first = b'{"format":"vestige.portable.v1","vectors":null}\n'
    bomb.write_bytes(
        gzip.compress(first + b'{"type":"memory","id":[' + b"[],[{}]," * 31_000_000 + b"1]}\n", 9)
    )
    assert 200_000 < bomb.stat().st_size < 1_000_000
    tracemalloc.start()
    try:
        (met,) = run(world, "sync", folder=str(folder))["met"]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert met["state"] == "unusable"
    assert "unpacks to more than" in met["reason"]
    assert peak < 256 * MEBIBYTE


READ = """
import sys
from pathlib import Path
from vestige.core.errors import InvalidInput
from vestige.exchange.portable.file import PortableReader, unpacked
def now(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field))
file = Path(sys.argv[1])
Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew: a child begins with that of its parent
before = now("VmRSS:")
with file.open("rb") as raw, unpacked(raw) as readable:
    try:
        next(PortableReader(readable, file.stat().st_size).histories())
    except InvalidInput as exc:
        assert "`created_at` is missing" in exc.message, exc.message
print((now("VmHWM:") - before) // 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the peak has another unit, or is not known")
def test_the_longest_line_takes_less_than_half_the_memory_of_a_container(tmp_path: Path) -> None:
    """Each text has one character that makes Python store all of it in four bytes a character."""
    text = b'{"content":"' + b"x" * 999_000 + "🫖".encode() + b'"},'
    file = tmp_path / "file"
    with file.open("wb") as written:
        written.write(
            b'{"format":"vestige.portable.v1","vectors":null}\n{"type":"memory","id":"a","versions":['
        )
        for _ in range(MAX_LINE_BYTES // len(text) - 1):
            written.write(text)
        written.write(b'{}],"events":[]}\n')
    done = subprocess.run(
        [sys.executable, "-c", READ, str(file)], capture_output=True, check=True, timeout=300
    )
    file.unlink()
    assert 500 < int(done.stdout) < 850  # MB; the containers that we ship have 2 GB


def test_a_line_of_too_many_values_is_refused_before_it_is_read(world: World, tmp_path: Path) -> None:
    first = b'{"format":"vestige.portable.v1","vectors":null}\n'
    (tmp_path / "file").write_bytes(first + b'{"type":"memory","id":[' + b"[]," * 3_000_000 + b"1]}\n")
    with pytest.raises(InvalidInput, match=r"Line 2 .* values"):
        run(world, "import", path=str(tmp_path / "file"))


def test_a_refused_file_is_read_again_only_when_it_has_changed(
    world: World, lines: Lines, tmp_path: Path
) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    file = folder / "other.vestige.jsonl.gz"
    good = sealed(lines, zipped=True)
    file.write_bytes(good[:-8] + bytes(8))
    about = file.stat()

    def met() -> tuple[str, str | None]:
        (one,) = run(world, "sync", folder=str(folder))["met"]
        return one["state"], one.get("reason")

    first = met()
    assert first[0] == "unusable"
    file.write_bytes(good)  # the same size, and then the same time: who reads it would see that it is good
    os.utime(file, ns=(about.st_atime_ns, about.st_mtime_ns))
    assert met() == first
    os.utime(file, ns=(about.st_atime_ns, about.st_mtime_ns + 1))
    assert met()[0] == "new"
    assert met()[0] == "known"


def test_a_refused_file_is_tried_again_after_a_day(world: World, lines: Lines, tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    ahead = tick(0, AFTERWARDS + timedelta(days=1, hours=2))
    (folder / "other.vestige.jsonl.gz").write_bytes(
        sealed(altered(lines, "memory", clock=ahead), zipped=True)
    )
    assert run(world, "sync", folder=str(folder))["met"][0]["state"] == "unusable"
    world.clock.advance(hours=23)
    assert run(world, "sync", folder=str(folder))["met"][0]["state"] == "unusable"
    world.clock.advance(hours=2)
    assert run(world, "sync", folder=str(folder))["met"][0]["state"] == "new"


# -- Times at the ends of the calendar

ENDS = ("0001-01-01", "9999-12-31", "9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59-12:00")


@pytest.mark.parametrize("name", ["start", "end", "as_of", "known_at"])
def test_the_timeline_answers_or_refuses_for_times_at_the_ends_of_the_calendar(
    world: World, name: str
) -> None:
    world.remember("The tea house opens at ten.", valid_until="9999-12-31")
    for moment in ENDS:
        try:
            assert run(world, "memory_timeline", **{name: moment})["shown"] <= 1
        except InvalidInput as exc:
            assert exc.message  # noqa: PT017  # either is right; anything else is a crash
