"""The cross-encoder on a tiny model made here and loaded by fastembed from a folder; no hub is reached."""

import json
import logging
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from tokenizers import processors

from testbed.patience import PATIENCE_SECONDS
from testbed.world import open_world
from tests.embed.minilm import tiny_bert
from vestige.app.app import open_server
from vestige.core.errors import EmbedderError, MissingExtra, ModelUnavailable
from vestige.embed.background import EmbedderState, EmbedderStatus
from vestige.embed.minilm.bert_graph import STATES, build
from vestige.embed.minilm.convert import read_config
from vestige.embed.protocol import Reranker
from vestige.embed.rerank import QUERY_CHARACTERS, TEXT_CHARACTERS, FastembedReranker, RerankerSource
from vestige.settings.settings import allowed_in_project, documented_fields

HEAD = (np.random.default_rng(11).standard_normal((tiny_bert.HIDDEN, 1)) * 0.5).astype(np.float32)
BIAS = -0.25
QUERY = "which database failed"
TEXTS = [
    "the deploy failed on tuesday",
    "cat",
    "the user prefers coffee over tea because of the cat",
    "",
    "a",
]


def weights() -> dict[str, tiny_bert.Array]:
    """The tiny BERT's, with one kind of token: its oracle knows no pairs."""
    made = tiny_bert.make_weights()
    kinds = made["embeddings.token_type_embeddings.weight"]
    kinds[1] = kinds[0]
    return made


def write_model(
    folder: Path, source: Path, *, file: str = "model.onnx", bias: float = BIAS, longest: int = 64
) -> Path:
    """A tiny cross-encoder in the layout of a hub: the state of [CLS] times a head, one logit."""
    graph = build(weights(), read_config(source / "config.json"))
    del graph.graph.output[:]
    constants = {"zero": np.array(0), "head": HEAD, "bias": np.array([bias], dtype=np.float32)}
    graph.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in constants.items())
    graph.graph.node.extend(
        [
            helper.make_node("Gather", [STATES, "zero"], ["first"], axis=1),
            helper.make_node("MatMul", ["first", "head"], ["headed"]),
            helper.make_node("Add", ["headed", "bias"], ["logits"]),
        ]
    )
    graph.graph.output.append(helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 1]))
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    onnx.save(graph, folder / file)
    tokenizer = tiny_bert.make_tokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    files = {
        "config.json": tiny_bert.CONFIG,
        "tokenizer_config.json": {"model_max_length": longest, "pad_token": "[PAD]"},
        "special_tokens_map.json": {"pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"},
    }
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def model_path(tiny_source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("reranker"), tiny_source)


@pytest.fixture(scope="module")
def reranker(model_path: Path) -> FastembedReranker:
    return load(model_path)


def load(folder: Path) -> FastembedReranker:
    return FastembedReranker("any/name", folder / "cache", threads=1, offline=True, model_path=folder)


def refusal(folder: Path) -> ModelUnavailable:
    with pytest.raises(ModelUnavailable) as caught:
        load(folder)
    return caught.value


def expected(query: str, text: str) -> float:
    encode = tiny_bert.make_tokenizer().encode
    ids = [2, *encode(query).ids, 3, *encode(text).ids, 3]
    logit = (tiny_bert.forward(weights(), ids)[0] @ HEAD).item() + BIAS
    return float(1 / (1 + np.exp(-logit)))


# -- the model -----------------------------------------------------------------------------------


def test_a_judgement_is_the_logistic_of_the_logit_of_the_pair(reranker: FastembedReranker) -> None:
    judged = reranker.score(QUERY, TEXTS)
    assert judged.dtype == np.float64
    np.testing.assert_allclose(judged, [expected(QUERY, text) for text in TEXTS], atol=1e-5)
    assert np.ptp(judged) > 0.1  # the texts are told apart
    assert abs(reranker.score("cat", TEXTS)[0] - judged[0]) > 0.01  # and so are the queries


def test_a_judgement_does_not_depend_on_the_texts_beside_it(reranker: FastembedReranker) -> None:
    texts = [" ".join(tiny_bert.WORDS[: 1 + n % 30]) for n in range(20)]
    apart = [reranker.score(QUERY, [text])[0] for text in texts]
    np.testing.assert_allclose(reranker.score(QUERY, texts), apart, atol=1e-5)


def test_no_texts_get_no_judgements(reranker: FastembedReranker) -> None:
    assert reranker.score(QUERY, []).shape == (0,)


def test_any_text_can_be_judged(reranker: FastembedReranker) -> None:
    odd = ["", " ", "\x00", "a\ud800b", "😀", "日本", "cat " * 50_000]
    for query in odd:
        judged = reranker.score(query, odd)
        assert ((judged >= 0) & (judged <= 1)).all()


def test_what_lies_beyond_the_bounds_is_not_read(reranker: FastembedReranker) -> None:
    # Blanks are no word pieces, so the tokenizer's own limit is far away.
    query, text = " " * (QUERY_CHARACTERS - 3) + "cat", " " * (TEXT_CHARACTERS - 3) + "dog"
    assert reranker.score(query, [text]) == pytest.approx(reranker.score("cat", ["dog"]))
    assert reranker.score(query + " sat", [text + " sat"]) == pytest.approx(reranker.score(query, [text]))


def test_several_threads_get_what_one_gets(reranker: FastembedReranker) -> None:
    alone = reranker.score(QUERY, TEXTS)
    with ThreadPoolExecutor(4) as threads:
        for judged in threads.map(lambda _: reranker.score(QUERY, TEXTS), range(20)):
            np.testing.assert_allclose(judged, alone, atol=1e-6)


def test_a_folder_as_it_comes_from_the_hub_is_taken(tiny_source: Path, tmp_path: Path) -> None:
    reranker = load(write_model(tmp_path, tiny_source, file="onnx/model.onnx"))
    assert reranker.name == str(tmp_path)
    assert reranker.score(QUERY, ["cat"])[0] == pytest.approx(expected(QUERY, "cat"), abs=1e-5)


def test_a_model_that_fails_while_it_judges_is_our_own_error(tiny_source: Path, tmp_path: Path) -> None:
    # The tokenizer lets through more word pieces than the model has positions for.
    reranker = load(write_model(tmp_path, tiny_source, longest=10_000))
    with pytest.raises(EmbedderError, match="failed"):
        reranker.score(QUERY, ["cat " * 300])
    assert reranker.score(QUERY, ["cat"]).shape == (1,)


# -- models that cannot be had -------------------------------------------------------------------


def test_a_folder_without_a_model_is_unavailable_and_named(tmp_path: Path) -> None:
    error = refusal(tmp_path)
    assert str(tmp_path) in error.message
    assert "model.onnx" in error.message
    assert "search.reranker_path" in (error.hint or "")


def test_a_damaged_model_is_unavailable(tiny_source: Path, tmp_path: Path) -> None:
    write_model(tmp_path, tiny_source)
    (tmp_path / "model.onnx").write_bytes(b"nonsense")
    assert refusal(tmp_path).code == "model_unavailable"


def test_a_model_that_gives_vectors_instead_of_judgements_is_refused_at_once(
    tiny_source: Path, tmp_path: Path
) -> None:
    write_model(tmp_path, tiny_source)
    graph = build(weights(), read_config(tiny_source / "config.json"))
    states = next(output for output in graph.graph.output if output.name == STATES)
    del graph.graph.output[:]
    graph.graph.output.append(states)
    onnx.save(graph, tmp_path / "model.onnx")
    assert "cannot be loaded" in refusal(tmp_path).message


def test_a_model_that_gives_no_numbers_is_refused_at_once(tiny_source: Path, tmp_path: Path) -> None:
    assert "one number" in refusal(write_model(tmp_path, tiny_source, bias=float("nan"))).message


def test_a_name_that_fastembed_does_not_know_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match="test/unknown") as caught:
        FastembedReranker("test/unknown", tmp_path, threads=1)
    assert "search.reranker_model" in (caught.value.hint or "")


def test_offline_a_model_that_was_never_downloaded_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable) as caught:
        FastembedReranker("Xenova/ms-marco-MiniLM-L-6-v2", tmp_path, threads=1, offline=True)
    assert caught.value.details["reason"] == "offline"
    assert "Unset VESTIGE_OFFLINE" in (caught.value.hint or "")


def test_without_the_library_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastembed.rerank.cross_encoder", None)
    with pytest.raises(MissingExtra) as caught:
        FastembedReranker("any", tmp_path, threads=1)
    assert caught.value.details == {"extra": "fastembed"}


# -- bringing it ---------------------------------------------------------------------------------


class Judge:
    """A reranker of its own kind: the share of a text that is the query's length."""

    name = "judge"

    def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float64]:
        return np.array([min(1.0, len(query) / max(1, len(text))) for text in texts])


def source(load: Callable[[], Reranker], *, wait_seconds: float = PATIENCE_SECONDS) -> RerankerSource:
    return RerankerSource(load, monotonic=lambda: 0.0, wait_seconds=wait_seconds)


def test_it_is_loaded_when_first_asked_for_and_only_once() -> None:
    judge, loads = Judge(), []

    def bring() -> Reranker:
        loads.append(threading.current_thread())
        return judge

    rerankers = source(bring)
    assert (loads, rerankers.status().state) == ([], EmbedderState.ABSENT)
    with ThreadPoolExecutor(4) as threads:
        got = list(threads.map(lambda _: rerankers(), range(8)))
    assert all(one is judge for one in got)
    assert len(loads) == 1
    assert rerankers.status() == EmbedderStatus(state=EmbedderState.READY, detail="judge")


def test_a_load_that_takes_long_is_not_waited_for() -> None:
    go_on = threading.Event()

    def bring() -> Reranker:
        assert go_on.wait(PATIENCE_SECONDS)
        return Judge()

    elapsed = iter([0.0, 1.0, 6.0, 7.0])
    rerankers = RerankerSource(bring, monotonic=lambda: next(elapsed), wait_seconds=0.5)
    assert rerankers() is None  # the half second it may take was over before this call looked
    assert rerankers.status().state is EmbedderState.LOADING
    assert rerankers() is None
    go_on.set()
    rerankers.close()


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MissingExtra.named("fastembed", "The reranker"), "needs the extra 'fastembed'"),
        (ZeroDivisionError("by zero"), "Loading the reranker failed: by zero"),
    ],
)
def test_a_failure_is_logged_and_told_and_not_tried_again(
    error: Exception, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    tries = []

    def bring() -> Reranker:
        tries.append(1)
        raise error

    rerankers = source(bring)
    assert [rerankers(), rerankers()] == [None, None]
    assert len(tries) == 1
    assert rerankers.status().state is EmbedderState.FAILED
    assert said in rerankers.status().detail
    warnings = [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert said in warnings[0]


def test_after_closing_there_is_none_even_when_it_arrives_later() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def bring() -> Reranker:
        begun.set()
        assert go_on.wait(PATIENCE_SECONDS)
        return Judge()

    rerankers = source(bring)
    rerankers.start()
    assert begun.wait(PATIENCE_SECONDS)
    closing = threading.Thread(target=rerankers.close)
    closing.start()
    assert rerankers() is None  # this call was waiting, and is let go by the closing
    go_on.set()
    closing.join(PATIENCE_SECONDS)
    assert not closing.is_alive()
    assert (rerankers(), rerankers.status().state) == (None, EmbedderState.OFF)


def test_one_that_is_there_already_is_handed_out_and_given_up() -> None:
    judge = Judge()
    rerankers = RerankerSource.of(judge)
    assert rerankers() is judge
    rerankers.close()
    assert rerankers() is None


# -- settings ------------------------------------------------------------------------------------


def test_by_default_there_is_none(tmp_path: Path) -> None:
    with open_world(tmp_path) as world:
        assert world.app.engine.reranker() is None
        assert world.app.engine.reranker.status().state is EmbedderState.OFF


def test_the_settings_bring_the_model_of_a_folder(model_path: Path, tmp_path: Path) -> None:
    chosen: dict[str, Any] = {"search.reranker": "fastembed", "search.reranker_path": str(model_path)}
    with open_world(tmp_path, **chosen) as world:
        assert world.app.engine.reranker.status().state is EmbedderState.ABSENT
        reranker = world.app.engine.reranker()
        assert reranker is not None
        assert reranker.score(QUERY, ["cat"])[0] == pytest.approx(expected(QUERY, "cat"), abs=1e-5)
    assert world.app.engine.reranker() is None


def test_a_search_lets_it_judge_and_tells_so(model_path: Path, tmp_path: Path) -> None:
    chosen: dict[str, Any] = {"search.reranker": "fastembed", "search.reranker_path": str(model_path)}
    with open_world(tmp_path, **chosen) as world:
        for text in ("the cat sat", "the dog ran", "a cat and a dog"):
            world.remember(text, force_create=True)
        answer = world.call("search", query=QUERY, explain=True, min_confidence=0, all=True)

    stages = [[stage["stage"] for stage in hit["explain"]["stages"]] for hit in answer["results"]]
    assert stages
    assert all(one[:3] == ["relevance", "reranking", "temporal"] for one in stages)
    judged = [
        hit["explain"]["stages"][1]["score"] - hit["explain"]["stages"][0]["score"]
        for hit in answer["results"]
    ]
    assert min(judged) == pytest.approx(0, abs=1e-6)
    assert max(judged) > 0


def test_a_model_that_cannot_be_had_leaves_the_reason(tmp_path: Path) -> None:
    chosen: dict[str, Any] = {
        "search.reranker": "fastembed",
        "embeddings.cache_dir": str(tmp_path / "models"),
    }
    with open_world(tmp_path, offline=True, **chosen) as world:
        assert world.app.engine.reranker() is None
        status = world.app.engine.reranker.status()
        assert (status.state, "ms-marco" in status.detail) == (EmbedderState.FAILED, True)
        assert "search.reranker_path" in str((status.error or {}).get("hint"))


def test_a_server_brings_it_before_anybody_asks(model_path: Path, tmp_path: Path) -> None:
    options = {
        "data_dir": str(tmp_path),
        "storage.backend": "memory",
        "embeddings.provider": "off",
        "search.reranker": "fastembed",
        "search.reranker_path": str(model_path),
    }
    with open_server(options) as app:
        assert app.engine.reranker.status().state is not EmbedderState.ABSENT


def test_a_project_may_set_nothing_of_it() -> None:
    settings = [(name, field) for name, field in documented_fields() if name.startswith("search.")]
    assert len(settings) == 4
    assert not any(allowed_in_project(field) for _, field in settings)
