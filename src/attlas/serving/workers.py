"""Where requests are worked on: a few threads, a queue of bounded length, and a time limit."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

from attlas.serving.errors import Refused
from attlas.serving.settings import Limits

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
        loop.call_soon_threadsafe(self._leave)

    def _leave(self) -> None:
        self._waiting -= 1

    def close(self) -> None:
        """Begin nothing more."""
        self._pool.shutdown(wait=False, cancel_futures=True)


__all__ = ["Future", "Workers"]
