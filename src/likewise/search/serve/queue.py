"""Work of many clients done together: what arrives while a batch runs is the next batch.

A job that finds the queue idle runs at once.  Jobs that arrive while it runs are the next batch.
Only between two batches of several clients there is a short pause: those who were just answered are about to ask again,
and one batch of all takes less time than two of halves, one behind the other.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

from likewise.formula import whole_number
from likewise.search.serve.limits import Refused

PAUSE, LONGEST = 0.3, 0.012
"""The pause between two batches, as a share of the time that the last one took, and in seconds at most."""

Job = TypeVar("Job")
Done = TypeVar("Done")


class Batches(Generic[Job, Done]):
    """A bounded queue in front of one thread.

    Args:
        work: does several jobs at once: one result for each, or an exception that its owner gets.
        name: of the thread.
        most: jobs in a batch.
        waiting: jobs that may wait; one more is refused with the status 429.

    Examples:
        >>> async def both():
        ...     batches = Batches(lambda jobs: [job + 1 for job in jobs], "example")
        ...     try:
        ...         return await asyncio.gather(batches.do(1), batches.do(2))
        ...     finally:
        ...         batches.close()
        >>> asyncio.run(both())
        [2, 3]
    """

    def __init__(
        self,
        work: Callable[[Sequence[Job]], Sequence[Done | Exception]],
        name: str,
        *,
        most: int = 64,
        waiting: int = 256,
    ) -> None:
        self.most, self.waiting = whole_number("most", most, 1), whole_number("waiting", waiting, 1)
        self._work = work
        self._queue: deque[tuple[Job, asyncio.Future[Done]]] = deque()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"likewise-{name}")
        self._running: asyncio.Task[None] | None = None
        self._arrived = asyncio.Event()

    async def do(self, job: Job) -> Done:
        """The result of a job, once its batch has run."""
        if len(self._queue) >= self.waiting:
            self._queue = deque(each for each in self._queue if not each[1].done())  # canceled jobs free their places
        if len(self._queue) >= self.waiting:
            raise Refused(429, "too many requests are waiting: try again in a second", retry=1)
        future: asyncio.Future[Done] = asyncio.get_running_loop().create_future()
        self._queue.append((job, future))
        self._arrived.set()
        if self._running is None:
            self._running = asyncio.create_task(self._run())
        return await future

    async def _run(self) -> None:
        try:
            while batch := self._next():
                begun = time.perf_counter()
                await self._together(batch)
                clients = len(batch) + len(self._queue)
                if clients > 1 and self.most > 1:
                    took = time.perf_counter() - begun
                    await self._pause(min(clients, self.most), min(LONGEST, PAUSE * took))
        finally:
            self._running = None

    async def _pause(self, clients: int, seconds: float) -> None:
        """Wait until so many are back, but not for long."""
        try:
            async with asyncio.timeout(seconds):
                while len(self._queue) < clients:
                    self._arrived.clear()
                    await self._arrived.wait()
        except TimeoutError:
            pass

    def _next(self) -> list[tuple[Job, asyncio.Future[Done]]]:
        """What has gathered, but for those whose owner has gone."""
        batch: list[tuple[Job, asyncio.Future[Done]]] = []
        while self._queue and len(batch) < self.most:
            job, future = self._queue.popleft()
            if not future.done():
                batch.append((job, future))
        return batch

    async def _together(self, batch: list[tuple[Job, asyncio.Future[Done]]]) -> None:
        loop = asyncio.get_running_loop()
        try:
            results = await loop.run_in_executor(self._thread, self._work, [job for job, _ in batch])
            if len(results) != len(batch):
                raise RuntimeError(f"{len(batch)} jobs gave {len(results)} results")
        except Exception as error:
            results = [error] * len(batch)
        except BaseException:
            for _, future in batch:
                future.cancel()
            raise
        for (_, future), result in zip(batch, results, strict=True):
            if future.done():  # its owner ran out of time meanwhile
                continue
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)

    def close(self) -> None:
        """End the thread; what waits is refused."""
        if self._running is not None:
            self._running.cancel()
        while self._queue:
            _, future = self._queue.popleft()
            if not future.done():
                future.set_exception(Refused(503, "the server is stopping"))
        self._thread.shutdown(wait=False, cancel_futures=True)
