"""All three parts: durability under kills, visibility between processes, an outside client."""

import tempfile
from pathlib import Path

import numpy as np

from benchmarks.contention import durability, outside, visibility
from benchmarks.plot import bars
from benchmarks.progress import say
from benchmarks.report import Cell, Report


def run(
    *,
    writers: int = 8,
    readers: int = 4,
    kills: int = 200,
    statements: int | None = None,
    held_seconds: float = outside.HELD_SECONDS,
) -> Report:
    """Run the parts one after the other, each on a store of its own."""
    with tempfile.TemporaryDirectory(prefix="vestige-contention-") as root:
        folders = [Path(root) / name for name in ("durability", "visibility", "outside")]
        for folder in folders:
            folder.mkdir()
        say(f"{writers} writers, {readers} readers, {kills} kills")
        killed = durability.run(folders[0], writers=writers, readers=readers, kills=kills)
        say("visibility")
        looks = visibility.run(folders[1], pairs=visibility.PAIRS[:statements])
        say("an outside client")
        held = outside.run(folders[2], held_seconds=held_seconds)
    return Report(
        benchmark="contention",
        settings={"writers": writers, "readers": readers, "kills": killed.kills, "embedder": "test, real"},
        tables={
            "Durability": killed.rows(),
            "Together": [_together(killed)],
            "Visibility": visibility.rows(looks),
            "An outside client holds a write transaction": held.rows(),
        },
        targets=[*killed.targets(), *visibility.targets(looks), *held.targets()],
        notes=(
            "Durability uses the test embedder, visibility the real model. A write that was under way when "
            "its server was killed may be there or not; one that was answered must be.",
            f"Told to the waiting writer: “{held.told}”",
        ),
        plots={
            "calls": bars(
                "Milliseconds of a call, by client",
                [tally.name for tally in (*killed.writers, *killed.readers)],
                {
                    name: [_percentile(tally, share) for tally in (*killed.writers, *killed.readers)]
                    for name, share in (("p50", 50), ("p95", 95))
                },
            )
        },
    )


def _percentile(tally: durability.Tally, share: int) -> float:
    return float(np.percentile(tally.milliseconds, share)) if tally.milliseconds else 0.0


def _together(killed: durability.Outcome) -> dict[str, Cell]:
    writes = [taken for tally in killed.writers for taken in tally.milliseconds] or [float("nan")]
    return {
        "acknowledged writes": sum(len(tally.acknowledged) for tally in killed.writers),
        "lost": len(killed.lost),
        "write p50 ms": float(np.percentile(writes, 50)),
        "write p95 ms": float(np.percentile(writes, 95)),
        "slowest ms": float(np.max(writes)),
        "fairness (Jain)": killed.fairness,
        "largest log MB": killed.journal_megabytes,
    }
