"""The pair model as an ONNX graph: a pair classifier on the encoder of the embedding model.

Two texts go through the encoder together. Two heads read the state of [CLS], the mean state of each text, and
the difference and the product of the two means. One gives five probabilities, how a new note relates to an
old one, which comes first. The other gives a logit: whether a note answers the question, which comes first.

What training changed is small and comes with the package (`data/pair_model.npz`): a low-rank delta for every
linear layer (LoRA, Hu et al. 2021), the layer norms, the token types and the head, all in float16. `T` is the
temperature of the probabilities. The word embeddings are the base model's, so both graphs share one file of
them. The rank is free, and several deltas may be concatenated along it.
"""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import BadZipFile

import numpy as np
from onnx import ModelProto, TensorProto

from vestige.core.errors import EmbedderError
from vestige.core.lazy_dataclass import dataclass
from vestige.embed.minilm.bert_graph import BertConfig, BertGraph, Weights
from vestige.embed.onnx import ANSWERS, RELATIONS

if TYPE_CHECKING:
    from vestige.embed.minilm.weights import PairDelta

_SCALE = 2.0
"""The factor of the low-rank product in training (LoRA's alpha divided by its rank)."""

_LINEAR = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "o": "attention.output.dense",
    "i": "intermediate.dense",
    "f": "output.dense",
}
_NORMS = {"n1": "attention.output.LayerNorm", "n2": "output.LayerNorm"}
CLASSES = 5
_HEADS = {"h": CLASSES, "a": 1}
"""The heads, each of two linear layers, and their outputs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairWeights:
    """The trained arrays by name, in float32."""

    arrays: Weights

    def merged(self, base: Weights, config: BertConfig) -> Weights:
        """The encoder's weights with the delta added."""
        merged = {**base, **{name: self.arrays[key] for key, name in _replaced(config)}}
        for key, name in _adapted(config):
            merged[name] = base[name] + _SCALE * (self.arrays[f"{key}.B"] @ self.arrays[f"{key}.A"])
        return merged

    def check(self, base: Weights, config: BertConfig) -> None:
        """Refuse arrays that do not belong to this encoder: one missing, one too many, or another shape."""
        low_rank = [f"{key}.{factor}" for key, _ in _adapted(config) for factor in "AB"]
        heads = [
            f"{head}{layer}.{part}" for head in _HEADS for layer in (1, 2) for part in ("weight", "bias")
        ]
        wanted = {"T", *heads, *low_rank, *(key for key, _ in _replaced(config))}
        if differing := wanted ^ self.arrays.keys():
            raise _refusal(f"{min(differing)} is {'missing' if min(differing) in wanted else 'unknown'}")
        for key, name in _replaced(config):
            self._expect(key, base[name].shape)
        for key, name in _adapted(config):
            rank = self.arrays[f"{key}.A"].shape[0]
            self._expect(f"{key}.A", (rank, base[name].shape[1]))
            self._expect(f"{key}.B", (base[name].shape[0], rank))
        for head, outputs in _HEADS.items():
            width = self.arrays[f"{head}1.weight"].shape[0]
            self._expect(f"{head}1.weight", (width, 5 * config.hidden_size))
            self._expect(f"{head}1.bias", (width,))
            self._expect(f"{head}2.weight", (outputs, width))
            self._expect(f"{head}2.bias", (outputs,))
        self._expect("T", ())
        if not all(np.isfinite(array).all() for array in self.arrays.values()) or self.arrays["T"] <= 0:
            raise _refusal("a value is not a finite number, or the temperature is not above zero")

    def _expect(self, key: str, shape: tuple[int, ...]) -> None:
        if (found := self.arrays[key].shape) != shape:
            raise _refusal(f"{key} has the shape {found} instead of {shape}")


def read_pair_weights(delta: "PairDelta") -> PairWeights:
    """The arrays of the file, after its sha256 is checked."""
    content = delta.read()
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            return PairWeights(arrays={name: archive[name].astype(np.float32) for name in archive.files})
    except (ValueError, BadZipFile, EOFError, AttributeError) as error:
        raise _refusal(f"{Path(delta.path).name} is not an archive of arrays ({error})") from error


def build_pair_model(base: Weights, config: BertConfig, trained: PairWeights) -> ModelProto:
    """The pair graph in float32, from the base model's weights and the trained ones."""
    trained.check(base, config)
    graph = BertGraph(weights=trained.merged(base, config), config=config)
    features = _features(graph, graph.encode())
    graph.node(
        "Softmax",
        [_head(graph, features, "h", trained.arrays, float(trained.arrays["T"]))],
        RELATIONS,
        axis=1,
    )
    graph.node("Identity", [_head(graph, features, "a", trained.arrays)], ANSWERS)
    return graph.model("pair_model", {RELATIONS: ["batch", CLASSES], ANSWERS: ["batch", 1]})


def _features(graph: BertGraph, state: str) -> str:
    mask = graph.node("Cast", ["attention_mask"], "mask.float", to=TensorProto.FLOAT)
    types = graph.node("Cast", ["token_type_ids"], "types.float", to=TensorProto.FLOAT)
    of_new = graph.node("Mul", [mask, types], "mask.new")
    of_old = graph.node("Sub", [mask, of_new], "mask.old")
    axes = graph.axis(1), graph.axis(2)
    old = _mean(graph, state, of_old, "old", axes)
    new = _mean(graph, state, of_new, "new", axes)
    first = graph.node("Gather", [state, graph.constant("first", np.array(0))], "state.cls", axis=1)
    distance = graph.node("Abs", [graph.node("Sub", [old, new], "difference")], "distance")
    product = graph.node("Mul", [old, new], "product")
    return graph.node("Concat", [first, old, new, distance, product], "features", axis=1)


def _mean(graph: BertGraph, state: str, mask: str, note: str, axes: tuple[str, str]) -> str:
    """The mean state of the tokens of one note."""
    tokens, column = axes
    masked = graph.node(
        "Mul", [state, graph.node("Unsqueeze", [mask, column], f"{note}.column")], f"{note}.masked"
    )
    summed = graph.node("ReduceSum", [masked, tokens], f"{note}.sum", keepdims=0)
    count = graph.node("ReduceSum", [mask, tokens], f"{note}.count", keepdims=1)
    return graph.node("Div", [summed, count], f"{note}.mean")


def _head(graph: BertGraph, features: str, head: str, arrays: Weights, temperature: float = 1.0) -> str:
    """The logits of a head: two linear layers with GELU between, in float32, divided by the temperature."""

    def linear(value: str, layer: int, divisor: float = 1.0) -> str:
        name = f"{head}{layer}"
        weight, bias = (arrays[f"{name}.{part}"] / np.float32(divisor) for part in ("weight", "bias"))
        inputs = [value, graph.constant(f"{name}.weight", weight.T), graph.constant(f"{name}.bias", bias)]
        return graph.node("Gemm", inputs, name)

    active = graph.fused("Gelu", [linear(features, 1)], f"{head}.active")
    return linear(active, 2, temperature)


def _replaced(config: BertConfig) -> Iterator[tuple[str, str]]:
    """The arrays that take the place of a tensor of the base model, each with the tensor's name."""
    yield "enc.te", "embeddings.token_type_embeddings.weight"
    norms = [("enc.ln0", "embeddings.LayerNorm")]
    for layer in range(config.num_hidden_layers):
        norms += [(f"enc.L.{layer}.{key}", f"encoder.layer.{layer}.{name}") for key, name in _NORMS.items()]
    for key, name in norms:
        yield f"{key}.g", f"{name}.weight"
        yield f"{key}.b", f"{name}.bias"


def _adapted(config: BertConfig) -> Iterator[tuple[str, str]]:
    """The low-rank deltas, each with the name of the tensor that it is added to."""
    for layer in range(config.num_hidden_layers):
        for key, name in _LINEAR.items():
            yield f"enc.L.{layer}.{key}", f"encoder.layer.{layer}.{name}.weight"


def _refusal(reason: str) -> EmbedderError:
    return EmbedderError(
        f"The weights of the pair model do not fit: {reason}.", hint="Install Vestige again."
    )
