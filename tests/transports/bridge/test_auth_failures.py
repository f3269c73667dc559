"""The gate of the bridge: what wrong tokens cost, by hand-moved time and without a process behind it."""

from collections.abc import Awaitable, Callable, Mapping
from functools import wraps

import anyio
import httpx
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from testbed.world import HandClock
from vestige.transports.bridge.auth import LONG_CHARS, UNAUTHENTICATED, TokenGate
from vestige.transports.http.auth.failures import (
    FREE_FAILURES,
    LOCK_FAILURES,
    LOCK_SECONDS,
    MAX_DELAYED,
    FailedLogins,
)

SHORT = "open sesame"
LONG = "x" * LONG_CHARS
WRONG = {"Authorization": "Bearer wrong"}


def run(test: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    """A test that waits for others, as one that pytest can call."""

    @wraps(test)
    def called() -> None:
        anyio.run(test)

    return called


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


class Lodge:
    """A gate in front of nothing, with its clock and the pauses that it made."""

    def __init__(self, token: str, per_minute: int = 0) -> None:
        self.clock = HandClock()
        self.pauses: list[float] = []
        self.waiting = 0
        self.go_on = anyio.Event()
        self.go_on.set()
        failures = FailedLogins(UNAUTHENTICATED, per_minute, self.clock.parts().monotonic, pause=self._pause)
        self._gate = TokenGate(PlainTextResponse("inside"), token, failures)

    async def _pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.waiting += 1
        await self.go_on.wait()
        self.waiting -= 1

    async def ask(self, headers: Mapping[str, str], sender: str = "192.0.2.1") -> httpx.Response:
        """What a request of this sender gets."""
        transport = httpx.ASGITransport(_with_id(self._gate), client=(sender, 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://bridge") as http:
            return await http.post("/search", headers=headers)

    async def status(self, headers: Mapping[str, str], sender: str = "192.0.2.1") -> int:
        return (await self.ask(headers, sender)).status_code


def _with_id(app: ASGIApp) -> ASGIApp:
    async def inside(scope: Scope, receive: Receive, send: Send) -> None:
        scope["state"] = {"request_id": "r"}
        await app(scope, receive, send)

    return inside


@run
async def test_guesses_are_answered_ever_later_and_then_not_looked_at() -> None:
    lodge = Lodge(SHORT)
    statuses = [await lodge.status(WRONG) for _ in range(LOCK_FAILURES)]
    assert statuses == [401] * (LOCK_FAILURES - 1) + [429]
    assert lodge.pauses == sorted(lodge.pauses)
    assert len(lodge.pauses) == LOCK_FAILURES - 1 - FREE_FAILURES
    right = await lodge.ask(bearer(SHORT))
    assert (right.status_code, right.json()["code"]) == (429, "rate_limited")
    assert right.headers["retry-after"] == str(int(LOCK_SECONDS))
    assert right.json()["hint"].endswith("with the token that the bridge was given. Try again in 30 s.")


@run
async def test_a_lock_is_for_one_address_and_for_a_while() -> None:
    lodge = Lodge(SHORT)
    for _ in range(LOCK_FAILURES):
        await lodge.ask(WRONG)
    assert await lodge.status(bearer(SHORT), "192.0.2.2") == 200
    lodge.clock.sleep(LOCK_SECONDS)
    assert await lodge.status(bearer(SHORT)) == 200


@run
async def test_who_has_a_token_that_nobody_guesses_is_not_kept_out_by_others() -> None:
    lodge = Lodge(LONG)
    for _ in range(LOCK_FAILURES):
        await lodge.ask(WRONG)
    assert await lodge.status(WRONG) == 429
    assert await lodge.status(bearer(LONG)) == 200


@run
async def test_only_so_many_wait_at_once_and_take_places_from_others() -> None:
    lodge = Lodge(SHORT)
    senders = [f"192.0.2.{number}" for number in range(MAX_DELAYED + 1)]
    for sender in senders:
        for _ in range(FREE_FAILURES):
            assert await lodge.status(WRONG, sender) == 401
    lodge.go_on = anyio.Event()
    async with anyio.create_task_group() as tasks:
        for sender in senders[:-1]:
            tasks.start_soon(lodge.ask, WRONG, sender)
        while lodge.waiting < MAX_DELAYED:
            await anyio.lowlevel.checkpoint()
        assert await lodge.status(WRONG, senders[-1]) == 429
        lodge.go_on.set()


@run
async def test_requests_without_a_token_are_no_guesses_but_are_limited() -> None:
    lodge = Lodge(SHORT, per_minute=LOCK_FAILURES)
    statuses = [await lodge.status({}) for _ in range(LOCK_FAILURES + 1)]
    assert statuses == [401] * LOCK_FAILURES + [429]
    assert lodge.pauses == []
    assert await lodge.status(bearer(SHORT)) == 200
