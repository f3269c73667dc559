"""The MCP protocol without IO: a line comes in, actions come out. No clock, no threads, no heavy imports.

One `ClientConversation` serves one client. `receive` reads a line, `take` a parsed message; `progress` and
`finish` report on jobs it started, `overdue` on jobs it held back, `abandon` on jobs without a waiting
client. All return actions for the driver, which must call them from one thread at a time. Lists, prompts and
handshakes are answered at once; only tools and resources become jobs. A driver with several channels to its
client passes an `origin` with each message and gets it back on every job and answer.
"""

from collections.abc import Callable
from math import isfinite

from vestige.transports.mcp.catalog import Catalog, filled_prompt
from vestige.transports.mcp.protocol import roots, versions
from vestige.transports.mcp.protocol.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Message,
    ProtocolError,
    Request,
    RequestId,
    as_id,
    as_object,
    dumps,
    error_reply,
    is_reply,
    notification,
    parse,
    read_request,
    result_reply,
    shown,
)
from vestige.transports.mcp.protocol.messages import (
    RESOURCE,
    TOOL,
    Action,
    Done,
    Failed,
    HoldJobs,
    Job,
    Outcome,
    ReplyBatch,
    Send,
)

TYPE_CHECKING = False  # like typing.TYPE_CHECKING, without importing typing (3 ms)
if TYPE_CHECKING:
    from typing import Any

# -- Results of jobs as bodies or as JSON-RPC errors

UNPRINTABLE: Message = {"code": "internal", "message": "The answer could not be written as JSON."}

_CALLER_ERRORS = ("invalid_input", "unknown_argument", "too_large")


def tool_body(outcome: Outcome) -> Message:
    """The answer as text and as structure; an error differs only in `isError`."""
    text, outcome = _written(outcome)
    failed = isinstance(outcome, Failed)
    structured = {"error": outcome.error} if isinstance(outcome, Failed) else outcome.value
    return {"content": [{"type": "text", "text": text}], "structuredContent": structured, "isError": failed}


def resource_body(job: Job, outcome: Outcome, media_type: str | None) -> Message:
    """The content of a resource. It has no `isError`, so a failure raises ProtocolError."""
    text, outcome = _written(outcome)
    if isinstance(outcome, Failed):
        raise _resource_error(job, outcome.error)
    return {"contents": [{"uri": job.name, "mimeType": media_type, "text": text}]}


def _written(outcome: Outcome) -> tuple[str, Outcome]:
    """The outcome's JSON text; an outcome that JSON cannot hold becomes a failure."""
    if isinstance(outcome, Done) and outcome.text is not None:
        return outcome.text, outcome
    try:
        return dumps(outcome.value if isinstance(outcome, Done) else {"error": outcome.error}), outcome
    except (ValueError, TypeError, RecursionError):
        return dumps({"error": UNPRINTABLE}), Failed(UNPRINTABLE)


def _resource_error(job: Job, error: Message) -> ProtocolError:
    """The JSON-RPC error of a failed resource, with the error value in its data."""
    if error.get("code") == "not_found":
        return versions.resource_not_found(job.version, job.name, error)
    code = INVALID_PARAMS if error.get("code") in _CALLER_ERRORS else INTERNAL_ERROR
    return ProtocolError(code, str(error.get("message")), {"uri": job.name, "error": error})


# -- Conversation

_ROOTS_MAY_BE_NEW = ("notifications/initialized", "notifications/roots/list_changed")

HEAVY_BYTES = 64_000
"""A larger call takes seconds, so short ones do not wait behind it."""


class ClientConversation:
    """The conversation with one client, in any protocol version. A `stateless` one treats every message as
    one of the stateless versions. Root folders are only requested from a `local` client: folders of another
    machine do not matter here."""

    def __init__(
        self, catalog: Catalog, version: str, *, stateless: bool = False, local: bool = True
    ) -> None:
        self._catalog = catalog
        self._stateless = stateless
        self._local = local
        self._server_info: Message = {"name": "vestige", "title": "Vestige", "version": version}
        self._handshake: str | None = None
        self._client: str | None = None
        self._seen_modern = stateless
        self._jobs: dict[RequestId, Job] = {}
        self._roots = roots.Roots()
        self._entrance = roots.RootsWait(self._roots)
        self.methods: dict[str, Callable[[Request, str], Message | Job]] = {
            "tools/list": self._list,
            "tools/call": self._call_tool,
            "prompts/list": self._list,
            "prompts/get": self._get_prompt,
            "resources/list": self._list,
            "resources/templates/list": self._list,
            "resources/read": self._read_resource,
        }
        """Handlers of requests by method, called with the protocol version; others can be added."""
        self._heavy = False
        self._origin: object = None
        self.listed_tools = False
        """Whether the client has listed the tools, and so is likely to call one soon."""

    @property
    def greeted(self) -> bool:
        """Whether the protocol version of the client is known."""
        return self._handshake is not None or self._seen_modern

    # -- A conversation that another process continues

    def state(self) -> "dict[str, Any]":
        """What another process needs to go on with this client, between two requests."""
        return {
            "version": self._handshake,
            "client": self._client,
            "local": self._local,
            "roots": self._roots.state(),
        }

    def resume(self, state: "dict[str, Any]") -> None:
        """Go on where another process left off."""
        self._handshake, self._client = state["version"], state["client"]
        self._roots.resume(state["roots"])

    # -- Input

    def receive(self, line: bytes) -> list[Action]:
        """Take one line from the client. Never raises."""
        if not line.strip():
            return []
        try:
            message = parse(line)
        except ProtocolError as error:
            return [Send(self._error(None, error))]
        return self.take(message, len(line))

    def take(self, message: object, size: int, origin: object = None) -> list[Action]:
        """Take one message, or a batch, of this size in bytes. Never raises."""
        self._heavy = size > HEAVY_BYTES
        self._origin = origin
        if isinstance(message, list):
            return self._receive_batch(message)
        return self._receive_one(message, None)

    def _receive_batch(self, messages: list[object]) -> list[Action]:
        if self._handshake != versions.BATCHING or not messages:
            why = (
                "an empty batch" if not messages else f"batches are part of version {versions.BATCHING} only"
            )
            error = ProtocolError(INVALID_REQUEST, f"Invalid request: {why}")
            return [Send(self._error(None, error), self._origin)]
        batch = ReplyBatch(self._origin)
        batch.expect()  # this loop: the array must not be sent before all of it has been read
        actions = [action for message in messages for action in self._receive_one(message, batch)]
        return actions + batch.settle(None)

    def _receive_one(self, message: object, batch: ReplyBatch | None) -> list[Action]:
        fields = as_object(message) or {}
        if is_reply(fields):
            return self.replied(fields)
        try:
            request = read_request(message)
            if request.id is None:
                return self._notified(request)
            answer = self._answer(request, batch)
        except ProtocolError as error:
            if (
                "id" not in fields
                and isinstance(fields.get("method"), str)
                and fields.get("jsonrpc") == "2.0"
            ):
                return []  # an invalid notification is never answered
            return self._reply(self._error(as_id(fields.get("id")), error), batch)
        if isinstance(answer, Job):
            return self._accept(answer, batch)
        return self._reply(result_reply(request.id, answer), batch)

    def replied(self, reply: Message) -> list[Action]:
        """Take the client's answer to a request of ours."""
        return self._entrance.release() if self._roots.take(reply) else []

    def _notified(self, request: Request) -> list[Action]:
        if request.method in _ROOTS_MAY_BE_NEW:
            return [Send(question) for question in self._roots.ask()]
        if request.method != "notifications/cancelled":
            return []
        request_id = as_id(request.params.get("requestId"))
        job = self._jobs.get(request_id) if request_id is not None else None
        return self._cancel(job) if job is not None else []

    def _answer(self, request: Request, batch: ReplyBatch | None) -> Message | Job:
        if request.id in self._jobs:
            raise ProtocolError(INVALID_REQUEST, "Invalid request: this id is still being served")
        if self._stateless or versions.is_modern(request):
            return self._answer_modern(request, batch)
        return self._answer_legacy(request, batch)

    def _answer_modern(self, request: Request, batch: ReplyBatch | None) -> Message | Job:
        self._seen_modern = True
        version = versions.modern_version(request)
        if batch is not None:
            raise ProtocolError(INVALID_REQUEST, f"Invalid request: there are no batches in {version}")
        if request.method == "server/discover":
            versions.check_options(request)
            return self._complete(version, self._introduction(version), versions.STATIC)
        method = self.methods.get(request.method)
        if method is None:
            raise _no_method(request)
        versions.check_options(request)
        return method(request, version)

    def _answer_legacy(self, request: Request, batch: ReplyBatch | None) -> Message | Job:
        if request.method == "ping":
            return {}
        if request.method == "initialize":
            if batch is not None:
                raise ProtocolError(INVALID_REQUEST, "Invalid request: initialize cannot be in a batch")
            self._handshake = versions.legacy_version(request)
            self._client = versions.client_name(request.params.get("clientInfo"))
            self._roots.greeted(request.params.get("capabilities") if self._local else None)
            return self._introduction(self._handshake)
        if self._handshake is None:
            raise ProtocolError(
                INVALID_REQUEST,
                "Server not initialized: send `initialize`, or the 2026-07-28 envelope in `_meta`",
            )
        method = self.methods.get(request.method)
        if method is None:
            raise _no_method(request)
        return method(request, self._handshake)

    # -- Methods

    def capabilities(self, version: str) -> Message:
        return versions.capabilities(version)

    def _introduction(self, version: str) -> Message:
        body: Message = {"capabilities": self.capabilities(version)}
        if self._catalog.instructions:
            body["instructions"] = self._catalog.instructions
        if version in versions.MODERN:
            return {"supportedVersions": list(versions.MODERN), **body}
        return {"protocolVersion": version, **body, "serverInfo": self._server_info}

    def _list(self, request: Request, version: str) -> Message:
        """A list of the catalog, by the method of the request. Each is one page, so there are no cursors."""
        if request.params.get("cursor") is not None:
            raise ProtocolError(INVALID_PARAMS, "Invalid params: unknown cursor")
        self.listed_tools = self.listed_tools or request.method == "tools/list"
        lists: dict[str, Message] = {
            "tools/list": {"tools": self._catalog.tools},
            "prompts/list": {"prompts": self._catalog.prompts},
            "resources/list": {"resources": self._catalog.resources},
            "resources/templates/list": {"resourceTemplates": self._catalog.templates},
        }
        cache = versions.STATIC if self._catalog.for_all else versions.STATIC_FOR_ONE
        return self._complete(version, lists[request.method], cache)

    def _get_prompt(self, request: Request, version: str) -> Message:
        name = _named(request)
        prompt = self._catalog.prompt(name)
        if prompt is None:
            raise _unknown("prompt", name, self._catalog.nearest_prompt(name))
        return self._complete(version, filled_prompt(prompt, request.params.get("arguments")))

    def _call_tool(self, request: Request, version: str) -> Message | Job:
        name = _named(request)
        if not self._catalog.has_tool(name):
            raise _unknown("tool", name, self._catalog.nearest_tool(name))
        given = request.params.get("arguments")
        arguments = {} if given is None else as_object(given)
        if arguments is None:
            raise ProtocolError(INVALID_PARAMS, 'Invalid params: "arguments" must be an object')
        long = self._heavy or self._catalog.is_long(name, arguments)
        # The name is passed on unchanged: the registry resolves aliases.
        return self._job(request, TOOL, name, version, arguments, long=long)

    def _read_resource(self, request: Request, version: str) -> Message | Job:
        uri = request.params.get("uri")
        if not isinstance(uri, str):
            raise ProtocolError(INVALID_PARAMS, 'Invalid params: "uri" must be a string')
        if self._catalog.resource(uri) is None:
            raise versions.resource_not_found(version, uri)
        return self._job(request, RESOURCE, uri, version, {}, long=False)

    def _job(
        self, request: Request, kind: str, name: str, version: str, arguments: Message, *, long: bool
    ) -> Message | Job:
        """The job of a request, or the question that the client has to answer first."""
        if request.id is None:
            raise ProtocolError(INVALID_REQUEST, "Invalid request: a job needs an id")
        known: tuple[str, ...] = ()
        client = self._client
        if version in versions.MODERN:
            client = versions.client_name(request.meta.get(versions.CLIENT_KEY))
            question = roots.wanted(request) if self._local else None
            if question is not None:
                return versions.input_required(question, self._server_info)
            # Folders of another machine do not matter here.
            known = roots.supplied(request) if self._local else ()
        return Job(
            request.id,
            kind,
            name,
            version=version,
            arguments=arguments,
            roots=known,
            progress_token=as_id(request.meta.get("progressToken")),
            long=long,
            origin=self._origin,
            client=client,
        )

    # -- Jobs

    def _accept(self, job: Job, batch: ReplyBatch | None) -> list[Action]:
        self._jobs[job.id] = job
        if batch is not None:
            job.batch = batch
            batch.expect()
        return self._entrance.enter(job)

    def serves(self, origin: object) -> bool:
        """Whether a request with this origin is still unanswered."""
        return any(job.origin is origin for job in self._jobs.values())

    def abandon(self, origin: object) -> list[Action]:
        """Cancel the requests with this origin: no client waits for them."""
        jobs = [job for job in self._jobs.values() if job.origin is origin]
        return [action for job in jobs for action in self._cancel(job)]

    def _cancel(self, job: Job) -> list[Action]:
        del self._jobs[job.id]
        return [*self._entrance.cancel(job), *(job.batch.settle(None) if job.batch else [])]

    def overdue(self, hold: HoldJobs) -> list[Action]:
        """Start held jobs without waiting any longer."""
        return self._entrance.overdue(hold)

    def progress(self, job: Job, value: float, total: float | None, message: str | None) -> list[Action]:
        """Report progress to the client, if it asked for it and the value has grown."""
        if job.progress_token is None or self._jobs.get(job.id) is not job or not isfinite(value):
            return []
        if job.last_progress is not None and value <= job.last_progress:
            return []
        job.last_progress = value
        params: Message = {"progressToken": job.progress_token, "progress": value}
        if total is not None and isfinite(total):
            params["total"] = total
        if message is not None:
            params["message"] = message
        return [Send(notification("notifications/progress", params), job.origin)]

    def finish(self, job: Job, outcome: Outcome) -> list[Action]:
        """Answer a job. A cancelled one is not answered."""
        if self._jobs.get(job.id) is not job:
            return []
        del self._jobs[job.id]
        try:
            reply = result_reply(job.id, self.result(job, outcome))
        except ProtocolError as error:
            reply = self._error(job.id, error)
        return job.batch.settle(reply) if job.batch else [Send(reply, job.origin)]

    def result(self, job: Job, outcome: Outcome) -> Message:
        """The result of a job, in the form of its method and version."""
        if job.kind == TOOL:
            return self._complete(job.version, tool_body(outcome))
        body = resource_body(job, outcome, self._catalog.resource(job.name))
        return self._complete(job.version, body, versions.PERSONAL)

    # -- Replies

    def _reply(self, reply: Message, batch: ReplyBatch | None) -> list[Action]:
        if batch is None:
            return [Send(reply, self._origin)]
        batch.expect()
        return batch.settle(reply)

    def _complete(self, version: str, body: Message, cache: Message | None = None) -> Message:
        return versions.complete(version, body, self._server_info, cache)

    def _error(self, request_id: RequestId | None, error: ProtocolError) -> Message:
        reply = error_reply(request_id, error)
        if request_id is None and self._seen_modern and self._handshake is None:
            del reply["id"]  # the stateless schema allows it to be absent, but not null
        return reply


def _named(request: Request) -> str:
    name = request.params.get("name")
    if not isinstance(name, str):
        raise ProtocolError(INVALID_PARAMS, 'Invalid params: "name" must be a string')
    return name


def _unknown(what: str, name: str, nearest: str | None) -> ProtocolError:
    data: Message | None = {"nearest": nearest} if nearest else None
    suffix = f" (did you mean {nearest}?)" if nearest else ""
    return ProtocolError(INVALID_PARAMS, f"Unknown {what}: {shown(name)}{suffix}", data)


def _no_method(request: Request) -> ProtocolError:
    return ProtocolError(METHOD_NOT_FOUND, f"Method not found: {shown(request.method)}")
