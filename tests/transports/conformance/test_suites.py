"""The official conformance suites pass, and the page about them says what they said."""

from collections.abc import Mapping

import pytest

from tests.transports.conformance.report import NOT_APPLICABLE, PAGE, measured, page
from tests.transports.conformance.suite import Scenario

pytestmark = pytest.mark.slow

Measured = tuple[dict[str, Mapping[str, Scenario]], set[str]]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    return measured(tmp_path_factory.mktemp("conformance"))


def test_no_check_of_any_suite_fails(results: Measured) -> None:
    found, _ = results

    failed = {
        (title, name): one.failed
        for title, scenarios in found.items()
        for name, one in scenarios.items()
        if one.verdict == "fail" and name not in NOT_APPLICABLE
    }
    assert failed == {}


def test_every_scenario_passes_somewhere_or_cannot_apply(results: Measured) -> None:
    found, known = results

    passed = {
        name
        for scenarios in found.values()
        for name, one in scenarios.items()
        if one.verdict.startswith("pass")
    }
    assert known - passed == NOT_APPLICABLE.keys()


def test_the_page_says_what_the_suites_said(results: Measured) -> None:
    assert page(*results) == PAGE.read_text(encoding="utf-8"), (
        "run `python -m tests.transports.conformance.report`"
    )
