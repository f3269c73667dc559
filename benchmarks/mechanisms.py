"""What each mechanism adds on LoCoMo, and what links made by dreams find that similarity does not.

    python -m benchmarks.mechanisms [--data DIR] [--most N] [--out FILE]

For each arm every conversation is remembered in a store of its own with the mechanism switched off, used
(every third question is asked and leaves its trace, and the memory reacts), and then asked the other
questions without a trace. One more store with everything on dreams until all was replayed, and is asked with
and without spreading activation. The difference is per question, with an interval by resampling.
"""

import argparse
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean

from benchmarks.engine import InProcess
from benchmarks.plot import bars
from benchmarks.progress import say, track
from benchmarks.quality import arms, metrics
from benchmarks.quality.corpus import DEFAULT_DATA, Corpus, Missing
from benchmarks.quality.locomo import conversations
from benchmarks.report import Cell, Report, Target, publish
from benchmarks.simulate.embedding import Remembering, local_model
from benchmarks.simulate.run import interval

SWITCHES = (
    "decay", "spreading", "importance", "emotion", "capture", "context", "competition", "reconsolidation",
    "prediction", "autopilot",
)  # fmt: skip
OURS, DREAMT, DREAMT_ONLY = "ours", "ours, after dreams", "after dreams, without spreading"
TOP = 10
MULTI_HOP = "multi-hop"
MOST_LOST = 0.5
"""Points of recall@10 that no mechanism may cost."""
DREAMS = 12
"""Dreams after which every memory of a conversation was replayed, 500 at most in each."""

USED_EVERY = 3
"""Of so many questions one is asked beforehand, and leaves its trace."""
BATCH = 100

Settings = Mapping[str, object]
Found = dict[tuple[str, str, str], float]
"""Recall@10 by conversation, category and question."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mechanisms", description="Ablations.")
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA, help="folder with locomo.json")
    parser.add_argument("--most", type=int, default=0, help="conversations (default all)")
    parser.add_argument("--out", type=Path, help="write the results here as JSON, Markdown and SVG")
    given = parser.parse_args()
    publish(run(data=given.data, most=given.most), given.out)


def run(*, data: Path, most: int) -> Report:
    """Ask every conversation in every arm."""
    try:
        talks = [talk for talk, _ in conversations(data)]
    except Missing as missing:
        raise SystemExit(f"LoCoMo is needed: {missing}.") from None
    found: dict[str, Found] = {}
    links = 0
    embedder = local_model()
    for talk in talks[: most or None]:
        for arm, answered in _arms(talk, embedder):
            found.setdefault(arm, {}).update(answered)
        with tempfile.TemporaryDirectory(prefix="vestige-dreams-") as folder:
            keys = _live(talk, Path(folder), {}, embedder)
            links += _dream(Path(folder), talk.name, embedder)
            for arm, settings in ((DREAMT, {}), (DREAMT_ONLY, {"mechanisms.spreading": False})):
                found.setdefault(arm, {}).update(_ask(talk, Path(folder), keys, arm, settings, embedder))
    return _report(found, links)


def _arms(talk: Corpus, embedder: Remembering) -> Iterator[tuple[str, Found]]:
    for name in (None, *SWITCHES):
        settings = {f"mechanisms.{name}": False} if name else {}
        arm = f"without {name}" if name else OURS
        with tempfile.TemporaryDirectory(prefix="vestige-mechanisms-") as folder:
            keys = _live(talk, Path(folder), settings, embedder)
            yield arm, _ask(talk, Path(folder), keys, arm, settings, embedder)


def _live(talk: Corpus, folder: Path, settings: Settings, embedder: Remembering) -> dict[str, str]:
    """Remember a conversation and use it; the key of each memory."""
    keys: dict[str, str] = {}
    with InProcess(folder, settings=settings, embedder=embedder) as opened:
        for at in range(0, len(talk.documents), BATCH):
            some = talk.documents[at : at + BATCH]
            answered = opened.call("smart_ingest", {"items": [one.item() for one in some]})
            ids = [result["nodeId"] for result in answered["results"]]
            keys |= dict(zip(ids, (one.key for one in some), strict=True))
            opened.settle()
        for question in talk.questions[::USED_EVERY]:
            opened.call("search", {"query": question.text, "limit": TOP, "detail_level": "brief"})
        opened.settle()
    return keys


def _dream(folder: Path, name: str, embedder: Remembering) -> int:
    """Dream over everything; how many links came of it."""
    links = 0
    with InProcess(folder, embedder=embedder) as opened:
        for _ in track(range(DREAMS), f"{name}: dreams"):
            made = opened.call("dream", {"memory_count": 500})
            links += made["connectionsPersisted"]
            if not made["connectionsPersisted"]:
                break
    return links


def _ask(
    talk: Corpus, folder: Path, keys: Mapping[str, str], arm: str, settings: Settings, embedder: Remembering
) -> Found:
    found: Found = {}
    asked = [one for at, one in enumerate(talk.questions) if at % USED_EVERY or len(talk.questions) == 1]
    with InProcess(folder, settings=settings, embedder=embedder) as opened:
        for question in track(asked, f"{talk.name}: {arm}"):
            top = arms.found_keys(arms.ask(opened, question.text, TOP, min_confidence=0), keys)
            found[talk.name, question.category or "", question.text] = metrics.frac(top, question.gold, TOP)
    return found


def _report(found: Mapping[str, Found], links: int) -> Report:
    ours = found[OURS]
    costs = {name: _difference(ours, one) for name, one in found.items() if name.startswith("without ")}
    dreamt = _difference(found[DREAMT], ours)
    hops = [key for key in ours if key[1] == MULTI_HOP]
    gained = _difference(found[DREAMT], ours, hops)
    spread = _difference(found[DREAMT], found[DREAMT_ONLY], hops)
    say(f"{len(ours):,} questions, {links:,} links made by dreams")
    return Report(
        benchmark="mechanisms",
        settings={"questions": len(ours), "multi-hop questions": len(hops), "links made by dreams": links},
        tables={
            "Recall@10": [_row(name, one) for name, one in found.items()],
            "What each mechanism adds, in points": [
                {"mechanism": name.removeprefix("without "), "all questions": _told(difference)}
                for name, difference in costs.items()
            ],
            "Links made by dreams, in points": [
                {"compared": "after dreams with before, all questions", "recall@10": _told(dreamt)},
                {"compared": "after dreams with before, multi-hop", "recall@10": _told(gained)},
                {"compared": "after dreams, spreading on with off, multi-hop", "recall@10": _told(spread)},
            ],
        },
        targets=[
            *(
                Target(
                    name=f"{name.removeprefix('without ')} costs points",
                    value=-100 * fmean(difference),
                    limit=MOST_LOST,
                    at_least=False,
                )
                for name, difference in costs.items()
            ),
            Target(name="dreams cost points", value=-100 * fmean(dreamt), limit=MOST_LOST, at_least=False),
        ],
        notes=NOTES,
        plots={"recall": _chart(found)},
    )


NOTES = (
    "Turns of a talk are neither flashbulbs nor edited, and no caller tells a context here, so that "
    "importance, emotion, capture, context and reconsolidation can hardly show what they are good for; "
    "`simulate` does. The rule by which dreams link turns of different sessions was written with conv-26 in "
    "view. Intervals are 95 %, by resampling questions.",
)


def _difference(one: Found, other: Found, keys: Sequence[tuple[str, str, str]] | None = None) -> list[float]:
    return [one[key] - other[key] for key in (keys if keys is not None else sorted(one))]


def _told(difference: Sequence[float]) -> str:
    low, high = interval(difference)
    return f"{100 * fmean(difference):+.2f} ({100 * low:+.2f} … {100 * high:+.2f})"


def _row(name: str, one: Found) -> dict[str, Cell]:
    categories = sorted({category for _, category, _ in one})
    return {
        "arm": name,
        "all": fmean(one.values()),
        **{each: fmean(value for key, value in one.items() if key[1] == each) for each in categories},
    }


def _chart(found: Mapping[str, Found]) -> str:
    shown = {name: found[name] for name in (OURS, DREAMT, DREAMT_ONLY)}
    rows = [_row(name, one) for name, one in shown.items()]
    groups = [name for name in rows[0] if name != "arm"]
    series = {str(row["arm"]): [float(row[group] or 0) for group in groups] for row in rows}
    return bars("Recall@10 on LoCoMo, with and without links made by dreams", groups, series)


if __name__ == "__main__":
    main()
