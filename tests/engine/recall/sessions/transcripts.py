"""A world with a home directory of its own, in which coding agents left transcripts."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from testbed.world import World, open_world
from tests.exchange.transcripts.homes import Record, write_lines
from vestige.engine.context import Call
from vestige.store.contract.sessions import SessionIndex

LOGIN, CART = "aaaa0000-0000-4000-8000-000000000001", "bbbb0000-0000-4000-8000-000000000002"


@contextmanager
def world_at_home(tmp_path: Path, **options: Any) -> Iterator[World]:
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    given: dict[str, Any] = {"embeddings.provider": "hashing", "sessions.home": str(home), **options}
    with open_world(tmp_path / "data", **given) as world:
        yield world


def call_of(world: World) -> Call:
    return Call(engine=world.app.engine)


def index_of(world: World) -> SessionIndex:
    return world.app.engine.sessions()


def claude_file(home: Path, session: str, folder: str = "-w-shop") -> Path:
    return home / ".claude" / "projects" / folder / f"{session}.jsonl"


def said(
    number: int, role: str, content: object, *, session: str, cwd: str = "/w/shop", day: int = 20
) -> Record:
    message: Record = {"role": role, "content": content}
    if role == "assistant":
        message["id"] = f"msg-{session[:4]}-{number}"
    parent = f"{session[:4]}-{number - 1}" if number else None
    return {
        "type": role, "uuid": f"{session[:4]}-{number}", "parentUuid": parent, "sessionId": session,
        "cwd": cwd,
        "timestamp": f"2026-02-{day:02d}T10:{number % 60:02d}:00Z", "message": message,
    }  # fmt: skip


def conversation(
    session: str, *turns: tuple[str, object], cwd: str = "/w/shop", day: int = 20
) -> list[Record]:
    return [
        said(number, role, content, session=session, cwd=cwd, day=day)
        for number, (role, content) in enumerate(turns)
    ]


def plant(home: Path) -> None:
    """Two sessions: a login test that failed in /w/shop, a cart in /w/cart."""
    command = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "pytest tests/login"}}
    failed = {
        "type": "tool_result",
        "tool_use_id": "t1",
        "is_error": True,
        "content": "Exit code 1\nTokenExpired\nflamingo",
    }
    write_lines(
        claude_file(home, LOGIN),
        conversation(
            LOGIN,
            ("user", "the login test is flaky, find out why"),
            ("assistant", [{"type": "text", "text": "I run it first."}]),
            ("assistant", [command]),
            ("user", [failed]),
            (
                "assistant",
                [{"type": "text", "text": "The clock of the token is wrong: it expires too early."}],
            ),
        ),
    )
    write_lines(
        claude_file(home, CART, "-w-cart"),
        conversation(
            CART,
            ("user", "round the total of the cart"),
            (
                "assistant",
                [{"type": "text", "text": "Prices are cents now, so the total of the cart is exact."}],
            ),
            cwd="/w/cart",
            day=27,
        ),
    )
