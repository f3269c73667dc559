"""Work on many small texts, such as the turns of a transcript: how many there are follows from the length of
a text, so that its growth is measured as that of a text is."""

from collections.abc import Callable, Iterator, Mapping

from tests.system.growth.functions import lines_of
from vestige.cognition.evidence.capture.propose import propose
from vestige.cognition.evidence.capture.turns import Speaker, Turn
from vestige.core.transcripts import Action, Entry, Result, Step, side_branches
from vestige.engine.agent.hook_events import read_event
from vestige.engine.agent.transcript import work_of
from vestige.exchange.transcripts.shape import conversations

EACH = 16  # Characters for each turn or record.


def _repeated_commands(text: str) -> object:
    """Many commands, each of which worked three times."""
    names = [f"make part{number}x" for number in range(len(text) // EACH)] * 3
    return propose([Turn(role=Speaker.TOOL, text="", command=one, exit_status=0) for one in names])


def _explained_fix(text: str) -> object:
    """A command that failed and works after an answer of many sentences with a cause and a solution."""
    said = " ".join(f"It was fixed because {number}." for number in range(len(text) // EACH))
    return propose(
        [
            Turn(role=Speaker.TOOL, text="Error: no flask", command="run it", exit_status=1),
            Turn(role=Speaker.ASSISTANT, text=said),
            Turn(role=Speaker.TOOL, text="", command="pip install flask", exit_status=0),
            Turn(role=Speaker.TOOL, text="", command="run it", exit_status=0),
        ]
    )


def _one_turn(text: str) -> object:
    return [propose([Turn(role=role, text=text, command=text, exit_status=1)] * 2) for role in Speaker]


def _many_turns(text: str) -> object:
    turns = [
        Turn(role=role, text=line, command=line if role is Speaker.TOOL else None, exit_status=0)
        for number, line in enumerate(lines_of(text))
        for role in (list(Speaker)[number % 3],)
    ]
    return propose(turns)


def _ended_commands(text: str) -> object:
    """A transcript with many commands and their ends."""

    def steps() -> Iterator[Step]:
        for number in range(len(text) // EACH):
            action = Action(id=f"{number}", name="Bash", command="ls")
            yield Entry(session="s", uid=f"a{number}", parent=None, role="assistant", actions=(action,))
            result = Result(id=f"{number}", status=0)
            yield Entry(session="s", uid=f"r{number}", parent=f"a{number}", role="user", results=(result,))

    return conversations(steps())


def _branches(text: str) -> object:
    count = len(text) // EACH
    chain = [(f"{number}", f"{number - 1}") for number in range(count)]
    return side_branches([*chain, *((f"leaf {number}", f"{number}") for number in range(count))])


def _payload(text: str) -> object:
    calls = [{"name": "edit", "input": line} for line in lines_of(text)]
    event = read_event(
        "opencode",
        {"hook_event_name": "Stop", "session_id": "s", "calls": [*calls, {"name": "edit", "input": text}]},
    )
    return event and work_of(event.calls)


FLOWS: Mapping[str, Callable[[str], object]] = {
    "one turn": _one_turn,
    "many turns": _many_turns,
    "the payload of a hook": _payload,
}
"""Work on what a text says."""
COUNTED: Mapping[str, Callable[[str], object]] = {
    "repeated commands": _repeated_commands,
    "an explained fix": _explained_fix,
    "ended commands": _ended_commands,
    "branches": _branches,
}
"""Work for which only the length of the text counts."""
