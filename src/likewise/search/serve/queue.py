"""Dynamic batching: requests that arrive while a batch runs form the next batch.

A job that finds the queue idle runs immediately.  After a batch of several clients there is a short pause: these clients
are about to send the next request, and one batch of all of them takes less time than two smaller ones in sequence.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

from likewise.formula import whole_number
from likewise.search.serve.limits import RequestError

PAUSE, LONGEST = 0.3, 0.012
"""The pause between two batches, as a fraction of the time of the last one, and its maximum in seconds."""

Job = TypeVar("Job")
Done = TypeVar("Done")


class Batches(Generic[Job, Done]):
    """A bounded queue of jobs that one thread processes in batches.

    Args:
        work: function that processes several jobs at once; it returns one result or exception for each.
        name: name of the thread.
        most: largest number of jobs in a batch.
        waiting: largest number of waiting jobs; further ones are rejected with status 429.

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
        """Return the result of a job after its batch has run."""
        if len(self._queue) >= self.waiting:
            self._queue = deque(each for each in self._queue if not each[1].done())  # remove canceled jobs
        if len(self._queue) >= self.waiting:
            raise RequestError(429, "too many requests are waiting: try again in a second", retry=1)
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
                await self._run_batch(batch)
                clients = len(batch) + len(self._queue)
                if clients > 1 and self.most > 1:
                    took = time.perf_counter() - begun
                    await self._pause(min(clients, self.most), min(LONGEST, PAUSE * took))
        finally:
            self._running = None

    async def _pause(self, clients: int, seconds: float) -> None:
        """Wait until this many jobs have arrived, for a limited time."""
        try:
            async with asyncio.timeout(seconds):
                while len(self._queue) < clients:
                    self._arrived.clear()
                    await self._arrived.wait()
        except TimeoutError:
            pass

    def _next(self) -> list[tuple[Job, asyncio.Future[Done]]]:
        """Return the waiting jobs that are not canceled."""
        batch: list[tuple[Job, asyncio.Future[Done]]] = []
        while self._queue and len(batch) < self.most:
            job, future = self._queue.popleft()
            if not future.done():
                batch.append((job, future))
        return batch

    async def _run_batch(self, batch: list[tuple[Job, asyncio.Future[Done]]]) -> None:
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
            if future.done():  # the request timed out during the batch
                continue
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)

    def close(self) -> None:
        """End the thread, and reject waiting jobs."""
        if self._running is not None:
            self._running.cancel()
        while self._queue:
            _, future = self._queue.popleft()
            if not future.done():
                future.set_exception(RequestError(503, "the server is stopping"))
        self._thread.shutdown(wait=False, cancel_futures=True)
