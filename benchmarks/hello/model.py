"""The least that a search by meaning does in a fresh process, without Vestige: open the model, encode.

    python benchmarks/hello/model.py MODEL_FOLDER QUERY

The options of onnxruntime are those of the first runs in `vestige.embed.onnx`.
"""

import os
import sys
from pathlib import Path

os.environ.update(OPENBLAS_NUM_THREADS="1", ORT_DISABLE_TELEMETRY="1")

import numpy as np
import onnxruntime
from tokenizers import Tokenizer


def session(graph: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.enable_cpu_mem_arena = options.enable_mem_pattern = False
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.disable_prepacking", "1")
    return onnxruntime.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])


def main() -> None:
    folder, query = Path(sys.argv[1]), sys.argv[2]
    embedding = session(folder / "model.onnx")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()  # the file asks for 128 tokens
    ids = np.array([tokenizer.encode(query).ids], dtype=np.int64)
    feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    embedding.run(None, feed)
    sys.stdout.flush()
    os._exit(0)  # as `vestige` ends


if __name__ == "__main__":
    main()
