"""The page that shows the API: open to read, without anything a strict browser would refuse, and right."""

import json
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx
import pytest

from testbed.project import PROJECT
from tests.transports.conformance.node import NODE
from tests.transports.http.support.harness import Site
from tests.transports.http.support.inside import URL, inside
from tests.transports.parity.example_store import planted
from tests.transports.parity.transports import direct
from vestige.operations.registry.groups import registry
from vestige.transports.http.openapi.document import document

PAGE = "/api/v1/docs"
STATIC = PROJECT / "src" / "vestige" / "transports" / "http" / "static"


class Elements(HTMLParser):
    """The elements of a page with their attributes, and the text inside of scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.inline = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.cdata_elem:
            self.inline += data.strip()


def test_everything_the_page_refers_to_is_served_to_everybody(site: Site) -> None:
    page = site.http.get(PAGE)
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    named = [
        str(attributes.get("href") or attributes.get("src"))
        for tag, attributes in Elements(page.text).found
        if tag in ("link", "script", "a") and attributes.get("rel") != "icon"
    ]
    modules = re.findall(r'from "(\./[^"]+)"', site.http.get(f"{PAGE}/api.js").text)
    paths = [urljoin(PAGE, one) for one in named if not one.startswith("#")]
    paths += [urljoin(f"{PAGE}/api.js", one) for one in modules]
    assert sorted(set(paths)) == [
        "/api/v1/docs/api-form.js",
        "/api/v1/docs/api.css",
        "/api/v1/docs/api.js",
        "/api/v1/openapi.json",
    ]
    assert [site.http.get(path).status_code for path in paths] == [200] * len(paths)


def test_the_address_with_a_slash_leads_to_the_page(site: Site) -> None:
    answer = site.http.get(f"{PAGE}/", follow_redirects=False)
    assert (answer.status_code, urlsplit(answer.headers["location"]).path) == (307, PAGE)


def test_nothing_on_the_page_needs_more_than_its_own_files() -> None:
    page = Elements((STATIC / "api.html").read_text(encoding="utf-8"))
    assert page.inline == ""
    attributes = {name for _, given in page.found for name in given}
    assert not {name for name in attributes if name == "style" or name.startswith("on")}
    for file in STATIC.glob("api*"):
        text = file.read_text(encoding="utf-8")
        assert "://" not in text, file.name
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|eval\(|\.style\b", text), file.name
        assert not re.search(r"localStorage|sessionStorage|document\.cookie", text), file.name


def test_what_is_filled_in_has_a_label() -> None:
    page = Elements((STATIC / "api.html").read_text(encoding="utf-8"))
    tags = [tag for tag, _ in page.found]
    assert tags.count("input") == tags.count("label") == 2
    assert ("html", {"lang": "en"}) in page.found
    assert {"header", "main", "h1"} <= set(tags)


BUILD = """
import { argumentsOf, kindOf, plain, requestOf, textOf, valueOf } from "MODULE";
import { readFileSync } from "node:fs";
const described = JSON.parse(readFileSync(0, "utf8")), made = {};
for (const [path, offered] of Object.entries(described.paths)) {
  for (const [method, operation] of Object.entries(offered)) {
    const values = {};
    for (const one of argumentsOf(operation)) {
      const kind = kindOf(plain(one.schema, described.components.schemas));
      const value = valueOf(kind, textOf(kind, one.example));
      if (value !== undefined) values[one.name] = value;
    }
    made[operation.operationId] = { method, ...requestOf(method.toUpperCase(), path, values) };
  }
}
process.stdout.write(JSON.stringify(made));
"""


@pytest.mark.slow
def test_a_form_filled_in_with_the_example_is_answered_as_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = BUILD.replace("MODULE", (STATIC / "api-form.js").as_uri())
    described = json.dumps(document(registry))
    command = [str(NODE), "--input-type=module", "--eval", code]
    done = subprocess.run(command, input=described, capture_output=True, check=True, encoding="utf-8")
    made: dict[str, dict[str, Any]] = json.loads(done.stdout)
    assert made.keys() == {route.operation for route in registry.routes()}
    monkeypatch.chdir(tmp_path)
    for name in ("memory.list", "search", "memory.tag", "dedup.plan", "memory.unlink", "intention.set"):
        operation, request = registry.operations[name], made[name]
        with planted(tmp_path / f"direct-{name}") as world:
            expected = direct(world, operation, dict(operation.example))
        with planted(tmp_path / f"form-{name}") as world, inside(world.app) as transport:
            response = httpx.Client(transport=transport).request(
                request["method"],
                f"{URL}/api/v1{request['path']}",
                content=request.get("body"),
                headers={"Content-Type": "application/json"} if "body" in request else {},
            )
        assert response.json() == expected, name
