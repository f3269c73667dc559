"""Operations of the product that wait in the middle of their work until a test lets them go on.

with holding("search") as held, new_site(folder) as site:
    …
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from testbed.patience import PATIENCE_SECONDS
from vestige.engine.context import Call
from vestige.operations.registry.arguments import Arguments, Wire
from vestige.operations.registry.groups import registry
from vestige.operations.registry.registry import Operation

LOOKS = 6_000
"""How often those who wait look whether they still should, until their patience ends."""


class Held:
    """Those who are held in an operation. A call that is cancelled or has no time left gets away, unless the
    operation is deaf."""

    def __init__(self, operation: Operation, *, deaf: bool) -> None:
        self._operation, self._deaf = operation, deaf
        self._changed = threading.Condition()
        self._free = False
        self.inside, self.most_inside = 0, 0

    def run(self, call: Call, arguments: Arguments) -> Wire:
        """The operation, after a wait."""
        with self._changed:
            self.inside += 1
            self.most_inside = max(self.most_inside, self.inside)
            self._changed.notify_all()
            try:
                for _ in range(LOOKS):
                    if self._free:
                        break
                    if not self._deaf:
                        call.check()
                    self._changed.wait(PATIENCE_SECONDS / LOOKS)
            finally:
                self.inside -= 1
                self._changed.notify_all()
        return self._operation.run(call, arguments)

    def wait(self, count: int) -> None:
        """Until so many are inside."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.inside == count, PATIENCE_SECONDS)

    def let_go(self) -> None:
        """From now on nobody waits."""
        with self._changed:
            self._free = True
            self._changed.notify_all()


@contextmanager
def holding(name: str, *, deaf: bool = False) -> Iterator[Held]:
    """Hold whoever calls this operation."""
    operation = registry.operations[name]
    held = Held(operation, deaf=deaf)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(registry.operations, name, replace(operation, run=held.run))
        try:
            yield held
        finally:
            held.let_go()
