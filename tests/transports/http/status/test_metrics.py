"""`/metrics`: what Prometheus reads, and who may."""

import re
from pathlib import Path

import pytest

from tests.transports.http.support.harness import Site, bearer, new_site
from vestige.transports.http.context import Gauge
from vestige.transports.http.status.metrics import Metrics


def numbers(text: str) -> dict[str, float]:
    lines = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in lines}


def test_requests_are_counted_by_route_and_status(shell: Site) -> None:
    headers = bearer(shell.key("read"))
    shell.http.get("/health")
    shell.http.get("/health")
    shell.http.get("/no/such/thing", headers=headers)
    response = shell.http.get("/metrics", headers=headers)
    assert response.headers["content-type"] == "text/plain; version=0.0.4"
    told = numbers(response.text)
    assert told['vestige_http_requests_total{method="GET",route="/health",status="200"}'] == 2
    assert told['vestige_http_requests_total{method="GET",route="(none)",status="404"}'] == 1
    assert told['vestige_http_request_seconds_count{route="/health"}'] == 2
    assert told["vestige_http_in_flight"] == 1
    assert told["vestige_store_up"] == 1


def test_memories_are_counted_and_a_store_that_fails_is_told(tmp_path: Path) -> None:
    with new_site(tmp_path, {"auth.enabled": False}, parts=()) as site:
        site.world.remember("The kettle whistles in C sharp.")
        assert numbers(site.http.get("/metrics").text)["vestige_memories"] == 1
        site.world.app.engine.store.close()
        assert numbers(site.http.get("/metrics").text)["vestige_store_up"] == 0


def test_gauges_of_the_parts_are_shown(shell: Site) -> None:
    shell.context.gauges["teapots"] = Gauge("Teapots that are full.", lambda: 1_234_567)
    text = shell.http.get("/metrics", headers=bearer(shell.key("read"))).text
    assert numbers(text)["vestige_teapots"] == 1_234_567
    assert "# HELP vestige_teapots Teapots that are full.\n# TYPE vestige_teapots gauge\n" in text


def test_what_is_done_in_the_background_is_shown(tmp_path: Path) -> None:
    with new_site(tmp_path, {"auth.enabled": False}, parts=()) as site:
        site.world.remember("The kettle whistles in C sharp.")
        site.world.app.autopilot.settle()
        told = numbers(site.http.get("/metrics").text)
        assert told["vestige_background_handled_total"] > 0
        assert told["vestige_background_waiting"] == told["vestige_background_failed_total"] == 0


def test_every_number_says_what_it_is(shell: Site) -> None:
    shell.http.get("/health")
    text = shell.http.get("/metrics", headers=bearer(shell.key("read"))).text
    explained = set(re.findall(r"# HELP ([a-z_]+) ", text))
    of_histograms = re.compile("_(bucket|sum|count)$")
    assert {of_histograms.sub("", re.split("[{ ]", name)[0]) for name in numbers(text)} == explained


def test_what_would_grow_if_something_were_forgotten_is_shown(shell: Site) -> None:
    told = numbers(shell.http.get("/metrics", headers=bearer(shell.key("read"))).text)
    assert 1 <= told["vestige_tasks"] < 50
    assert 2 <= told["vestige_threads"] < 50


def test_every_line_has_the_form_that_prometheus_reads(shell: Site) -> None:
    text = shell.http.get("/metrics", headers=bearer(shell.key("read"))).text
    comment = r"# (HELP|TYPE) [a-z_]+ .+"
    sample = r'[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [0-9.e+-]+'
    assert [line for line in text.splitlines() if not re.fullmatch(f"{comment}|{sample}", line)] == []


@pytest.mark.parametrize("filters", [{"scopes": ["/a"]}, {"domains": ["work"]}])
def test_a_key_that_reaches_a_part_gets_no_numbers_about_the_whole(
    shell: Site, filters: dict[str, list[str]]
) -> None:
    response = shell.http.get("/metrics", headers=bearer(shell.key("admin", **filters)))
    assert (response.status_code, response.json()["code"]) == (403, "forbidden")


def test_without_a_key_there_are_no_numbers(shell: Site) -> None:
    assert shell.http.get("/metrics").status_code == 401


def test_what_a_client_makes_up_makes_no_new_series() -> None:
    metrics = Metrics()
    for number in range(100):
        metrics.observe(f"METHOD{number}", "(none)", 404, 0.1)
    assert len([line for line in metrics.lines() if "requests_total{" in line]) == 1


def test_the_buckets_of_a_histogram_add_up() -> None:
    metrics = Metrics()
    for seconds in (0.0005, 0.001, 0.02, 99.0):
        metrics.observe("GET", "/x", 200, seconds)
    told = numbers("\n".join(metrics.lines()))
    name = 'vestige_http_request_seconds_bucket{route="/x",le='
    assert told[f'{name}"0.001"}}'] == 2  # a bound belongs to its bucket
    assert told[f'{name}"0.025"}}'] == 3
    assert told[f'{name}"30.0"}}'] == 3
    assert told[f'{name}"+Inf"}}'] == 4
