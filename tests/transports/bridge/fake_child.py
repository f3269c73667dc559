"""A program that stands in for `vestige-mcp`: JSON lines, and misbehaviour on demand.

As there, one thread reads and answers what is no work, another does one call after the other, and a long call
has a thread of its own. A tool does what the argument `query` says; without such a word it repeats its call.
With `no-list` it cannot list its tools, with `no-memory` it never answers the tool of that name, with `never`
it does not even begin, and `log=FILE` gets a line for every message.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path
from queue import SimpleQueue

BIG = 10_000_000
LONG = ("dream", "consolidate", "backup")
POLL_SECONDS = 0.01
AGES_SECONDS = 600

writing = threading.Lock()


def send(message: dict[str, object]) -> None:
    with writing:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


def answer(number: object, structured: dict[str, object]) -> None:
    text = json.dumps(structured)
    result = {"content": [{"type": "text", "text": text}], "structuredContent": structured, "isError": False}
    send({"jsonrpc": "2.0", "id": number, "result": result})


def flood(number: object, late: list[object]) -> None:
    for _ in range(BIG // 100):
        sys.stderr.write("y" * 99 + "\n")
    sys.stderr.write("z" * 1_000_000)
    sys.stderr.flush()
    answer(number, {"flooded": True})


def make_noise(number: object, late: list[object]) -> None:
    with writing:
        sys.stdout.write('\nnot JSON\n[1]\n{"id": [1]}\n{"id": 999999, "result": {"wrong": true}}\n')
    send({"jsonrpc": "2.0", "method": "notifications/message", "params": {}})
    send({"jsonrpc": "2.0", "id": "mine", "method": "roots/list"})
    answer(number, {"noisy": True})


def later(number: object, late: list[object]) -> None:
    late.append(number)


def now(number: object, late: list[object]) -> None:
    answer(number, {"asked": "now"})
    answer(late.pop(), {"asked": "later"})


def fault(number: object, late: list[object]) -> None:
    send({"jsonrpc": "2.0", "id": number, "error": {"code": -32602, "message": "Unknown tool"}})


def words(number: object, late: list[object]) -> None:
    result = {"content": [{"type": "text", "text": "only words"}]}
    send({"jsonrpc": "2.0", "id": number, "result": result})


TRICKS = {
    "big": lambda number, late: answer(number, {"text": "x" * BIG}),
    "flood": flood,
    "noise": make_noise,
    "later": later,
    "now": now,
    "die": lambda number, late: os._exit(7),
    "stuck": lambda number, late: time.sleep(AGES_SECONDS),
    "silence": lambda number, late: None,
    "fault": fault,
    "words": words,
}


def call(message: dict[str, object], late: list[object]) -> None:
    number, params = message["id"], message["params"]
    assert isinstance(params, dict)
    arguments = params["arguments"]
    query = str(arguments.get("query"))
    if query.startswith("until "):  # whatever is cancelled meanwhile
        while not Path(query.removeprefix("until ")).exists():
            time.sleep(POLL_SECONDS)
    trick = TRICKS.get(query)
    if trick is not None:
        trick(number, late)
    elif params["name"] != "memory" or "no-memory" not in sys.argv:
        answer(number, {"name": params["name"], "arguments": arguments, "pid": os.getpid()})


def work(calls: "SimpleQueue[dict[str, object]]") -> None:
    late: list[object] = []
    while True:
        call(calls.get(), late)


def begin(message: dict[str, object], calls: "SimpleQueue[dict[str, object]]") -> None:
    params = message["params"]
    assert isinstance(params, dict)
    if params["arguments"].get("query") == "hang":  # so that not even a ping is answered
        time.sleep(AGES_SECONDS)
    elif params["name"] in LONG:
        threading.Thread(target=call, args=(message, []), daemon=True).start()
    else:
        calls.put(message)


def main() -> None:
    if "never" in sys.argv:
        sys.stderr.write("I have no wish to begin\n")
        sys.exit(3)
    calls: SimpleQueue[dict[str, object]] = SimpleQueue()
    threading.Thread(target=work, args=(calls,), daemon=True).start()
    logs = [word.removeprefix("log=") for word in sys.argv if word.startswith("log=")]
    for line in sys.stdin:
        message = json.loads(line)
        for name in logs:
            with Path(name).open("a", encoding="utf-8") as log:
                log.write(line)
        number, method = message.get("id"), message.get("method")
        if method == "tools/call":
            begin(message, calls)
        elif method == "tools/list" and "no-list" in sys.argv:
            send({"jsonrpc": "2.0", "id": number, "error": {"code": -32601, "message": "No such method"}})
        elif number is not None and method is not None:
            send({"jsonrpc": "2.0", "id": number, "result": {"tools": []}})


if __name__ == "__main__":
    main()
