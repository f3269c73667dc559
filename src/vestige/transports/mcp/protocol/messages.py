"""Values between the protocol core and its driver: jobs, outcomes and actions. Plain classes:
importing `dataclasses` takes 8 ms, and the whole start takes 20."""

from vestige.transports.mcp.protocol.jsonrpc import Message, RequestId

TOOL = "tool"
RESOURCE = "resource"


class Job:
    """A request that needs Vestige itself: a tool call or a resource (`name` is its uri). `roots` are the
    URIs of the client's folders, known when it starts. `origin` is what the driver passed with the request.
    `client` is the program that the client says it is. Jobs are compared by identity: a client may reuse the
    id of a cancelled request."""

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
        client: str | None = None,
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
        self.client = client
        self.batch: ReplyBatch | None = None
        self.last_progress: float | None = None


class Done:
    """A job that succeeded, with its JSON object, and its JSON text if it is already written."""

    def __init__(self, value: Message, text: str | None = None) -> None:
        self.value = value
        self.text = text


class Failed:
    """A job that failed, with the error value {code, message, hint, details}."""

    def __init__(self, error: Message) -> None:
        self.error = error


Outcome = Done | Failed


class Send:
    """Send this message to the client. `origin` is what the driver passed with its request; None for our own
    requests."""

    def __init__(self, message: Message | list[Message], origin: object = None) -> None:
        self.message = message
        self.origin = origin


class Start:
    """Start this job."""

    def __init__(self, job: Job) -> None:
        self.job = job


class Cancel:
    """Cancel this job: its client no longer wants the answer."""

    def __init__(self, job: Job) -> None:
        self.job = job


class HoldJobs:
    """Hold these jobs until their client answers; if it takes too long, call `overdue`."""

    def __init__(self, first: Job) -> None:
        self.jobs = [first]


Action = Send | Start | Cancel | HoldJobs


class ReplyBatch:
    """The replies to one JSON-RPC array, sent as one array when complete."""

    def __init__(self, origin: object = None) -> None:
        self._origin = origin
        self._replies: list[Message] = []
        self._waiting = 0

    def expect(self) -> None:
        self._waiting += 1

    def settle(self, reply: Message | None) -> list[Action]:
        """Finish one part, with or without a reply."""
        self._waiting -= 1
        if reply is not None:
            self._replies.append(reply)
        return [Send(self._replies, self._origin)] if self._replies and self._waiting == 0 else []
