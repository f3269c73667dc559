"""The product's protocol core with the suites' fixtures beside its own tools, and what only they need:
logging, completion, subscriptions that never fire, and questions to clients of the handshake era."""

import json
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any

from testbed.patience import PATIENCE_SECONDS
from tests.transports.conformance import elicitation, fixtures
from tests.transports.conformance.fixtures import text
from vestige.transports.http.mcp.driver import McpWork, run_job
from vestige.transports.mcp.catalog import Catalog, filled_prompt
from vestige.transports.mcp.protocol import versions
from vestige.transports.mcp.protocol.core import ClientConversation
from vestige.transports.mcp.protocol.jsonrpc import Message, ProtocolError, Request, as_object, notification
from vestige.transports.mcp.protocol.messages import Action, Done, Job, Outcome, Send
from vestige.transports.mcp.service import ServerApplication

OPTIONS = ["option1", "option2", "option3"]
TITLED = [{"const": f"value{number}", "title": f"Option {number}"} for number in (1, 2, 3)]
INFO = ("Tool execution started", "Tool processing data", "Tool execution completed")


class FixtureConnection(ClientConversation):
    """A conversation in which fixtures can be used."""

    def __init__(
        self, catalog: Catalog, version: str, *, stateless: bool = False, local: bool = True
    ) -> None:
        # The suites' clients say that they have roots, and do not answer when they are asked for them.
        super().__init__(catalog, version, stateless=stateless, local=False)
        self._asked: dict[str, Callable[[Message], None]] = {}
        own = dict(self.methods)
        self.methods |= {
            "tools/call": partial(self._tool, own["tools/call"]),
            "prompts/get": partial(self._prompt, own["prompts/get"]),
            "resources/read": partial(self._resource, own["resources/read"]),
            "completion/complete": lambda request, version: self._complete(
                version, {"completion": {"values": [], "total": 0, "hasMore": False}}
            ),
        }
        if not stateless:
            self.methods |= dict.fromkeys(
                ("logging/setLevel", "resources/subscribe", "resources/unsubscribe"), _nothing
            )

    def capabilities(self, version: str) -> Message:
        """The product's, and what the fixtures add."""
        told = {**super().capabilities(version), "completions": {}}
        if version not in versions.MODERN:
            told |= {"logging": {}, "resources": {"listChanged": False, "subscribe": True}}
        return told

    def result(self, job: Job, outcome: Outcome) -> Message:
        """A fixture gives its content whole."""
        if job.name in fixtures.TOOLS and isinstance(outcome, Done):
            return self._complete(job.version, outcome.value)
        return super().result(job, outcome)

    def log(self, job: Job, words: str) -> list[Action]:
        params: Message = {"level": "info", "logger": "fixtures", "data": words}
        return [Send(notification("notifications/message", params), job.origin)]

    def ask(self, job: Job, question: Message, answered: Callable[[Message], None]) -> list[Action]:
        """Ask the client something on the stream of this job."""
        question_id = f"fixture-{len(self._asked)}"
        self._asked[question_id] = answered
        return [Send({"jsonrpc": "2.0", "id": question_id, **question}, job.origin)]

    def replied(self, reply: Message) -> list[Action]:
        answered = self._asked.get(str(reply.get("id")))
        if answered is None:
            return super().replied(reply)
        answered(reply)
        return []

    # -- methods ---------------------------------------------------------------------------------

    def _tool(
        self, own: Callable[[Request, str], Message | Job], request: Request, version: str
    ) -> Message | Job:
        name = str(request.params.get("name"))
        if name in fixtures.ANSWERS:
            return self._complete(version, {"content": fixtures.ANSWERS[name]})
        if name == "test_error_handling":
            content = [text("This tool intentionally returns an error for testing")]
            return self._complete(version, {"content": content, "isError": True})
        if name == "test_missing_capability":
            required: Message = {"requiredCapabilities": {"sampling": {}}}
            raise ProtocolError(versions.MISSING_CAPABILITY, "This needs a client that samples", required)
        if name.startswith("test_input_required_result_") or name == "test_streaming_elicitation":
            return self._after_asking(request, version, name, _answer)
        return own(request, version)

    def _prompt(
        self, own: Callable[[Request, str], Message | Job], request: Request, version: str
    ) -> Message | Job:
        name = str(request.params.get("name"))
        prompt = self._catalog.prompt(name)
        if prompt is None or name not in fixtures.PROMPTS:
            return own(request, version)
        filled_prompt(prompt, request.params.get("arguments"))  # refuses what is missing
        given = {key: str(value) for key, value in (as_object(request.params.get("arguments")) or {}).items()}

        def body(told: dict[str, Any]) -> Message:
            contents = [text(_summary(told))] if told else fixtures.prompt_contents(name, given)
            return {"messages": [{"role": "user", "content": content} for content in contents]}

        if name == "test_input_required_result_prompt":
            return self._after_asking(request, version, name, body)
        return self._complete(version, body({}))

    def _resource(
        self, own: Callable[[Request, str], Message | Job], request: Request, version: str
    ) -> Message | Job:
        uri = str(request.params.get("uri"))
        content = fixtures.RESOURCES.get(uri)
        if uri.startswith(fixtures.TEMPLATE) and uri.endswith("/data"):
            number = uri.removeprefix(fixtures.TEMPLATE).removesuffix("/data")
            filled = {"id": number, "templateTest": True, "data": f"Data for ID: {number}"}
            content = {"mimeType": "application/json", "text": json.dumps(filled)}
        if content is None:
            return own(request, version)
        return self._complete(version, {"contents": [{"uri": uri, **content}]}, versions.PERSONAL)

    def _after_asking(
        self, request: Request, version: str, name: str, body: Callable[[dict[str, Any]], Message]
    ) -> Message:
        try:
            return self._complete(version, body(elicitation.answers(request, name)))
        except elicitation.Asks as asks:
            state = {} if asks.state is None else {"requestState": asks.state}
            return {**versions.input_required({**asks.questions}, self._server_info), **state}


def do(app: ServerApplication, work: McpWork) -> Outcome:
    """Do a job, a fixture's or the product's."""
    job = work.job
    match job.name:
        case "test_tool_with_logging":
            for words in INFO:
                work.post(partial(_log, job=job, words=words))
            return _said("Logged.")
        case "test_tool_with_progress":
            for done in (0, 50, 100):
                work.post(partial(_progress, job=job, done=done))
            return _said("Got there.")
        case "test_sampling":
            reply = _ask(work, elicitation.sampling(str(job.arguments["prompt"]), 100))
            content = as_object(reply.get("content")) or {}
            return _said(f"LLM response: {content.get('text')}")
        case "test_elicitation" | "test_elicitation_sep1034_defaults" | "test_elicitation_sep1330_enums":
            reply = _ask(work, _elicitation(job))
            return _said(f"Elicitation completed: action={reply['action']}, content={reply.get('content')}")
        case _:
            return run_job(app, work)


def _nothing(request: Request, version: str) -> Message:
    return {}


def _summary(told: dict[str, Any]) -> str:
    return f"state-ok Hello, {json.dumps(told)}!"


def _answer(told: dict[str, Any]) -> Message:
    return {"content": [text(_summary(told))]}


def _said(words: str) -> Outcome:
    return Done({"content": [text(words)]})


def _log(connection: ClientConversation, job: Job, words: str) -> list[Action]:
    assert isinstance(connection, FixtureConnection)
    return connection.log(job, words)


def _progress(connection: ClientConversation, job: Job, done: float) -> list[Action]:
    return connection.progress(job, done, 100, None)


def _ask(work: McpWork, question: Message) -> Message:
    """Ask the client and wait for its answer, in the job's thread."""
    future: Future[Message] = Future()

    def report(connection: ClientConversation) -> list[Action]:
        assert isinstance(connection, FixtureConnection)
        return connection.ask(work.job, question, future.set_result)

    work.post(report)
    return as_object(future.result(PATIENCE_SECONDS).get("result")) or {}


FORMS: dict[str, dict[str, Message]] = {
    "test_elicitation": {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    },
    "test_elicitation_sep1034_defaults": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    },
    "test_elicitation_sep1330_enums": {
        "untitledSingle": {"type": "string", "enum": OPTIONS},
        "titledSingle": {"type": "string", "oneOf": TITLED},
        "legacyEnum": {"type": "string", "enum": OPTIONS, "enumNames": ["One", "Two", "Three"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": OPTIONS}},
        "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
    },
}


def _elicitation(job: Job) -> Message:
    properties = FORMS[job.name]
    required = list(properties) if job.name == "test_elicitation" else []
    schema = {"type": "object", "properties": properties, "required": required}
    message = str(job.arguments.get("message", "Please fill this in."))
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}
