"""Work that is distributed over the cores of a CPU, one thread per core.

torch computes each product on all cores, and its threads wait actively for the next one; what numpy computes meanwhile
shares the cores with them.  Here a thread computes a whole chunk on one core: its product, which stays in the core's
cache, and what is counted in it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from likewise.progress import progress

Item = TypeVar("Item")
Result = TypeVar("Result")


class Cores:
    """Threads that call functions, each on one core.

    Args:
        pool: the threads; ``None`` to call functions in the caller's thread.
        count: the number of threads.
    """

    def __init__(self, pool: ThreadPoolExecutor | None, count: int) -> None:
        self._pool, self.count = pool, count

    def map(self, function: Callable[[Item], Result], items: Sequence[Item], label: str | None = None) -> list[Result]:
        """Call a function for each item.

        Args:
            function: is called on several threads at once.
            items: its arguments.
            label: what is being done, to report progress; without it, nothing is reported.

        Returns:
            The results, in the order of the items.
        """
        with progress(label or "", len(items), "chunk", show=label is not None) as advance:
            results = []
            for result in map(function, items) if self._pool is None else _map(self._pool, function, items):
                results.append(result)
                advance(1)
        return results


def _map(pool: ThreadPoolExecutor, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
    """Yield the results; after an error, no call is running."""
    calls: list[Future[Result]] = []
    try:
        calls.extend(pool.submit(function, item) for item in items)
        calls.reverse()
        while calls:
            result = calls[-1].result()
            calls.pop()
            yield result
    finally:
        wait([each for each in calls if not each.cancel()])
        calls.clear()  # an error refers to this frame, and the call that has it would refer to the error: a cycle


class Buffers(threading.local):
    """The memory of each thread: similarities, which the next chunk overwrites, and a buffer to count in."""

    similarities: Tensor | None = None
    scratch: Tensor | None = None


@contextmanager
def use_cores(limit: int | None = None) -> Iterator[Cores]:
    """Use as many threads as torch does, which share its cores and compute without gradients.

    Meanwhile torch computes on one core in the calling thread, because its other threads would wait actively beside
    these.

    Args:
        limit: the largest number of threads that is useful.

    Examples:
        >>> with use_cores() as cores:
        ...     cores.map(len, ["a", "bc"])
        [1, 2]
    """
    total = torch.get_num_threads()
    count = total if limit is None else max(1, min(total, limit))
    if count < 2:
        yield Cores(None, 1)
        return
    try:
        with _pools.borrow(count, total // count) as pool:
            torch.set_num_threads(1)
            # this also changed the number for threads that call torch for the first time from now on
            restoring = threading.Thread(target=torch.set_num_threads, args=(total,))
            restoring.start()
            restoring.join()
            yield Cores(pool, count)
    finally:
        torch.set_num_threads(total)


MOST_KEPT = 2
"""Pools of threads that are kept for later calls."""


class _Pools:
    """Threads that wait for the next call, by their number and the number of cores of each; a forked process has none."""

    def __init__(self) -> None:
        self._forget()
        if hasattr(os, "register_at_fork"):  # not on Windows
            os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._kept: list[tuple[tuple[int, int], ThreadPoolExecutor]] = []

    @contextmanager
    def borrow(self, count: int, cores: int) -> Iterator[ThreadPoolExecutor]:
        """Provide ``count`` threads, each of which computes on so many cores, for one caller at a time."""
        key, kept = (count, cores), self._kept
        with self._lock:
            place = next((i for i, (found, _) in enumerate(kept) if found == key), None)
            pool = None if place is None else kept.pop(place)[1]
        if pool is None:
            pool = _start(count, cores)
        try:
            yield pool
        finally:
            with self._lock:
                kept.append((key, pool))
                # after a fork, another process reads another list, and these threads do not exist in it
                most = MOST_KEPT if kept is self._kept else len(kept)
                dropped = [kept.pop(0)[1] for _ in range(len(kept) - most)]
            for each in dropped:
                each.shutdown(wait=False)


_pools = _Pools()


def _start(count: int, cores: int) -> ThreadPoolExecutor:
    all_started = threading.Barrier(count)

    def prepare() -> None:
        torch.get_num_threads()  # the first call of a thread would replace a number that was set before it
        torch.set_num_threads(cores)
        torch.set_grad_enabled(False)
        all_started.wait()

    pool = ThreadPoolExecutor(count, thread_name_prefix="likewise")
    try:
        for started in [pool.submit(prepare) for _ in range(count)]:
            started.result()
    except BaseException:  # a thread cannot start: the others stop waiting for it
        all_started.abort()
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    return pool


def call_on_cores(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Call a function for each item, on as many threads as torch uses.

    numpy sorts floats with vector instructions, which torch does not, and releases the interpreter lock meanwhile.

    Examples:
        >>> call_on_cores(len, ["a", "bc"])
        [1, 2]
    """
    with use_cores(len(items)) as cores:
        return cores.map(function, items)


def map_over_cores(function: Callable[[NDArray[Any]], Result], values: Tensor) -> list[Result]:
    """Apply a function to one chunk of a CPU tensor per core; chunks are arrays that share the tensor's memory.

    Examples:
        >>> import torch
        >>> sum(map_over_cores(len, torch.zeros(7)))
        7
    """
    count = max(1, min(torch.get_num_threads(), len(values)))
    return call_on_cores(function, np.array_split(values.numpy(), count))
