"""The default embedder: all-MiniLM-L6-v2 in int8 on onnxruntime.

Every text is one run of the model, without padding. The texts of all batches are spread over `threads`
workers, in the order they came: however many batches there are, the activations and token states of a few
texts are in memory. A run for each text is correctness before speed: dynamic quantisation takes the range of
the activations over everything in a run, so texts that run together change each other's vectors (cosine
0.98-0.99 to the vector each has alone, as much as int8 itself costs). Alone, a text has one vector, whatever
batch it came in, and two workers with one thread each are as fast as the best padded batch on two threads.
Numbers: docs/concepts/embeddings.md.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from vestige.core.errors import EmbedderError, MissingExtra, VestigeError
from vestige.core.pair_model import PairModelState, RelationScores
from vestige.embed.minilm.manifest import (
    GRAPH,
    PAIR_MODEL,
    TOKENIZER,
    VOCABULARY,
    Manifest,
    damaged,
    read_manifest,
)
from vestige.embed.minilm.word_pieces import UNKNOWN, Pieces, WordPieces
from vestige.embed.protocol import Encoded, Signature, TokenStates, Vectors
from vestige.embed.recent import (
    ENCODING_BYTES,
    MOST_PAIRS,
    MOST_READ,
    SHORT_CHARS,
    Recent,
    encoding_bytes,
    read_only,
    text_key,
)
from vestige.settings.settings import forbid_telemetry

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer


MAX_TOKENS = 256
"""The model's training length, [CLS] and [SEP] included."""

UNPACKED_RUNS = 50
"""The runs of a graph before its weights are packed: more than a command needs."""

_SENTENCE = "sentence_embedding"
_STATES = "last_hidden_state"
_SPECIAL = 2

_Made = TypeVar("_Made")

log = logging.getLogger(__name__)


class OnnxEmbedder:
    """Embeds with a converted model folder. One session and one tokenizer serve all threads."""

    def __init__(self, model_dir: Path, *, threads: int, pair_model: str | None = None) -> None:
        """Open the embedding graph. `pair_model` is the sha256 of the delta that the pair graph must be
        made of; any will do without it."""
        self._model_dir = model_dir
        self._signature, self._pair_model_state = described(model_dir, pair_model)
        self._pair_model: PairModel | None = None
        self._pair_model_lock = threading.Lock()
        workers = max(1, threads)
        self._workers = ThreadPoolExecutor(workers, thread_name_prefix="vestige-embed")
        self._single_runs = threading.Semaphore(workers)
        self._graph = OpenGraph(model_dir / GRAPH)
        self._pieces = PieceReader(model_dir)
        self._first, self._last, self._unknown = map(self._pieces.special_id, ("[CLS]", "[SEP]", UNKNOWN))
        self._encodings = Recent[bytes, Encoded](ENCODING_BYTES, encoding_bytes)
        self._beginnings = Recent[bytes, list[int]](MOST_READ)
        self._relations = Recent[tuple[bytes, bytes], RelationScores](MOST_PAIRS)

    @property
    def signature(self) -> Signature:
        return self._signature

    @property
    def max_tokens(self) -> int:
        return MAX_TOKENS - _SPECIAL

    @property
    def token_states(self) -> bool:
        return True

    @property
    def pair_model_state(self) -> PairModelState:
        return self._pair_model_state

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(self._pieces.of(text)[0]) for text in texts]

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """One unit row per text, independent of the rest of the batch."""
        rows = self._spread(self._vector, texts)
        return np.array(rows, dtype=np.float32).reshape(len(rows), self._signature.dimension)

    def embed_query(self, text: str) -> Vectors:
        with self._single_runs:
            return self._vector(text)

    def encode_documents(self, texts: Sequence[str]) -> list[Encoded]:
        """Short texts that were encoded a moment ago are not read again."""
        keys = [text_key(text) if len(text) <= SHORT_CHARS else None for text in texts]
        kept = [None if key is None else self._encodings.get(key) for key in keys]
        missing = [text for text, had in zip(texts, kept, strict=True) if had is None]
        made = iter(self._spread(self._encoded, missing) if missing else ())
        encoded: list[Encoded] = []
        for key, had in zip(keys, kept, strict=True):
            encoded.append(had or next(made))
            if had is None and key is not None:
                self._encodings.put(key, read_only(encoded[-1]))
        return encoded

    def encode_query(self, text: str) -> Encoded:
        with self._single_runs:
            return self._encoded(text)

    def _vector(self, text: str) -> Vectors:
        """The text's unit vector. Token states are neither computed into an output nor copied."""
        (vectors,) = self._run(self._read(text)[0], [_SENTENCE])
        vector: Vectors = vectors[0]
        return vector

    def _encoded(self, text: str) -> Encoded:
        ids, spans = self._read(text)
        vectors, states = self._run(ids, [_SENTENCE, _STATES])
        # Without [CLS] and [SEP], and without what the vocabulary lacks: all of it looks the same.
        known = ids[1:-1] != self._unknown
        inner = states[0, 1:-1][known]
        lengths = np.linalg.norm(inner, axis=1, keepdims=True)
        tokens = TokenStates(
            ids=ids[1:-1][known].astype(np.int32),
            spans=spans[known],
            states=inner / np.maximum(lengths, np.float32(1e-12)),
        )
        return Encoded(vector=vectors[0], tokens=tokens)

    def relate(self, old: str, new: str) -> RelationScores | None:
        if self._pair_model_state is not PairModelState.READY:
            return None
        pair = (text_key(old), text_key(new))
        scores = self._relations.get(pair)
        if scores is None:
            scores = self._opened_pair_model().relation(self._beginning(old), self._beginning(new))
            if scores is not None:
                self._relations.put(pair, scores)
        return scores

    def answer(self, question: str, text: str) -> float | None:
        if self._pair_model_state is not PairModelState.READY:
            return None
        return self._opened_pair_model().answer(self._beginning(question), self._beginning(text))

    def _opened_pair_model(self) -> "PairModel":
        with self._pair_model_lock:
            if self._pair_model is None:
                self._pair_model = PairModel(self._model_dir / PAIR_MODEL, self._first, self._last)
            return self._pair_model

    def _spread(self, one: Callable[[str], _Made], texts: Sequence[str]) -> list[_Made]:
        """`one` of every text, in order, with the work spread over the threads. A single text is no batch: it
        does not wait for those of others."""
        if len(texts) == 1:
            with self._single_runs:
                return [one(texts[0])]
        # Longest first: the last text to be taken is then a short one, and no worker idles for long.
        order = sorted(range(len(texts)), key=lambda index: len(texts[index]), reverse=True)
        made = dict(zip(order, self._workers.map(lambda index: one(texts[index]), order), strict=True))
        return [made[index] for index in range(len(texts))]

    def _read(self, text: str) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The ids of the tokens with [CLS] and [SEP], and their spans without."""
        ids, spans = (found[: self.max_tokens] for found in self._pieces.of(text))
        marked = np.array([self._first, *ids, self._last], dtype=np.int64)
        return marked, np.array(spans, dtype=np.int32).reshape(-1, 2)

    def _beginning(self, text: str) -> list[int]:
        """The word pieces that the pair model reads, without those of the rest of a long text."""
        key = text_key(text)
        pieces = self._beginnings.get(key)
        if pieces is None:
            pieces = self._pieces.of(text[:MAX_TEXT_CHARS])[0][:MAX_TEXT_TOKENS]
            self._beginnings.put(key, pieces)
        return pieces

    def _run(self, tokens: NDArray[np.int64], outputs: list[str]) -> list[Vectors]:
        ids = tokens[np.newaxis]
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        try:
            results: list[Vectors] = self._graph.run(outputs, feed)
        except Exception as error:  # onnxruntime's errors share no base class
            raise EmbedderError(f"The embedding model failed: {error}") from error
        return results


def described(model_dir: Path, delta: str | None) -> tuple[Signature, PairModelState]:
    """The signature of a folder's model, and the state of its pair graph."""
    manifest = read_manifest(model_dir)
    there = (model_dir / PAIR_MODEL).is_file()
    return manifest.signature, pair_model_state(manifest, delta) if there else PairModelState.ABSENT


def pair_model_state(manifest: Manifest, delta: str | None) -> PairModelState:
    """The state of a folder's pair graph, which must be made of the delta with this sha256, or of any."""
    if manifest.pair_model is None:
        return PairModelState.ABSENT
    return PairModelState.READY if delta in (None, manifest.pair_model) else PairModelState.OUTDATED


class OpenGraph:
    """The graph of a model folder. Its first runs take the weights as they are in their file, which is mapped
    into memory. Then it is opened again with weights that are copied into the order of the processor's matrix
    products: this takes as long as it saves in `UNPACKED_RUNS` runs. Results are the same."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = _stamp(path)
        self._lock = threading.Lock()
        self._left = UNPACKED_RUNS
        self._session = open_session(path, packed=False)

    def run(self, outputs: list[str], feed: dict[str, NDArray[np.int64]]) -> list[Vectors]:
        if self._left:
            self._count()
        found: list[Vectors] = self._session.run(outputs, feed)
        return found

    def _count(self) -> None:
        with self._lock:
            if not self._left:  # another thread has opened it meanwhile
                return
            self._left -= 1
            # Not the graph of a model that was installed in the meantime.
            if not self._left and _stamp(self._path) == self._file:
                with suppress(VestigeError):
                    self._session = open_session(self._path)


def _stamp(path: Path) -> tuple[int, ...]:
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_ino, found.st_size, found.st_mtime_ns


def open_session(graph: Path, *, packed: bool = True) -> "InferenceSession":
    """A session for the graph of a model folder; ModelDamaged when it cannot be loaded.

    It runs on the caller's thread, so that a result does not depend on the number of cores. Without `packed`
    it opens in a third of the time, and each run takes 0.4 ms longer.
    """
    forbid_telemetry()
    try:
        import onnxruntime
    except ImportError as error:
        raise MissingExtra.named("local", "The local embedding model") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # the workers are the parallelism
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # An arena keeps for good what the most runs at once ever needed, 9 MB each. Without it, a run of 256
    # tokens takes 4 % longer.
    options.enable_cpu_mem_arena = False
    options.enable_mem_pattern = False
    # A spinning thread would take a core from the agent next to us between two queries.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if not packed:
        options.add_session_config_entry("session.disable_prepacking", "1")
    try:
        return onnxruntime.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's errors share no base class
        raise damaged(graph.parent, f"{graph.name} cannot be loaded ({error})") from error


class PieceReader:
    """The word pieces of texts. Those of the first plain texts are looked up in a list. The tokenizer is
    loaded for the first text that is not plain, or when that is worth it."""

    def __init__(self, model_dir: Path) -> None:
        self._model_dir = model_dir
        self._lock = threading.Lock()
        self._tokenizer: Tokenizer | None = None
        if find_spec("tokenizers") is None:
            raise MissingExtra.named("local", "The local embedding model")
        self._plain: WordPieces | None = None
        with suppress(OSError):  # an earlier version made the folder
            self._plain = WordPieces((model_dir / VOCABULARY).read_bytes())
        if self._plain is None or self._plain.id_of(UNKNOWN) is None:
            self._opened()

    def of(self, text: str) -> Pieces:
        """Ids and spans of all word pieces, without special tokens."""
        plain = self._plain
        if plain is not None and (found := plain.read(text)) is not None:
            return found
        # A lone surrogate is no Unicode text; `replace` puts one character in its place.
        readable = text.encode("utf-8", "replace").decode("utf-8")
        encoding = self._opened().encode(readable, add_special_tokens=False)
        return encoding.ids, encoding.offsets

    def special_id(self, token: str) -> int:
        found = self._opened().token_to_id(token) if self._plain is None else self._plain.id_of(token)
        if found is None:
            raise EmbedderError(f"The model's tokenizer has no {token} token.")
        return found

    def _opened(self) -> "Tokenizer":
        with self._lock:
            if self._tokenizer is None:
                self._tokenizer = _open_tokenizer(self._model_dir)
                self._plain = None
            return self._tokenizer


def _open_tokenizer(model_dir: Path) -> "Tokenizer":
    from tokenizers import Tokenizer, normalizers

    try:
        tokenizer = Tokenizer.from_file(str(model_dir / TOKENIZER))
    except Exception as error:  # tokenizers raises bare Exception
        raise damaged(model_dir, f"{TOKENIZER} cannot be loaded ({error})") from error
    # The vocabulary has no full-width letters and no ligatures. Spans still count characters as written.
    own = [] if tokenizer.normalizer is None else [tokenizer.normalizer]
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), *own])
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


# -- The pair model: how a new note relates to an older one, and whether a note answers a question
#
# A pair is one run without padding, on the thread of the caller: dynamic int8 takes the range of the
# activations over everything in a run, so a pair in a batch would have other scores than alone. The graph is
# built at installation (`minilm/pair_graph.py`), and opened for the first pair.

MAX_TEXT_TOKENS = 100
"""The tokens of each text that the model reads; the rest is ignored."""
MAX_TEXT_CHARS = 100 * MAX_TEXT_TOKENS
"""The characters of each text in which these tokens are looked for: no word piece is of a longer word."""
RELATIONS, ANSWERS = "relations", "answers"
"""The outputs of the graph: probabilities and a logit."""


class PairModel:
    """The pair graph of a model folder. Thread-safe. A failure is logged once, and leaves no scores."""

    def __init__(self, graph: Path, first: int, last: int) -> None:
        self._first, self._last = first, last
        self._lock = threading.Lock()
        self._complaint = ""
        self._graph: OpenGraph | None = None
        try:
            self._graph = OpenGraph(graph)
        except VestigeError as error:
            self._complain(error.message)

    def relation(self, old: Sequence[int], new: Sequence[int]) -> RelationScores | None:
        """The scores of two notes, given as word pieces without special tokens."""
        row = self._run(RELATIONS, old, new)
        if row is None:
            return None
        same, corrects, unclear, elaborates, other = row
        return RelationScores(
            same=same, corrects=corrects, unclear=unclear, elaborates=elaborates, other=other
        )

    def answer(self, question: Sequence[int], text: Sequence[int]) -> float | None:
        """The log odds that a text answers a question, both given as word pieces."""
        row = self._run(ANSWERS, question, text)
        return None if row is None else row[0]

    def _run(self, output: str, first: Sequence[int], second: Sequence[int]) -> list[float] | None:
        if self._graph is None:
            return None
        before = [self._first, *first[:MAX_TEXT_TOKENS], self._last]
        after = [*second[:MAX_TEXT_TOKENS], self._last]
        ids = np.array([[*before, *after]], dtype=np.int64)
        types = np.array([[0] * len(before) + [1] * len(after)], dtype=np.int64)
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": types}
        try:
            (rows,) = self._graph.run([output], feed)
            return [float(value) for value in rows[0]]
        except Exception as error:  # onnxruntime's errors share no base class
            self._complain(str(error))
            return None

    def _complain(self, message: str) -> None:
        with self._lock:
            known, self._complaint = self._complaint, message
        if message != known:  # once, however many texts are compared
            log.warning("no pair model, texts are compared by rules alone: %s", message)
