"""Serves a small application on this process's own stdin and stdout; run by test_mcp_process.

Its first argument is a file descriptor: `search` with `wait` reads a byte from it before it answers.
The second is the grace period in seconds.
"""

import os
import sys

from vestige.core.caller import Invocation
from vestige.transports.mcp.protocol.jsonrpc import Message
from vestige.transports.mcp.stdio import serve_process


class NoisyApp:
    """Prints to stdout and reads stdin, as a library might."""

    def call_tool(self, invocation: Invocation) -> Message:
        print("a stray print")  # noqa: T201 - the point of the test
        sys.stdout.flush()
        os.write(1, b"a stray write\n")
        invocation.progress(1, None, None)
        if "wait" in invocation.arguments:
            os.read(int(sys.argv[1]), 1)
        return {"stdin": os.read(0, 100).decode()}

    def read_resource(self, invocation: Invocation) -> Message:
        return {}

    def close(self) -> None:
        print("closed")  # noqa: T201 - seen on stderr


if __name__ == "__main__":
    sys.exit(serve_process(NoisyApp, grace_seconds=float(sys.argv[2])))
