"""What each mechanism adds on LoCoMo, and what links made by dreams find that similarity does not.

    python -m benchmarks.mechanisms [--data DIR] [--most N] [--keep DIR] [--out FILE]

Every conversation is remembered once. The same store is then asked with each mechanism switched off in turn;
a copy of it dreams until everything was replayed, and is asked with and without spreading activation. The
difference is per question, with an interval by resampling.
"""

import argparse
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

from benchmarks.engine import InProcess
from benchmarks.plot import bars
from benchmarks.progress import say, track
from benchmarks.quality import arms, metrics
from benchmarks.quality.corpus import DEFAULT_DATA, Corpus, Missing
from benchmarks.quality.locomo import conversations
from benchmarks.quality.shelf import Ground, stock
from benchmarks.report import Cell, Report, Target, publish
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

Found = dict[tuple[str, str, str], float]
"""Recall@10 by conversation, category and question."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mechanisms", description="Ablations.")
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA, help="folder with locomo.json")
    parser.add_argument("--most", type=int, default=0, help="conversations (default all)")
    parser.add_argument("--keep", type=Path, help="keep the filled stores here, and use those that are there")
    parser.add_argument("--out", type=Path, help="write the results here as JSON, Markdown and SVG")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="vestige-mechanisms-") as folder:
        publish(run(data=given.data, most=given.most, folder=given.keep or Path(folder)), given.out)


def run(*, data: Path, most: int, folder: Path) -> Report:
    """Ask every conversation in every arm."""
    try:
        talks = [talk for talk, _ in conversations(data)]
    except Missing as missing:
        raise SystemExit(f"LoCoMo is needed: {missing}.") from None
    found: dict[str, Found] = {}
    links = 0
    for talk in talks[: most or None]:
        for arm, answered, made in _talk(talk, Ground(folder=folder, min_confidence=0.0)):
            found.setdefault(arm, {}).update(answered)
            links += made
    return _report(found, links)


def _talk(talk: Corpus, ground: Ground) -> list[tuple[str, Found, int]]:
    shelf = stock(talk, ground)
    made: list[tuple[str, Found, int]] = [(OURS, _ask(talk, shelf.folder, shelf.keys, OURS, ground, {}), 0)]
    for name in SWITCHES:
        settings = {f"mechanisms.{name}": False}
        made.append(
            (f"without {name}", _ask(talk, shelf.folder, shelf.keys, f"without {name}", ground, settings), 0)
        )
    with tempfile.TemporaryDirectory(prefix="vestige-dreams-") as copied:
        shutil.copytree(shelf.folder, copied, dirs_exist_ok=True)
        links = _dream(Path(copied), talk.name)
        made.append((DREAMT, _ask(talk, Path(copied), shelf.keys, DREAMT, ground, {}), links))
        settings = {"mechanisms.spreading": False}
        made.append((DREAMT_ONLY, _ask(talk, Path(copied), shelf.keys, DREAMT_ONLY, ground, settings), 0))
    return made


def _dream(folder: Path, name: str) -> int:
    """Dream over everything; how many links came of it."""
    links = 0
    with InProcess(folder) as opened:
        for _ in track(range(DREAMS), f"{name}: dreams"):
            made = opened.call("dream", {"memory_count": 500})
            links += made["connectionsPersisted"]
            if not made["connectionsPersisted"]:
                break
    return links


def _ask(
    talk: Corpus,
    folder: Path,
    keys: Mapping[str, str],
    arm: str,
    ground: Ground,
    settings: Mapping[str, object],
) -> Found:
    found: Found = {}
    with InProcess(folder, settings=settings) as opened:
        service = ground.asking(opened)
        for question in track(talk.questions, f"{talk.name}: {arm}"):
            top = arms.found_keys(arms.ask(service, question.text, TOP), keys)
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
    "The stores are as they were filled: nobody has used them, so that what works by use (importance, "
    "capture, prediction, reconsolidation) can only do harm here; `simulate` shows what it is good for. "
    "Intervals are 95 %, by resampling questions.",
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
