"""Fills in the prompts of the catalog. Pure."""

from vestige.core.nearest import nearest_name
from vestige.transports.mcp.protocol.jsonrpc import INVALID_PARAMS, Message, ProtocolError, as_object, shown

PRIVATE = "parts"
"""The field of a prompt that is not listed: its text, in pieces."""


def filled(prompt: Message, arguments: object) -> Message:
    """The answer to `prompts/get`: the prompt's text as a message of the user."""
    given = _checked(prompt, arguments)
    parts = prompt.get(PRIVATE)
    text = "".join(_piece(part, given) for part in (parts if isinstance(parts, list) else []))
    content = {"type": "text", "text": text}
    return {"description": prompt.get("description"), "messages": [{"role": "user", "content": content}]}


def _piece(part: object, given: dict[str, str]) -> str:
    clause = as_object(part)
    if clause is None:
        return str(part)
    value, around = given.get(str(clause["argument"])), clause["text"]
    return value.join(around) if value is not None and isinstance(around, list) else ""


def _checked(prompt: Message, arguments: object) -> dict[str, str]:
    given = {} if arguments is None else as_object(arguments)
    if given is None:
        raise ProtocolError(INVALID_PARAMS, 'Invalid params: "arguments" must be an object')
    listed = prompt.get("arguments")
    declared = {str(one["name"]): one for one in (listed if isinstance(listed, list) else [])}
    name = shown(str(prompt["name"]))
    for argument, value in given.items():
        if argument not in declared:
            nearest = nearest_name(argument, declared)
            suffix = f" (did you mean {nearest}?)" if nearest else ""
            raise ProtocolError(
                INVALID_PARAMS, f"The prompt {name} has no argument {shown(argument)}{suffix}"
            )
        if not isinstance(value, str):
            raise ProtocolError(INVALID_PARAMS, f'Invalid params: the argument "{argument}" must be a string')
    for argument, one in declared.items():
        if one.get("required") and not str(given.get(argument, "")).strip():
            raise ProtocolError(INVALID_PARAMS, f"The prompt {name} needs the argument {argument}")
    return {argument: str(value) for argument, value in given.items() if str(value).strip()}
