"""The laboratory: the models, the threads that ask them, and the jobs, for one server."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from typing import Any, TypeVar

from attlas.serving.errors import Refused
from attlas.serving.jobs.board import JobBoard
from attlas.serving.logs import log
from attlas.serving.requests import Body
from attlas.serving.settings import Limits, Settings
from attlas.serving.shelf import Shelf

Found = TypeVar("Found")


class Workers:
    """Threads in which models are asked; a request beyond the queue is refused at once.

    A thread cannot be stopped: work that takes too long is answered in time, and keeps its place
    until it has ended.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._pool = ThreadPoolExecutor(limits.workers, thread_name_prefix="asking")
        self._waiting = 0

    async def run(self, work: Callable[[], Found]) -> Found:
        """Do the work in a thread, or refuse it."""
        if self._waiting >= self._limits.workers + self._limits.queue:
            raise Refused(429, "busy", "too many requests wait; come back in a moment")
        self._waiting += 1
        loop = asyncio.get_running_loop()
        future = self._pool.submit(copy_context().run, work)
        future.add_done_callback(lambda _: self._ended(loop))
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), self._limits.seconds)
        except TimeoutError:
            future.cancel()
            says = f"this took longer than {self._limits.seconds:g} seconds"
            raise Refused(503, "time", says) from None

    def _ended(self, loop: asyncio.AbstractEventLoop) -> None:
        with suppress(RuntimeError):  # the server has ended meanwhile
            loop.call_soon_threadsafe(self._leave)

    def _leave(self) -> None:
        self._waiting -= 1

    def close(self) -> None:
        """Begin nothing more."""
        self._pool.shutdown(wait=False, cancel_futures=True)


class Laboratory:
    """Everything that answers requests."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.shelf = Shelf(settings.models)
        self.workers = Workers(settings.limits)
        self.jobs = JobBoard(settings, self.shelf)

    def described(self) -> dict[str, Any]:
        """Everything that a page needs to know before its first question."""
        return self.shelf.described(self.settings.limits)

    def load(self) -> None:
        """Load all models; what is wrong with one is logged, and shown to those who ask for it."""
        for model in self.described()["models"]:
            if model["error"]:
                log("error", "a model cannot be loaded", model=model["name"], why=model["error"])

    def check(self, given: Body | None) -> None:
        """Refuse what is longer than the operator allows."""
        most = self.settings.limits.characters
        for length in given.lengths() if given is not None else ():
            if length > most:
                says = f"an input has at most {most:,} characters here, and this has {length:,}"
                raise Refused(422, "too long", says, "input")

    def start(self) -> None:
        """Begin what is waiting."""
        self.jobs.start()

    def close(self) -> None:
        """Stop all work; jobs that are not done go on at the next start."""
        self.jobs.close()
        self.workers.close()
