"""A BERT encoder as an ONNX graph, built from its weights without torch.

The graph uses onnxruntime's fused operators (`com.microsoft`): one node each for embedding + layer
norm, attention, skip + layer norm, and bias + GELU. The embedding graph has two outputs:
`sentence_embedding`, the mean of the token states at length one, and `last_hidden_state`, the token states
themselves. The pair graph (`pair_graph.py`) has the same encoder under another head.
"""

from collections.abc import Mapping
from dataclasses import field

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from vestige.core.lazy_dataclass import dataclass

Weights = Mapping[str, NDArray[np.float32]]

INPUTS = ("input_ids", "attention_mask", "token_type_ids")
SENTENCE = "sentence_embedding"
STATES = "last_hidden_state"

_OPSET = 17
_IR_VERSION = 8  # what the oldest supported onnxruntime reads
_FUSED = "com.microsoft"


@dataclass(frozen=True, slots=True, kw_only=True)
class BertConfig:
    """The shape of the encoder, as in its config.json."""

    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    layer_norm_eps: float


@dataclass(slots=True, kw_only=True)
class BertGraph:
    """Nodes and constants under construction."""

    weights: Weights
    config: BertConfig
    nodes: list[NodeProto] = field(default_factory=list)
    constants: list[TensorProto] = field(default_factory=list)

    def constant(self, name: str, value: NDArray[np.float32] | NDArray[np.int64]) -> str:
        self.constants.append(numpy_helper.from_array(np.asarray(value, order="C"), name))
        return name

    def weight(self, name: str) -> str:
        return self.constant(name, self.weights[name])

    def matrix(self, name: str) -> str:
        """A linear layer's weight, which torch keeps transposed."""
        return self.constant(name, self.weights[name].T)

    def axis(self, axis: int) -> str:
        """The number of a dimension as an input of a node; callers ask once for each."""
        return self.constant(f"axis.{axis}", np.array([axis]))

    def fused(self, op: str, inputs: list[str], *outputs: str, **attributes: float) -> str:
        return self.node(op, inputs, *outputs, domain=_FUSED, **attributes)

    def node(self, op: str, inputs: list[str], *outputs: str, domain: str = "", **attributes: float) -> str:
        node = helper.make_node(op, inputs, list(outputs), name=outputs[0], domain=domain)
        node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())
        self.nodes.append(node)
        return outputs[0]

    def encode(self) -> str:
        """Add the encoder; the name of its token states."""
        state, mask = _embeddings(self)
        for layer in range(self.config.num_hidden_layers):
            last = layer == self.config.num_hidden_layers - 1
            state = _layer(self, layer, state, mask, output=STATES if last else f"state.{layer}")
        return state

    def model(self, name: str, outputs: Mapping[str, list[str | int]]) -> ModelProto:
        """The finished model with these outputs and their shapes."""
        takes = [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"]) for name in INPUTS
        ]
        gives = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs.items()
        ]
        body = helper.make_graph(self.nodes, name, takes, gives, self.constants)
        opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid(_FUSED, 1)]
        return helper.make_model(body, opset_imports=opsets, ir_version=_IR_VERSION)


def build(weights: Weights, config: BertConfig) -> ModelProto:
    """The embedding graph with these weights (named as in the published checkpoint)."""
    graph = BertGraph(weights=weights, config=config)
    _pool(graph, graph.encode())
    hidden = config.hidden_size
    return graph.model("bert", {SENTENCE: ["batch", hidden], STATES: ["batch", "tokens", hidden]})


def _embeddings(graph: BertGraph) -> tuple[str, str]:
    ids, mask, types = (graph.node("Cast", [name], f"{name}.int32", to=TensorProto.INT32) for name in INPUTS)
    prefix = "embeddings."
    tables = ("word_embeddings", "position_embeddings", "token_type_embeddings")
    weights = [graph.weight(f"{prefix}{table}.weight") for table in (*tables, "LayerNorm")]
    state = graph.fused(
        "EmbedLayerNormalization",
        [ids, types, *weights, graph.weight(f"{prefix}LayerNorm.bias"), mask],
        "embeddings",
        "mask_index",
        epsilon=graph.config.layer_norm_eps,
    )
    return state, mask


def _layer(graph: BertGraph, layer: int, state: str, mask: str, *, output: str) -> str:
    prefix = f"encoder.layer.{layer}."
    attended = graph.fused(
        "Attention",
        [state, *_query_key_value(graph, prefix), mask],
        f"{prefix}attended",
        num_heads=graph.config.num_attention_heads,
    )
    mixed = _project(graph, f"{prefix}attention.output.", attended, state, output=f"{prefix}mixed")
    wide = graph.node("MatMul", [mixed, graph.matrix(f"{prefix}intermediate.dense.weight")], f"{prefix}wide")
    active = graph.fused(
        "BiasGelu", [wide, graph.weight(f"{prefix}intermediate.dense.bias")], f"{prefix}active"
    )
    return _project(graph, f"{prefix}output.", active, mixed, output=output)


def _query_key_value(graph: BertGraph, prefix: str) -> tuple[str, str]:
    """The three projections side by side, as the fused attention wants them."""
    parts = [f"{prefix}attention.self.{part}" for part in ("query", "key", "value")]
    matrix = np.concatenate([graph.weights[f"{part}.weight"].T for part in parts], axis=1)
    bias = np.concatenate([graph.weights[f"{part}.bias"] for part in parts])
    return graph.constant(f"{prefix}qkv.weight", matrix), graph.constant(f"{prefix}qkv.bias", bias)


def _project(graph: BertGraph, prefix: str, value: str, skip: str, *, output: str) -> str:
    """A linear layer, the residual connection around it, and the layer norm after both."""
    dense = graph.node("MatMul", [value, graph.matrix(f"{prefix}dense.weight")], f"{prefix}projected")
    norm = [graph.weight(f"{prefix}LayerNorm.weight"), graph.weight(f"{prefix}LayerNorm.bias")]
    return graph.fused(
        "SkipLayerNormalization",
        [dense, skip, *norm, graph.weight(f"{prefix}dense.bias")],
        output,
        epsilon=graph.config.layer_norm_eps,
    )


def _pool(graph: BertGraph, state: str) -> None:
    mask = graph.node("Cast", ["attention_mask"], "mask.float", to=TensorProto.FLOAT)
    column = graph.node("Unsqueeze", [mask, graph.axis(2)], "mask.column")
    masked = graph.node("Mul", [state, column], "state.masked")
    # The sum at length one is the mean at length one: dividing by the count changes no direction.
    summed = graph.node("ReduceSum", [masked, graph.axis(1)], "state.sum", keepdims=0)
    graph.node("LpNormalization", [summed], SENTENCE, axis=-1, p=2)
