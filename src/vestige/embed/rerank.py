"""The optional cross-encoder: a model that reads query and text together and judges how well they fit.

It is off unless the settings name one. `FastembedReranker` is the model, `RerankerSource` loads it when a
search first needs it; a search never fails because of it.
"""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vestige.core.errors import EmbedderError, MissingExtra, ModelUnavailable, VestigeError
from vestige.embed.background import BackgroundSource, EmbedderState, EmbedderStatus
from vestige.embed.protocol import Reranker
from vestige.settings.settings import forbid_telemetry

if TYPE_CHECKING:
    from fastembed.rerank.cross_encoder import TextCrossEncoder

QUERY_CHARACTERS = 500
TEXT_CHARACTERS = 1500
"""The characters read of a query and of each text. Such models are trained on a sentence and a paragraph, and
the time of a judgement grows with both: 30 texts beside an unbounded query would take many seconds."""
MODEL_FILES = ("onnx/model.onnx", "model.onnx")
"""The model file in a folder: as on the hub, or beside the tokenizer."""

_BATCH = 8
_LARGEST_LOGIT = 500.0  # beyond it `exp` would overflow; the judgement is 0 or 1 long before
_CLOSE_SECONDS = 5.0

log = logging.getLogger(__name__)


class FastembedReranker:
    """Judges with a cross-encoder of fastembed, which downloads it on first use unless `offline`.

    `model_path` is a folder with a model's files, used as it is, without a network.
    """

    def __init__(
        self,
        model_name: str,
        cache_dir: Path,
        *,
        threads: int,
        offline: bool = False,
        model_path: Path | None = None,
    ) -> None:
        self._name = model_name if model_path is None else str(model_path)
        self._model = _open(self._name, cache_dir, threads, offline, model_path)
        try:
            self.score("a question", ["a text"])
        except EmbedderError as error:
            # An embedding model, say, loads as well but gives no judgement: better refused now than at every
            # search.
            raise _unavailable(self._name, error.message, offline) from error

    @property
    def name(self) -> str:
        """The model's name, or the folder it came from."""
        return self._name

    def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float64]:
        """The logistic function of the model's logits."""
        # Texts of like length share a batch: a short one beside a long one is padded to its length.
        order = sorted(range(len(texts)), key=lambda at: len(texts[at]))
        asked = _readable(query, QUERY_CHARACTERS)
        read = [_readable(texts[at], TEXT_CHARACTERS) for at in order]
        try:
            logits = np.array(list(self._model.rerank(asked, read, batch_size=_BATCH)), dtype=np.float64)
        except Exception as error:  # fastembed lets the errors of several libraries through
            raise EmbedderError(f"{self._name} failed: {error}") from error
        if logits.shape != (len(texts),) or not np.isfinite(logits).all():
            raise EmbedderError(f"{self._name} did not give one number for each text.")
        judged = np.empty(len(texts))
        judged[order] = 1 / (1 + np.exp(-np.clip(logits, -_LARGEST_LOGIT, _LARGEST_LOGIT)))
        return judged


def _readable(text: str, most: int) -> str:
    """The text up to the limit, without lone surrogates, which no tokenizer accepts."""
    return text[:most].encode("utf-8", "replace").decode("utf-8")


def _open(
    name: str, cache_dir: Path, threads: int, offline: bool, model_path: Path | None
) -> "TextCrossEncoder":
    try:
        forbid_telemetry()
        from fastembed.rerank.cross_encoder import TextCrossEncoder
    except ImportError as error:
        raise MissingExtra.named("fastembed", f"The reranker {name}") from error
    try:
        if model_path is not None:
            _register(name, model_path)
        return TextCrossEncoder(
            name,
            cache_dir=str(cache_dir),
            threads=threads,
            specific_model_path=None if model_path is None else str(model_path),
            local_files_only=offline,
        )
    except Exception as error:  # an unknown model, no network, a damaged file: each another library's
        raise _unavailable(name, str(error), offline) from error


def _register(name: str, folder: Path) -> None:
    """Register a folder with fastembed, which loads only models it knows by name."""
    from fastembed.common.model_description import ModelSource
    from fastembed.rerank.cross_encoder import TextCrossEncoder

    there = [file for file in MODEL_FILES if (folder / file).is_file()]
    if not there:
        raise FileNotFoundError(f"it has no {' or '.join(MODEL_FILES)}")
    known = {str(model["model"]).lower() for model in TextCrossEncoder.list_supported_models()}
    if name.lower() not in known:
        TextCrossEncoder.add_custom_model(name, sources=ModelSource(hf=name), model_file=there[0])


def _unavailable(name: str, why: str, offline: bool) -> ModelUnavailable:
    check = "Unset VESTIGE_OFFLINE" if offline else "Check search.reranker_model and the network"
    return ModelUnavailable(
        f"The reranker {name} cannot be loaded: {why}",
        hint=f"{check}, or give a folder with a model's files as search.reranker_path.",
        details={"reason": "offline" if offline else "failed", "model": name},
    )


class RerankerSource(BackgroundSource[Reranker]):
    """Loads a reranker with `load`, once, in a daemon thread; call it to get the reranker, or None.

    A search waits for a load until it is `wait_seconds` old, which is enough for a model on disk. A download
    takes longer, and searches until then work without a reranker.
    """

    def __init__(
        self, load: Callable[[], Reranker], *, monotonic: Callable[[], float], wait_seconds: float
    ) -> None:
        super().__init__("reranker", "reranker")
        self._load = load
        self._monotonic = monotonic
        self._wait_seconds = wait_seconds
        self._waited_until = 0.0

    @classmethod
    def of(cls, reranker: Reranker) -> "RerankerSource":
        source = cls(lambda: reranker, monotonic=lambda: 0.0, wait_seconds=0.0)
        source._become_ready(reranker)
        return source

    @classmethod
    def off(cls) -> "RerankerSource":
        """A source without a reranker, because the settings switch it off."""

        def refuse() -> Reranker:
            raise EmbedderError("The setting search.reranker is off.")

        source = cls(refuse, monotonic=lambda: 0.0, wait_seconds=0.0)
        source._status = EmbedderStatus(state=EmbedderState.OFF, detail="The setting search.reranker is off.")
        return source

    def __call__(self) -> Reranker | None:
        """The reranker; None when it is off, failed, or not ready in time."""
        self.start()
        with self._changed:
            left = self._waited_until - self._monotonic()
            self._changed.wait_for(lambda: self._status.state is not EmbedderState.LOADING, max(0.0, left))
            return self._model

    def start(self) -> None:
        """Begin to load; does nothing when that was begun before, or it is off."""
        with self._changed:
            if self._status.state is EmbedderState.ABSENT:
                self._waited_until = self._monotonic() + self._wait_seconds
                self._begin()

    def close(self) -> None:
        """Release the reranker, after a short wait for a load: native code must not be interrupted."""
        with self._changed:
            thread = self._thread
            self._model = None
            self._status = EmbedderStatus(state=EmbedderState.OFF, detail="closed")
            self._changed.notify_all()
        if thread is not None:
            thread.join(_CLOSE_SECONDS)

    def _fetch(self) -> Reranker:
        return self._load()

    def _become_ready(self, model: Reranker) -> None:
        self._move(EmbedderStatus(state=EmbedderState.READY, detail=model.name), model)

    def _fail(self, error: VestigeError) -> None:
        log.warning("no reranker: %s", error.message)
        self._move(EmbedderStatus(state=EmbedderState.FAILED, detail=error.message, error=error.value()))
