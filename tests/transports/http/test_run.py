"""Where a server may listen: what is refused before there is a socket, and what is told when it fails."""

import signal
import socket
import threading
from pathlib import Path

import pytest

from testbed.patience import until
from testbed.world import open_world
from vestige.core.errors import ConfigError, Conflict
from vestige.settings.settings import Settings, load_settings
from vestige.transports.cli.commands.serve import Greeting
from vestige.transports.http.auth.addresses import Bind
from vestige.transports.http.run import check_bind, listening, serve, url_of


def settings(folder: Path, bind: str, *, auth: bool) -> Settings:
    flags = {"data_dir": str(folder), "server.bind": bind, "auth.enabled": auth}
    return load_settings(flags, environ={"HOME": str(folder)})


@pytest.mark.parametrize(
    "bind",
    ["127.0.0.1:3927", "127.9.9.9:0", "[::1]:80", "localhost:3927", "LocalHost:1", "[::ffff:127.0.0.1]:1"],
)
def test_without_keys_it_listens_on_this_machine(tmp_path: Path, bind: str) -> None:
    assert check_bind(settings(tmp_path, bind, auth=False)).loopback


@pytest.mark.parametrize(
    "bind",
    [
        "0.0.0.0:3927",
        "[::]:3927",
        "10.0.0.1:3927",
        "[::ffff:10.0.0.1]:1",
        "[fe80::1]:1",
        "localhost.example:1",
        "128.0.0.1:1",
        "2130706433:1",  # 127.0.0.1 to some, a name to others
    ],
)
def test_without_keys_it_listens_nowhere_else(tmp_path: Path, bind: str) -> None:
    with pytest.raises(ConfigError, match="refusing to bind") as refused:
        check_bind(settings(tmp_path, bind, auth=False))
    assert refused.value.exit_code == 2
    check_bind(settings(tmp_path, bind, auth=True))


def test_a_name_that_stands_for_another_machine_is_refused_when_it_is_looked_up() -> None:
    with (
        pytest.raises(ConfigError, match="refusing to bind"),
        listening(Bind(host="0.0.0.0", port=0), only_loopback=True),
    ):
        pass


def test_an_address_of_another_machine_is_told() -> None:
    with (
        pytest.raises(ConfigError, match=r"cannot listen on 192\.0\.2\.1:0"),
        listening(Bind(host="192.0.2.1", port=0), only_loopback=False),
    ):
        pass


def test_two_servers_do_not_share_a_place() -> None:
    with listening(Bind(host="127.0.0.1", port=0), only_loopback=True) as first:
        first.listen()
        taken = Bind(host="127.0.0.1", port=first.getsockname()[1])
        with pytest.raises(Conflict), listening(taken, only_loopback=True):
            pass


def test_a_place_is_taken_before_anybody_is_let_in() -> None:
    with listening(Bind(host="127.0.0.1", port=0), only_loopback=True) as opened:
        address = opened.getsockname()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address)
    assert opened.fileno() == -1


@pytest.mark.parametrize(("host", "shown"), [("0.0.0.0", "127.0.0.1"), ("127.0.0.2", "127.0.0.2")])
def test_the_address_that_is_told_can_be_used_on_this_machine(host: str, shown: str) -> None:
    with listening(Bind(host=host, port=0), only_loopback=False) as opened:
        assert url_of(opened) == f"http://{shown}:{opened.getsockname()[1]}"


def test_the_last_resort_is_none_for_a_process_that_goes_on(tmp_path: Path) -> None:
    with (
        open_world(tmp_path) as world,
        listening(Bind(host="127.0.0.1", port=0), only_loopback=True) as opened,
    ):
        before = threading.active_count()
        serve(world.app, opened, started=lambda: signal.raise_signal(signal.SIGTERM))
        assert [one for one in threading.enumerate() if isinstance(one, threading.Timer)] == []
        until(lambda: threading.active_count() <= before)  # threads of the pool end a moment later


def test_the_lines_for_clients_ask_for_a_key_only_where_one_is_needed() -> None:
    url = "http://127.0.0.1:3927"
    with_keys, without = Greeting(url=url).lines(), Greeting(url=url, auth=False).lines()
    assert f"vestige {url}/mcp --header 'Authorization: Bearer vst_…'" in with_keys
    assert '"headers":{"Authorization":"Bearer vst_…"}' in with_keys
    assert f"claude mcp add --scope user --transport http vestige {url}/mcp\n" in without
    assert "Bearer" not in without
