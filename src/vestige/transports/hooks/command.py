"""The program `vestige-hook CLIENT`: reads the payload of a hook from standard input, and prints its output.

It asks a running server over its socket, and opens the store itself without one. It never blocks or fails a
session: on any trouble it prints nothing, exits with 0 and adds a line to the log that `vestige agent doctor`
shows. Its command line never changes between versions, because Codex trusts it by its hash.
"""

import _thread
import json
import os
import socket
import sys
import time

from vestige.engine.agent.hook_log import note_failure
from vestige.settings.directories import default_data_directory
from vestige.transports.hooks.socket_path import (
    AVAILABLE,
    MAX_MESSAGE_BYTES,
    SocketFolder,
    receive,
    socket_names,
    state_folder,
)

TYPE_CHECKING = False  # like typing.TYPE_CHECKING, without importing typing
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, NoReturn

USAGE = """Usage: vestige-hook CLIENT [--data-dir DIR]

Answers a hook of an agent: reads its payload from standard input, prints its output. `vestige connect CLIENT
--hooks` installs it.
"""
CONNECT_SECONDS, ANSWER_SECONDS = 0.5, 6.0
SECONDS_VARIABLE = "VESTIGE_AGENT_HOOK_SECONDS"
END_SECONDS = 2.5
"""What Codex gives a hook at the end of a session is 3 seconds at most."""
CURSOR, COPILOT = "cursor", "copilot-cli"
SUBAGENT = ("agent_id", "agent_type")


def main() -> "NoReturn":
    """Run `vestige-hook`."""
    words = sys.argv[1:]
    if not words or words[0] in ("-h", "--help"):
        sys.stdout.write(USAGE)
        sys.exit(0)
    code = _run(words)
    # Threads of an opened store must not delay the session.
    os._exit(code)


def _run(words: "list[str]") -> int:
    named, data_dir = _read_words(words)
    state = state_folder(data_dir)
    try:
        payload = json.loads(_read_payload(named, state) or b"{}")
        if not isinstance(payload, dict) or any(payload.get(name) for name in SUBAGENT):
            return 0
        client = client_of(named, payload)
        text = client_output(client, payload, _answer(data_dir, state, client, payload))
        if text:
            sys.stdout.buffer.write(text.encode("utf-8"))
            sys.stdout.buffer.flush()
    except Exception as exc:  # the outermost handler: whatever happens, the session goes on
        _note(state, f"{named}: {type(exc).__name__}: {exc}")
    return 0


def _read_payload(named: str, state: str) -> bytes:
    """What the client writes. One that does not end it in time is given up."""
    read = False

    def watch() -> None:
        time.sleep(seconds_for({}))
        if not read:
            _give_up(state, f"{named}: no answer in time, because the payload did not end")

    _thread.start_new_thread(watch, ())  # threading takes milliseconds to import
    try:
        return sys.stdin.buffer.read(MAX_MESSAGE_BYTES)
    finally:
        read = True


def _give_up(state: str, why: str) -> None:
    """End without an output, from any thread."""
    _note(state, why)
    os._exit(0)


def _note(state: str, why: str) -> None:
    at = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime())
    note_failure(state, f"{at} {why}")


def _answer(data_dir: str, state: str, client: str, payload: "dict[str, Any]") -> "dict[str, Any]":
    arguments = {"action": "hook", "client": client, "payload": payload}
    cwd = payload.get("cwd") or _working_directory()
    for name in socket_names(state) if AVAILABLE else ():
        found = _asked(state, name, {"tool": "agent", "arguments": arguments, "cwd": cwd})
        if found is not None:
            return found
    return _opened(data_dir, state, client, payload, arguments)


def _asked(state: str, name: str, request: "dict[str, Any]") -> "dict[str, Any] | None":
    """The answer of a server; None if it is gone or busy. One that fails after it took the request is not
    asked again: it may have done what was asked."""
    with SocketFolder(state) as folder, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(CONNECT_SECONDS)
        try:
            connection.connect(folder.address(name))
        except OSError:
            return None
        connection.settimeout(seconds_for(request["arguments"]["payload"]))
        connection.sendall(json.dumps(request).encode())
        connection.shutdown(socket.SHUT_WR)
        received = receive(connection)
    if not received:
        return None
    answer = json.loads(received)
    if "error" in answer:
        raise RuntimeError(f"the server answered {answer['error']}")
    found: dict[str, Any] = answer["answer"]
    return found


def _opened(
    data_dir: str, state: str, client: str, payload: "dict[str, Any]", arguments: "dict[str, Any]"
) -> "dict[str, Any]":
    """The answer of the store itself, within a limit of time: a locked or slow store is left alone."""
    import threading

    why = f"{client}: no answer in time, and no server runs"
    timer = threading.Timer(seconds_for(payload), _give_up, (state, why))
    timer.daemon = True
    timer.start()
    sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - for the rest of the process
    # Heavy imports, only without a server.
    from pathlib import Path

    from vestige.core.caller import Invocation
    from vestige.settings.libraries import prepare_libraries

    prepare_libraries()
    from vestige.app.app import open_app

    folder = payload.get("cwd")
    here = Path(folder) if isinstance(folder, str) and folder.startswith("/") else None
    with open_app({"data_dir": data_dir}, folder=here) as app:
        answer = app.call_tool(Invocation(name="agent", arguments=arguments, request_id="hook"))
    timer.cancel()
    return answer


def seconds_for(payload: "Mapping[str, Any]") -> float:
    """How long to wait for an answer, from a server or from the store."""
    event = str(payload.get("hook_event_name", ""))
    usual = END_SECONDS if event.lower() == "sessionend" else ANSWER_SECONDS
    try:
        return float(os.environ.get(SECONDS_VARIABLE, "") or usual)
    except ValueError:
        return usual


def client_of(named: str, payload: "Mapping[str, Any]") -> str:
    """The client that runs the hook: Cursor also runs the hooks of Claude Code, with payloads of its own."""
    return CURSOR if payload.get("cursor_version") else named


def client_output(client: str, payload: "Mapping[str, Any]", answer: "Mapping[str, Any]") -> str:
    """What to print: the answer in the client's form, or nothing, which every client takes."""
    specific = answer.get("hookSpecificOutput") or {}
    context = specific.get("additionalContext")
    if not context:
        return ""
    if client == CURSOR:
        prompted = payload.get("hook_event_name") == "beforeSubmitPrompt"
        output = {**({"continue": True} if prompted else {}), "additional_context": context}
    elif client == COPILOT:
        output = {"additionalContext": context}
    else:
        output = {"hookSpecificOutput": specific}
    return json.dumps(output)


def _read_words(words: "list[str]") -> "tuple[str, str]":
    """The client and the data directory of a command line, in any order."""
    rest = list(words)
    folder = os.environ.get("VESTIGE_DATA_DIR") or default_data_directory(os.environ, sys.platform)
    if "--data-dir" in rest[:-1]:
        at = rest.index("--data-dir")
        folder = rest[at + 1]
        del rest[at : at + 2]
    return (rest[0] if rest else ""), folder


def _working_directory() -> str:
    try:
        return os.getcwd()  # noqa: PTH109 - pathlib takes 5 ms to import
    except OSError:
        return ""


if __name__ == "__main__":
    main()
