"""The retrieval benchmark: its measures are right, it reads its data, and it runs from end to end."""

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from benchmarks.bm25 import Bm25, words
from benchmarks.plot import bars, lines
from benchmarks.quality import abstention, arms, metrics, precision
from benchmarks.quality.abstention import Sureness
from benchmarks.quality.collections import cranfield
from benchmarks.quality.corpus import Corpus, Document, Missing, Question
from benchmarks.quality.locomo import conversations, heal, renamed
from benchmarks.quality.longmemeval import longmemeval
from benchmarks.quality.ranked import RECALL, Ranked, by_thread, mean, rows, strongest
from benchmarks.quality.run import SETS, run
from benchmarks.quality.sets import OURS
from benchmarks.quality.transcripts import messages
from benchmarks.report import Cell, publish

GOLD = {"a": 1.0, "b": 1.0}


def _ranked(*keys: str, gold: Mapping[str, float] = GOLD, category: str = "") -> Ranked:
    return Ranked(question=Question(text="?", gold=gold, category=category), top=keys[:10], deep=keys)


def _locomo(folder: Path) -> Path:
    """Two tiny conversations in LoCoMo's shape."""

    def talk(name: str, speakers: tuple[str, str], things: tuple[str, ...]) -> dict[str, object]:
        told: dict[str, object] = {"speaker_a": speakers[0], "speaker_b": speakers[1]}
        questions = []
        for number, thing in enumerate(things, 1):
            told[f"session_{number}_date_time"] = f"1:56 pm on {number} May, 2023"
            told[f"session_{number}"] = [
                {"speaker": speakers[0], "dia_id": f"D{number}:1", "text": f"I bought a {thing} yesterday."},
                {"speaker": speakers[1], "dia_id": f"D{number}:2", "text": "Nice! Where did you find it?"},
            ]
            evidence = [f"D:{number}:01"] if number == 1 else [f"D{number}:1"]
            questions.append(
                {"question": f"Who bought the {thing}?", "evidence": evidence, "category": 4, "answer": ""}
            )
        questions.append({"question": "Unanswerable?", "evidence": ["D"], "category": 5})
        return {"sample_id": name, "conversation": told, "qa": questions}

    talks = [
        talk("conv-1", ("Ada", "Bob"), ("telescope", "canoe", "harp")),
        talk("conv-2", ("Cid", "Dee"), ("tractor", "compass", "kettle")),
    ]
    (folder / "locomo.json").write_text(json.dumps(talks), encoding="utf-8")
    return folder


def _others(folder: Path) -> Path:
    """A little of every other set, in its own shape."""
    files = {
        "cranfield/cran.all.1400": ".I 1\n.W\nheat in slabs\n.I 2\n.W\nshock waves\n",
        "cranfield/cran.qry": ".I 001\n.W\nheat conduction ?\n",
        "cranfield/cranqrel": "1 1 1\n",
        "cosqa/code_idx_map.json": {"def area(r): return r * r": 0, "def greet(): print('hello')": 1},
        "cosqa/queries.json": [{"doc": "python greet", "retrieval_idx": 1}],
        "claude_sessions/s1.jsonl": json.dumps({"type": "user", "message": {"content": "close the file"}}),
        "claude_sessions/s2.jsonl": json.dumps({"type": "user", "message": {"content": "rename the flag"}}),
        "claude_sessions/queries.json": [{"subject": "rename flag", "gold_sessions": ["s2"]}],
        "longmemeval/sample.json": [
            {
                "question": "What do I play?", "question_type": "x", "answer_session_ids": ["a"],
                "haystack_session_ids": ["a"], "haystack_dates": ["2023/05/30 (Tue) 03:52"],
                "haystack_sessions": [[{"role": "user", "content": "I play the oboe."}]],
            }
        ],
        "precisionmembench/beliefs.seed.json": [
            {
                "_id": "b1", "user_id": "test-user", "scope": ["domain:code"], "content": "Uses tabs.",
                "canonical_name": "indent", "aliases": ["tabs"], "type": "preference", "pinned": False,
                "superseded_by": None, "resolved_at": None, "updated_at": "2026-01-01T00:00:00Z",
            }
        ],
        "precisionmembench/cases.json": [
            {
                "query": "tabs or spaces?", "scope": ["domain:code"],
                "expect": {"relevantBeliefs": {"shouldOnlyInclude": ["b1"]}},
            },
            {"query": "", "scope": ["domain:code"], "expect": {}},
        ],
    }  # fmt: skip
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return folder


# -- measures ---------------------------------------------------------------------------------------


def test_frac_any_and_all_look_at_the_first_k_only() -> None:
    ranking = ["x", "a", "y", "b"]
    assert metrics.frac(ranking, GOLD, 2) == 0.5
    assert metrics.frac(ranking, GOLD, 4) == 1.0
    assert (metrics.any_found(ranking, GOLD, 1), metrics.any_found(ranking, GOLD, 2)) == (0.0, 1.0)
    assert (metrics.all_found(ranking, GOLD, 3), metrics.all_found(ranking, GOLD, 4)) == (0.0, 1.0)


def test_the_reciprocal_rank_is_that_of_the_first_gold_or_nothing() -> None:
    assert metrics.reciprocal_rank(["x", "y", "b", "a"], GOLD) == pytest.approx(1 / 3)
    assert metrics.reciprocal_rank(["x"], GOLD) == 0.0


def test_ndcg_is_1_for_the_best_order_and_counts_grades_and_places() -> None:
    gold = {"a": 3.0, "b": 1.0}
    assert metrics.ndcg(["a", "b", "x"], gold, 10) == pytest.approx(1.0)
    best = 3 / math.log2(2) + 1 / math.log2(3)
    assert metrics.ndcg(["b", "x", "a"], gold, 10) == pytest.approx((1 + 3 / math.log2(4)) / best)
    assert metrics.ndcg(["b", "x", "a"], gold, 1) == pytest.approx(1 / 3)


def test_a_thread_stands_where_its_best_turn_stood_and_its_gold_is_counted_once() -> None:
    threads = {"t1": "A", "t2": "A", "t3": "B"}
    (found,) = by_thread([_ranked("t3", "t2", "t1", gold={"t1": 1.0, "t2": 1.0})], threads)
    assert (list(found.top), found.question.gold) == (["B", "A"], {"A": 1.0})


def test_rows_are_means_over_questions_and_categories_are_kept_apart() -> None:
    answered = [_ranked("a", "b", category="one"), _ranked("x", category="two")]
    (whole,) = rows({"arm": answered}, RECALL)
    assert (whole["frac@10"], whole["MRR"]) == (0.5, 0.5)
    one, two = rows({"arm": answered}, RECALL, categories=("one", "two"))
    assert (one["category"], one["frac@10"], two["frac@10"]) == ("one", 1.0, 0.0)


def test_only_the_strongest_form_of_bm25_is_kept() -> None:
    outcomes = {"BM25 (turn)": [_ranked("x")], "BM25 (turn ±1)": [_ranked("a")], "ours": [_ranked("y")]}
    assert list(strongest(outcomes, RECALL["frac@10"], "BM25")) == ["BM25 (turn ±1)", "ours"]


def test_bm25_gives_the_scores_of_a_case_computed_by_hand() -> None:
    # Stems: text 0 has 2 words, text 1 has 4, so the mean length is 3; "heron" is in one of two texts.
    index = Bm25(["The heron waited", "geese, swans and geese swimming"])
    idf = math.log(1 + (2 - 1 + 0.5) / (1 + 0.5))
    norm_short, norm_long = 1.5 * (0.25 + 0.75 * 2 / 3), 1.5 * (0.25 + 0.75 * 4 / 3)
    assert index.scores("a heron")[0] == pytest.approx(idf / (1 + norm_short))
    assert index.scores("geese geese")[1] == pytest.approx(2 * idf * 2 / (2 + norm_long))
    assert index.top("herons swim", 5) == [0, 1]
    assert index.top("nothing of that", 5) == []


def test_bm25_reads_stems_without_stop_words_and_cuts_identifiers() -> None:
    assert words("What did the runners_up RUN?") == ["runner", "up", "run"]


def test_neighbours_count_for_bm25_within_a_thread_only() -> None:
    def turn(key: str, content: str, thread: str) -> Document:
        return Document(key=key, content=content, thread=thread)

    documents = [turn("1", "heron", "A"), turn("2", "yes", "A"), turn("3", "sure", "B")]
    near = arms.keywords(Corpus(name="", documents=documents, questions=()))["BM25 (turn ±1)"]
    assert near.rank("heron", 10) == ["1", "2"]


def test_random_answers_come_near_to_their_expected_value() -> None:
    documents = [Document(key=str(number), content="x") for number in range(100)]
    questions = [Question(text="?", gold={str(number): 1.0}) for number in range(50)]
    drawn = arms.at_random(Corpus(name="", documents=documents, questions=questions))
    assert mean(drawn, RECALL["frac@10"]) == pytest.approx(0.1, abs=0.03)


def test_equal_texts_folded_into_one_hit_take_the_places_after_it() -> None:
    answer = {"results": [{"id": "1", "duplicateIds": ["3"]}, {"id": "2"}]}
    assert arms.found_keys(answer, {"1": "a", "2": "b", "3": "c"}) == ["a", "c", "b"]


# -- data -------------------------------------------------------------------------------------------


def test_malformed_evidence_is_healed_and_nonsense_dropped() -> None:
    assert heal(["D8:6; D9:17", "D:11:26", "D30:05", "D"]) == ["D8:6", "D9:17", "D11:26", "D30:5"]


def test_a_conversation_is_read_with_its_threads_times_and_usable_questions(tmp_path: Path) -> None:
    (corpus, speakers), _ = conversations(_locomo(tmp_path))
    first = corpus.documents[0]
    assert speakers == ("Ada", "Bob")
    assert first.item() == {
        "content": "Ada: I bought a telescope yesterday.",
        "thread": "conv-1/session_1",
        "position": 0,
        "author": "Ada",
        "source": "conv-1",
        "occurred_at": datetime(2023, 5, 1, 13, 56, tzinfo=UTC).isoformat(),
    }
    assert [list(question.gold) for question in corpus.questions] == [
        ["conv-1/D1:1"], ["conv-1/D2:1"], ["conv-1/D3:1"],
    ]  # fmt: skip


def test_a_question_is_asked_about_other_people_by_whole_names() -> None:
    assert (
        renamed("Did Jon's Jonquil die, Ann?", ("Jon", "Ann"), ("Max", "Zoe"))
        == "Did Max's Jonquil die, Zoe?"
    )


def test_cranfield_questions_are_numbered_by_place_and_1_is_the_best_grade(tmp_path: Path) -> None:
    folder = tmp_path / "cranfield"
    folder.mkdir()
    texts = ".I 1\n.T\nt\n.W\nwings\n.I 2\n.T\nt\n.W\nshocks\n.I 3\n.T\nt\n.W\n\n"
    (folder / "cran.all.1400").write_text(texts, encoding="utf-8")
    (folder / "cran.qry").write_text(".I 001\n.W\nwhat ?\n.I 004\n.W\nwhy ?\n", encoding="utf-8")
    (folder / "cranqrel").write_text("1 1 1\n2 2 4\n2 3 1\n2 1 \n", encoding="utf-8")
    corpus = cranfield(tmp_path)
    assert [document.content for document in corpus.documents] == ["wings", "shocks"]
    assert [(question.text, question.gold) for question in corpus.questions] == [
        ("what ?", {"cranfield/1": 4.0}), ("why ?", {"cranfield/2": 1.0}),
    ]  # fmt: skip


def test_a_transcript_is_read_as_what_was_said_and_done_broken_lines_aside() -> None:
    done = {"type": "tool_use", "name": "Read", "input": {"file_path": "a.go", "limit": 3}}
    lines_ = [
        json.dumps({"type": "summary", "summary": "left out"}),
        json.dumps({"type": "user", "message": {"content": "fix it"}}),
        '{"type": "assistant", "mess',
        json.dumps({"type": "assistant", "message": {"content": [{"type": "text", "text": "ok"}, done]}}),
        json.dumps({"type": "user", "message": {"content": [{"type": "tool_result", "content": "file"}]}}),
    ]
    assert list(messages("\n".join(lines_))) == [("user", "fix it"), ("assistant", "ok\nRead a.go")]
    whole = {"messages": [{"type": "user", "content": "hello"}, {"type": "gemini", "content": "hi"}]}
    assert list(messages(json.dumps(whole, indent=1))) == [("user", "hello"), ("assistant", "hi")]


def test_longmemeval_pools_the_sessions_and_keeps_what_has_no_answer_apart(tmp_path: Path) -> None:
    (tmp_path / "longmemeval").mkdir()
    turn = {"role": "user", "content": "I run.", "date": "2023/05/30 (Tue) 03:52"}
    later = {"role": "user", "content": "I swim.", "date": "2023/05/31 (Wed) 03:52"}
    samples = [
        {"id": "s", "question_type": "x", "conversation": [turn, later], "questions": [{"question": "q?"}]},
        {
            "id": "t", "question_type": "abstention", "conversation": [turn],
            "questions": [{"question": "r?", "is_abstention": True}],
        },
    ]  # fmt: skip
    path = tmp_path / "longmemeval" / "sample.json"
    path.write_text(json.dumps({"data": samples}), encoding="utf-8")
    corpus, unanswerable = longmemeval(tmp_path)
    assert [(question.text, question.gold) for question in corpus.questions] == [
        ("q?", {"s/0": 1.0, "s/1": 1.0})
    ]
    assert unanswerable == ["r?"]
    assert sorted(set(corpus.threads.values())) == ["s/0", "s/1", "t/0"]


def test_a_case_passes_when_all_it_wants_is_there_and_nothing_ended_or_foreign() -> None:
    def belief(key: str, *, user: str = "me", ended: str | None = None) -> precision.Belief:
        return precision.Belief(
            key=key, user=user, domains=("code",), content=key, tags=(), kind="fact", pinned=False,
            ended_at=ended,
        )  # fmt: skip

    beliefs = [
        belief("good"),
        belief("more"),
        belief("old", ended="2026-01-01"),
        belief("theirs", user="you"),
    ]
    case = precision.Case(
        name="c", query="q", user="me", domains=("code",), wanted=frozenset({"good"}), unwanted=frozenset(),
        only=frozenset({"good"}), limit=10,
    )  # fmt: skip

    def answer(*shown: str) -> precision.Answer:
        return lambda _: precision.Shown(found=shown)

    def judged(*shown: str) -> list[Cell]:
        return list(precision.judge("x", beliefs, [case], answer(*shown)).values())[2:]

    assert judged("good") == [1, 1, 1, 1]  # found, kept out, passed, and nothing else
    assert judged("good", "more") == [1, 1, 1, 0]
    assert judged("good", "old") == judged("good", "theirs") == [1, 0, 0, 0]
    assert judged() == [0, 1, 0, 0]
    (failed,) = precision.failures(beliefs, [case], answer("old"))
    assert (failed["missing"], failed["not wanted"]) == ("good", "old")


# -- abstention and plots ---------------------------------------------------------------------------


def test_the_trade_off_refuses_what_is_less_sure_than_a_threshold() -> None:
    def sure(*levels: float) -> list[Sureness]:
        return [Sureness(confidence=level, abstained=level < 0.3) for level in levels]

    answerable, wrong = sure(0.2, 0.6, 0.8, 0.9), sure(0.1, 0.1, 0.4, 0.7)
    points = abstention.curve(answerable, wrong)
    assert (0.0, 0.5) in points
    assert (0.25, 0.75) in points
    assert points[-1] == (1.0, 1.0)
    assert abstention.refused_at(points, 0.0) == 0.5
    assert abstention.refused_at(points, 0.25) == 0.75
    (row,) = abstention.rows(answerable, {"as asked": wrong})
    assert (row["refused as shipped"], row["answerable refused as shipped"]) == (0.5, 0.25)


def test_plots_are_well_formed_whatever_the_names_are() -> None:
    drawn = [
        bars("a < b", ["one", "two & three"], {"x": [0.5, None], "y": [1.0, 0.25]}),
        lines("up", {"<line>": [(0.0, 0.0), (0.5, 1.0)]}, across="→", up="↑"),
        bars("nothing", [], {}),
    ]
    roots = [ET.fromstring(text) for text in drawn]
    assert {root.tag for root in roots} == {"{http://www.w3.org/2000/svg}svg"}
    titles = [node.text for node in roots[0].iter("{http://www.w3.org/2000/svg}title")]
    assert titles == ["one, x: 0.5", "one, y: 1", "two & three, y: 0.25"]


# -- the whole --------------------------------------------------------------------------------------


def test_what_is_not_there_is_skipped_with_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VESTIGE_EMBEDDINGS_PROVIDER", "hashing")
    report = run(data=tmp_path, only=("locomo", "cosqa", "mixed"))
    assert report.skipped == {
        "locomo": "no locomo.json",
        "cosqa": "no code_idx_map.json",
        "mixed": "no locomo.json",
    }
    assert "Skipped: cosqa (no code_idx_map.json)." in report.markdown()
    with pytest.raises(Missing):
        cranfield(tmp_path)


@pytest.mark.slow
@pytest.mark.nightly
def test_the_quality_benchmark_finds_the_same_through_the_engine_and_through_mcp(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VESTIGE_EMBEDDINGS_PROVIDER", "hashing")
    data, out = _locomo(tmp_path), tmp_path / "out" / "quality.json"
    report = run(data=data, only=("locomo", "aged"), keep=tmp_path / "kept", min_confidence=0)
    turns = {row["arm"]: row for row in report.tables["LoCoMo, turns"]}
    assert turns["no memory"]["frac@10"] == 0.0
    assert [turns[arm]["frac@10"] for arm in OURS] == [1.0, 1.0]
    assert turns[OURS[0]]["MRR"] == turns[OURS[1]]["MRR"]
    pooled = {row["arm"]: row for row in report.tables["LoCoMo, turns, pooled"]}
    assert float(str(pooled["random"]["frac@10"])) < 1.0
    aged = report.tables["LoCoMo, turns, after a year of use (engine)"]
    assert [row["arm"] for row in aged] == ["fresh", "after a year of use"]
    again = run(data=data, quick=True, keep=tmp_path / "kept")
    assert again.tables["LoCoMo, turns"][0]["arm"] == "no memory"
    publish(report, out)
    page = out.with_suffix(".md").read_text(encoding="utf-8")
    assert "![arms](quality-arms.svg)" in page
    ET.parse(tmp_path / "out" / "quality-arms.svg")


@pytest.mark.slow
@pytest.mark.nightly
def test_every_set_goes_through_every_arm_apart_and_in_one_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VESTIGE_EMBEDDINGS_PROVIDER", "hashing")
    data = _others(_locomo(tmp_path))
    report = run(data=data, only=[name for name in SETS if name not in ("locomo", "aged")], min_confidence=0)
    assert report.skipped == {}
    for title, score in (
        ("LongMemEval samples, sessions", "recall@5"), ("Cranfield", "nDCG@10"), ("CoSQA", "MRR"),
        ("Transcripts, sessions", "MRR"),
    ):  # fmt: skip
        found = {row["arm"]: row[score] for row in report.tables[title]}
        assert [found[arm] for arm in OURS] == [1.0, 1.0], title
        assert found["no memory"] == 0.0
    for title in ("LoCoMo, turns", "Cranfield", "CoSQA", "Transcripts, sessions"):
        arms_shown = {row["arm"] for row in report.tables[f"{title}, in the mixed store"]}
        assert {"no memory", "random", "dense", *OURS} < arms_shown
    passed = {row["arm"]: row["passed"] for row in report.tables["PrecisionMemBench, cases"]}
    assert (passed["no memory"], passed[OURS[1]]) == (1, 2)  # the case without a query wants nothing
    kinds = [row["questions of another conversation"] for row in report.tables["Abstention (engine)"]]
    assert kinds == [abstention.PLAIN, abstention.RENAMED]
    assert report.plots.keys() == {"arms", "abstention"}
