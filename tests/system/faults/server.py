"""A process that has everything imported and forks a child for each run: a start costs milliseconds.

It reads a JSON object per line (`scenario`, `folder`, `point`), and answers how the child ended.
"""

import json
import os
import sys
import traceback
from pathlib import Path

from tests.system.faults import points, scenarios


def main() -> None:
    """Serve until the input ends."""
    for line in sys.stdin:
        asked = json.loads(line)
        child = os.fork()
        if child == 0:
            _run(asked["scenario"], Path(asked["folder"]), asked["point"])
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{json.dumps({'code': os.waitstatus_to_exitcode(status)})}\n")
        sys.stdout.flush()


def _run(scenario: str, folder: Path, point: int) -> None:
    """What the child does; it does not return."""
    code = 1
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, sys.stdin.fileno())
    os.dup2(nowhere, sys.stdout.fileno())
    try:
        act = getattr(scenarios, scenario)
        points.die_at(point)
        act(folder)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
