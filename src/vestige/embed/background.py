"""Loading a model in a background thread, while full-text search already works.

    absent ──start or get──► loading ◄──► installing
                                │
              ready · failed · offline · absent     get() tries the last three again, not too often

Nothing is loaded before it is needed: most commands need no model. A server loads it at start-up. This
module imports nothing heavy (numpy comes with the embedder), so a server can start loading before it has
answered its first message.
"""

import enum
import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, runtime_checkable

from vestige.core.errors import Cancelled, EmbedderError, VestigeError
from vestige.core.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from vestige.core.pair_model import PairModelState
    from vestige.embed.protocol import Embedder, Signature

RETRY_SECONDS = 60.0
"""The age of a failure after which the next call for the embedder tries again."""

_CLOSE_SECONDS = 5.0
_TIDY_SECONDS = 0.5

log = logging.getLogger(__name__)


class ModelStep(enum.StrEnum):
    FETCHING = "fetching"
    CHECKING = "checking"
    CONVERTING = "converting"
    LOADING = "loading"


Progress = Callable[[ModelStep, float], None]
"""Called with the step that begins and the share of the whole work (0..1) that is done."""


def silent(_step: ModelStep, _share: float) -> None:
    """Progress without an observer."""


class EmbedderState(enum.StrEnum):
    ABSENT = "absent"
    INSTALLING = "installing"
    LOADING = "loading"
    READY = "ready"
    OFFLINE = "offline"
    FAILED = "failed"
    OFF = "off"


_AT_WORK = (EmbedderState.INSTALLING, EmbedderState.LOADING)
_NOT_THERE = (EmbedderState.ABSENT, EmbedderState.OFFLINE, EmbedderState.FAILED)
_STATE_OF_REASON = {"offline": EmbedderState.OFFLINE, "absent": EmbedderState.ABSENT}


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedderStatus:
    """The state with details for people; `error` is the failure as a value, and `pair_model` is the state of
    the pair model, once the embedder is ready."""

    state: EmbedderState
    detail: str = ""
    progress: float = 0.0
    signature: "Signature | None" = None
    error: Mapping[str, Any] | None = None
    pair_model: "PairModelState | None" = None


Loaded = TypeVar("Loaded")


class BackgroundSource(ABC, Generic[Loaded]):
    """Loads a model in a daemon thread, and has it once it is ready. `title` names it in messages."""

    def __init__(self, name: str, title: str) -> None:
        self._name, self._title = name, title
        self._changed = threading.Condition()
        self._status = EmbedderStatus(state=EmbedderState.ABSENT, detail="not loaded yet")
        self._model: Loaded | None = None
        self._thread: threading.Thread | None = None

    @abstractmethod
    def _fetch(self) -> Loaded: ...

    @abstractmethod
    def _become_ready(self, model: Loaded) -> None: ...

    @abstractmethod
    def _fail(self, error: VestigeError) -> None: ...

    def status(self) -> EmbedderStatus:
        with self._changed:
            return self._status

    def _begin(self) -> None:
        """Start the loading thread. The caller holds the lock."""
        self._status = EmbedderStatus(state=EmbedderState.LOADING, detail=ModelStep.LOADING)
        self._thread = threading.Thread(target=self._bring, name=f"vestige-{self._name}", daemon=True)
        self._thread.start()

    def _bring(self) -> None:
        try:
            model = self._fetch()
        except VestigeError as error:
            self._fail(error)
        except Exception as error:  # whatever it was, the memory goes on without the model
            log.exception("loading the %s failed", self._name)
            self._fail(EmbedderError(f"Loading the {self._title} failed: {error}"))
        else:
            self._become_ready(model)

    def _move(self, status: EmbedderStatus, model: Loaded | None = None) -> bool:
        """Enter the next state; False when the source was closed in the meantime."""
        with self._changed:
            if self._status.state is EmbedderState.OFF:
                return False
            self._status = status
            self._model = model
            self._changed.notify_all()
            return True


@runtime_checkable
class Closeable(Protocol):
    """An embedder with open resources, such as connections."""

    def close(self) -> None: ...


class EmbedderSource(BackgroundSource["Embedder"]):
    """Loads an embedder with `load` in a daemon thread, and returns it once it is ready.

    With a clock, `get` retries after a failure that is `retry_seconds` old: the disk may have space again,
    the network may be back, a user may have installed the model. Without a clock a failure is final until
    `start`. `check` returns the status of a model that is known to load, from its files; None if only
    loading can tell.
    """

    def __init__(
        self,
        load: "Callable[[Progress], Embedder]",
        *,
        check: "Callable[[], EmbedderStatus | None] | None" = None,
        monotonic: Callable[[], float] | None = None,
        retry_seconds: float = RETRY_SECONDS,
    ) -> None:
        super().__init__("embedder", "embedding model")
        self._load, self._check = load, check
        self._monotonic = monotonic
        self._retry_seconds = retry_seconds
        self._failed_at: float | None = None
        self._complaint = ""
        self._waiting: list[Callable[[Embedder], None]] = []

    @classmethod
    def of(cls, embedder: "Embedder") -> "EmbedderSource":
        source = cls(lambda _progress: embedder)
        source._become_ready(embedder)
        return source

    @classmethod
    def off(cls, reason: str) -> "EmbedderSource":
        """A source without an embedder, because the settings switch it off."""

        def refuse(_progress: Progress) -> "Embedder":
            raise EmbedderError(reason)

        source = cls(refuse)
        source._status = EmbedderStatus(state=EmbedderState.OFF, detail=reason)
        return source

    def start(self) -> None:
        """Begin to load, or retry after a failure; does nothing while it is loading or ready."""
        with self._changed:
            if self._status.state in _NOT_THERE:
                self._begin()

    def get(self, wait_seconds: float = 0.0) -> "Embedder | None":
        """The embedder, after waiting for one that is loading; None while it is not ready.

        The first call begins to load it, and a later one retries when the last failure is old enough. Loading
        takes a fraction of a second and is waited for; installing can take minutes and is not.
        """
        with self._changed:
            if self._status.state in _NOT_THERE and self._is_due():
                self._begin()
            self._changed.wait_for(lambda: self._status.state is not EmbedderState.LOADING, wait_seconds)
            return self._model

    def outlook(self, wait_seconds: float = 0.0) -> EmbedderStatus:
        """The status that a caller of `get` would find. A model whose files are checked is ready, and is not
        loaded to find that out, unless a listener waits for it."""
        with self._changed:
            is_open = (
                self._thread is None and self._status.state is EmbedderState.ABSENT and not self._waiting
            )
        found = self._check() if is_open and self._check is not None else None
        if found is None:
            self.get(wait_seconds)
        return found or self.status()

    def on_ready(self, callback: "Callable[[Embedder], None]") -> None:
        """Call `callback` once with the embedder, in the loading thread; at once if it is ready."""
        with self._changed:
            embedder = self._model
            if embedder is None and self._status.state is not EmbedderState.OFF:
                self._waiting.append(callback)
        if embedder is not None:
            _notify(callback, embedder)

    def close(self) -> None:
        """Release the embedder. A load in progress is waited for, an installation is stopped.

        A thread that is inside native code when the interpreter ends can crash the process, and loading is
        native code. Installing happens in child processes, which are stopped here: the thread only needs a
        moment to remove their files.
        """
        with self._changed:
            thread = self._thread if self._status.state in _AT_WORK else None
            patience = _CLOSE_SECONDS if self._status.state is EmbedderState.LOADING else _TIDY_SECONDS
            embedder, self._model = self._model, None
            self._waiting.clear()
            self._status = EmbedderStatus(state=EmbedderState.OFF, detail="closed")
            self._changed.notify_all()
        if thread is not None and thread is not threading.current_thread():
            from vestige.embed.minilm.child import end_children_of  # not above: that import must stay lean

            end_children_of(thread)
            thread.join(patience)
        if isinstance(embedder, Closeable):
            embedder.close()

    def _is_due(self) -> bool:
        if self._thread is None:
            return True
        if self._monotonic is None or self._failed_at is None:
            return False
        return self._monotonic() - self._failed_at >= self._retry_seconds

    def _fetch(self) -> "Embedder":
        return self._load(self._report)

    def _report(self, step: ModelStep, share: float) -> None:
        state = EmbedderState.LOADING if step is ModelStep.LOADING else EmbedderState.INSTALLING
        if not self._move(EmbedderStatus(state=state, detail=step, progress=min(1.0, max(0.0, share)))):
            raise Cancelled("The embedder was closed.")

    def _fail(self, error: VestigeError) -> None:
        state = _STATE_OF_REASON.get(str(error.details.get("reason")), EmbedderState.FAILED)
        self._failed_at = self._monotonic() if self._monotonic is not None else None
        moved = self._move(EmbedderStatus(state=state, detail=error.message, error=error.value()))
        if moved and error.message != self._complaint:  # once, however often it is tried again
            self._complaint = error.message
            # A model that nobody installed is no failure: answers and `status` say what is missing.
            level = logging.INFO if state is EmbedderState.ABSENT else logging.WARNING
            log.log(level, "no embedder: %s", error.message)

    def _become_ready(self, embedder: "Embedder") -> None:
        ready = EmbedderStatus(
            state=EmbedderState.READY,
            progress=1.0,
            signature=embedder.signature,
            pair_model=embedder.pair_model_state,
        )
        if not self._move(ready, embedder):
            if isinstance(embedder, Closeable):
                embedder.close()
            return
        with self._changed:
            callbacks, self._waiting = self._waiting, []
        for callback in callbacks:
            _notify(callback, embedder)


def _notify(callback: "Callable[[Embedder], None]", embedder: "Embedder") -> None:
    try:
        callback(embedder)
    except Exception:  # one listener's failure is no reason to lose the embedder
        log.exception("a listener failed when the embedder became ready")
