"""The tools, prompts and resources that the conformance suites expect of a server under test, as data."""

from typing import Any

from vestige.transports.mcp.protocol.jsonrpc import Message

# A red pixel, and a recording of nothing.
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA="

TEMPLATE = "test://template/"
SCHEMA_2020_12: Message = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


def text(words: str) -> Message:
    return {"type": "text", "text": words}


IMAGE: Message = {"type": "image", "data": PNG, "mimeType": "image/png"}


def embedded(uri: str, words: str, media_type: str = "text/plain") -> Message:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": media_type, "text": words}}


ANSWERS: dict[str, list[Message]] = {
    "test_simple_text": [text("This is a simple text response for testing.")],
    "test_image_content": [IMAGE],
    "test_audio_content": [{"type": "audio", "data": WAV, "mimeType": "audio/wav"}],
    "test_embedded_resource": [embedded("test://embedded-resource", "This is an embedded resource content.")],
    "test_multiple_content_types": [
        text("Multiple content types test:"),
        IMAGE,
        embedded("test://mixed-content-resource", '{"test":"data","value":123}', "application/json"),
    ],
    "json_schema_2020_12_tool": [text("The schema is the point.")],
    "test_logging_tool": [text("Nothing was logged, for nobody asked.")],
}
"""Tools that always answer alike."""

ARGUMENTS: dict[str, Message] = {
    "test_sampling": {"prompt": {"type": "string"}},
    "test_elicitation": {"message": {"type": "string"}},
}
ASKED_FIRST = (
    "elicitation", "sampling", "list_roots", "request_state", "multiple_inputs", "multi_round",
    "tampered_state", "capabilities",
)  # fmt: skip
TOOLS = (
    *ANSWERS,
    "test_error_handling", "test_tool_with_logging", "test_tool_with_progress", "test_sampling",
    "test_elicitation", "test_elicitation_sep1034_defaults", "test_elicitation_sep1330_enums",
    "test_missing_capability", "test_streaming_elicitation",
    *(f"test_input_required_result_{name}" for name in ASKED_FIRST),
)  # fmt: skip

RESOURCES: dict[str, Message] = {
    "test://static-text": {
        "mimeType": "text/plain",
        "text": "This is the content of the static text resource.",
    },
    "test://static-binary": {"mimeType": "image/png", "blob": PNG},
    "test://watched-resource": {"mimeType": "text/plain", "text": "Nothing happens here."},
}

PROMPTS: dict[str, tuple[str, ...]] = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
    "test_input_required_result_prompt": (),
}
"""Prompts with their arguments, all of which are required."""


def prompt_contents(name: str, given: dict[str, str]) -> list[Message]:
    """What the messages of a prompt hold."""
    match name:
        case "test_simple_prompt":
            return [text("This is a simple prompt for testing.")]
        case "test_prompt_with_arguments":
            return [text(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'")]
        case "test_prompt_with_embedded_resource":
            resource = embedded(given["resourceUri"], "Embedded resource content for testing.")
            return [resource, text("Please process the embedded resource above.")]
        case _:
            return [IMAGE, text("Please analyze the image above.")]


def with_fixtures(data: Message) -> Message:
    """A catalog's data with these beside its own."""
    whole: dict[str, Any] = {**data}
    tools = [_tool(name) for name in TOOLS]
    whole["tools"] = {profile: [*listed, *tools] for profile, listed in whole["tools"].items()}
    whole["resources"] = [
        *whole["resources"],
        *({"uri": uri, "name": uri, "mimeType": content["mimeType"]} for uri, content in RESOURCES.items()),
    ]
    whole["resourceTemplates"] = [
        *whole["resourceTemplates"],
        {"uriTemplate": TEMPLATE + "{id}/data", "name": "template", "mimeType": "application/json"},
    ]
    whole["prompts"] = [*whole["prompts"], *(_prompt(name) for name in PROMPTS)]
    return whole


def _tool(name: str) -> Message:
    schema = SCHEMA_2020_12 if name == "json_schema_2020_12_tool" else _schema(ARGUMENTS.get(name, {}))
    return {"name": name, "description": f"Fixture {name}.", "inputSchema": schema}


def _schema(properties: Message) -> Message:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _prompt(name: str) -> Message:
    arguments = [{"name": one, "description": "Any.", "required": True} for one in PROMPTS[name]]
    return {"name": name, "description": f"Fixture {name}.", "arguments": arguments, "parts": []}
