"""The Helm chart of deploy/, rendered by Helm: what it makes is valid and confined, the unsafe is refused."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed.failures import each
from testbed.patience import PATIENCE_SECONDS
from testbed.project import PROJECT
from vestige import __version__
from vestige.settings.settings import unknown_variables

CHART = PROJECT / "deploy" / "helm" / "vestige"
CASES = sorted(path.name.removesuffix("-values.yaml") for path in (CHART / "ci").glob("*-values.yaml"))
OLDEST, NEWEST = "1.25", "1.37"

Tree = dict[str, Any]  # what a YAML file holds


@cache
def program() -> str | None:
    return shutil.which("helm", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")


def helm(*words: str | Path) -> subprocess.CompletedProcess[str]:
    found = program()
    if found is None:
        pytest.skip("THE HELM CHART IS NOT RENDERED: there is no helm for this platform")
    with tempfile.TemporaryDirectory() as home:
        environ = {f"HELM_{name}_HOME": home for name in ("CACHE", "CONFIG", "DATA")} | {"HOME": home}
        return subprocess.run(
            [found, *words],
            env=environ,
            capture_output=True,
            encoding="utf-8",
            timeout=PATIENCE_SECONDS,
            check=False,
        )


def template(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return helm("template", "memories", CHART, "--namespace", "team", *words)


def values(case: str) -> Path:
    return CHART / "ci" / f"{case}-values.yaml"


@cache
def rendered(case: str) -> str:
    done = template("--values", values(case))
    assert done.returncode == 0, done.stderr
    return done.stdout


def objects(case: str) -> list[Tree]:
    return [tree for tree in yaml.safe_load_all(rendered(case)) if tree]


def of_kind(case: str, kind: str) -> dict[str, Tree]:
    return {tree["metadata"]["name"]: tree for tree in objects(case) if tree["kind"] == kind}


def workloads(case: str) -> dict[str, Tree]:
    return of_kind(case, "Deployment") | of_kind(case, "StatefulSet")


def pods(case: str) -> dict[str, Tree]:
    return {name: tree["spec"]["template"]["spec"] for name, tree in workloads(case).items()}


def containers(case: str) -> Iterator[Tree]:
    for pod in pods(case).values():
        yield from pod["containers"]


# -- as Helm and Kubernetes see it ---------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
def test_the_chart_has_nothing_its_linter_would_mention(case: str) -> None:
    done = helm("lint", "--strict", "--quiet", CHART, "--values", values(case))
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize("version", [OLDEST, NEWEST])
def test_kubernetes_knows_every_field_of_every_object(version: str, tmp_path: Path) -> None:
    files = []
    for case in CASES:
        files.append(tmp_path / f"{case}.yaml")
        files[-1].write_text(rendered(case), encoding="utf-8")
    command = [sys.executable, "-m", "kubernetes_validate", "--strict", "-k", version, *map(str, files)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=120, check=False)
    told = done.stdout + done.stderr
    assert done.returncode == 0, told
    assert told.count(" passed ") == sum(len(objects(case)) for case in CASES)


def test_the_versions_agree_with_the_package_and_the_schemas() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert chart["appVersion"] == __version__
    assert chart["kubeVersion"] == f">={OLDEST}.0-0"


def test_the_chart_and_compose_use_the_same_database() -> None:
    compose = yaml.safe_load((PROJECT / "deploy" / "compose.yaml").read_text(encoding="utf-8"))
    chart = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    assert chart["storage"]["postgres"]["bundled"]["image"] == compose["services"]["postgres"]["image"]


def test_every_value_is_described_and_every_description_has_a_value() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))

    def compare(described: Tree, given: Tree, path: str) -> None:
        assert described["additionalProperties"] is False, path
        assert set(described["properties"]) == set(given), path
        for name, value in given.items():
            inner = described["properties"][name]
            if isinstance(value, dict) and "properties" in inner:
                compare(inner, value, f"{path}.{name}")

    given = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    compare(schema, {**given, "global": {}}, "values")  # Helm itself adds `global`


# -- what runs is confined -----------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
def test_a_pod_is_confined(case: str) -> None:
    assert pods(case)
    for pod in pods(case).values():
        assert pod["automountServiceAccountToken"] is False
        assert pod["enableServiceLinks"] is False, "VESTIGE_PORT of a service would look like a setting"
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] > 0
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not pod.keys() & {"hostNetwork", "hostPID", "hostIPC"}
        assert not any("hostPath" in volume for volume in pod["volumes"])


@pytest.mark.parametrize("case", CASES)
def test_a_container_is_confined_and_watched(case: str) -> None:
    for container in containers(case):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container.keys() >= {"startupProbe", "livenessProbe", "readinessProbe"}
        assert container["resources"]["requests"].keys() == {"cpu", "memory"}
        assert container["resources"]["limits"]["memory"]
        assert re.search(r":\d+\.\d+\.\d+|@sha256:", container["image"])


@pytest.mark.parametrize("case", CASES)
def test_what_is_mounted_and_probed_is_there(case: str) -> None:
    for name, pod in pods(case).items():
        volumes = {volume["name"] for volume in pod["volumes"]}
        claims = workloads(case)[name]["spec"].get("volumeClaimTemplates", [])
        volumes |= {claim["metadata"]["name"] for claim in claims}
        for container in pod["containers"]:
            assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
            ports = {port["name"] for port in container["ports"]}
            probes = [container[f"{when}Probe"] for when in ("startup", "liveness", "readiness")]
            assert {probe["httpGet"]["port"] for probe in probes if "httpGet" in probe} <= ports


@pytest.mark.parametrize("case", CASES)
def test_liveness_does_not_ask_for_the_database_and_readiness_does(case: str) -> None:
    for container in containers(case):
        if "httpGet" in container["livenessProbe"]:
            assert container["livenessProbe"]["httpGet"]["path"] == "/health"
            assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"


@pytest.mark.parametrize("case", CASES)
def test_no_secret_is_told_outside_of_secrets(case: str) -> None:
    outside = [tree for tree in objects(case) if tree["kind"] != "Secret"]
    assert "only-for-the-tests" not in json.dumps(outside)


@pytest.mark.parametrize("case", CASES)
def test_what_a_container_takes_from_the_charts_secret_is_in_it(case: str) -> None:
    made = {name: set(tree["stringData"]) for name, tree in of_kind(case, "Secret").items()}
    used: dict[str, set[str]] = {}
    for container in containers(case):
        for variable in container["env"]:
            if "valueFrom" in variable:
                wanted = variable["valueFrom"]["secretKeyRef"]
                used.setdefault(wanted["name"], set()).add(wanted["key"])
    assert {name: keys for name, keys in used.items() if name.startswith("memories-vestige")} == made


@pytest.mark.parametrize("case", CASES)
def test_the_settings_of_a_container_exist(case: str) -> None:
    for container in containers(case):
        names = {variable["name"] for variable in container["env"]}
        assert unknown_variables(dict.fromkeys(names, "x")) == []


@pytest.mark.parametrize("case", CASES)
def test_every_service_leads_to_a_port_of_some_pod(case: str) -> None:
    templates = [tree["spec"]["template"] for tree in workloads(case).values()]
    for name, service in of_kind(case, "Service").items():
        wanted = service["spec"]["selector"].items()
        chosen = [one["spec"] for one in templates if wanted <= one["metadata"]["labels"].items()]
        assert len(chosen) == 1, name
        ports = {port["name"] for container in chosen[0]["containers"] for port in container["ports"]}
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports


# -- each way to run it --------------------------------------------------------------------------------


def test_on_sqlite_there_is_one_pod_with_a_volume_and_a_machine_of_its_own() -> None:
    assert of_kind("sqlite", "Deployment") == {}
    spec = of_kind("sqlite", "StatefulSet")["memories-vestige"]["spec"]
    assert spec["replicas"] == 1
    [claim] = spec["volumeClaimTemplates"]
    assert claim["spec"]["storageClassName"] == "fast"
    server, bridge = spec["template"]["spec"]["containers"]
    for container in (server, bridge):
        places = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
        assert places["/data"] == claim["metadata"]["name"]
        assert places["/etc/machine-id"] == "machine-id"
    assert (server["args"][1], bridge["args"][1]) == ("serve", "bridge")


def test_the_machine_of_a_store_is_random_unless_it_is_given_whatever_the_name_of_the_release() -> None:
    def machine(*words: str) -> str:
        done = template("--values", values("sqlite"), *words)
        [found] = re.findall(r'machine-id: "(.*)"', done.stdout)
        return str(found)

    first, second = machine(), machine()
    assert re.fullmatch("[0-9a-f]{32}", first)
    assert first != second, "the same name in another cluster, with a copy of the volume, is another machine"
    given = "0123456789abcdef" * 2
    assert machine("--set", f"storage.sqlite.machineId={given}") == given


def test_several_replicas_are_not_all_taken_away_at_once() -> None:
    budgets = of_kind("external", "PodDisruptionBudget")
    assert set(budgets) == {"memories-vestige-server", "memories-vestige-bridge"}
    assert all(tree["spec"]["maxUnavailable"] == 1 for tree in budgets.values())
    for case in ("bundled", "sqlite"):
        assert of_kind(case, "PodDisruptionBudget") == {}, (
            "one replica would keep its node from being drained"
        )


def test_the_bundled_database_is_reached_by_vestige_alone_and_reaches_nobody() -> None:
    policy = of_kind("bundled", "NetworkPolicy")["memories-vestige-postgres"]["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert policy["egress"] == []
    [rule] = policy["ingress"]
    [peer] = rule["from"]
    assert peer["podSelector"]["matchLabels"]["app.kubernetes.io/instance"] == "memories"
    assert peer["podSelector"]["matchExpressions"][0]["values"] == ["server", "bridge"]


def test_only_those_who_are_named_may_connect_and_only_named_ways_lead_out() -> None:
    policy = of_kind("external", "NetworkPolicy")["memories-vestige"]["spec"]
    [rule] = policy["ingress"]
    assert rule["from"] == [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "agents"}}}]
    out = {port["port"] for rule in policy["egress"] for port in rule["ports"]}
    assert out == {53, 5432, 443}
    alone = of_kind("sqlite", "NetworkPolicy")["memories-vestige"]["spec"]
    assert alone["ingress"][0]["from"] == [{"podSelector": {}}], "without a name: this namespace"


BUNDLED = "storage.postgres.bundled.enabled=true"
PASSWORD = "storage.postgres.bundled.password=p"
URL = "storage.postgres.url=postgresql://u@h/d"


@each(
    ("told", "settings"),
    [
        ("No database", []),
        ("No database", ["storage.postgres.url=  "]),
        ("More than one database", [URL, "storage.postgres.existingSecret=s"]),
        ("bundled.password is empty", [BUNDLED]),
        ("bundled.password is empty", [BUNDLED, "storage.postgres.bundled.password=   "]),
        ("Both storage.postgres.bundled", [BUNDLED, PASSWORD, "storage.postgres.bundled.existingSecret=s"]),
        ("bridge.auth.token is empty", [URL, "bridge.enabled=true"]),
        ("bridge.auth.token is empty", [URL, "bridge.enabled=true", "bridge.auth.token= "]),
        ("server.replicas must be 1", ["storage.backend=sqlite", "server.replicas=2"]),
        ("bridge.replicas must be 1", ["storage.backend=sqlite", "bridge.replicas=2"]),
        ("server.sessionSecret.value is empty", [URL, "server.replicas=2"]),
        ("image.tag", [URL, "image.tag=latest"]),
        ("bundled.image", [BUNDLED, PASSWORD, "storage.postgres.bundled.image=a/b:latest"]),
        ("bundled.image", [BUNDLED, PASSWORD, "storage.postgres.bundled.image=a/b"]),
        ("storage.backend", ["storage.backend=memory"]),
        ("relicas", [URL, "server.relicas=2"]),
        ("VESTIGE_AUTH_TOKEN", [URL, "environment.VESTIGE_AUTH_TOKEN=t"]),
    ],
)  # fmt: skip
def test_what_is_unsafe_is_refused_with_the_reason(told: str, settings: list[str]) -> None:
    done = template(*(word for one in settings for word in ("--set", one)))
    assert done.returncode != 0
    assert done.stdout == ""
    assert told in done.stderr
