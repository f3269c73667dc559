"""The command `vestige` on a machine whose clock steps.

A program: `python -m benchmarks.soak.clock FILE serve …` runs `vestige serve …`. FILE holds the seconds by
which its clock is ahead of the real one; it is read whenever the program asks for the time.
"""

import sys
from datetime import datetime, timedelta, tzinfo
from pathlib import Path


class SteppedTime(datetime):
    """The class `datetime` with another present."""

    file: Path

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]  # of the plain class
        return datetime.now(tz) + timedelta(seconds=float(cls.file.read_text(encoding="ascii") or 0))


def main() -> None:
    """Run the command in the rest of the arguments."""
    SteppedTime.file = Path(sys.argv.pop(1))
    from vestige.app import app

    vars(app)["datetime"] = SteppedTime  # the only place that reads the clock
    from vestige.__main__ import main as run

    run()


if __name__ == "__main__":
    main()
