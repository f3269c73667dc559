"""An embedder that arrives while others wait, or do not."""

import logging
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from testbed.patience import PATIENCE_SECONDS, until
from tests.embed.minilm.silent_index import SilentIndex
from vestige.core.errors import Cancelled, EmbedderError, ModelDamaged, ModelUnavailable
from vestige.embed.background import (
    RETRY_SECONDS,
    EmbedderSource,
    EmbedderState,
    EmbedderStatus,
    ModelStep,
    Progress,
)
from vestige.embed.hashing import HashingEmbedder
from vestige.embed.minilm.child import ChildExit, run_module
from vestige.embed.protocol import Embedder


class Gate:
    """A loader that reports a step, says that it began, and ends when it is let go."""

    def __init__(self, step: ModelStep = ModelStep.LOADING) -> None:
        self.step = step
        self.begun = threading.Event()
        self.release = threading.Event()
        self.embedder = HashingEmbedder()

    def __call__(self, progress: Progress) -> Embedder:
        progress(self.step, 0.5)
        self.begun.set()
        assert self.release.wait(PATIENCE_SECONDS)
        return self.embedder


def test_nothing_is_loaded_before_somebody_asks_for_it() -> None:
    gate = Gate()
    source = EmbedderSource(gate)
    heard: list[Embedder] = []
    source.on_ready(heard.append)
    assert source.status().state is EmbedderState.ABSENT
    assert not gate.begun.is_set()
    gate.release.set()
    assert source.get(PATIENCE_SECONDS) is gate.embedder
    assert gate.begun.is_set()


def test_a_source_that_nobody_asked_closes_without_loading() -> None:
    gate = Gate()
    source = EmbedderSource(gate)
    source.close()
    assert source.get(PATIENCE_SECONDS) is None
    assert not gate.begun.is_set()


def test_get_waits_for_a_model_that_is_loading() -> None:
    gate = Gate()
    source = EmbedderSource(gate)
    source.start()
    assert gate.begun.wait(PATIENCE_SECONDS)
    assert source.get(0.0) is None
    threading.Timer(0.01, gate.release.set).start()
    assert source.get(PATIENCE_SECONDS) is gate.embedder
    assert source.status().state is EmbedderState.READY
    assert source.status().signature == gate.embedder.signature
    assert source.status().progress == 1.0


def test_get_does_not_wait_for_an_installation() -> None:
    gate = Gate(ModelStep.FETCHING)
    source = EmbedderSource(gate)
    source.start()
    assert gate.begun.wait(PATIENCE_SECONDS)
    assert source.get(PATIENCE_SECONDS) is None
    status = source.status()
    assert (status.state, status.detail, status.progress) == (EmbedderState.INSTALLING, "fetching", 0.5)
    gate.release.set()


def test_a_waiter_is_let_go_when_loading_turns_out_to_be_an_installation() -> None:
    waiting = threading.Event()

    def load(progress: Progress) -> Embedder:
        assert waiting.wait(PATIENCE_SECONDS)
        progress(ModelStep.FETCHING, 0.0)
        assert stop.wait(PATIENCE_SECONDS)
        return HashingEmbedder()

    stop = threading.Event()
    source = EmbedderSource(load)
    source.start()
    threading.Timer(0.01, waiting.set).start()
    assert source.get(PATIENCE_SECONDS) is None
    assert source.status().state is EmbedderState.INSTALLING
    stop.set()


def test_listeners_hear_once_of_an_embedder_that_arrives() -> None:
    gate, heard, done = Gate(), [], threading.Event()
    source = EmbedderSource(gate)

    def fail(_embedder: Embedder) -> None:
        raise ValueError("a listener with a bug")

    def hear(embedder: Embedder) -> None:
        heard.append(embedder)
        done.set()

    source.on_ready(fail)
    source.on_ready(hear)
    source.start()
    gate.release.set()
    assert done.wait(PATIENCE_SECONDS)
    source.start()
    assert heard == [gate.embedder]
    source.on_ready(heard.append)
    assert heard == [gate.embedder, gate.embedder]


def test_a_failure_is_remembered_with_its_value_and_can_be_retried() -> None:
    outcomes: list[Exception | Embedder] = [
        ModelDamaged("broken", hint="vestige model install --force"),
        RuntimeError("unforeseen"),
        HashingEmbedder(),
    ]

    def load(_progress: Progress) -> Embedder:
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    source = EmbedderSource(load)
    source.start()
    assert source.get(PATIENCE_SECONDS) is None
    status = source.status()
    assert status.state is EmbedderState.FAILED
    assert status.error == {
        "code": "model_damaged",
        "message": "broken",
        "hint": "vestige model install --force",
    }
    source.start()
    assert source.get(PATIENCE_SECONDS) is None
    error = source.status().error
    assert error is not None
    assert error["code"] == "embedder"
    assert "unforeseen" in error["message"]
    source.start()
    assert source.get(PATIENCE_SECONDS) is not None
    assert source.status().error is None


@pytest.mark.parametrize(
    ("reason", "state"),
    [("offline", EmbedderState.OFFLINE), ("absent", EmbedderState.ABSENT), ("failed", EmbedderState.FAILED)],
)
def test_why_a_model_is_unavailable_shows_in_the_state(reason: str, state: EmbedderState) -> None:
    def load(_progress: Progress) -> Embedder:
        raise ModelUnavailable("not here", details={"reason": reason})

    source = EmbedderSource(load)
    source.start()
    assert source.get(PATIENCE_SECONDS) is None
    assert source.status().state is state


class Broken:
    """A loader that fails until it is mended, and counts how often it was tried."""

    def __init__(self, reason: str = "failed") -> None:
        self.reason = reason
        self.tries = 0
        self.mended = False

    def __call__(self, _progress: Progress) -> Embedder:
        self.tries += 1
        if self.mended:
            return HashingEmbedder()
        raise ModelUnavailable("not here", details={"reason": self.reason})


@pytest.mark.parametrize("reason", ["failed", "absent", "offline"])
def test_asking_tries_again_once_the_failure_is_old_enough(reason: str) -> None:
    now, broken = [100.0], Broken(reason)
    source = EmbedderSource(broken, monotonic=lambda: now[0])
    assert source.get(PATIENCE_SECONDS) is None
    broken.mended = True
    now[0] += RETRY_SECONDS - 0.001
    assert source.get(PATIENCE_SECONDS) is None
    assert broken.tries == 1
    now[0] += 0.001
    assert source.get(PATIENCE_SECONDS) is not None
    assert broken.tries == 2


def test_a_failure_that_lasts_is_tried_at_intervals_and_told_once(caplog: pytest.LogCaptureFixture) -> None:
    now, broken = [0.0], Broken()
    source = EmbedderSource(broken, monotonic=lambda: now[0], retry_seconds=10)
    for second in range(30):
        now[0] = float(second)
        assert source.get(PATIENCE_SECONDS) is None
    assert broken.tries == 3
    assert [record.message for record in caplog.records] == ["no embedder: not here"]


def test_a_model_that_nobody_installed_is_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    def refuse(_progress: Progress) -> Embedder:
        raise EmbedderError("it is not installed", details={"reason": "absent"})

    source = EmbedderSource(refuse)
    assert source.get(PATIENCE_SECONDS) is None
    assert source.status().state is EmbedderState.ABSENT
    assert [record.levelname for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_a_listener_hears_of_an_embedder_that_a_later_try_brought() -> None:
    now, broken, heard = [0.0], Broken(), threading.Event()
    source = EmbedderSource(broken, monotonic=lambda: now[0])
    source.on_ready(lambda _embedder: heard.set())
    assert source.get(PATIENCE_SECONDS) is None
    broken.mended, now[0] = True, RETRY_SECONDS
    assert source.get(PATIENCE_SECONDS) is not None
    assert heard.wait(PATIENCE_SECONDS)


def test_without_a_clock_a_failure_is_final_until_start() -> None:
    broken = Broken()
    source = EmbedderSource(broken)
    assert source.get(PATIENCE_SECONDS) is None
    assert source.get(PATIENCE_SECONDS) is None
    assert broken.tries == 1


def test_starting_twice_loads_once() -> None:
    gate, calls = Gate(), []

    def load(progress: Progress) -> Embedder:
        calls.append(1)
        return gate(progress)

    source = EmbedderSource(load)
    for _ in range(5):
        source.start()
    gate.release.set()
    assert source.get(PATIENCE_SECONDS) is gate.embedder
    source.start()
    assert calls == [1]


def test_a_source_can_be_ready_from_the_beginning_or_off_for_good() -> None:
    embedder = HashingEmbedder()
    ready = EmbedderSource.of(embedder)
    assert ready.get() is embedder
    off = EmbedderSource.off("embeddings are switched off")
    off.start()
    assert off.get(PATIENCE_SECONDS) is None
    assert off.status().state is EmbedderState.OFF
    assert off.status().detail == "embeddings are switched off"


def test_closing_gives_the_embedder_up_and_lets_waiters_go() -> None:
    class Held(HashingEmbedder):
        closed = False

        def close(self) -> None:
            self.closed = True

    held = Held()
    source = EmbedderSource.of(held)
    source.close()
    assert held.closed
    assert source.get() is None
    assert source.status().state is EmbedderState.OFF
    source.start()
    assert source.status().state is EmbedderState.OFF
    source.close()


def test_an_embedder_that_arrives_after_closing_is_closed_and_not_announced() -> None:
    closed = threading.Event()
    heard: list[Embedder] = []

    class Held(HashingEmbedder):
        def close(self) -> None:
            closed.set()

    gate = Gate(ModelStep.FETCHING)
    gate.embedder = Held()
    source = EmbedderSource(gate)
    source.on_ready(heard.append)
    source.start()
    assert gate.begun.wait(PATIENCE_SECONDS)
    source.close()
    gate.release.set()
    assert closed.wait(PATIENCE_SECONDS)
    assert heard == []
    assert source.get() is None


def test_closing_waits_for_a_load_under_way() -> None:
    gate = Gate()
    source = EmbedderSource(gate)
    source.start()
    assert gate.begun.wait(PATIENCE_SECONDS)
    threading.Timer(0.01, gate.release.set).start()
    source.close()
    assert gate.release.is_set()


def test_a_loader_that_goes_on_after_closing_is_stopped_at_its_next_step() -> None:
    begun, stopped = threading.Event(), threading.Event()

    def load(progress: Progress) -> Embedder:
        progress(ModelStep.FETCHING, 0.0)
        begun.set()
        until(lambda: source.status().detail == "closed")
        try:
            progress(ModelStep.CONVERTING, 0.5)
        except Cancelled:
            stopped.set()
            raise
        return HashingEmbedder()

    source = EmbedderSource(load)
    source.start()
    assert begun.wait(PATIENCE_SECONDS)
    source.close()
    assert stopped.wait(PATIENCE_SECONDS)
    assert source.status().detail == "closed"


@pytest.mark.slow
def test_closing_ends_an_installation_with_its_children(tmp_path: Path) -> None:
    ended: list[ChildExit] = []

    def load(progress: Progress) -> Embedder:
        progress(ModelStep.FETCHING, 0.0)
        ended.append(run_module(*index.fetching, directory=tmp_path, timeout_seconds=PATIENCE_SECONDS))
        raise ModelUnavailable("not here")

    with SilentIndex() as index:
        source = EmbedderSource(load)
        source.start()
        pip = index.asked()
        source.close()
        index.hung_up(pip)
    assert ended == [ChildExit(status=None, said="it was ended")]


@pytest.mark.slow
def test_the_module_brings_no_numpy_along() -> None:
    code = "import sys, vestige.embed.background; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_outlook_of_a_model_that_is_known_to_load_does_not_load_it() -> None:
    gate = Gate()
    known = EmbedderStatus(state=EmbedderState.READY, signature=gate.embedder.signature)
    source = EmbedderSource(gate, check=lambda: known)
    assert source.outlook() == known
    assert (gate.begun.is_set(), source.status().state) == (False, EmbedderState.ABSENT)


def test_the_outlook_loads_where_only_that_can_tell_or_somebody_waits_for_the_model() -> None:
    embedder = HashingEmbedder()
    known = EmbedderStatus(state=EmbedderState.READY, detail="from its files")
    unsure = EmbedderSource(lambda _progress: embedder, check=lambda: None)
    assert unsure.outlook(PATIENCE_SECONDS).signature == embedder.signature
    awaited = EmbedderSource(lambda _progress: embedder, check=lambda: known)
    heard = threading.Event()
    awaited.on_ready(lambda _embedder: heard.set())
    assert awaited.outlook(PATIENCE_SECONDS).detail == ""
    assert heard.wait(PATIENCE_SECONDS)


def test_the_outlook_of_a_model_that_failed_to_load_is_the_failure() -> None:
    known = EmbedderStatus(state=EmbedderState.READY)

    def refuse(_progress: Progress) -> Embedder:
        raise ModelDamaged("The model is damaged.")

    source = EmbedderSource(refuse, check=lambda: known)
    assert source.get(PATIENCE_SECONDS) is None
    assert source.outlook().state is not EmbedderState.READY
