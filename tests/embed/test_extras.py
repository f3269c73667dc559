"""Without its library an embedder names the extra that brings it."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from vestige.core.errors import MissingExtra
from vestige.embed.fastembed import FastembedEmbedder
from vestige.embed.onnx import OnnxEmbedder
from vestige.embed.openai import OpenAIEmbedder

MAKERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "onnxruntime": ("local", lambda folder: OnnxEmbedder(folder, threads=1)),
    "tokenizers": ("local", lambda folder: OnnxEmbedder(folder, threads=1)),
    "fastembed": ("fastembed", lambda folder: FastembedEmbedder("any", folder, threads=1)),
    "httpx": ("remote", lambda _: OpenAIEmbedder("http://host/v1", "any", None, 8, sleep=lambda _: None)),
}


@pytest.mark.parametrize("library", MAKERS)
def test_a_missing_library_is_an_error_that_names_its_extra(
    library: str, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    extra, make = MAKERS[library]
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtra) as caught:
        make(tiny_model)
    assert caught.value.details == {"extra": extra}
    assert library in (caught.value.hint or "")
