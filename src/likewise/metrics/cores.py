"""Work that is distributed over the cores of a CPU, one thread per core.

torch computes each product on all cores, and its threads wait actively for the next one; what numpy computes meanwhile
shares the cores with them.  Here a thread computes a whole chunk on one core: its product, which stays in the core's
cache, and what is counted in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
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
        calls = map(function, items) if self._pool is None else self._pool.map(function, items)
        with progress(label or "", len(items), "chunk", show=label is not None) as advance:
            results = []
            for result in calls:
                results.append(result)
                advance(1)
        return results


@contextmanager
def use_cores(limit: int | None = None) -> Iterator[Cores]:
    """Start as many threads as torch uses; torch computes on one core in each of them, without gradients.

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
    pool = ThreadPoolExecutor(count, initializer=_prepare_thread, initargs=(total // count,))
    torch.set_num_threads(1)  # threads of torch wait actively for milliseconds after each call
    try:
        yield Cores(pool, count)
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(total)  # threads that start later use the number that was set last


def _prepare_thread(threads: int) -> None:
    """Settings of torch that each thread has on its own."""
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)


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
    return call_on_cores(function, np.array_split(values.numpy(), torch.get_num_threads()))
