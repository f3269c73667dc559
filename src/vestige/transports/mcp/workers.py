"""The threads that run jobs, and the application they share, opened when first needed. Jobs run one after
another in order of arrival, so that a client that stores something and then searches finds it without waiting
for the first answer. Tools marked long run beside that queue, each on its own thread."""

import threading
from queue import SimpleQueue

from vestige.transports.mcp.protocol.messages import TOOL, Done, Failed, Job, Outcome

TYPE_CHECKING = False  # like typing.TYPE_CHECKING, without importing typing (3 ms)
if TYPE_CHECKING:
    from collections.abc import Callable

    from vestige.transports.mcp.service import OpenApp, Service


class Progressed:
    """A job made progress."""

    def __init__(self, job: Job, value: float, total: float | None, message: str | None) -> None:
        self.job = job
        self.value = value
        self.total = total
        self.message = message


class Finished:
    """A job ended; without an outcome if it was cancelled before it started."""

    def __init__(self, job: Job, outcome: Outcome | None) -> None:
        self.job = job
        self.outcome = outcome


class Workers:
    """Runs jobs on threads and reports their outcome. Every job is reported finished exactly once."""

    def __init__(self, open_app: "OpenApp", report: "Callable[[Progressed | Finished], None]") -> None:
        self._open_app = open_app
        self._report = report
        self._app: Service | None = None
        self._opening = threading.Lock()
        self._cancelled: dict[Job, threading.Event] = {}
        self._queue: SimpleQueue[Job | bool] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def start(self, job: Job) -> None:
        self._cancelled[job] = threading.Event()
        if job.long:
            threading.Thread(target=self._run, args=(job,), name="vestige-long", daemon=True).start()
        else:
            self._enqueue(job)

    def warm_up(self) -> None:
        """Open the application now, so that the first job need not wait for it."""
        self._enqueue(True)

    def cancel(self, job: Job) -> None:
        """Cancel a job, or prevent its start."""
        if event := self._cancelled.get(job):
            event.set()

    @property
    def unfinished(self) -> list[Job]:
        """The jobs that were not reported finished yet."""
        return list(self._cancelled)

    def forget(self, job: Job) -> None:
        self._cancelled.pop(job, None)

    def close(self, timeout_seconds: float) -> bool:
        """Close the application and end the queue's thread; False if a thread does not end."""
        if self._thread is not None:
            self._queue.put(False)
            self._thread.join(timeout_seconds)
            if self._thread.is_alive():
                return False
        if self._cancelled:
            return False
        if self._app is not None:
            try:
                self._app.close()
            except Exception:
                _log_exception("closing failed")
        return True

    def _enqueue(self, item: Job | bool) -> None:
        if self._thread is None:
            # A daemon: a job that never returns must not keep the process alive.
            self._thread = threading.Thread(target=self._work, name="vestige-jobs", daemon=True)
            self._thread.start()
        self._queue.put(item)

    def _work(self) -> None:
        while item := self._queue.get():
            if isinstance(item, Job):
                self._run(item)
            else:
                self._warm_up()

    def _warm_up(self) -> None:
        try:
            self._opened()
        except BaseException as error:  # the next call retries, and returns the reason to the client
            _log_warning("opening failed, the next call will try again: %s", error)

    def _opened(self) -> "Service":
        with self._opening:
            if self._app is None:
                self._app = self._open_app()
            return self._app

    def _run(self, job: Job) -> None:
        outcome: Outcome | None = None
        if not self._cancelled[job].is_set():
            outcome = attempt(job, self._called)
        self._report(Finished(job, outcome))

    def _called(self, job: Job) -> dict[str, object]:
        def progress(value: float, total: float | None = None, message: str | None = None) -> None:
            self._report(Progressed(job, value, total, message))

        app = self._opened()
        from vestige.core.caller import Invocation  # imported here, on the worker, to keep the start lean

        invocation = Invocation(
            name=job.name,
            arguments=job.arguments,
            request_id=str(job.id),
            progress=progress,
            cancelled=self._cancelled[job],
            roots=job.roots,
            client=job.client,
        )
        return app.call_tool(invocation) if job.kind == TOOL else app.read_resource(invocation)


def attempt(job: Job, call: "Callable[[Job], dict[str, object]]") -> Outcome:
    """The outcome of a job, whatever its call raises."""
    from vestige.core.errors import VestigeError  # imported on the worker, to keep the start fast

    try:
        return Done(call(job))
    except VestigeError as error:
        return Failed(error.value())
    except BaseException:  # even SystemExit: an unanswered job would hang its client
        _log_exception(f"{job.kind} {job.name} failed")
        hint = "The server's log on stderr has the details."
        return Failed({"code": "internal", "message": "Vestige had an internal error.", "hint": hint})


def _log_exception(what: str) -> None:
    import logging  # imported here to keep the start fast

    logging.getLogger(__name__).exception("%s", what)


def _log_warning(text: str, error: BaseException) -> None:
    import logging

    logging.getLogger(__name__).warning(text, error)
