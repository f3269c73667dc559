"""How soon `vestige-mcp` answers, beside hello-world servers on the official SDK.

    python -m benchmarks.startup [--runs 15] [--memories 300] [--out FILE]

All servers are started in turn (A B C A B C …), as a client starts them, and asked for `initialize` and
`tools/list`. Ours is then started again on a prepared store and asked to search as its first call. Wall
time counts from before the process is made; CPU time is that of the whole process, all threads, from its
making to the reply. Medians; a first round of each is thrown away, because it warms the file cache.

Commands of `vestige` are started in turn as well; their CPU time is that of the whole process. They run
without a model, because loading it is not part of a start; their yardstick is two imports that a store needs.
One more search loads the model. Beside it stands the least that this can take: a process without Vestige
that opens the same model and encodes the same query.
"""

import argparse
import compileall
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import vestige
from benchmarks.client import OURS, Client, console_script
from benchmarks.conversation import generated
from benchmarks.engine import fill
from benchmarks.process import Memory, own_memory
from benchmarks.report import Cell, Report, Target, publish
from vestige.embed.minilm.install import model_dir
from vestige.settings.settings import load_settings

SERVERS = {"MCP SDK, high level": "high_level.py", "MCP SDK, low level": "low_level.py"}
HELLO = Path(__file__).parent / "hello"
FASTER = 10.0
SEARCH_CPU_SECONDS = 1.5
COMMAND_CPU_SECONDS = 0.25
YARDSTICK = "python: import pydantic and numpy"
FLOOR = "python: open the model, encode the query"
WITH_MODEL = "vestige search, with the model"
QUERY = "what did she say about her trip to the mountains?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """One start: time until the handshake was answered, until the last reply, and memory then."""

    greeted_wall: float
    greeted_cpu: float
    wall: float
    cpu: float
    memory: Memory


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.startup", description="Start-up time.")
    parser.add_argument("--runs", type=int, default=15, help="starts of each (default 15)")
    parser.add_argument("--memories", type=int, default=300, help="memories to search (default 300)")
    parser.add_argument("--out", type=Path, help="write the results here as JSON")
    given = parser.parse_args()
    publish(run(runs=given.runs, memories=given.memories), given.out)


def run(*, runs: int, memories: int) -> Report:
    """Measure everything."""
    # As pip does when it installs a package; an editable install may run without byte code.
    compileall.compile_dir(Path(vestige.__file__).parent, quiet=1)
    with tempfile.TemporaryDirectory(prefix="vestige-startup-") as folder:
        empty, prepared = Path(folder) / "empty", Path(folder) / "prepared"
        model = fill(prepared, generated(memories))
        commands = {OURS: [console_script(), "--data-dir", str(empty)]}
        for name, file in SERVERS.items():
            commands[name] = [sys.executable, str(HELLO / file)]
        starts = _interleaved(commands, lambda command: _start(command, _list_tools), runs)
        searching = {"search": [console_script(), "--data-dir", str(prepared)]}
        searches = _interleaved(searching, lambda command: _start(command, _search), runs)["search"]
        commands_cpu = command_cpu(prepared, runs)
    return Report(
        benchmark="startup",
        settings={"runs": runs, "memories": memories, "model": model},
        tables={
            "Time to the replies, ms": [_row(name, made) for name, made in starts.items()],
            "How much faster ours is, times": [
                {"server": name, **ratios(starts[OURS], starts[name])} for name in SERVERS
            ],
            "First search with semantic results": [_search_row(searches)],
            "Commands, CPU s": [
                {
                    "command": name,
                    "median": median(spent),
                    "least": min(spent),
                    "most": max(spent),
                    "times the yardstick": median(spent) / median(commands_cpu[_beside(name)]),
                }
                for name, spent in commands_cpu.items()
            ],
        },
        targets=[
            *_targets(starts, searches),
            *(
                Target(name=f"{name}, CPU s", value=median(spent), limit=COMMAND_CPU_SECONDS, at_least=False)
                for name, spent in commands_cpu.items()
                if name not in (YARDSTICK, FLOOR)
            ),
        ],
        notes=("CPU time is of all threads. Memory is read right after the last reply.",),
    )


def command_cpu(prepared: Path, runs: int) -> dict[str, list[float]]:
    """CPU seconds of each command, from the making of its process to its end."""
    program = str(Path(sys.executable).with_name("vestige"))
    model = model_dir(load_settings().model_cache)
    complete = {"_VESTIGE_COMPLETE": "bash_complete", "COMP_WORDS": "vestige search --as", "COMP_CWORD": "2"}
    commands: dict[str, tuple[list[str], dict[str, str]]] = {
        YARDSTICK: ([sys.executable, "-c", "import numpy; from pydantic import BaseModel"], {}),
        "vestige --help": ([program, "--help"], {}),
        "vestige search --help": ([program, "search", "--help"], {}),
        "completion": ([program], complete),
        "vestige status": ([program, "status"], {}),
        "vestige ls": ([program, "ls"], {}),
        "vestige search": ([program, "search", QUERY], {"VESTIGE_EMBEDDINGS_PROVIDER": "off"}),
        FLOOR: ([sys.executable, str(HELLO / "model.py"), str(model), QUERY], {}),
        WITH_MODEL: ([program, "search", QUERY], {}),
    }
    here = {"VESTIGE_DATA_DIR": str(prepared)}
    spent: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(runs + 1):
        for name, (words, environ) in commands.items():
            seconds = _cpu_of(words, {**os.environ, **here, **environ})
            if number:
                spent[name].append(seconds)
    return spent


def _beside(command: str) -> str:
    """What a command is compared with."""
    return FLOOR if command in (FLOOR, WITH_MODEL) else YARDSTICK


def _cpu_of(words: Sequence[str], environ: dict[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, env=environ, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def ratios(ours: Sequence[Start], theirs: Sequence[Start]) -> dict[str, float]:
    """How many times faster ours answers, of medians."""
    return {
        name: _median(theirs, value) / _median(ours, value)
        for name, value in {
            "initialize wall": lambda start: start.greeted_wall,
            "initialize CPU": lambda start: start.greeted_cpu,
            "tools/list wall": lambda start: start.wall,
            "tools/list CPU": lambda start: start.cpu,
        }.items()
    }


def _interleaved(
    commands: dict[str, list[str]], start: Callable[[list[str]], Start], runs: int
) -> dict[str, list[Start]]:
    made: dict[str, list[Start]] = {name: [] for name in commands}
    for number in range(runs + 1):
        for name, command in commands.items():
            started = start(command)
            if number:
                made[name].append(started)
    return made


def _start(command: list[str], then: Callable[[Client], None]) -> Start:
    with Client(command) as client:
        client.initialize()
        greeted_wall, greeted_cpu = client.wall_seconds(), client.cpu_seconds()
        then(client)
        wall, cpu = client.wall_seconds(), client.cpu_seconds()
        return Start(
            greeted_wall=greeted_wall,
            greeted_cpu=greeted_cpu,
            wall=wall,
            cpu=cpu,
            memory=own_memory(client.pid),
        )


def _list_tools(client: Client) -> None:
    if not client.ask("tools/list")["tools"]:
        raise RuntimeError("the server lists no tools")


def _search(client: Client) -> None:
    found = client.tool("search", {"query": QUERY, "min_confidence": 0})
    if found["method"] != "hybrid" or not any("semanticScore" in hit for hit in found["results"]):
        raise RuntimeError(f"the first search found nothing by meaning: {found.get('note', found)}")


def _row(name: str, starts: Sequence[Start]) -> dict[str, Cell]:
    memory = starts[0].memory.kind
    return {
        "server": name,
        "initialize wall": 1000 * _median(starts, lambda start: start.greeted_wall),
        "initialize CPU": 1000 * _median(starts, lambda start: start.greeted_cpu),
        "tools/list wall": 1000 * _median(starts, lambda start: start.wall),
        "tools/list CPU": 1000 * _median(starts, lambda start: start.cpu),
        f"{memory} MB": _median(starts, lambda start: start.memory.megabytes),
    }


def _search_row(starts: Sequence[Start]) -> dict[str, Cell]:
    return {
        "wall s": _median(starts, lambda start: start.wall),
        "CPU s": _median(starts, lambda start: start.cpu),
        "CPU s, most": max(start.cpu for start in starts),
        f"{starts[0].memory.kind} MB": _median(starts, lambda start: start.memory.megabytes),
    }


def _targets(starts: dict[str, list[Start]], searches: Sequence[Start]) -> list[Target]:
    judged = [
        Target(
            name=f"{reply}: times faster than {name}",
            value=min(ratio for kind, ratio in ratios(starts[OURS], starts[name]).items() if reply in kind),
            limit=FASTER,
            at_least=True,
        )
        for name in SERVERS
        for reply in ("initialize", "tools/list")
    ]
    cpu = _median(searches, lambda start: start.cpu)
    return [
        *judged,
        Target(name="first semantic search, CPU s", value=cpu, limit=SEARCH_CPU_SECONDS, at_least=False),
    ]


def _median(starts: Sequence[Start], value: Callable[[Start], float]) -> float:
    return median(value(start) for start in starts)


if __name__ == "__main__":
    main()
