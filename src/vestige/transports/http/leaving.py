"""When a client goes away."""

from starlette.types import Receive


async def left(receive: Receive) -> None:
    """Wait until the client has left. Its body has been read: the next that is heard of it is that."""
    while (await receive())["type"] != "http.disconnect":
        pass
