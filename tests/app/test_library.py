"""Vestige inside a program: what `Memory` and `AsyncMemory` share with everything else, and what is new."""

import asyncio
import gc
import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np  # loads the matrix library whose threads are counted
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import vestige
from testbed.patience import PATIENCE_SECONDS
from testbed.project import PROJECT
from testbed.world import HandClock
from vestige import AsyncMemory, Memory
from vestige.app.blas import BLAS, BlasThreads
from vestige.core.errors import ConfigError, Forbidden, InvalidInput, NotFound, StoreError, UnknownArgument

HASHING = {"embeddings.provider": "hashing"}
TEA = "Ada drinks tea."


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory(":memory:", settings=HASHING) as opened:
        yield opened


def test_five_words_are_enough(memory: Memory) -> None:
    made = memory.add(TEA, tags=["drink"], occurred_at=datetime(2026, 1, 2, tzinfo=UTC))
    assert [hit["id"] for hit in memory.search("What does Ada drink?")["results"]] == [made["nodeId"]]
    memory.update(made["nodeId"], "Ada drinks green tea.")
    node = memory.get(made["nodeId"])["node"]
    assert node.get("content") == "Ada drinks green tea."
    assert node.get("occurredAt") == "2026-01-02T00:00:00Z"
    assert memory.forget(made["nodeId"])["deleted"]
    with pytest.raises(NotFound):
        memory.get(made["nodeId"])


def test_what_is_stored_in_a_folder_is_there_the_next_time(tmp_path: Path) -> None:
    with Memory(tmp_path / "data", settings=HASHING) as memory:
        made = memory.add(TEA)["nodeId"]
    with Memory(str(tmp_path / "data"), settings=HASHING) as memory:
        assert memory.get(made)["node"].get("content") == TEA


def test_two_memories_may_share_a_folder(tmp_path: Path) -> None:
    with Memory(tmp_path, settings=HASHING) as one, Memory(tmp_path, settings=HASHING) as other:
        one.add(TEA)
        assert other.search("tea")["total"] == 1


def test_errors_are_the_same_as_everywhere(memory: Memory) -> None:
    with pytest.raises(NotFound) as missing:
        memory.get("gone")
    assert missing.value.details == {"id": "gone"}
    with pytest.raises(InvalidInput):
        memory.search("tea", limit=1_000)
    anything: Any = memory
    with pytest.raises(UnknownArgument):
        anything.smart_ingest(items=[{"content": TEA, "tagz": []}])
    with pytest.raises(InvalidInput, match="not JSON"):
        anything.add(TEA, metadata={"made": object()})


def test_a_memory_of_a_scope_sees_nothing_else(memory: Memory) -> None:
    ada, grace = memory.within("/user/ada"), memory.within("user/grace/")
    made = ada.add(TEA)
    grace.add("Grace drinks water.")
    assert made["scope"] == "/user/ada"
    assert [hit.get("content") for hit in ada.search("Who drinks what?")["results"]] == [TEA]
    with pytest.raises(NotFound):
        grace.get(made["nodeId"])
    with pytest.raises(Forbidden):
        ada.doctor()
    assert memory.memory.list()["total"] == 2


def test_a_memory_of_a_domain_stores_there(memory: Memory) -> None:
    drinks = memory.within(domain="drinks")
    made = drinks.add(TEA)["nodeId"]
    memory.add("The server is in Kyiv.")
    assert memory.get(made)["node"].get("domains") == ["drinks"]
    assert drinks.memory.list()["total"] == 1


def test_a_scope_that_is_no_path_is_refused_before_anything_is_opened(tmp_path: Path) -> None:
    for wrong in ("", "..", "/user/../ada"):
        with pytest.raises(InvalidInput):
            Memory(tmp_path / "data", scope=wrong, settings=HASHING)
    assert not (tmp_path / "data").exists()


def test_a_wrong_setting_and_two_stores_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        Memory(tmp_path, settings={"embedings.provider": "off"})
    with pytest.raises(ConfigError):
        Memory(":memory:", database_url="postgresql://localhost/x")


def test_the_program_may_name_any_file(tmp_path: Path) -> None:
    with Memory(tmp_path / "data", settings=HASHING) as memory:
        memory.add(TEA)
        memory.export(str(tmp_path / "all.jsonl"))
    assert TEA in (tmp_path / "all.jsonl").read_text(encoding="utf-8")


def test_many_threads_share_a_memory(tmp_path: Path) -> None:
    texts = [f"Fact {number} is about subject {number}." for number in range(24)]
    with Memory(tmp_path, settings=HASHING) as memory, ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda text: memory.add(text, force_create=True), texts))
        searched = list(pool.map(lambda text: memory.search(text, limit=1)["results"][0], texts))
        assert [hit.get("content") for hit in searched] == texts


def test_a_closed_memory_says_so_and_may_be_closed_again(memory: Memory) -> None:
    part = memory.within("/user/ada")
    memory.close()
    memory.close()
    for closed in (memory, part):
        with pytest.raises(StoreError, match="closed"):
            closed.search("tea")


def test_a_memory_that_nobody_uses_any_more_closes(tmp_path: Path) -> None:
    def threads() -> set[str]:
        return {thread.name for thread in threading.enumerate()}

    memory: Memory | None = Memory(tmp_path, settings=HASHING)
    assert "vestige-relay" in threads()
    part: Any = memory.within("/user/ada") if memory else None
    memory = None
    gc.collect()
    part.add(TEA)  # what is narrowed keeps it open
    part = None
    gc.collect()
    assert "vestige-relay" not in threads()


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks on this platform")
def test_a_fork_is_told_to_open_its_own(tmp_path: Path) -> None:
    code = (
        "import os\n"
        "from vestige import Memory\n"
        "from vestige.errors import StoreError\n"
        f"memory = Memory({str(tmp_path)!r}, settings={HASHING!r})\n"
        "child = os.fork()\n"
        "try:\n"
        f"    memory.add({TEA!r})\n"
        "except StoreError as error:\n"
        "    print(error, flush=True)\n"
        "    os._exit(0)\n"
        "os.waitpid(child, 0)\n"
        "print(memory.memory.list()['total'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.split("\n") == ["This memory was opened by another process.", "1", ""]


def test_it_leaves_the_logging_of_the_program_alone(tmp_path: Path) -> None:
    before = list(logging.getLogger().handlers), logging.getLogger().level
    with Memory(tmp_path, settings={**HASHING, "log_level": "debug"}):
        assert (logging.getLogger().handlers, logging.getLogger().level) == before


def test_the_folder_of_the_program_is_not_its_scope(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "project" / ".git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project")
    with Memory(tmp_path / "data", settings=HASHING) as memory:
        assert memory.add("The build runs on Tuesdays.")["scope"] == "/"


def test_its_clock_can_be_given() -> None:
    clock = HandClock()
    with Memory(":memory:", settings=HASHING, clock=clock.parts()) as memory:
        made = memory.add(TEA)["nodeId"]
        assert memory.get(made)["node"].get("createdAt") == "2026-03-01T09:00:00Z"


# -- awaited -------------------------------------------------------------------------------------------


def test_the_same_can_be_awaited(tmp_path: Path) -> None:
    async def used() -> list[str | None]:
        async with AsyncMemory(tmp_path, settings=HASHING) as memory:
            await asyncio.gather(*(memory.add(f"Fact {n} is about subject {n}.") for n in range(12)))
            ada = memory.within("/user/ada")
            await ada.add(TEA)
            with pytest.raises(NotFound):
                await memory.get("gone")
            return [hit.get("content") for hit in (await ada.search("tea"))["results"]]

    assert asyncio.run(used()) == [TEA]


def test_making_one_opens_nothing_and_closing_it_is_enough(tmp_path: Path) -> None:
    async def used() -> None:
        memory = AsyncMemory(tmp_path / "data", settings=HASHING)
        assert not (tmp_path / "data").exists()
        await memory.close()
        with pytest.raises(StoreError, match="closed"):
            await memory.search("tea")

    asyncio.run(used())


def test_closing_finishes_the_calls_that_were_made_before_it(tmp_path: Path) -> None:
    async def run() -> list[Any]:
        memory = AsyncMemory(tmp_path, settings=HASHING)
        calls = (memory.add(f"Shelf {n} holds tea.", force_create=True) for n in range(30))
        made = [asyncio.ensure_future(call) for call in calls]
        await asyncio.wait(made, timeout=0)  # they are under way
        await memory.close()
        with pytest.raises(StoreError, match="closed"):
            await memory.search("tea")
        return await asyncio.gather(*made, return_exceptions=True)

    answers = asyncio.run(run())

    assert [one for one in answers if isinstance(one, BaseException)] == []
    with Memory(tmp_path, settings=HASHING) as memory:
        assert memory.memory.list(limit=1)["total"] == 30


def test_a_call_that_is_cancelled_stops_its_thread() -> None:
    """The call begins, is cancelled, and only then gets to its operation."""
    started, going_on, ended = threading.Event(), threading.Event(), threading.Event()

    async def used() -> None:
        async with AsyncMemory(":memory:", settings=HASHING) as memory:
            channel: Any = memory._channel
            run = channel._channel.run

            def held(operation: str, given: Any, cancelled: Any) -> Any:
                started.set()
                going_on.wait(PATIENCE_SECONDS)
                try:
                    return run(operation, given, cancelled)
                finally:
                    if cancelled.is_set():
                        ended.set()

            channel._channel.run = held
            task = asyncio.create_task(memory.add(TEA))
            await asyncio.get_running_loop().run_in_executor(None, started.wait, PATIENCE_SECONDS)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            going_on.set()
            await asyncio.get_running_loop().run_in_executor(None, ended.wait, PATIENCE_SECONDS)
            channel._channel.run = run
            assert (await memory.memory.list())["total"] == 0

    asyncio.run(used())
    assert ended.is_set()


# -- the threads of the matrix library -----------------------------------------------------------------


def blas_threads() -> set[int]:
    assert np.eye(2).shape == (2, 2)
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


def test_the_matrix_library_has_one_thread_during_a_call_and_then_what_the_program_had(
    memory: Memory,
) -> None:
    counted: list[set[int]] = []
    channel: Any = memory._channel
    app = channel.opened.app()
    with (
        threadpool_limits(2, user_api="blas"),
        app.engine.events.listening(lambda event: counted.append(blas_threads())),
    ):
        memory.add(TEA)
        assert blas_threads() == {2}
    assert counted
    assert all(threads == {1} for threads in counted)


def test_the_last_of_several_calls_restores_the_threads_of_the_matrix_library() -> None:
    threads = BlasThreads()
    with threadpool_limits(2, user_api="blas"):
        with threads.one_thread():
            with threads.one_thread():
                assert blas_threads() == {1}
            assert blas_threads() == {1}
        assert blas_threads() == {2}
    assert isinstance(BLAS, BlasThreads)


# -- the name of the package ---------------------------------------------------------------------------


def test_the_package_has_its_public_names_and_no_others() -> None:
    assert vestige.__all__ == sorted(vestige.__all__)
    assert {"Memory", "AsyncMemory"} <= set(dir(vestige))
    assert vestige.Memory is Memory
    with pytest.raises(AttributeError, match="no attribute 'Memry'"):
        vestige.Memry  # noqa: B018 the access itself is refused


@pytest.mark.slow
def test_a_program_that_never_closes_it_ends_and_loses_nothing(tmp_path: Path) -> None:
    code = (
        "from vestige import Memory\n"
        f"memory = Memory({str(tmp_path)!r}, settings={HASHING!r})\n"
        f"memory.add({TEA!r})\n"
        "print(memory.search('What does Ada drink?')['results'][0]['content'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=PROJECT, timeout=120
    )
    assert (done.stdout.strip(), done.stderr) == (TEA, "")
    with Memory(tmp_path, settings=HASHING) as memory:
        assert memory.memory.list()["total"] == 1
        assert json.dumps(memory.doctor())


def test_a_narrowed_memory_can_only_be_narrowed_further(tmp_path: Path) -> None:
    with Memory(tmp_path, settings=HASHING) as whole:
        whole.within("tenant-b").add("The vault code is kept by Bea.")
    with Memory(tmp_path, scope="tenant-a", settings=HASHING) as narrow:
        assert narrow.within().search(query="vault code", all=True)["results"] == []
        with pytest.raises(Forbidden):
            narrow.within("tenant-b")
        assert narrow.within("tenant-a/project").add("Ada keeps the keys.")["scope"] == "/tenant-a/project"
    with Memory(tmp_path, domain="work", settings=HASHING) as narrow, pytest.raises(Forbidden):
        narrow.within("x", domain="home")


def test_a_narrowed_memory_has_the_zone_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    with Memory(tmp_path, settings=HASHING) as whole:
        assert whole.memory_timeline()["timezone"] == "Asia/Tokyo"
        assert whole.within("x").memory_timeline()["timezone"] == "Asia/Tokyo"
