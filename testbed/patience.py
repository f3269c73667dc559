"""How long a test waits for what must come.

It only keeps a failing test from waiting for ever, so it is generous: on a busy machine a process may stand
still for many seconds. How long something may take is tested with numbers of its own.
"""

PATIENCE_SECONDS = 120.0
