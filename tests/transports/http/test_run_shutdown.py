"""When a server's time to end is up, what still runs is told to stop."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from testbed.world import World
from vestige.core.caller import Invocation
from vestige.core.errors import Cancelled, DeadlineExceeded
from vestige.operations.registry.groups import registry
from vestige.transports.http.run import CancellableApp

Call = Callable[[CancellableApp, Invocation], dict[str, Any]]


def asked(world: World, cancelled: threading.Event, name: str = "consolidate") -> Invocation:
    """A call with a minute to finish."""
    return Invocation(name=name, cancelled=cancelled, deadline=world.app.engine.monotonic() + 60)


CALLS: dict[str, Call] = {
    "call_operation": lambda app, invocation: app.call_operation(invocation),
    "call_tool": lambda app, invocation: app.call_tool(invocation),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_goes_on_until_its_client_leaves_or_the_server_hurries(world: World, name: str) -> None:
    app, call = CancellableApp(world.app), CALLS[name]
    world.remember("The kettle whistles in C sharp.")
    gone = threading.Event()
    rest = asked(world, gone)
    assert call(app, rest)
    gone.set()
    with pytest.raises(Cancelled):
        call(app, rest)
    gone.clear()
    app.cancel_all.set()
    with pytest.raises(Cancelled):
        call(app, rest)


@pytest.mark.parametrize("name", CALLS)
def test_a_call_has_its_time(world: World, name: str) -> None:
    rest = asked(world, threading.Event())
    world.clock.sleep(61)
    with pytest.raises(DeadlineExceeded):
        CALLS[name](CancellableApp(world.app), rest)


def test_resources_are_read_as_before(world: World) -> None:
    app = CancellableApp(world.app)
    uri = next(iter(registry.resources))
    given = asked(world, threading.Event(), uri)
    assert app.read_resource(given) == world.app.read_resource(given)
