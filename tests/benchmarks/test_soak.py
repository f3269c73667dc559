"""The soak, short, and what makes it fail."""

from collections.abc import Callable

import pytest

from benchmarks.soak.arms import HELD
from benchmarks.soak.load import Ledger
from benchmarks.soak.run import JUDGED, MOST_GROWTH, Sample, Soaked, run

MINUTES = 2.0


def soaked(memory: Callable[[int], float] = lambda number: 70.0, **changes: object) -> Soaked:
    """A soak of 24 minutes in which nothing happened but these changes."""
    samples = [
        Sample(minutes=float(number), held={**dict.fromkeys(HELD, 20.0), "memory MB": memory(number)})
        for number in range(1, 25)
    ]
    made = Soaked(name="sqlite", ledger=Ledger(kept=10), samples=samples, exit_codes=[0, 0])
    made.ledger.wrote("m1", "zinc")
    for name, value in changes.items():
        setattr(made.ledger if hasattr(made.ledger, name) else made, name, value)
    return made


def missed(made: Soaked) -> list[str]:
    return [target.name.removeprefix("sqlite: ") for target in made.targets() if not target.met]


def test_a_store_that_lost_nothing_and_a_server_that_stays_flat_meet_every_target() -> None:
    assert missed(soaked()) == []
    assert missed(soaked(lambda number: min(120.0, 60.0 + 5 * number))) == [], "caches were filled at first"


def test_whatever_is_lost_grows_or_breaks_fails_the_soak() -> None:
    broken = {"findings": [{"severity": "broken", "message": "A row is gone."}]}
    assert missed(soaked(lost=["m1: zinc"])) == ["acknowledged writes lost"]
    assert missed(soaked(reappeared=["m2"])) == ["deleted memories that came back"]
    assert missed(soaked(doctor=broken)) == ["findings of doctor"]
    assert missed(soaked(ended_by_itself=1)) == ["servers that ended by themselves"]
    assert missed(soaked(exit_codes=[0, -9])) == ["servers that did not end in order"]
    leak = MOST_GROWTH["memory MB"] / 10
    assert missed(soaked(lambda number: 60 + leak * number)) == ["growth of memory MB in the second half"]


def test_only_refusals_that_the_attacks_explain_are_allowed() -> None:
    made = soaked()
    made.ledger.refused({"code": "store_full", "status": 507})
    made.ledger.refused({"error": {"code": "store_busy"}})
    assert missed(made) == []
    made.ledger.refused({"code": "internal", "status": 500})
    assert missed(made) == ["errors that no attack explains"]


def test_a_run_too_short_for_a_line_is_not_judged_by_growth() -> None:
    made = soaked(lambda number: 60.0 + 9 * number)
    made.samples = made.samples[: JUDGED - 1]
    assert missed(made) == []


@pytest.mark.slow
@pytest.mark.nightly
def test_both_stores_lose_nothing_under_load_and_attacks() -> None:
    report = run(minutes=MINUTES, kept=200)

    assert [target.name for target in report.targets if not target.met] == []
    stores = report.tables["Stores"]
    assert [row["store"] for row in stores] == ["sqlite", "postgres"]
    assert {row["attack"] for row in report.tables["Attacks"]} >= {
        *("SIGKILL of a server", "SIGKILL of a stdio server", "step of the clock"),
        *("terminated backend", "SIGKILL of a backend", "restart of the database"),
    }
    assert "This run lasted 2." in report.markdown(), "its length is stated"
