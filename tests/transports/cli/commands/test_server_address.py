"""Where a server is reached: the address that it tells is one that works."""

import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from testbed import patient_http
from testbed.failures import each
from tests.transports.bridge.harness import TOKEN, running
from tests.transports.http.support.harness import serving
from vestige.settings.settings import load_settings
from vestige.transports.cli.commands.server_address import (
    UNENCRYPTED,
    own_address,
    url_for_others,
    warn_unencrypted,
)
from vestige.transports.http.auth.addresses import Bind
from vestige.transports.http.auth.hosts import AllowedNames
from vestige.transports.http.run import listening


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_the_address_that_is_found_is_one_of_this_machine(family: socket.AddressFamily) -> None:
    found = own_address(family)
    assert found is None or can_be_bound(family, found)  # none without a way to others


def can_be_bound(family: socket.AddressFamily, host: str) -> bool:
    with socket.socket(family, socket.SOCK_STREAM) as opened:
        opened.bind((host, 0))
        return str(opened.getsockname()[0]) == host


@each("host", ["0.0.0.0", "::"])
@each(
    ("name", "shown"),
    [
        ("memory.example", "memory.example:{port}"),
        ("memory.example:8443", "memory.example:8443"),
        ("192.0.2.7", "192.0.2.7:{port}"),
        ("fd00::2", "[fd00::2]:{port}"),
        ("[fd00::2]", "[fd00::2]:{port}"),
    ],
)
def test_the_first_name_that_it_answers_to_is_told(host: str, name: str, shown: str) -> None:
    bind = Bind(host=host, port=0)
    with listening(bind, only_loopback=False) as opened:
        authority = shown.format(port=opened.getsockname()[1])
        assert url_for_others(opened, (name, "other.example")) == f"http://{authority}"
    assert AllowedNames.of(bind, (name,), ()).answers_to(authority)


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_without_a_name_it_is_an_address_that_the_server_answers_to(host: str) -> None:
    bind = Bind(host=host, port=0)
    with listening(bind, only_loopback=False) as opened:
        told = url_for_others(opened, ())
    found = own_address(socket.AF_INET) or (own_address(socket.AF_INET6) if host == "::" else None)
    assert (told is None) == (found is None)
    assert told is None or AllowedNames.of(bind, (), ()).answers_to(told.removeprefix("http://"))


def test_a_server_of_one_address_is_reached_there_and_nowhere_else() -> None:
    with listening(Bind(host="127.0.0.1", port=0), only_loopback=True) as opened:
        assert url_for_others(opened, ("memory.example",)) is None


@pytest.mark.parametrize(
    ("host", "proxies", "warned"),
    [("127.0.0.1", (), []), ("0.0.0.0", (), [UNENCRYPTED]), ("0.0.0.0", ("192.0.2.9",), [])],
)
def test_who_lets_other_machines_come_is_warned_unless_a_proxy_stands_before_it(
    host: str, proxies: tuple[str, ...], warned: list[str], caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    settings = load_settings({"data_dir": str(tmp_path), "server.trusted_proxies": proxies}, environ={})
    with listening(Bind(host=host, port=0), only_loopback=False) as opened:
        warn_unencrypted(opened, settings)
    assert caplog.messages == warned


# -- as a process ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_server_for_other_machines_tells_an_address_that_works_and_one_for_this_machine(
    tmp_path: Path,
) -> None:
    with serving(tmp_path, bind="0.0.0.0:0") as server:
        port = urlsplit(server.url).port
        assert server.local == f"http://127.0.0.1:{port}"
        assert UNENCRYPTED in server.log()
        assert server.url == f"http://{own_address(socket.AF_INET) or '127.0.0.1'}:{port}"
        for url in (server.url, server.local):
            assert patient_http.get(f"{url}/health", trust_env=False).status_code == 200


@pytest.mark.slow
def test_a_server_with_a_name_tells_it_and_answers_to_it(tmp_path: Path) -> None:
    with serving(tmp_path, bind="0.0.0.0:0", VESTIGE_SERVER_ALLOWED_HOSTS="memory.example") as server:
        told = urlsplit(server.url)
        assert told.hostname == "memory.example"
        named = patient_http.get(f"{server.local}/health", headers={"Host": told.netloc}, trust_env=False)
        assert named.status_code == 200


@pytest.mark.slow
def test_a_bridge_for_other_machines_tells_them_where_it_is(tmp_path: Path) -> None:
    some = {"VESTIGE_AUTH_TOKEN": TOKEN, "VESTIGE_SERVER_ALLOWED_HOSTS": "bridge.example"}
    with running(tmp_path, bind="0.0.0.0:0", descriptors=None, **some) as (url, _, log):
        assert urlsplit(url).hostname == "bridge.example"
        assert UNENCRYPTED in log.read_text(encoding="utf-8")
