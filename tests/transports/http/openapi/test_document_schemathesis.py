"""Requests made up from the OpenAPI document, valid and not, alone and in a row: no failure of the server, no
answer that the document does not describe.

`make nightly` makes up forty times as many.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest
import schemathesis
from schemathesis import AuthContext, Case, HookContext
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import events, from_schema
from schemathesis.python import asgi
from schemathesis.schemas import BaseSchema

from testbed.effort import effort
from testbed.world import World
from tests.transports.http.support.harness import MANY, SECRET
from tests.transports.parity.example_store import planted
from vestige.engine.care import keys
from vestige.engine.context import Call
from vestige.operations.registry.groups import registry
from vestige.transports.http.app import build_app
from vestige.transports.http.auth.gate import DOMAIN_HEADER, SCOPE_HEADER, Auth
from vestige.transports.http.context import ServerContext

PHASES = {"coverage": 1, "fuzzing": effort(5, nightly=200), "stateful": effort(240, nightly=3_200)}
"""Every bound of every argument; so many made-up requests for each operation; so many rows of requests that
use what others answered."""
SEED = 8
"""What is made up depends on the modules that are imported too, so the counts differ between runs."""
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "unsupported_method",
    "allow_header_conformance",
)
"""What is looked at. Not whether all that the document allows is taken: it cannot say which arguments may not
be together. Nor whether all else is refused: a 0 for `false` is taken here, and a text for a list of one. Who
may do what is the subject of test_gate_permissions.py (in auth/)."""

SETTINGS = {"storage.backend": "memory", "server.allowed_hosts": [asgi.HOST], "server.requests_per_minute": 0}


@pytest.fixture
def schema(tmp_path: Path) -> Iterator[BaseSchema]:
    """The document of a server in this process that has what its examples are about."""
    with planted(tmp_path, SETTINGS) as world:
        engine = world.app.engine
        context = ServerContext(
            app=world.app,
            settings=engine.settings,
            registry=registry,
            monotonic=engine.monotonic,
            entropy=engine.entropy,
            limiter=anyio.CapacityLimiter(8),
        )
        app = build_app(context, Auth(context, SECRET, pause=no_pause))
        try:
            loaded = schemathesis.openapi.from_asgi(
                "/api/v1/openapi.json", app, config=SchemathesisConfig(seed=SEED)
            )
            unlock(loaded, world)
            yield loaded
        finally:
            asgi.shutdown_lifespans()


async def no_pause(seconds: float) -> None:
    """Failures to log in are answered at once."""


def unlock(schema: BaseSchema, world: World) -> None:
    """Have every request send a key that works: some of them revoke it."""
    engine, made = world.app.engine, [""]

    @schema.auth(refresh_interval=None)
    class Key:
        def get(self, case: Case[Any], context: AuthContext) -> str:
            if keys.verify(engine, made[0], engine.now()) is None:
                made[0] = keys.mint(Call(engine=engine), "made up", MANY)[1]
            return made[0]

        def set(self, case: Case[Any], data: str, context: AuthContext) -> None:
            case.headers["Authorization"] = f"Bearer {data}"


def unnarrowed(schema: BaseSchema) -> None:
    """Have no request be about a made-up part of the store, where nothing that another one made is."""

    @schema.hook
    def map_headers(context: HookContext, headers: Mapping[str, str] | None) -> dict[str, str]:
        apart = (SCOPE_HEADER, DOMAIN_HEADER)
        return {name: value for name, value in (headers or {}).items() if name not in apart}


def configure(schema: BaseSchema, phase: str, examples: int) -> None:
    """Let only this be done, the same every time."""
    config = schema.config
    config.continue_on_failure = True
    config.checks.update(included_check_names=list(CHECKS))
    config.generation.max_examples = examples
    config.generation.database = "none"
    config.generation.with_security_parameters = False  # made-up keys are soon refused unread
    config.phases.examples.enabled = False
    config.phases.coverage.enabled = phase == "coverage"
    config.phases.fuzzing.enabled = phase == "fuzzing"
    config.phases.stateful.enabled = phase == "stateful"


@pytest.mark.slow
@pytest.mark.parametrize(
    "phase", ["fuzzing", "stateful", pytest.param("coverage", marks=pytest.mark.nightly)]
)
def test_whatever_is_sent_the_answer_is_as_the_document_says(schema: BaseSchema, phase: str) -> None:
    configure(schema, phase, PHASES[phase])
    if phase == "stateful":
        unnarrowed(schema)
    statuses: Counter[int] = Counter()
    failures: list[str] = []
    asked: set[str] = set()
    followed = 0
    for event in from_schema(schema).execute():
        assert not isinstance(event, events.FatalError | events.NonFatalError), event
        if isinstance(event, events.ScenarioFinished):
            recorder = event.recorder
            asked |= {node.value.operation.label for node in recorder.cases.values()}
            followed += sum(node.is_transition_applied for node in recorder.cases.values())
            found = [one.response for one in recorder.interactions.values() if one.response]
            statuses.update(response.status_code for response in found)
            failures += [
                f"{node.failure_info.failure.title}: {node.failure_info.code_sample}"
                for nodes in recorder.checks.values()
                for node in nodes
                if node.failure_info
            ]
    assert failures == []
    assert statuses[200] + statuses[201] > 4, statuses  # it did not fail at the door
    if phase == "stateful":
        assert followed > 0
    else:
        assert len(asked) == len(registry.routes())
