"""What the core and its driver say to each other: jobs, their outcomes, and actions to take.

Plain slotted classes: `dataclasses` imports inspect and more, 8 ms where the whole start takes 20.
"""

from vestige.transports.mcp.protocol.jsonrpc import Message, RequestId

TOOL = "tool"
RESOURCE = "resource"


class Job:
    """A request that needs Vestige itself: a tool to call, or a resource to read (`name` is its uri).

    `roots` are the URIs of the folders its client works in, known when it starts. `origin` is what the driver
    received its request with. Jobs are compared by identity: a client may reuse the id of a request it has
    cancelled.
    """

    __slots__ = (
        "arguments",
        "batch",
        "id",
        "kind",
        "last_progress",
        "long",
        "name",
        "origin",
        "progress_token",
        "roots",
        "version",
    )

    def __init__(
        self,
        request_id: RequestId,
        kind: str,
        name: str,
        *,
        version: str,
        arguments: Message,
        roots: tuple[str, ...] = (),
        progress_token: RequestId | None = None,
        long: bool = False,
        origin: object = None,
    ) -> None:
        self.id = request_id
        self.kind = kind
        self.name = name
        self.version = version
        self.arguments = arguments
        self.roots = roots
        self.progress_token = progress_token
        self.long = long
        self.origin = origin
        self.batch: ReplyBatch | None = None
        self.last_progress: float | None = None


class Done:
    """A job that succeeded, with its JSON object, and with that as text if somebody wrote it already."""

    __slots__ = ("text", "value")

    def __init__(self, value: Message, text: str | None = None) -> None:
        self.value = value
        self.text = text


class Failed:
    """A job that failed, with the error value {code, message, hint, details}."""

    __slots__ = ("error",)

    def __init__(self, error: Message) -> None:
        self.error = error


Outcome = Done | Failed


class Send:
    """Write this message to the client.

    `origin` is what the driver received the request with that it belongs to; None for what we begin.
    """

    __slots__ = ("message", "origin")

    def __init__(self, message: Message | list[Message], origin: object = None) -> None:
        self.message = message
        self.origin = origin


class Start:
    """Begin this job."""

    __slots__ = ("job",)

    def __init__(self, job: Job) -> None:
        self.job = job


class Cancel:
    """Stop this job: its client no longer wants the answer."""

    __slots__ = ("job",)

    def __init__(self, job: Job) -> None:
        self.job = job


class HoldJobs:
    """These jobs wait for an answer of their client; when it takes too long, report it as overdue."""

    __slots__ = ("jobs",)

    def __init__(self, first: Job) -> None:
        self.jobs = [first]


Action = Send | Start | Cancel | HoldJobs


class ReplyBatch:
    """The replies to one JSON-RPC array, sent as one array when the last is there."""

    __slots__ = ("_origin", "_replies", "_waiting")

    def __init__(self, origin: object = None) -> None:
        self._origin = origin
        self._replies: list[Message] = []
        self._waiting = 0

    def expect(self) -> None:
        """One more part will settle."""
        self._waiting += 1

    def settle(self, reply: Message | None) -> list[Action]:
        """One part is finished, with or without a reply."""
        self._waiting -= 1
        if reply is not None:
            self._replies.append(reply)
        return [Send(self._replies, self._origin)] if self._replies and self._waiting == 0 else []
