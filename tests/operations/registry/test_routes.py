"""Every operation has one address over REST, and addresses keep what HTTP promises."""

from collections import Counter

import pytest

from vestige.engine.context import Call
from vestige.operations.registry.arguments import Wire
from vestige.operations.registry.groups import registry
from vestige.operations.registry.registry import Registry
from vestige.operations.registry.route import Route, always
from vestige.operations.registry.routes import ROUTES, new_memory
from vestige.transports.arguments import arguments_of


class Nothing(Wire):
    """An answer that says nothing."""


@pytest.fixture
def small() -> Registry:
    """A registry with an operation that reads and one that writes."""
    made = Registry()

    @made.operation("thing.look", permission="read", effect="none", example={}, render=str)
    def look(call: Call, id: str, limit: int = 3) -> Nothing:
        """Look."""
        return Nothing()

    @made.operation("thing.make_one", permission="write", effect="write", example={}, render=str)
    def make(call: Call, id: str) -> Nothing:
        """Make."""
        return Nothing()

    return made


def test_every_operation_but_those_for_the_command_line_has_one_address() -> None:
    offered = [route.operation for route in registry.routes()]
    assert sorted(offered) == sorted(n for n, op in registry.operations.items() if not op.command_only)


def test_every_operation_of_today_was_given_its_address() -> None:
    listed = {name for offered in ROUTES.values() for name in offered}
    assert {route.operation for route in registry.routes()} == listed


def test_no_two_operations_share_a_method_and_a_path() -> None:
    places = Counter((route.method, route.path) for route in registry.routes())
    assert places.most_common(1)[0][1] == 1


def test_what_changes_something_is_never_behind_get() -> None:
    effects = {registry.operations[r.operation].effect for r in registry.routes() if r.method == "GET"}
    assert effects == {"none"}


def test_what_has_no_body_takes_nothing_that_a_query_cannot_say() -> None:
    unsayable = [
        (route.operation, argument.name)
        for route in registry.routes()
        if not route.has_body
        for argument in arguments_of(registry.operations[route.operation])
        if argument.kind == "json"
    ]
    assert unsayable == []


def test_an_operation_without_an_address_is_posted_to_its_name(small: Registry) -> None:
    assert [(route.method, route.path, route.tag) for route in small.routes()] == [
        ("POST", "/thing/look", "thing"),
        ("POST", "/thing/make-one", "thing"),
    ]


def test_an_address_that_was_given_takes_the_place_of_the_default(small: Registry) -> None:
    small.route("thing.look", "GET", "/things/{id}", tag="Things")
    small.route("thing.make_one", "PUT", "/things/{id}", tag="Things", created=always)
    look, make = small.routes()
    assert (look.method, look.places, look.has_body) == ("GET", ("id",), False)
    assert (make.method, make.has_body, make.created({})) == ("PUT", True, True)


@pytest.mark.parametrize(
    ("operation", "method", "path", "why"),
    [
        ("thing.make_one", "GET", "/things", "GET must not change anything, but thing.make_one may."),
        ("thing.look", "GET", "/things/{name}", "thing.look has no required argument name."),
        ("thing.look", "GET", "/things/{limit}", "thing.look has no required argument limit."),
        ("thing.look", "POST", "/taken/{id}", "POST /taken/{id} already belongs to thing.make_one."),
    ],
)
def test_an_address_that_cannot_be_is_refused_when_it_is_declared(
    small: Registry, operation: str, method: str, path: str, why: str
) -> None:
    small.route("thing.make_one", "POST", "/taken/{id}", tag="Things")
    with pytest.raises(TypeError, match=f"^{why.replace('{', chr(92) + '{')}$"):
        small.route(operation, method, path, tag="Things")  # type: ignore[arg-type]  # a text of the table


def test_fixed_paths_are_tried_before_those_with_places() -> None:
    paths = ["/memories/{id}/state", "/memories/{id}", "/memories", "/memories/batch"]
    made = [Route(operation=path, method="GET", path=path, tag="") for path in paths]
    assert [route.path for route in sorted(made, key=Route.order)] == [
        "/memories",
        "/memories/batch",
        "/memories/{id}",
        "/memories/{id}/state",
    ]


@pytest.mark.parametrize(
    ("answer", "new"),
    [
        ({"decision": "create", "replayed": False}, True),
        ({"decision": "supersede", "replayed": False}, True),
        ({"decision": "reinforce", "replayed": False}, False),
        ({"decision": "update", "replayed": False}, False),
        ({"decision": "create", "replayed": True}, False),
        ({"summary": {"created": 1}, "replayed": False}, True),
        ({"summary": {"created": 0}, "replayed": False}, False),
    ],
)
def test_a_text_is_a_new_memory_only_if_it_became_one(answer: dict[str, object], new: bool) -> None:
    assert new_memory(answer) is new
