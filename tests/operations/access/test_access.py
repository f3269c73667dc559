"""Nobody hears of, or changes, what is out of his reach: every operation, in every form it is asked in.

The operations come from the registry, so a new one is held to this as soon as it is there.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, Self

import pytest

from testbed.failures import Failures
from testbed.fresh_databases import fresh_databases
from testbed.planting import Planting
from testbed.world import START, HandClock, World, on_postgres
from tests.operations.access.access_world import (
    CANARY,
    DOMAIN,
    EXAMPLE_TEXT,
    LIMITS,
    MINE,
    MOVED_ID,
    SUPERSEDED_ID,
    WORDS,
    Answer,
    Limit,
    asked,
    beyond,
    options,
    reach_world,
    told_of,
    written_of,
)
from vestige.core.caller import LOCAL_USER, PERMISSIONS, Caller, Invocation
from vestige.core.errors import VestigeError
from vestige.core.models import ANYTHING, EVERYTHING, Access, Memory
from vestige.operations.memory.read import EXAMPLE_ID
from vestige.operations.registry.groups import registry
from vestige.operations.registry.registry import Operation

OUT = f"{CANARY}000000000000"
OUTSIDE = (OUT, f"{CANARY}0000000000ff", f"{CANARY}00000000001a", f"{CANARY}00000000001c")
"""A memory, a deleted one, an insight, an intention."""
UNKNOWN = "01890000-0000-7000-8000-00000000dead"
LONG_AGO = START.isoformat()

WAYS: Mapping[str, tuple[Any, ...]] = {
    "scope": ("/", "/project", "/project/canaryscope", "/project/mine-canaryscope", "/user"),
    "tags": (["canarytag"], ["preference"]),
    "tags_all": (["canarytag"],),
    "add": (["canarytag"],),
    "tag": ("canarytag",),
    "domains": ([DOMAIN], ["canarydomain"], [DOMAIN, "canarydomain"]),
    "source": ("canarysource",),
    "author": ("canaryauthor",),
    "thread": ("canarythread",),
    "session_id": ("canarysession",),
    "include_types": (["pattern"],),
    "query": ("canarycontent canaryrival", "canarysource", OUT, "the deploy on Monday"),
    "queries": (["canarycontent", "harbour database"],),
    "topic": ("TypeScript", "canaryrival"),
    "content": (EXAMPLE_TEXT, f"{EXAMPLE_TEXT} canarycontent", "Ada does not prefer TypeScript any more."),
    "items": ([{"content": EXAMPLE_TEXT, "domains": [DOMAIN]}, {"content": "canarycontent"}],),
    "context": ({"topics": ["canarytag"], "codebase": "canarycodebase", "file": "canaryfile.py"},),
    "context_topics": (["canarytag"],),
    "context_session": ("canarysession",),
    "context_codebase": ("canarycodebase",),
    "context_file": ("canaryfile.py",),
    "codebase": ("canarycodebase", "shop"),
    "project": ("canarycodebase",),
    "known_at": (LONG_AGO,),
    "as_of": (LONG_AGO,),
    "start": (LONG_AGO,),
    "include_suppressed": (True,),
    "include_expired": (True,),
    "limit": (100,),
    "max_nodes": (200,),
    "memory_count": (1000,),
    "min_similarity": (0.0,),
    "similarity_threshold": (0.5,),
    "min_confidence": (0.0,),
    "detail_level": ("full",),
    "retrieval_mode": ("exhaustive",),
    "all": (True,),
    "filter_status": ("all",),
    "format": ("portable", "json", "mermaid", "dot", "svg"),
    "vectors": (True,),
    "dry_run": (False,),
    "even_most": (True,),
    "even_pinned": (True,),
    "with_merges": (True,),
    "with_parts": (True,),
    "even_changed": (True,),
    "reverse": (True,),
    "order": ("oldest", "due", "retention"),
    "kind": ("dream", "consolidation"),
    "id": (MOVED_ID, SUPERSEDED_ID),
    "ids": ([MOVED_ID, SUPERSEDED_ID, EXAMPLE_ID],),
    "memory_id": (EXAMPLE_ID, MOVED_ID, SUPERSEDED_ID),
    "center_id": (EXAMPLE_ID, MOVED_ID),
    "from": (EXAMPLE_ID, MOVED_ID),
    "to": (EXAMPLE_ID,),
    "target": (MOVED_ID,),
}
"""Other ways to ask, by the name of an argument."""

TOGETHER: Mapping[str, tuple[Answer, ...]] = {
    "gc": ({"dry_run": False, "min_retention": 1.0, "max_age_days": 1, "even_most": True, "scope": "/"},),
    "search": (
        {"query": "TypeScript", "scope": "/", "include_suppressed": True, "include_expired": True},
        {"query": "deploy Monday", "scope": "/", "known_at": LONG_AGO},
        {"query": "TypeScript", "scope": "/", "detail_level": "full", "explain": True, "limit": 100},
    ),
    "memory.list": ({"scope": "/", "limit": 200, "detail_level": "full", "order": "retention"},),
    "memory_timeline": ({"scope": "/", "known_at": LONG_AGO, "start": "2020-01-01"},),
    "memory_changelog": ({"scope": "/", "limit": 100},),
    "memory_graph": ({"scope": "/", "max_nodes": 200, "depth": 4, "query": "TypeScript"},),
    "find_duplicates": ({"scope": "/", "similarity_threshold": 0.5, "limit": 100},),
    "export": (
        {"format": "portable", "scope": "/", "vectors": True},
        {"format": "jsonl", "scope": "/", "known_at": LONG_AGO},
    ),
    "codebase.get_context": ({"scope": "/", "codebase": "shop", "limit": 50},),
    "deep_reference": ({"query": "TypeScript or JavaScript?", "scope": "/", "depth": 50},),
    "smart_ingest": (
        {"content": "Ada never prefers TypeScript over JavaScript.", "scope": MINE, "domains": [DOMAIN]},
        {"content": EXAMPLE_TEXT, "scope": "/", "domains": [DOMAIN]},
        {"content": "Bo swims.", "source": "canarysource", "position": 1, "domains": [DOMAIN]},
        {"content": "Bo swims.", "thread": "canarythread", "position": 1, "domains": [DOMAIN]},
    ),
}
"""Arguments that only do harm together."""

NAMES = ("id", "ids", "target", "from", "to", "memory_id", "center_id")
"""Arguments that name a memory, an intention or an insight."""


def ways(operation: Operation) -> Iterator[Answer]:
    """The arguments to try: the example, each other way to ask, and what is worth trying together."""
    yield dict(operation.example)
    for name in operation.arguments.model_fields:
        for value in WAYS.get(name, ()):
            yield {**operation.example, name: value}
    yield from TOGETHER.get(operation.name, ())


class Worlds:
    """Worlds with canaries, planted alike. One in which nothing was changed is used again."""

    def __init__(self, folder: Path, limit: Limit, *, canaries: bool = True) -> None:
        self._folder, self._limit, self._canaries = folder, limit, canaries
        self._numbers = count()
        self._open = ExitStack()
        self._world: World | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.end()

    def world(self) -> World:
        """The one that nothing has changed, or another one."""
        if self._world is None:
            folder = self._folder / str(next(self._numbers))
            opened = reach_world(folder, self._limit, canaries=self._canaries)
            self._world = self._open.enter_context(opened)
        return self._world

    def end(self) -> None:
        """Something was changed: the next one is new."""
        self._open.close()
        self._world = None


def folder_of(world: World) -> Path:
    return world.app.engine.settings.data_dir


@pytest.mark.slow
@pytest.mark.parametrize("limit", LIMITS.values(), ids=LIMITS)
def test_no_operation_tells_of_or_changes_what_is_out_of_reach(tmp_path: Path, limit: Limit) -> None:
    """Those that only read share a world, those that strengthen what they read one for each operation."""
    failures = Failures()
    with Worlds(tmp_path, limit) as worlds:
        for operation in sorted(registry.operations.values(), key=lambda one: one.effect != "none"):
            for arguments in ways(operation):
                with failures.case(f"{operation.name} {arguments}"):
                    world = worlds.world()
                    before = beyond(world, limit)
                    answer = asked(world, operation, arguments, limit.caller())
                    assert told_of(answer, arguments) == []
                    assert written_of(folder_of(world)) == []
                    world.app.settle()  # what reacts to it keeps to the same reach
                    assert world.app.autopilot.status().failed == 0
                    assert beyond(world, limit) == before
                if operation.effect in ("write", "delete"):
                    worlds.end()
            if operation.effect != "none":
                worlds.end()
    failures.check()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("backend", "limit"),
    [
        *(("sqlite", limit) for limit in LIMITS.values()),
        ("postgres", LIMITS["both"]),  # what one limit alone does there, the contract of stores says
        pytest.param("postgres", LIMITS["scopes"], marks=pytest.mark.nightly),
        pytest.param("postgres", LIMITS["domains"], marks=pytest.mark.nightly),
    ],
)
def test_nor_does_any_of_them_on_another_kind_of_store(
    tmp_path: Path, request: pytest.FixtureRequest, backend: str, limit: Limit
) -> None:
    failures, clock = Failures(), HandClock()
    settings = {"storage.backend": "sqlite"}
    with reach_world(tmp_path / "planted", limit, settings=settings, clock=clock):
        pass
    planting = Planting(folder=tmp_path / "planted", clock=clock, settings=options(settings))
    with planted_stores(request, backend, limit, tmp_path) as stores:
        for name, operation in registry.operations.items():
            with (
                failures.case(name),
                stores() as settings,
                planting.copied(tmp_path / name, settings) as world,
            ):
                before = beyond(world, limit)
                tried: list[Answer] = []
                for arguments in reversed(list(ways(operation))):
                    tried.append(arguments)  # what was written is there from then on
                    answer = asked(world, operation, arguments, limit.caller())
                    assert told_of(answer, {"tried": tried}) == [], arguments
                assert written_of(tmp_path / name) == []
                assert beyond(world, limit) == before
    failures.check()


@contextmanager
def planted_stores(
    request: pytest.FixtureRequest, backend: str, limit: Limit, folder: Path
) -> Iterator[Callable[[], AbstractContextManager[Answer]]]:
    """Gives the settings of a planted store elsewhere, again and again; none where its file is copied."""
    if backend != "postgres":
        yield lambda: nullcontext({})
        return

    def prepare(url: str) -> None:
        with reach_world(folder / "template", limit, settings=on_postgres(url)):
            pass

    with fresh_databases(request.getfixturevalue("postgres_server"), prepare) as databases:

        @contextmanager
        def taken() -> Iterator[Answer]:
            url = databases.take()
            yield on_postgres(url)
            databases.give_back(url)

        yield taken


@pytest.mark.parametrize("limit", LIMITS.values(), ids=LIMITS)
def test_who_reaches_everything_is_told_of_every_canary(tmp_path: Path, limit: Limit) -> None:
    whole = replace(LOCAL_USER, scope=MINE)
    told: set[str] = set()
    with reach_world(tmp_path, limit) as world:
        for operation in registry.operations.values():
            if operation.effect == "none":
                for arguments in ways(operation):
                    told.update(told_of(asked(world, operation, arguments, whole), arguments))
    unplanted = {"canarydomain"} if limit.access.domains is None else set()
    unplanted |= {"canaryscope"} if limit.access.scopes is None else set()
    assert set(WORDS) - told == unplanted


def named(operation: Operation, name: str, memory_id: str) -> Answer:
    """The example about something else."""
    listed = name == "ids"
    others = [EXAMPLE_ID] if listed and len(operation.example.get("ids", ())) > 1 else []
    return {**operation.example, name: [memory_id, *others] if listed else memory_id}


@pytest.mark.parametrize("limit", LIMITS.values(), ids=LIMITS)
def test_what_is_out_of_reach_is_refused_like_what_does_not_exist(tmp_path: Path, limit: Limit) -> None:
    failures = Failures()
    with Worlds(tmp_path, limit) as worlds:
        for operation in registry.operations.values():
            for argument in NAMES:
                if argument in operation.arguments.model_fields:
                    with failures.case(f"{operation.name} {argument}"):
                        told = {
                            told_instead(worlds, limit, operation, argument, asked_for)
                            for asked_for in (UNKNOWN, *OUTSIDE)
                        }
                        assert len(told) == 1
    failures.check()


def told_instead(worlds: Worlds, limit: Limit, operation: Operation, argument: str, asked_for: str) -> str:
    """The answer about an id, without the id and the folder. Nothing out of reach is changed by asking."""
    world = worlds.world()
    before = beyond(world, limit)
    answer = asked(world, operation, named(operation, argument, asked_for), limit.caller())
    assert beyond(world, limit) == before
    plain = json.dumps(answer).replace(asked_for, "ID").replace(str(folder_of(world)), "")
    if "error" not in answer and operation.effect != "none":
        worlds.end()
    return plain


@pytest.mark.parametrize("limit", LIMITS.values(), ids=LIMITS)
def test_an_answer_is_the_same_whatever_there_is_out_of_reach(tmp_path: Path, limit: Limit) -> None:
    failures = Failures()
    with (
        Worlds(tmp_path / "with", limit) as crowded,
        Worlds(tmp_path / "without", limit, canaries=False) as empty,
    ):
        for name, operation in sorted(registry.operations.items(), key=lambda one: one[1].effect != "none"):
            with failures.case(name):
                answers = []
                for worlds in (crowded, empty):
                    world = worlds.world()
                    answer = asked(world, operation, operation.example, limit.caller())
                    answers.append(json.dumps(answer).replace(str(folder_of(world)), "FOLDER"))
                assert answers[0] == answers[1]
            if operation.effect != "none":
                crowded.end()
                empty.end()
    failures.check()


@pytest.mark.parametrize("limit", LIMITS.values(), ids=LIMITS)
def test_no_resource_tells_of_what_is_out_of_reach(tmp_path: Path, limit: Limit) -> None:
    with reach_world(tmp_path, limit) as world:
        for uri in [
            *registry.resources,
            "codebase://patterns?project=canarycodebase",
            f"memory://memories/{OUT}",
        ]:
            try:
                answer = world.app.read_resource(Invocation(name=uri, caller=limit.caller()))
            except VestigeError as error:
                answer = error.value()
            assert told_of(answer, {"uri": uri}) == [], uri


# -- writing ---------------------------------------------------------------------------------------------


WRITERS: Mapping[str, Answer] = {
    "smart_ingest": {"content": "Bo swims on Mondays."},
    "codebase.remember_pattern": {"name": "Guards", "description": "Check first.", "codebase": "shop"},
    "codebase.remember_decision": {"decision": "Use Rust.", "rationale": "Speed.", "codebase": "shop"},
}
"""What makes new memories, and how to make it do so."""

ONE = Caller(name="one", permissions=frozenset(PERMISSIONS), access=Access(domains=(DOMAIN,)))
SEVERAL = Caller(name="several", permissions=frozenset(PERMISSIONS), access=Access(domains=(DOMAIN, "other")))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A world with a part that is limited to domains."""
    with reach_world(tmp_path, LIMITS["domains"]) as opened:
        yield opened


def written(world: World) -> dict[str, Memory]:
    """Every memory there is."""
    records = world.app.engine.store.stream(ANYTHING, access=EVERYTHING)
    return {one.memory.id: one.memory for batch in records for one in batch}


@pytest.mark.parametrize("name", WRITERS)
def test_a_new_memory_of_a_caller_with_one_domain_belongs_to_it(world: World, name: str) -> None:
    before = written(world)
    answer = asked(world, registry.operations[name], WRITERS[name], ONE)
    (made,) = (memory for memory_id, memory in written(world).items() if memory_id not in before)
    assert made.domains == (DOMAIN,)
    assert made.id == answer["nodeId"]


@pytest.mark.parametrize("name", WRITERS)
def test_a_caller_with_several_domains_must_say_which(world: World, name: str) -> None:
    before = written(world)
    error = asked(world, registry.operations[name], WRITERS[name], SEVERAL)["error"]
    assert error["code"] == "invalid_input"
    assert error["details"]["domains"] == [DOMAIN, "other"]
    assert written(world) == before


def test_what_a_caller_says_of_domains_is_kept_where_he_reaches_it(world: World) -> None:
    ingest = registry.operations["smart_ingest"]
    told = {"content": "Bo swims on Mondays.", "domains": ["other", "elsewhere"]}
    answer = asked(world, ingest, told, SEVERAL)
    assert written(world)[answer["nodeId"]].domains == ("other", "elsewhere")
    before = written(world)
    assert asked(world, ingest, told, ONE)["error"]["code"] == "forbidden"
    assert written(world) == before


def test_of_a_batch_with_one_text_out_of_reach_nothing_is_written(world: World) -> None:
    before = written(world)
    items = [{"content": "Bo swims."}, {"content": "Bo runs.", "domains": ["elsewhere"]}]
    error = asked(world, registry.operations["smart_ingest"], {"items": items}, ONE)["error"]
    assert error["code"] == "forbidden"
    assert written(world) == before


def test_the_same_idempotency_key_of_a_caller_with_another_reach_is_another_one(world: World) -> None:
    ingest = registry.operations["smart_ingest"]
    told = {"content": f"{EXAMPLE_TEXT} canarycontent", "scope": MINE, "idempotency_key": "once"}
    whole = asked(world, ingest, told, replace(LOCAL_USER, scope=MINE))
    assert told_of(whole, {}) != []
    answer = asked(world, ingest, told, ONE)
    assert told_of(answer, told) == []
    assert not answer["replayed"]
    assert asked(world, ingest, told, ONE) == {**answer, "replayed": True}
    other = asked(world, ingest, {**told, "content": "Something else."}, SEVERAL)
    assert other["error"]["code"] == "invalid_input"  # not that the key was used before


def test_what_is_about_the_whole_store_is_closed_to_who_reaches_a_part(world: World) -> None:
    whole = [operation for operation in registry.operations.values() if operation.whole]
    assert {"backup", "import", "keys.create", "keys.list", "sync"} <= {one.name for one in whole}
    for operation in whole:
        assert asked(world, operation, operation.example, ONE)["error"]["code"] == "forbidden"
