import threading

from tests.store.generators import T0
from vestige.store.inmemory.turn import Turn
from vestige.store.processes import Who


def test_what_takes_a_moment_is_waited_for() -> None:
    turn = Turn(Who(pid=1, command="vestige test", since=T0))
    inside, waiting, done = threading.Event(), threading.Event(), []

    def first() -> None:
        with turn.taken("purge"):
            inside.set()
            waiting.wait(10)
            done.append("first")

    def second() -> None:
        waiting.set()
        with turn.taken("purge"):
            done.append("second")

    one = threading.Thread(target=first)
    one.start()
    assert inside.wait(10)
    two = threading.Thread(target=second)
    two.start()
    one.join()
    two.join()
    assert done == ["first", "second"]
