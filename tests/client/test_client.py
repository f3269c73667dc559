"""The Python clients: what they send, what they make of answers and errors, and when they try again."""

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import httpx
import orjson
import pytest

from testbed.failures import each
from testbed.patience import PATIENCE_SECONDS
from testbed.world import World, open_world
from tests.transports.http.support.inside import URL, Inside, inside
from vestige.client import AsyncClient, Client, Refused, Unauthenticated, Unreachable
from vestige.client.async_operations import AsyncOperations
from vestige.client.connection import TRIES, AsyncConnection, Connection, Requests
from vestige.client.failures import error_of
from vestige.client.operations import Operations
from vestige.core import errors
from vestige.core.errors import (
    ConfigError,
    DeadlineExceeded,
    InvalidInput,
    MissingExtra,
    NotFound,
    StoreBusy,
    VestigeError,
)
from vestige.transports.http.problems import UNAUTHENTICATED, Refusal, problem

Handler = Callable[[httpx.Request], httpx.Response]
KEY = "vst_0123456789abcdefghijklmnopqrst"


class Server(httpx.BaseTransport):
    """Answers requests one after the other with what a test says, and keeps them."""

    def __init__(self, *answers: httpx.Response | Exception, asked: threading.Event | None = None) -> None:
        self._answers, self._asked = list(answers), asked
        self.requests: list[httpx.Request] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self._answers.pop(0)
        if self._asked is not None:
            self._asked.set()
        if isinstance(answer, Exception):
            raise answer
        return answer


def answered(**answer: Any) -> httpx.Response:
    return httpx.Response(200, json=answer)


def busy(seconds: int | None = None, status: int = 503) -> httpx.Response:
    headers = {} if seconds is None else {"Retry-After": str(seconds)}
    error = StoreBusy("Somebody else writes.")
    return httpx.Response(status, content=bytes(problem(error, "r1").body), headers=headers)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    settings: dict[str, Any] = {"storage.backend": "memory"}
    with open_world(tmp_path, **settings) as opened:
        yield opened


def asking(server: Server, pauses: list[float], *, gives_up: bool = False) -> Operations:
    """The operations over a connection that writes down its pauses instead of making them."""

    def pause(seconds: float) -> bool:
        pauses.append(seconds)
        return gives_up

    http = httpx.Client(transport=server)
    requests = Requests(http, URL, timeout_seconds=5, long_timeout_seconds=50)
    return Operations(Connection(http, requests, pause=pause))


# -- what is sent --------------------------------------------------------------------------------------


def test_operations_are_methods_with_typed_answers(world: World) -> None:
    with inside(world.app) as transport, Client(URL, transport=transport) as client:
        made = client.smart_ingest("Ada drinks tea.", tags=["drink"])
        batch = client.smart_ingest(items=[{"content": "Grace drinks water.", "pinned": True}])
        found = client.search("What does Ada drink?", limit=1)
        listed = client.memory.list(tags=("drink",), created_from=datetime(2026, 1, 1, tzinfo=UTC))
        assert "results" in batch  # tells the type checker which of the two answers it is
        got = client.memory.get(batch["results"][0]["nodeId"])
        told = client.memory.edit(listed["results"][0]["id"], "Ada drinks green tea.")
        chain = client.connections.chain(from_=listed["results"][0]["id"], to=got["node"]["id"])
    assert "nodeId" in made
    assert found["results"][0]["id"] == made["nodeId"]
    assert got["node"]["pinned"] is True
    assert told["node"]["content"] == "Ada drinks green tea."
    assert chain["paths"] == []


def test_every_operation_that_is_offered_is_there_and_no_other() -> None:
    from vestige.operations.registry.groups import registry

    client = asking(Server(), [])
    groups = [name for name in vars(client) if not name.startswith("_")]
    have = {name for name in dir(client) if not name.startswith("_") and name not in groups}
    for group in groups:
        have |= {f"{group}.{name}" for name in dir(getattr(client, group)) if not name.startswith("_")}
    offered = {route.operation for route in registry.routes()} | set(registry.short_names)
    assert {name.removesuffix("_") for name in have} == offered
    assert _methods(Operations) == _methods(AsyncOperations)


def _methods(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def test_short_names_are_the_same_operations(world: World) -> None:
    with inside(world.app) as transport, Client(URL, transport=transport) as client:
        made = client.add("Ada drinks tea.", tags=["drink"])
        client.update(made["nodeId"], "Ada drinks green tea.")
        assert client.get(made["nodeId"])["node"].get("content") == "Ada drinks green tea."
        assert client.forget(made["nodeId"])["deleted"]
        with pytest.raises(NotFound):
            client.get(made["nodeId"])


def test_an_argument_that_is_not_json_is_refused_before_anything_is_sent() -> None:
    wrong: Any = {"made": object()}
    server = Server()
    with pytest.raises(InvalidInput, match="not JSON"):
        asking(server, []).add("Ada drinks tea.", metadata=wrong)
    assert server.requests == []


def test_what_is_not_given_is_not_sent() -> None:
    server = Server(answered(), answered())
    client = asking(server, [])
    client.search("tea", tags=[], explain=False)
    client.memory.list(pinned=True, tags=["a b", "c&d"], created_to=datetime(2026, 3, 1, tzinfo=UTC))
    post, get = server.requests
    assert (post.method, post.url.path) == ("POST", "/api/v1/search")
    assert orjson.loads(post.content) == {"query": "tea", "tags": [], "explain": False}
    assert get.url.params.multi_items() == [
        ("tags", "a b"),
        ("tags", "c&d"),
        ("created_to", "2026-03-01T00:00:00+00:00"),
        ("pinned", "true"),
    ]


def test_the_key_and_what_narrows_it_are_headers() -> None:
    server = Server(answered())
    with Client(URL, key=KEY, scope="/project/tea", domain="drinks", transport=server) as client:
        client.system_status()
        assert KEY not in repr(client) + repr(vars(client))
    (request,) = server.requests
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["x-vestige-scope"] == "/project/tea"
    assert request.headers["x-vestige-domain"] == "drinks"


def test_a_scope_and_a_domain_in_any_script_narrow_what_is_asked(world: World) -> None:
    with inside(world.app) as transport:
        with Client(URL, scope="/project/größe", transport=transport) as client:
            client.smart_ingest("Der Kran hebt 40 Tonnen.", domains=["技術"])
        with Client(URL, scope="/project/größe", domain="技術", transport=transport) as client:
            (found,) = client.memory.list()["results"]
    assert found["scope"] == "/project/größe"


def test_an_id_cannot_change_the_address() -> None:
    server = Server(answered())
    client = asking(server, [])
    client.memory.delete("../keys?x#y/z", even_pinned=True)
    assert server.requests[0].url.raw_path == (b"/api/v1/memories/..%2Fkeys%3Fx%23y%2Fz?even_pinned=true")
    for wrong in ("", ".", ".."):
        with pytest.raises(InvalidInput):
            client.memory.delete(wrong)
    assert len(server.requests) == 1


@pytest.mark.parametrize("ending", ["", "/", "/api/v1", "/api/v1/"])
def test_a_url_may_have_a_path_before_that_of_the_api_and_end_with_that(ending: str) -> None:
    server = Server(answered())
    with Client(f"http://proxy.example/vestige{ending}", transport=server) as client:
        client.system_status()
    assert str(server.requests[0].url) == "http://proxy.example/vestige/api/v1/stats"


def test_what_works_through_the_whole_memory_may_take_longer() -> None:
    server = Server(answered(), answered())
    client = asking(server, [])
    client.system_status()
    client.dream()
    assert [one.extensions["timeout"]["read"] for one in server.requests] == [5, 50]


@pytest.mark.parametrize(
    "url", ["127.0.0.1:3927", "ftp://a.example", "http://", "http://me:secret@a.example"]
)
def test_a_url_that_cannot_be_one_is_refused(url: str) -> None:
    with pytest.raises(ConfigError) as refused:
        Client(url)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("key", ["", " \n"])
def test_an_empty_key_is_refused_before_anything_is_sent(key: str) -> None:
    with pytest.raises(ConfigError, match="The key is empty"):
        Client(URL, key=key)


# -- errors --------------------------------------------------------------------------------------------


def kinds(kind: type[VestigeError] = VestigeError) -> Iterator[type[VestigeError]]:
    yield kind
    for child in kind.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from kinds(child)


@each("kind", list(kinds()), ids=lambda kind: kind.code)
def test_an_error_of_the_server_is_the_same_error_here(kind: type[VestigeError]) -> None:
    sent = kind("It is so.", hint="Do this.", details={"argument": "limit"})
    got = error_of(kind.status, bytes(problem(sent, "r1").body))
    assert type(got) is kind
    assert got.value() == sent.value()


def test_what_the_server_itself_refuses_has_its_code() -> None:
    with pytest.raises(Unauthenticated, match="A valid API key is needed"):
        raise error_of(401, bytes(problem(UNAUTHENTICATED, "r1").body))
    newer = Refusal(status=418, code="teapot", message="No coffee.", details={"pot": 1})
    got = error_of(418, bytes(problem(newer, "r1").body))
    assert type(got) is Refused
    assert (got.message, got.details) == ("No coffee.", {"pot": 1, "code": "teapot", "status": 418})


@pytest.mark.parametrize("body", [b"<h1>Bad gateway</h1>", b"[]", b'{"error": "no"}', b"\xff", b""])
def test_an_answer_of_somebody_else_is_no_error_of_ours(body: bytes) -> None:
    for status in (502, 200):
        if status == 200 and body in (b"[]", b'{"error": "no"}'):
            continue  # JSON: as good as any answer
        with pytest.raises(Unreachable, match=f"status {status}, does not come from Vestige"):
            asking(Server(httpx.Response(status, content=body)), []).system_status()


def test_an_error_keeps_its_class_all_the_way(world: World) -> None:
    with inside(world.app) as transport, Client(URL, transport=transport) as client:
        with pytest.raises(NotFound) as missing:
            client.memory.get("gone")
        with pytest.raises(InvalidInput):
            client.search("tea", limit=1_000)
    assert missing.value.details == {"id": "gone"}


def test_a_server_that_is_not_there_is_unreachable() -> None:
    pauses: list[float] = []
    server = Server(*[httpx.ConnectError("refused")] * TRIES)
    with pytest.raises(Unreachable, match=r"refused \(ConnectError\)"):
        asking(server, pauses).smart_ingest("Ada drinks tea.")
    assert pauses == [0.25, 0.5, 1.0]


def test_a_server_that_takes_too_long_exceeds_the_deadline() -> None:
    server = Server(httpx.ReadTimeout("slow"))
    with pytest.raises(DeadlineExceeded, match="did not answer within 5 seconds"):
        asking(server, []).search("tea")
    assert len(server.requests) == 1


# -- trying again --------------------------------------------------------------------------------------


def test_a_request_that_never_left_is_sent_again_whatever_it_does() -> None:
    pauses: list[float] = []
    server = Server(httpx.ConnectError("refused"), httpx.ConnectTimeout("late"), answered(success=True))
    assert asking(server, pauses).smart_ingest("Ada drinks tea.")["success"]
    assert pauses == [0.25, 0.5]


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_server_is_asked_again_when_it_says_if_that_changes_nothing(status: int) -> None:
    pauses: list[float] = []
    server = Server(busy(7, status), busy(3600, status), answered(total=0))
    assert asking(server, pauses).search("tea")["total"] == 0
    assert pauses == [7.0, 30.0]


def test_a_change_is_asked_for_again_only_with_an_idempotency_key() -> None:
    pauses: list[float] = []
    with pytest.raises(StoreBusy):
        asking(Server(busy(1)), pauses).smart_ingest("Ada drinks tea.")
    assert pauses == []
    server = Server(busy(1), httpx.ReadError("broken"), answered(success=True))
    assert asking(server, pauses).smart_ingest("Ada drinks tea.", idempotency_key="once")["success"]
    assert pauses == [1.0, 0.5]
    assert {one.content for one in server.requests} == {server.requests[0].content}


def test_a_server_that_does_not_ask_to_come_back_is_not_asked_again() -> None:
    with pytest.raises(StoreBusy):
        asking(Server(busy()), []).search("tea")


def test_a_connection_that_breaks_during_a_change_is_told_and_not_repeated() -> None:
    server = Server(httpx.RemoteProtocolError("closed"))
    with pytest.raises(Unreachable):
        asking(server, []).memory.promote("m1")
    assert len(server.requests) == 1


def test_trying_again_ends_when_the_client_is_closed() -> None:
    server = Server(busy(30))
    with pytest.raises(StoreBusy):
        asking(server, [], gives_up=True).search("tea")
    asked = threading.Event()
    waiting = Server(busy(30), asked=asked)
    client = Client(URL, transport=waiting)

    def close_when_asked() -> None:
        assert asked.wait(PATIENCE_SECONDS)
        client.close()

    closer = threading.Thread(target=close_when_asked)
    closer.start()
    with pytest.raises(StoreBusy):  # and the answer that would come after the half minute is not asked for
        client.search("tea")
    closer.join()


# -- awaited -------------------------------------------------------------------------------------------


class AsyncServer(Server, httpx.AsyncBaseTransport):
    """The same for a client that is awaited."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return self.handle_request(request)


def test_the_awaited_client_answers_as_the_other_does(world: World) -> None:
    async def used(transport: Inside) -> list[str]:
        served = httpx.ASGITransport(transport.app)
        async with AsyncClient(URL, transport=served) as client:
            made = await client.add("Ada drinks tea.")
            found = await client.search("What does Ada drink?")
            with pytest.raises(NotFound):
                await client.memory.get("gone")
            return [made["nodeId"], *(hit["id"] for hit in found["results"])]

    with inside(world.app) as transport:
        made, found = anyio.run(used, transport)
        with Client(URL, transport=transport) as client:
            assert client.get(made)["node"].get("content") == "Ada drinks tea."
    assert made == found


def test_the_awaited_client_tries_again_as_the_other_does() -> None:
    pauses: list[float] = []

    async def pause(seconds: float) -> bool:
        pauses.append(seconds)
        return False

    async def used() -> None:
        server = AsyncServer(httpx.ConnectError("refused"), busy(7), answered(total=0))
        http = httpx.AsyncClient(transport=server)
        requests = Requests(http, URL, timeout_seconds=5, long_timeout_seconds=50)
        client = AsyncOperations(AsyncConnection(http, requests, pause=pause))
        assert (await client.search("tea"))["total"] == 0
        await http.aclose()

    anyio.run(used)
    assert pauses == [0.25, 7.0]


def test_closing_the_awaited_client_ends_its_pauses() -> None:
    async def used() -> None:
        client = AsyncClient(URL, transport=AsyncServer(busy(30)))

        async def searched() -> None:
            with pytest.raises(StoreBusy):  # long before the half minute is over
                await client.search("tea")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(searched)
            await anyio.lowlevel.checkpoint()
            await client.close()

    anyio.run(used)


# -- beside --------------------------------------------------------------------------------------------


def test_many_threads_share_a_client(world: World) -> None:
    texts = [f"Fact {number} is about subject {number}." for number in range(24)]
    with inside(world.app) as transport, Client(URL, transport=transport) as client:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda text: client.smart_ingest(text, force_create=True), texts))
        listed = client.memory.list(limit=100)
    assert sorted(one["content"] for one in listed["results"] if "content" in one) == sorted(texts)


def test_without_httpx_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(MissingExtra) as missing:
        Client(URL)
    assert missing.value.details == {"extra": "client"}
