"""What a wrong credential costs when many show one at the same time."""

import anyio

from testbed.world import HandClock
from vestige.transports.http.auth.failures import MAX_DELAYED, FailedLogins
from vestige.transports.http.problems import UNAUTHENTICATED

FREE = 5
"""Failures of one sender that are answered at once."""


def test_only_so_many_are_kept_waiting_for_their_refusal_at_the_same_time() -> None:
    let_go = anyio.Event()
    told: list[int] = []

    async def pause(seconds: float) -> None:
        await let_go.wait()

    async def run() -> None:
        failures = FailedLogins(UNAUTHENTICATED, 0, HandClock().parts().monotonic, pause=pause)

        async def guess(sender: str) -> None:
            told.append((await failures.wrong(sender, "test")).status_code)

        senders = [str(number) for number in range(MAX_DELAYED + 1)]
        for sender in senders * FREE:
            await guess(sender)
        assert told == [401] * len(told)
        told.clear()
        async with anyio.create_task_group() as tasks:
            for sender in senders[1:]:
                tasks.start_soon(guess, sender)
            await anyio.wait_all_tasks_blocked()
            assert told == []
            tasks.start_soon(guess, senders[0])
            tasks.start_soon(guess, "somebody new")  # whose failure is answered at once anyway
            await anyio.wait_all_tasks_blocked()
            assert sorted(told) == [401, 429]
            let_go.set()
        await guess(senders[0])
        assert sorted(told) == [401] * (MAX_DELAYED + 2) + [429]

    anyio.run(run)
