"""What an argument may be, in words."""

import json

import pytest

from testbed.failures import each
from vestige.core.errors import InvalidInput
from vestige.operations.registry.errors import allowed
from vestige.operations.registry.groups import registry
from vestige.operations.registry.registry import Operation

MOMENT = "A date (2026-03-01), a time (2026-03-01T14:05:00Z), or words such as yesterday or tomorrow at 10."


@each(
    ("operation", "where", "said"),
    [
        ("search", ("limit",), "A whole number from 1 to 100."),
        ("search", ("token_budget",), "A whole number from 100 to 100,000."),
        ("search", ("tokenBudget",), "A whole number from 100 to 100,000."),
        ("search", ("min_confidence",), "A number from 0 to 1."),
        ("search", ("as_of",), MOMENT),
        ("search", ("created_to",), MOMENT),
        ("search", ("detail_level",), "One of: brief, summary, full."),
        ("search", ("retrieval_mode",), "One of: precise, balanced, exhaustive."),
        ("search", ("explain",), "true or false."),
        ("search", ("query",), "A text of 1 to 10,000 characters."),
        ("search", ("source",), "A text."),
        ("search", ("tags",), "A list of at most 100 entries."),
        ("search", ("tags", 3), "A text."),
        ("smart_ingest", ("items", 3, "occurred_at"), MOMENT),
        ("smart_ingest", ("metadata",), "An object."),
        ("session_context", ("context",), "An object with codebase, topics, file."),
        ("importance_score", ("content",), "A text of at least 1 character."),
        ("intention.set", ("trigger", "in_minutes"), "A number above 0, at most 5,270,400."),
        ("search", ("nonsense",), None),
        ("search", ("limit", "x"), None),
    ],
)
def test_what_an_argument_may_be_is_said_in_words(
    operation: str, where: tuple[int | str, ...], said: str | None
) -> None:
    assert allowed(registry.operations[operation].arguments, where) == said


def test_every_argument_of_every_operation_says_what_it_may_be() -> None:
    silent = [
        (name, field)
        for name, operation in registry.operations.items()
        for field in operation.arguments.model_fields
        if allowed(operation.arguments, (field,)) is None
    ]
    assert silent == []


NEEDY = [
    one
    for one in registry.operations.values()
    if any(f.is_required() for f in one.arguments.model_fields.values())
]


@each("operation", NEEDY)
def test_a_missing_argument_is_answered_with_the_example(operation: Operation) -> None:
    with pytest.raises(InvalidInput) as refused:
        operation.parse({})
    example = str(refused.value.hint).removeprefix("For example ").removesuffix(".")
    assert json.loads(example) == operation.example


def test_a_missing_argument_inside_another_is_answered_with_what_it_may_be() -> None:
    with pytest.raises(InvalidInput) as refused:
        registry.operations["smart_ingest"].parse({"items": [{"tags": []}]})
    assert refused.value.hint == allowed(
        registry.operations["smart_ingest"].arguments, ("items", 0, "content")
    )
