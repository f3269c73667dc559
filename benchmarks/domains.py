"""Domains found in labelled texts, compared with HDBSCAN and k-means; assignment, names, speed.

    python -m benchmarks.domains [--data DIR] [--size N ...] [--out FILE]

The data is `clusters/so_dev.json` (titles of questions with ten tags) and `clusters/b77s.json` (questions to
a bank with 77 intents), and `locomo.json` for texts that are on none of the topics. HDBSCAN and k-means need
scikit-learn; without it their rows are left out.
"""

import argparse
import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

import numpy as np

from benchmarks.plot import bars
from benchmarks.quality.corpus import DEFAULT_DATA, Missing, need
from benchmarks.quality.locomo import conversations
from benchmarks.report import Cell, Report, Target, publish
from benchmarks.simulate.embedding import local_model
from vestige.cognition.graph.domains.assignment import Vectors, assigned, centroid, member_range
from vestige.cognition.graph.domains.communities import Ints
from vestige.cognition.graph.domains.discovery import discover
from vestige.cognition.graph.domains.names import top_terms
from vestige.cognition.graph.domains.neighbours import neighbours_by_lists
from vestige.cognition.graph.neighbour_lists import NeighbourLists, brought_up, rounded

TAGS = (
    "wordpress", "oracle", "svn", "apache", "excel", "matlab", "visual studio", "cocoa", "osx", "bash",
)  # fmt: skip
"""The tags of so_dev by label, from 1 on."""
SAME_TAG = {"osx": ("osx", "os x", "mac", "mac os"), "svn": ("svn", "subversion")}
"""Other spellings of a tag."""
UNSEEN, UNRELATED, SPLITS = 180, 300, 5
SIZES = (10_000, 100_000)
COLD, WARM, EXTRA = {10_000: 10.0, 100_000: 300.0}, {10_000: 3.0, 100_000: 30.0}, {100_000: 500.0}
"""The most CPU seconds without and with stored lists, and the most extra megabytes, by number of vectors."""
NOTES = (
    "ARI: adjusted Rand index of all texts, where texts without a domain are one class of their own; "
    "`to centroid` puts them to the nearest domain. CPU seconds are of the whole process.",
    "Assignment: domains are found in 600 titles of so_dev, and the other 180 are assigned, with 300 turns "
    "of LoCoMo that are on no topic of it; means of five splits. `right`: the tag of "
    "most members is the tag of the text.",
    "Speed: vectors around 60 centres, each size in a process of its own. `extra MB`: how far the resident "
    "memory rose above what the process had with the vectors loaded (Linux only).",
)

Clustering = Callable[[Vectors], Ints]
Result = TypeVar("Result")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.domains", description=__doc__)
    parser.add_argument(
        "--data", type=Path, default=DEFAULT_DATA, help="folder with clusters/ and locomo.json"
    )
    parser.add_argument("--size", type=int, nargs="*", default=SIZES, help="vectors to measure speed with")
    parser.add_argument("--out", type=Path, help="write the results here as JSON and Markdown")
    given = parser.parse_args()
    publish(run(given.data, embed, given.size), given.out)


def embed(texts: Sequence[str]) -> Vectors:
    """The unit vectors of texts by the local model."""
    return np.array([one.vector for one in local_model().encode_documents(texts)], dtype=np.float32)


def load(data: Path, name: str) -> tuple[list[str], Ints]:
    rows = json.loads(need(data / "clusters" / f"{name}.json").read_text(encoding="utf-8"))
    known = sorted({label for _, label in rows})
    numbers = {label: label if isinstance(label, int) else at for at, label in enumerate(known)}
    return [text for text, _ in rows], np.array([numbers[label] for _, label in rows], dtype=np.int64)


def run(data: Path, embedded: Callable[[Sequence[str]], Vectors], sizes: Sequence[int]) -> Report:
    tables: dict[str, list[dict[str, Cell]]] = {}
    targets: list[Target] = []
    skipped: dict[str, str] = {}
    for name in ("so_dev", "b77s"):
        try:
            texts, labels = load(data, name)
        except Missing as exc:
            skipped[name] = str(exc)
            continue
        vectors = embedded(texts)
        methods = {**_ours(), **_others(len(set(labels.tolist())), skipped)}
        tables[name] = [_row(method, cluster, vectors, labels) for method, cluster in methods.items()]
        if name == "so_dev":
            targets += _so_dev_targets(tables[name][0])
            terms = _terms(texts, vectors, labels)
            tables["terms of so_dev"] = terms
            named = sum(row["found"] == "yes" for row in terms)
            targets.append(Target(name="so_dev: tags in 3 terms", value=named, limit=8, at_least=True))
            tables["assignment"] = [_assignment(data, embedded, texts, vectors, labels, skipped)]
            targets += _assignment_targets(tables["assignment"][0])
        else:
            fine = next(row for row in tables[name] if row["method"] == "ours, topics")
            targets.append(_target("b77s: ARI of topics", fine["ARI"], 0.45, at_least=True))
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as processes:
        tables["speed"] = list(processes.map(_speed, sizes))
    targets += _speed_targets(tables["speed"])
    return Report(
        benchmark="domains",
        settings={},
        tables=tables,
        targets=targets,
        notes=NOTES,
        skipped=skipped,
        plots={"agreement": _chart(tables)},
    )


def _chart(tables: Mapping[str, Sequence[Mapping[str, Cell]]]) -> str:
    """The agreement of each method with the labels of each set."""
    sets = [name for name in ("so_dev", "b77s") if name in tables]
    methods = [str(row["method"]).split(" told")[0] for row in tables[sets[0]]] if sets else []
    series = {
        method: [cell if isinstance(cell := tables[name][at]["ARI"], float) else None for name in sets]
        for at, method in enumerate(methods)
    }
    return bars("Agreement with the labels (adjusted Rand index)", sets, series)


def _ours() -> dict[str, Clustering]:
    return {
        "ours, domains": lambda vectors: discover(vectors, samples=0).domain_of,
        "ours, topics": lambda vectors: discover(vectors, least_size=1, samples=0).topic_of,
    }


def _others(right: int, skipped: dict[str, str]) -> dict[str, Clustering]:
    try:
        from sklearn.cluster import HDBSCAN, KMeans
        from sklearn.decomposition import PCA
    except ImportError:
        skipped["HDBSCAN and k-means"] = "scikit-learn is not installed"
        return {}

    def hdbscan(vectors: Vectors, method: str = "eom") -> Ints:
        found = HDBSCAN(
            min_cluster_size=10, min_samples=5, cluster_selection_method=method, copy=True
        ).fit_predict(vectors)
        return np.asarray(found, dtype=np.int64)

    def reduced(vectors: Vectors) -> Vectors:
        return np.asarray(PCA(15, random_state=0).fit_transform(vectors), dtype=np.float32)

    def kmeans(vectors: Vectors) -> Ints:
        return np.asarray(KMeans(right, n_init=10, random_state=0).fit_predict(vectors), dtype=np.int64)

    return {
        "HDBSCAN 10/5 (the ADR)": hdbscan,
        "PCA 15 + HDBSCAN leaf": lambda vectors: hdbscan(reduced(vectors), "leaf"),
        f"k-means told k = {right}": kmeans,
    }


def _row(method: str, cluster: Clustering, vectors: Vectors, labels: Ints) -> dict[str, Cell]:
    begun = time.process_time()
    found = cluster(vectors)
    spent = time.process_time() - begun
    return {
        "method": method,
        "groups": len(set(found.tolist()) - {-1}),
        "unclassified": float((found < 0).mean()),
        "ARI": adjusted_rand(labels, found),
        "ARI, to centroid": adjusted_rand(labels, _to_centroid(vectors, found)),
        "CPU s": spent,
    }


def _to_centroid(vectors: Vectors, found: Ints) -> Ints:
    names = sorted(set(found.tolist()) - {-1})
    if not names:
        return found
    middles = np.array([centroid(vectors[found == name]) for name in names])
    nearest = np.array(names)[np.argmax(vectors @ middles.T, axis=1)]
    return np.where(found < 0, nearest, found)


def adjusted_rand(one: Ints, other: Ints) -> float:
    """The agreement of two clusterings, corrected for chance (Hubert & Arabie 1985)."""

    def pairs(counts: Sequence[int]) -> float:
        return sum(count * (count - 1) / 2 for count in counts)

    both = pairs(list(Counter(zip(one.tolist(), other.tolist(), strict=True)).values()))
    left, right = (pairs(list(Counter(part.tolist()).values())) for part in (one, other))
    expected = left * right / max(1.0, pairs([len(one)]))
    most = (left + right) / 2
    return 1.0 if most == expected else (both - expected) / (most - expected)


def _terms(texts: Sequence[str], vectors: Vectors, labels: Ints) -> list[dict[str, Cell]]:
    """For each tag, the domain with most of its texts and the first terms of that domain."""
    found = discover(vectors, samples=0)
    groups = [[texts[row] for row in one.rows] for one in found.communities]
    loose = [text for text, domain in zip(texts, found.domain_of, strict=True) if domain < 0]
    terms = top_terms(groups, loose)
    rows: list[dict[str, Cell]] = []
    for number, tag in enumerate(TAGS, start=1):
        inside = found.domain_of[(labels == number) & (found.domain_of >= 0)]
        home = Counter(inside.tolist()).most_common(1)[0][0] if len(inside) else -1
        shown = terms[home][:3] if home >= 0 else []
        accepted = SAME_TAG.get(tag, (tag,))
        hit = any(term.casefold() in accepted for term in shown)
        rows.append({"tag": tag, "terms": ", ".join(shown), "found": "yes" if hit else "no"})
    return rows


def _assignment(
    data: Path,
    embedded: Callable[[Sequence[str]], Vectors],
    texts: Sequence[str],
    vectors: Vectors,
    labels: Ints,
    skipped: dict[str, str],
) -> dict[str, Cell]:
    try:
        talk = conversations(data)[0][0]
        strange = embedded([one.content for one in talk.documents][:UNRELATED])
    except Missing as exc:
        skipped["unrelated texts"] = str(exc)
        strange = np.zeros((0, vectors.shape[1]), dtype=np.float32)
    rows = [_assigned_split(vectors, labels, strange, seed) for seed in range(SPLITS)]
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}


def _assigned_split(vectors: Vectors, labels: Ints, strange: Vectors, seed: int) -> dict[str, float]:
    order = np.random.default_rng(seed).permutation(len(vectors))
    unseen, known = order[: min(UNSEEN, len(order) // 4)], np.sort(order[min(UNSEEN, len(order) // 4) :])
    found = discover(vectors[known], samples=0)
    middles = {str(at): centroid(vectors[known[one.rows]]) for at, one in enumerate(found.communities)}
    cuts = {
        name: member_range(vectors[known[found.communities[int(name)].rows]], middle).cut
        for name, middle in middles.items()
    }
    tag = {
        str(at): Counter(labels[known[one.rows]].tolist()).most_common(1)[0][0]
        for at, one in enumerate(found.communities)
    }

    def domains(vector: Vectors) -> tuple[str, ...]:
        scores = {name: float(vector @ middle) for name, middle in middles.items()}
        return assigned(scores, cuts, middles)

    given = [domains(vectors[at]) for at in unseen]
    some = [one for one in given if one]
    right = [bool(one) and tag[one[0]] == labels[at] for one, at in zip(given, unseen, strict=True)]
    return {
        "assigned": len(some) / len(given),
        "right": sum(right) / len(given),
        "right of assigned": sum(right) / max(1, len(some)),
        "domains per text": float(np.mean([len(one) for one in some])) if some else 0.0,
        "unrelated assigned": float(np.mean([bool(domains(one)) for one in strange]))
        if len(strange)
        else 0.0,
    }


def _speed(size: int) -> dict[str, Cell]:
    """Discovery with the runs on samples: comparing all vectors, and with the neighbour lists that a store
    keeps, as every discovery after the first has them. Such a one compares samples only if it finds something
    to propose."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((60, 384)).astype(np.float32)
    vectors = np.empty((size, 384), dtype=np.float32)
    for begin in range(0, size, 10_000):
        part = centres[rng.integers(0, 60, min(10_000, size - begin))]
        part = part + 1.2 * rng.standard_normal(part.shape).astype(np.float32)
        vectors[begin : begin + 10_000] = part / np.linalg.norm(part, axis=1, keepdims=True)
    found, cold, cold_extra = _measured(lambda: discover(vectors))
    lists, listing, list_extra = _measured(
        lambda: brought_up(NeighbourLists.none(), np.arange(size), rounded(vectors))[0]
    )
    again, warm, warm_extra = _measured(
        lambda: discover(
            vectors, neighbours=neighbours_by_lists(vectors, lists, np.arange(size)), topics=False
        )
    )
    _, short, _ = _measured(
        lambda: discover(
            vectors, neighbours=neighbours_by_lists(vectors, lists, np.arange(size)), topics=False, samples=0
        )
    )
    return {
        "memories": size,
        "domains": len(found.communities),
        "the same with lists": "yes" if np.array_equal(found.domain_of, again.domain_of) else "no",
        "CPU s": cold,
        "extra MB": cold_extra,
        "CPU s, making the lists": listing,
        "extra MB, making the lists": list_extra,
        "CPU s, with lists": warm,
        "extra MB, with lists": warm_extra,
        "CPU s, with lists, nothing to propose": short,
    }


def _measured(work: Callable[[], Result]) -> tuple[Result, float, float | None]:
    """The result of some work, its CPU seconds, and the megabytes by which the process grew meanwhile."""
    before = _peak_from_here()
    begun = time.process_time()
    result = work()
    spent = time.process_time() - begun
    return result, spent, None if before is None else _kilobytes("VmHWM") / 1_024 - before


def _peak_from_here() -> float | None:
    """The megabytes of this process, from which the kernel measures its peak from now on; None elsewhere."""
    forget = Path("/proc/self/clear_refs")
    if not forget.exists():
        return None
    forget.write_text("5", encoding="ascii")
    return _kilobytes("VmRSS") / 1_024


def _kilobytes(row: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{row}:"))


def _speed_targets(rows: Sequence[dict[str, Cell]]) -> list[Target]:
    wanted = (
        ("CPU s", COLD),
        ("CPU s, with lists", WARM),
        ("extra MB", EXTRA),
        ("extra MB, with lists", EXTRA),
    )
    return [
        _target(f"{row['memories']:,} vectors: {name}", row[name], limits[size], at_least=False)
        for row in rows
        for name, limits in wanted
        if isinstance(size := row["memories"], int) and size in limits and row[name] is not None
    ]


def _target(name: str, value: Cell, limit: float, *, at_least: bool) -> Target:
    return Target(name=name, value=float(value or 0.0), limit=limit, at_least=at_least)


def _so_dev_targets(row: dict[str, Cell]) -> list[Target]:
    return [
        _target("so_dev: ARI", row["ARI"], 0.70, at_least=True),
        _target("so_dev: unclassified", row["unclassified"], 0.10, at_least=False),
    ]


def _assignment_targets(row: dict[str, Cell]) -> list[Target]:
    return [
        _target("unseen: right of assigned", row["right of assigned"], 0.85, at_least=True),
        _target("unrelated assigned", row["unrelated assigned"], 0.05, at_least=False),
        _target("domains per text", row["domains per text"], 1.3, at_least=False),
    ]


if __name__ == "__main__":
    main()
