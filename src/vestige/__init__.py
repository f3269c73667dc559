"""Vestige: a memory for AI agents that fades like memory does and finds what matters.

from vestige import Memory

memory = Memory()
memory.add("Ada prefers tea.")
memory.search("What does Ada drink?")["results"][0]["content"]
"""

__version__ = "0.1.0"

TYPE_CHECKING = False  # like typing.TYPE_CHECKING, without importing typing (3 ms)
if TYPE_CHECKING:
    from vestige.app.library import AsyncMemory, Memory

__all__ = ["AsyncMemory", "Memory", "__version__"]


def __getattr__(name: str) -> object:
    """`Memory` and `AsyncMemory`, imported when they are first used: servers and commands start without."""
    if name not in ("AsyncMemory", "Memory"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from vestige.app import library

    found: object = getattr(library, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
