"""The whole benchmark: which sets, in which stores, what is reported and what must hold."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmarks.engine import InProcess
from benchmarks.plot import bars, lines
from benchmarks.progress import say
from benchmarks.quality import abstention, arms, precision
from benchmarks.quality.aged import aged
from benchmarks.quality.corpus import Corpus, Missing
from benchmarks.quality.locomo import conversations
from benchmarks.quality.longmemeval import longmemeval
from benchmarks.quality.ranked import RECALL, TOP, Ranked, mean, rows
from benchmarks.quality.sets import (
    OURS,
    SINGLE,
    TURNS,
    Section,
    locomo_sections,
    mixed_sections,
    other_section,
)
from benchmarks.quality.shelf import Ground, settling, stock
from benchmarks.report import Cell, Report, Target

SETS = (
    "locomo", "aged", "abstention", "longmemeval", "cranfield", "cosqa", "transcripts", "precision", "mixed",
)  # fmt: skip
QUICK_QUESTIONS = 100
BELOW_BEST = 0.005
AGED_LOSS = 0.01
WANTED = (
    (TURNS, "frac@5", None, 0.81),
    (TURNS, "frac@10", None, 0.87),
    (TURNS, "MRR", None, 0.69),
    (TURNS, "frac@10", "multi-hop", 0.57),
    ("LoCoMo, sessions", "frac@10", None, 0.963),
    ("LoCoMo, turns, pooled", "frac@10", None, 0.85),
    ("Cranfield", "nDCG@10", None, 0.57),
    ("CoSQA", "MRR", None, 0.53),
)
REFUSED = 0.5
NOT_STORED = "Texts that Vestige would not have stored as shipped"
TRADE_OFF = (0.01, 0.02, 0.05, 0.1, 0.2)


@dataclass(slots=True, kw_only=True)
class Gathered:
    """What has been measured so far."""

    sections: list[Section] = field(default_factory=list)
    tables: dict[str, list[dict[str, Cell]]] = field(default_factory=dict)
    targets: list[Target] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    plots: dict[str, str] = field(default_factory=dict)


def run(
    *,
    data: Path,
    only: Sequence[str] = SETS,
    quick: bool = False,
    keep: Path | None = None,
    min_confidence: float | None = None,
    store: str = "sqlite",
) -> Report:
    """Measure the sets asked for. What is missing is skipped, and the report says so."""
    gathered = Gathered()
    with _folder(keep) as folder, settling(store) as settle:
        ground = Ground(folder=folder, min_confidence=min_confidence, settle=settle)
        with InProcess(folder / "empty") as opened:  # also stops here when there is no model
            model = opened.embedder.signature.name
        talks = _talks(data, quick)
        for name in ("locomo",) if quick else [name for name in SETS if name in only]:
            try:
                _measure(name, data, talks, ground, gathered)
            except Missing as missing:
                gathered.skipped[name] = str(missing)
                say(f"{name} is skipped: {missing}")
    sections = gathered.sections
    if sections:
        gathered.plots["arms"] = _chart(sections)
    return Report(
        benchmark="quality",
        settings={
            "quick": str(quick),
            "sets": "locomo" if quick else ", ".join(only),
            "model": model,
            "store": store,
            "refusing below": "as shipped" if min_confidence is None else min_confidence,
        },
        tables={name: rows for one in sections for name, rows in one.tables().items()}
        | gathered.tables
        | {NOT_STORED: [one.row(corpus) for corpus, one in sorted(ground.held_back.items())]},
        targets=[] if quick else [*_targets(sections), *gathered.targets],
        notes=NOTES,
        skipped=gathered.skipped,
        plots=gathered.plots,
    )


NOTES = (
    "All numbers are means over questions, in [0, 1]. frac, any and all: the share of the gold, whether any, "
    "whether all of it is among the first k of a search with limit 10. MRR looks at a search with limit 100. "
    "BM25 is the strongest of its forms, named in brackets. No search left a trace (`record: false`).",
    "Every arm has every text. As shipped, Vestige refuses a text with a secret and holds one that may give "
    "orders for a review; here they are stored (`memory.secrets` = `allow`, `review.policy` = `off`) "
    "and counted above.",
)


def _measure(
    name: str, data: Path, talks: Sequence[abstention.Talk], ground: Ground, gathered: Gathered
) -> None:
    corpora = [corpus for corpus, _ in talks]
    if name in ("locomo", "aged", "abstention", "mixed") and not talks:
        raise Missing("no locomo.json")
    match name:
        case "locomo":
            gathered.sections += locomo_sections(corpora, ground, pool=len(talks) > 1)
        case "aged":
            _age(corpora, ground, gathered)
        case "abstention":
            _abstain(talks, ground, gathered)
        case "longmemeval":
            gathered.sections.append(other_section(data, ground, name))
            gathered.tables["LongMemEval samples, questions without an answer"] = _unanswered(data, ground)
        case "precision":
            gathered.tables.update(precision.run(data, ground))
        case "mixed":
            gathered.sections += mixed_sections(data, corpora, ground)
        case _:
            gathered.sections.append(other_section(data, ground, name))


def _age(corpora: Sequence[Corpus], ground: Ground, gathered: Gathered) -> None:
    fresh = _engine_answers(corpora, ground, gathered)
    after = [one for corpus in corpora for one in aged(corpus, ground)]
    made = rows({"fresh": fresh, "after a year of use": after}, RECALL)
    gathered.tables["LoCoMo, turns, after a year of use (engine)"] = made
    loss = mean(fresh, RECALL["frac@10"]) - mean(after, RECALL["frac@10"])
    gathered.targets.append(
        Target(name="LoCoMo, turns: frac@10 lost by age and use", value=loss, limit=AGED_LOSS, at_least=False)
    )


def _abstain(talks: Sequence[abstention.Talk], ground: Ground, gathered: Gathered) -> None:
    if len(talks) < 2:
        raise Missing("it takes two conversations")
    fresh = _engine_answers([corpus for corpus, _ in talks], ground, gathered)
    answerable = abstention.sureness(fresh)
    if answerable is None:
        raise Missing("search says no confidence")
    wrong = abstention.asked_elsewhere(talks, ground)
    gathered.tables["Abstention (engine)"] = abstention.rows(answerable, wrong)
    curves = {kind: abstention.curve(answerable, asked) for kind, asked in wrong.items()}
    gathered.plots["abstention"] = lines(
        "Questions asked of the wrong conversation",
        curves,
        across="share of answerable questions refused",
        up="share of wrong questions refused",
        right=1.0,
    )
    trade: list[dict[str, Cell]] = [
        {
            "answerable refused, at most": most,
            **{kind: abstention.refused_at(points, most) for kind, points in curves.items()},
        }
        for most in TRADE_OFF
    ]
    gathered.tables["Abstention, trade-off"] = trade
    gathered.targets.append(
        Target(
            name="Wrong conversation refused, at ≤ 5 % of answerable",
            value=abstention.refused_at(curves[abstention.PLAIN], abstention.MOST_REFUSED),
            limit=REFUSED,
            at_least=True,
        )
    )


def _unanswered(data: Path, ground: Ground) -> list[dict[str, Cell]]:
    corpus, asked = longmemeval(data)
    with InProcess(stock(corpus, ground).folder) as opened:
        answers = [arms.ask(opened, text, TOP) for text in asked]
    return [
        {"question": text, "confidence": one.get("confidence"), "refused": str(one.get("abstained", False))}
        for text, one in zip(asked, answers, strict=True)
    ]


def _engine_answers(corpora: Sequence[Corpus], ground: Ground, gathered: Gathered) -> list[Ranked]:
    """What the engine answers on fresh stores: as measured already, or now."""
    for section in gathered.sections:
        if section.title == TURNS:
            return list(section.outcomes[arms.ENGINE])
    answered = []
    for corpus in corpora:
        shelf = stock(corpus, ground)
        with InProcess(shelf.folder) as opened:
            answered += arms.search(
                ground.asking(opened), shelf.keys, corpus.questions, f"{corpus.name}: {arms.ENGINE}"
            )
    return answered


def _targets(sections: Sequence[Section]) -> Iterator[Target]:
    titled = {section.title: section for section in sections}
    for title, score, category, limit in WANTED:
        if title in titled and titled[title].asks(category):
            name = f"{title}{f', {category}' if category else ''}: {score} through MCP"
            value = titled[title].value(arms.MCP, score, category)
            yield Target(name=name, value=value, limit=limit, at_least=True)
    for section in sections:
        lead = min(section.value(arm) for arm in OURS) - section.best_single()
        name = f"{section.title}: {section.main} above the best single arm"
        yield Target(name=name, value=lead, limit=-BELOW_BEST, at_least=True)


def _chart(sections: Sequence[Section]) -> str:
    shown = [arms.RANDOM, *SINGLE, *OURS]
    series = {arm: [section.value(arm) for section in sections] for arm in shown}
    labels = [f"{one.title.replace('in the mixed store', 'mixed')}, {one.main}" for one in sections]
    return bars("What each arm finds", labels, series)


def _talks(data: Path, quick: bool) -> list[abstention.Talk]:
    try:
        talks = conversations(data)
    except Missing:
        return []
    if quick:
        corpus, speakers = talks[0]
        return [(replace(corpus, questions=corpus.questions[:QUICK_QUESTIONS]), speakers)]
    return talks


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        yield keep
        return
    with tempfile.TemporaryDirectory(prefix="vestige-quality-") as folder:
        yield Path(folder)
