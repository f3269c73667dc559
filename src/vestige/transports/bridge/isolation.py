"""Isolation of agents (`bridge.isolate_agents`): each has the scope /agent/<name>, and all read /shared.

A call is confined by the `scope` argument of its tool, or by a check of where the memory or intention is
that it names. A call that can be confined in neither way is refused: it could reveal memories of other
agents. The process behind the bridge knows nothing of agents, so statements about the whole store are
removed from its responses.
"""

import re
from collections.abc import Awaitable, Callable

from vestige.core.errors import InvalidInput
from vestige.core.models import covers, normal_scope
from vestige.transports.bridge.answers import BridgeRefused, restructured, structure
from vestige.transports.bridge.auth import AGENT_HEADER
from vestige.transports.bridge.child import Message
from vestige.transports.bridge.requests import MOST_INTENTIONS, ToolCall
from vestige.transports.http.problems import Refusal

SHARED = "/shared"
_STATE = re.compile(r"(?<=^## Session \()([^,)\n]*), [^)\n]*\)")
"""The heading of a session: the number of memories in its scope, then the state of the whole store."""
Send = Callable[[ToolCall], Awaitable[Message]]
"""A function that sends a call to the process and returns its result."""

READS = frozenset(
    {
        "search", "session_context", "predict", "importance_score", "codebase.get_context",
        "codebase.structure", "intention.check", "intention.list", "memory.list",
    }
)  # fmt: skip
WRITES = frozenset(
    {"smart_ingest", "codebase.remember_pattern", "codebase.remember_decision", "intention.set", "dream"}
)
READS_OF_ONE = frozenset({"memory.get", "memory.state"})
WRITES_OF_ONE = frozenset(
    f"memory.{action}"
    for action in (
        "promote", "demote", "useful", "edit", "tag", "pin", "unpin", "set_validity", "delete", "purge",
    )
)  # fmt: skip
STATE_OF_ALL = {"search": "note", "session_context": "automationTriggers"}
"""Fields of responses that describe the whole store."""
INTENTIONS = frozenset({"intention.update", "intention.delete"})

NOT_FOUND = "not_found"
NO_AGENT = Refusal(
    status=400,
    code="agent_id_needed",
    message=f"The header {AGENT_HEADER} is needed: the bridge isolates agents.",
)
NOT_CONFINED = Refusal(
    status=403,
    code="not_confined",
    message="This call is about the memories of all agents, and the bridge isolates agents.",
)


async def call_apart(asked: ToolCall, agent: str | None, send: Send, *, limit: int) -> Message:
    """The result of a call, confined to what the agent may see and change; BridgeRefused where that is not
    possible. A search that sets no limit gets as many results as `limit`."""
    if agent is None:
        raise BridgeRefused(NO_AGENT)
    result = await _confined(asked, normal_scope(f"/agent/{agent}"), send, limit)
    if result.get("isError"):
        return _without_hint(result)
    return _without_state(result) if asked.tool in STATE_OF_ALL else result


async def _confined(asked: ToolCall, home: str, send: Send, limit: int) -> Message:
    what = _operation(asked)
    if what == "search" and "scope" not in asked.arguments:
        return await _search_both(asked, home, send, limit)
    if what in READS | WRITES:
        return await send(_scoped(asked, home, (home, SHARED) if what in READS else (home,)))
    if what in READS_OF_ONE | WRITES_OF_ONE:
        return await _of_one(asked, (home, SHARED) if what in READS_OF_ONE else (home,), send)
    if what in INTENTIONS:
        return await _of_an_intention(asked, home, send)
    raise BridgeRefused(NOT_CONFINED)


def _operation(asked: ToolCall) -> str:
    action = asked.arguments.get("action")
    return asked.tool if action is None else f"{asked.tool}.{action}"


def _scoped(asked: ToolCall, home: str, allowed: tuple[str, ...]) -> ToolCall:
    """The call with its own scope, or that of the agent."""
    if "project" in asked.arguments:  # another way to set the scope
        raise BridgeRefused(_outside(f"/project/{asked.arguments['project']}", allowed))
    items = asked.arguments.get("items")
    if isinstance(items, list):
        data = [
            {**one, "scope": _scope(one, home, allowed)} if isinstance(one, dict) else one for one in items
        ]
        return asked.with_arguments(items=data)
    confined = asked.with_arguments(scope=_scope(asked.arguments, home, allowed))
    match _operation(asked):
        case "session_context":
            return confined.with_arguments(include_status=False)  # it counts the whole store
        case "codebase.get_context":
            # Not intentions of other projects.
            return confined.with_arguments(include=["patterns", "decisions"])
    return confined


def _scope(arguments: Message, home: str, allowed: tuple[str, ...]) -> str:
    given = arguments.get("scope")
    if given is None:
        return home
    try:
        scope = normal_scope(str(given))
    except InvalidInput:
        raise BridgeRefused(_outside(str(given), allowed)) from None
    if not any(covers(one, scope) for one in allowed):
        raise BridgeRefused(_outside(scope, allowed))
    return scope


def _outside(scope: str, allowed: tuple[str, ...]) -> Refusal:
    return Refusal(
        status=403,
        code="forbidden",
        message=f"This agent may not use the scope {scope} for this call.",
        hint=f"It may use {' and '.join(allowed)}.",
        details={"scope": scope},
    )


async def _search_both(asked: ToolCall, home: str, send: Send, limit: int) -> Message:
    """The best results from the scope of the agent and from the shared scope."""
    budget = asked.arguments.get("token_budget")
    if isinstance(budget, int):
        asked = asked.with_arguments(token_budget=max(100, budget // 2))
    own = await send(asked.with_arguments(scope=home))
    if own.get("isError"):
        return own
    shared = await send(asked.with_arguments(scope=SHARED))
    if shared.get("isError"):
        return shared
    found = structure(own), structure(shared)
    surest = max(found, key=lambda one: _number(one.get("confidence")))
    entries = sorted(
        (entry for one in found for entry in _objects(one.get("results"))),
        key=lambda entry: -_number(entry.get("combinedScore")),
    )
    wanted = asked.arguments.get("limit")
    data: Message = {
        **surest,
        "scope": home,
        "total": sum(int(_number(one.get("total"))) for one in found),
        "abstained": all(one.get("abstained") for one in found),
        "results": entries[: wanted if isinstance(wanted, int) else limit],
    }
    return restructured(own, data)


async def _of_one(asked: ToolCall, allowed: tuple[str, ...], send: Send) -> Message:
    """A call about one memory, if it is in a scope that the agent may use for it."""
    memory_id = asked.arguments.get("id")
    found = await send(ToolCall(tool="memory", arguments={"action": "get", "id": memory_id}, again=True))
    data = structure(found)
    if found.get("isError"):
        # The error for a deleted memory differs from that for an unknown one, and it may be another agent's.
        code = _object(data.get("error")).get("code")
        return _missing("memory", memory_id) if code == NOT_FOUND else found
    scope = str(_object(data.get("node")).get("scope"))
    if not any(covers(one, scope) for one in allowed):
        return _missing("memory", memory_id)
    if asked.arguments["action"] == "get":
        return restructured(found, {**data, "edges": []})  # they lead to memories of other agents, too
    return await send(asked)


async def _of_an_intention(asked: ToolCall, home: str, send: Send) -> Message:
    """A call about one intention, if it is an open one of the agent."""
    wanted = asked.arguments.get("id")
    listing = {"action": "list", "scope": home, "filter_status": "open", "limit": MOST_INTENTIONS}
    found = await send(ToolCall(tool="intention", arguments=listing, again=True))
    if found.get("isError"):
        return found
    if not any(one.get("id") == wanted for one in _objects(structure(found).get("intentions"))):
        return _missing("intention", wanted)
    return await send(asked)


def _missing(what: str, wanted: object) -> Message:
    """The error of the engine for a missing object. An agent does not learn that it belongs to another."""
    error = {"code": NOT_FOUND, "message": f"There is no {what} {wanted}."}
    return {"content": [], "structuredContent": {"error": error}, "isError": True}


def _without_hint(result: Message) -> Message:
    """An error without its hint, which may name similar objects of other agents. Hints about wrong arguments
    stay."""
    data = structure(result)
    error = _object(data.get("error"))
    if not error.get("hint") or "argument" in _object(error.get("details")):
        return result
    return restructured(result, {**data, "error": {**error, "hint": None}})


def _without_state(result: Message) -> Message:
    """A response without the state of the whole store."""
    data = {name: value for name, value in structure(result).items() if name not in STATE_OF_ALL.values()}
    if not data:
        return result  # of a process that returns only text
    if isinstance(data.get("context"), str):
        data["context"] = _STATE.sub(r"\1)", str(data["context"]))
    return restructured(result, data)


def _object(value: object) -> Message:
    return value if isinstance(value, dict) else {}


def _objects(value: object) -> list[Message]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
