"""Conversion of the original weights to a model folder: fused ONNX graphs in int8, checked before use.

Plain dynamic int8 is bad on AVX2, where sums of two int8 products saturate (cosine 0.93-0.98 to
float32). One scale per channel and seven bits of range avoid that (0.987-0.995). The word embeddings
stay float32. They and the other weights are in files of their own: onnxruntime maps these into memory
instead of reading them, which saves most of the time to load and of the memory of a process, and
processes share the pages.

Runs as a child process (`python -m vestige.embed.minilm.convert SOURCE TARGET NAME [DELTA SHA256]`): it
needs hundreds of megabytes for a few seconds, which a server must not keep.
"""

import errno
import logging
import math
import shutil
import sys
import tempfile
from dataclasses import astuple
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import orjson
from numpy.typing import NDArray

from vestige.core.errors import EmbedderError, MissingExtra, VestigeError
from vestige.embed.minilm.child import DISK_FULL
from vestige.embed.minilm.manifest import (
    EMBEDDINGS,
    GRAPH,
    GRAPH_WEIGHTS,
    PAIR_MODEL,
    PAIR_WEIGHTS,
    VOCABULARY,
    Manifest,
    read_manifest,
    sha256_of,
    write_manifest,
)
from vestige.embed.minilm.weights import CONFIG, TOKENIZER, WEIGHTS, PairDelta
from vestige.embed.minilm.word_pieces import sorted_pieces
from vestige.embed.onnx import OnnxEmbedder, open_session
from vestige.embed.protocol import Signature
from vestige.settings.settings import forbid_telemetry

if TYPE_CHECKING:
    from onnx import ModelProto

    from vestige.embed.minilm.bert_graph import BertConfig

LEAST_COSINE = 0.98
"""The least cosine of the int8 vectors of the check sentences with their float32 ones."""

CHECK_SENTENCES = (
    "The user prefers TypeScript over JavaScript for new projects.",
    "Paris is the capital of France.",
    "Deploys failed on Tuesday because the database migration held a lock for ten minutes.",
)
_LARGE_BYTES = 1024
_ALIGNMENT = 64
_PREFIX = "bert."  # some checkpoints name their tensors below it
_WORD_EMBEDDINGS = "embeddings.word_embeddings.weight"


def convert(source: Path, target: Path, *, name: str, pair_model: PairDelta | None = None) -> Manifest:
    """Convert the three files in `source` into a checked model folder `target`, which must not exist.

    With `pair_model` the folder gets the pair graph too, made of the same weights and this delta.
    """
    config = read_config(source / CONFIG)
    revision = sha256_of(source / WEIGHTS)[:12]
    exact = Signature(name=name, revision=revision, dimension=config.hidden_size)
    # `precision` names the recipe too: one that gives other vectors must get another name.
    small = Signature(name=name, revision=revision, dimension=config.hidden_size, precision="int8")
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".convert-") as scratch:
        weights = read_weights(source / WEIGHTS)
        graph = build_graph(weights, config)
        quantised = quantise(graph, Path(scratch) / "int8.onnx")
        reference = Path(scratch) / "float32"
        _write_folder(graph, source, reference, exact)
        manifest = _write_folder(quantised, source, target, small)
        check(OnnxEmbedder(reference, threads=1), OnnxEmbedder(target, threads=1))
        if pair_model is not None:
            pairs = build_pair_graph(weights, config, pair_model)
            _write_pair_model(quantise(pairs, Path(scratch) / "pair_model.onnx"), target)
            manifest = write_manifest(target, small, pair_model=pair_model.sha256)
            check_pair_model(target)
    return manifest


def read_config(path: Path) -> "BertConfig":
    """The encoder's shape; EmbedderError for one that is not a plain BERT."""
    from vestige.embed.minilm.bert_graph import BertConfig

    try:
        content = orjson.loads(path.read_bytes())
        kind = (content["model_type"], content["hidden_act"], content["position_embedding_type"])
        if kind != ("bert", "gelu", "absolute"):
            raise EmbedderError(f"A {'/'.join(kind)} model cannot be converted, only a plain BERT.")
        return BertConfig(
            hidden_size=int(content["hidden_size"]),
            num_hidden_layers=int(content["num_hidden_layers"]),
            num_attention_heads=int(content["num_attention_heads"]),
            layer_norm_eps=float(content["layer_norm_eps"]),
        )
    except (ValueError, LookupError, TypeError) as error:
        raise EmbedderError(f"{path.name} is not the configuration of a BERT model: {error}") from error


def read_weights(path: Path) -> dict[str, NDArray[np.float32]]:
    """The tensors of a safetensors file as float32, under the names of a bare BERT."""
    try:
        from safetensors import SafetensorError
        from safetensors.numpy import load_file
    except ImportError as error:
        raise MissingExtra.named("local", "Converting the embedding model") from error
    try:
        tensors = load_file(path)
    except SafetensorError as error:
        raise EmbedderError(f"{path.name} is not a safetensors file: {error}") from error
    return {name.removeprefix(_PREFIX): tensor.astype(np.float32) for name, tensor in tensors.items()}


def build_graph(weights: dict[str, NDArray[np.float32]], config: "BertConfig") -> "ModelProto":
    """The float32 graph; EmbedderError when a tensor is missing."""
    try:
        from vestige.embed.minilm.bert_graph import build
    except ImportError as error:
        raise MissingExtra.named("local", "Converting the embedding model") from error
    try:
        return build(weights, config)
    except KeyError as error:
        raise EmbedderError(f"The weights lack the tensor {error}.") from error


def build_pair_graph(
    weights: dict[str, NDArray[np.float32]], config: "BertConfig", delta: PairDelta
) -> "ModelProto":
    """The pair graph in float32; EmbedderError when the delta is not this version's, or does not fit."""
    from vestige.embed.minilm.pair_graph import build_pair_model, read_pair_weights

    return build_pair_model(weights, config, read_pair_weights(delta))


def quantise(graph: "ModelProto", scratch_file: Path) -> "ModelProto":
    """The graph with its matrix products in int8; writes `scratch_file`."""
    import onnx

    forbid_telemetry()
    from onnxruntime.quantization import QuantType, quantize_dynamic

    copy = onnx.ModelProto()
    copy.CopyFrom(graph)  # quantize_dynamic changes what it is given
    quantize_dynamic(
        copy,
        scratch_file,
        weight_type=QuantType.QInt8,
        per_channel=True,
        reduce_range=True,
        op_types_to_quantize=["MatMul", "Attention"],
        # The fused nodes have no shape inference; without a default their inputs look untyped.
        extra_options={"MatMulConstBOnly": True, "DefaultTensorType": onnx.TensorProto.FLOAT},
    )
    return onnx.load(scratch_file)


def check(reference: OnnxEmbedder, converted: OnnxEmbedder) -> None:
    """Refuse a conversion whose vectors differ from those of the float32 graph."""
    wanted = reference.embed_documents(CHECK_SENTENCES)
    cosines = np.sum(wanted * converted.embed_documents(CHECK_SENTENCES), axis=1)
    # `not (… >= …)` and not `<`: NaN must be refused too.
    if not bool(np.all(cosines >= LEAST_COSINE)):
        shown = ", ".join(f"{cosine:.4f}" for cosine in cosines)
        raise EmbedderError(
            f"The converted model is not close enough to the original (cosines {shown}).",
            hint="Check that onnxruntime works on this machine, or choose another embedder.",
        )


def check_pair_model(folder: Path) -> None:
    """Refuse a pair graph that does not run. How well it judges is tested, not checked here."""
    open_session(folder / PAIR_MODEL)  # its error says why
    scores = OnnxEmbedder(folder, threads=1).relate(*CHECK_SENTENCES[:2])
    if scores is None or not math.isclose(sum(astuple(scores)), 1.0, abs_tol=1e-3):
        raise EmbedderError(
            f"The converted pair model does not give probabilities ({scores}).",
            hint="Check that onnxruntime works on this machine, or choose another embedder.",
        )


def _write_folder(graph: "ModelProto", source: Path, folder: Path, signature: Signature) -> Manifest:
    import onnx
    from onnx.external_data_helper import set_external_data

    folder.mkdir()
    for tensor in graph.graph.initializer:
        if tensor.name == _WORD_EMBEDDINGS:
            set_external_data(tensor, EMBEDDINGS)
    move_weights(graph, folder / GRAPH_WEIGHTS)
    onnx.save(graph, folder / GRAPH)
    shutil.copymode(folder / GRAPH, folder / EMBEDDINGS)  # onnx makes it private; a shared cache is not
    shutil.copyfile(source / TOKENIZER, folder / TOKENIZER)
    _list_pieces(folder)
    return write_manifest(folder, signature)


def _write_pair_model(graph: "ModelProto", folder: Path) -> None:
    """Write the pair graph. Its word embeddings are those in the file of the embedding graph."""
    import onnx
    from onnx.external_data_helper import set_external_data

    for tensor in graph.graph.initializer:
        if tensor.name == _WORD_EMBEDDINGS:
            set_external_data(tensor, EMBEDDINGS, offset=0, length=len(tensor.raw_data))
            tensor.ClearField("raw_data")
            tensor.data_location = onnx.TensorProto.EXTERNAL
    move_weights(graph, folder / PAIR_WEIGHTS)
    onnx.save(graph, folder / PAIR_MODEL)


def _list_pieces(folder: Path) -> None:
    (folder / VOCABULARY).write_bytes(sorted_pieces((folder / TOKENIZER).read_bytes()))


def move_weights(graph: "ModelProto", path: Path) -> None:
    """Move what is large in a graph, except the word embeddings, to a file beside the graph."""
    import onnx
    from onnx.external_data_helper import set_external_data

    with path.open("wb") as file:
        for tensor in graph.graph.initializer:
            size = len(tensor.raw_data)
            if size < _LARGE_BYTES or tensor.name == _WORD_EMBEDDINGS:
                continue
            file.write(bytes(-file.tell() % _ALIGNMENT))
            set_external_data(tensor, path.name, offset=file.tell(), length=size)
            file.write(tensor.raw_data)
            tensor.ClearField("raw_data")
            tensor.data_location = onnx.TensorProto.EXTERNAL


def lay_out(folder: Path, target: Path) -> Manifest:
    """Make a model folder `target` of one of an earlier version, whose weights are inside the graphs."""
    import onnx

    manifest = read_manifest(folder)
    target.mkdir()
    for name in (EMBEDDINGS, TOKENIZER):
        shutil.copyfile(folder / name, target / name)
    _list_pieces(target)
    for name, weights in ((GRAPH, GRAPH_WEIGHTS), (PAIR_MODEL, PAIR_WEIGHTS)):
        if name in manifest.files:
            graph = onnx.load(folder / name, load_external_data=False)
            move_weights(graph, target / weights)
            onnx.save(graph, target / name)
    return write_manifest(target, manifest.signature, pair_model=manifest.pair_model)


def main(arguments: list[str]) -> int:
    """Convert in a process of its own; the reason of a failure goes to stderr."""
    source, target, name, *delta = arguments
    pair_model = PairDelta(path=Path(delta[0]), sha256=delta[1]) if delta else None
    try:
        convert(Path(source), Path(target), name=name, pair_model=pair_model)
    except (VestigeError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
        return DISK_FULL if full else 1
    return 0


if __name__ == "__main__":
    logging.disable(logging.WARNING)  # the quantiser's advice is for people who tune models
    sys.exit(main(sys.argv[1:]))
