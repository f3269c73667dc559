"""The relation model at run time: how a new note relates to an older one, as five probabilities.

A pair is one run without padding, on the thread of the caller: dynamic int8 takes the range of the
activations over everything in a run, so a pair in a batch would have other scores than alone. The graph is
built at installation (`minilm/relation_graph.py`), and opened here for the first pair.
"""

import logging
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from vestige.core.errors import VestigeError
from vestige.core.relation import RelationScores
from vestige.embed.onnx import open_session

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

MAX_NOTE_TOKENS = 100
"""The tokens of each note that the model reads; the rest of a note is ignored."""

log = logging.getLogger(__name__)


class RelationModel:
    """The relation graph of a model folder. Thread-safe. A failure is logged once, and leaves no scores."""

    def __init__(self, graph: Path, first: int, last: int) -> None:
        self._first, self._last = first, last
        self._lock = threading.Lock()
        self._complaint = ""
        self._session: InferenceSession | None = None
        try:
            self._session = open_session(graph)
        except VestigeError as error:
            self._complain(error.message)

    def scores(self, old: Sequence[int], new: Sequence[int]) -> RelationScores | None:
        """The scores of two notes, given as word pieces without special tokens."""
        if self._session is None:
            return None
        before = [self._first, *old[:MAX_NOTE_TOKENS], self._last]
        after = [*new[:MAX_NOTE_TOKENS], self._last]
        ids = np.array([[*before, *after]], dtype=np.int64)
        types = np.array([[0] * len(before) + [1] * len(after)], dtype=np.int64)
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": types}
        try:
            (rows,) = self._session.run(None, feed)
            same, corrects, unclear, elaborates, other = (float(value) for value in rows[0])
        except Exception as error:  # onnxruntime's errors share no base class
            self._complain(str(error))
            return None
        return RelationScores(
            same=same, corrects=corrects, unclear=unclear, elaborates=elaborates, other=other
        )

    def _complain(self, message: str) -> None:
        with self._lock:
            known, self._complaint = self._complaint, message
        if message != known:  # once, however many notes are compared
            log.warning("no relation model, the gate decides by its rules alone: %s", message)
