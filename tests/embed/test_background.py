"""An embedder that arrives while others wait, or do not."""

import subprocess
import sys
import threading

import pytest

from vestige.embed.background import EmbedderSource, State
from vestige.embed.hashing import HashingEmbedder
from vestige.embed.progress import Progress, Step
from vestige.embed.protocol import Embedder
from vestige.errors import ModelDamaged, ModelUnavailable

LONG = 30.0
"""A limit no passing test reaches."""


class Gate:
    """A loader that reports a step, says that it began, and ends when it is let go."""

    def __init__(self, step: Step = Step.LOADING) -> None:
        self.step = step
        self.begun = threading.Event()
        self.release = threading.Event()
        self.embedder = HashingEmbedder()

    def __call__(self, progress: Progress) -> Embedder:
        progress(self.step, 0.5)
        self.begun.set()
        assert self.release.wait(LONG)
        return self.embedder


def test_nothing_is_loaded_before_start() -> None:
    source = EmbedderSource(Gate())
    assert source.status().state is State.ABSENT
    assert source.get(LONG) is None


def test_get_waits_for_a_model_that_is_loading() -> None:
    gate = Gate()
    source = EmbedderSource(gate)
    source.start()
    assert gate.begun.wait(LONG)
    assert source.get(0.0) is None
    threading.Timer(0.01, gate.release.set).start()
    assert source.get(LONG) is gate.embedder
    assert source.status().state is State.READY
    assert source.status().signature == gate.embedder.signature
    assert source.status().progress == 1.0


def test_get_does_not_wait_for_an_installation() -> None:
    gate = Gate(Step.FETCHING)
    source = EmbedderSource(gate)
    source.start()
    assert gate.begun.wait(LONG)
    assert source.get(LONG) is None
    status = source.status()
    assert (status.state, status.detail, status.progress) == (State.INSTALLING, "fetching", 0.5)
    gate.release.set()


def test_a_waiter_is_let_go_when_loading_turns_out_to_be_an_installation() -> None:
    waiting = threading.Event()

    def load(progress: Progress) -> Embedder:
        assert waiting.wait(LONG)
        progress(Step.FETCHING, 0.0)
        assert stop.wait(LONG)
        return HashingEmbedder()

    stop = threading.Event()
    source = EmbedderSource(load)
    source.start()
    threading.Timer(0.01, waiting.set).start()
    assert source.get(LONG) is None
    assert source.status().state is State.INSTALLING
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
    assert done.wait(LONG)
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
    assert source.get(LONG) is None
    status = source.status()
    assert status.state is State.FAILED
    assert status.error == {
        "code": "model_damaged",
        "message": "broken",
        "hint": "vestige model install --force",
    }
    source.start()
    assert source.get(LONG) is None
    error = source.status().error
    assert error is not None
    assert error["code"] == "embedder"
    assert "unforeseen" in error["message"]
    source.start()
    assert source.get(LONG) is not None
    assert source.status().error is None


@pytest.mark.parametrize(
    ("reason", "state"), [("offline", State.OFFLINE), ("absent", State.ABSENT), ("failed", State.FAILED)]
)
def test_why_a_model_is_unavailable_shows_in_the_state(reason: str, state: State) -> None:
    def load(_progress: Progress) -> Embedder:
        raise ModelUnavailable("not here", details={"reason": reason})

    source = EmbedderSource(load)
    source.start()
    assert source.get(LONG) is None
    assert source.status().state is state


def test_starting_twice_loads_once() -> None:
    gate, calls = Gate(), []

    def load(progress: Progress) -> Embedder:
        calls.append(1)
        return gate(progress)

    source = EmbedderSource(load)
    for _ in range(5):
        source.start()
    gate.release.set()
    assert source.get(LONG) is gate.embedder
    source.start()
    assert calls == [1]


def test_a_source_can_be_ready_from_the_beginning_or_off_for_good() -> None:
    embedder = HashingEmbedder()
    ready = EmbedderSource.of(embedder)
    assert ready.get() is embedder
    off = EmbedderSource.off("embeddings are switched off")
    off.start()
    assert off.get(LONG) is None
    assert off.status().state is State.OFF
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
    assert source.status().state is State.OFF
    source.start()
    assert source.status().state is State.OFF
    source.close()


def test_an_embedder_that_arrives_after_closing_is_closed_and_not_announced() -> None:
    closed = threading.Event()
    heard: list[Embedder] = []

    class Held(HashingEmbedder):
        def close(self) -> None:
            closed.set()

    gate = Gate(Step.FETCHING)
    gate.embedder = Held()
    source = EmbedderSource(gate)
    source.on_ready(heard.append)
    source.start()
    assert gate.begun.wait(LONG)
    source.close()
    gate.release.set()
    assert closed.wait(LONG)
    assert heard == []
    assert source.get() is None


def test_closing_waits_for_a_load_under_way() -> None:
    gate = Gate()
    source = EmbedderSource(gate)
    source.start()
    assert gate.begun.wait(LONG)
    threading.Timer(0.01, gate.release.set).start()
    source.close()
    assert gate.release.is_set()


@pytest.mark.slow
def test_the_module_brings_no_numpy_along() -> None:
    code = "import sys, vestige.embed.background; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
