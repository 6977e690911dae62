"""Where thresholds stand among similarities: how many are above each, and how many reach it.

Two ways with one meaning.  **Comparing** reads the similarities once for each threshold and writes nothing; it wins
where a query has few positives.  **Sorting** costs the same however many there are.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Result = TypeVar("Result")

SLICE = 2**19
"""Similarities that are compared at once: small enough to stay in a core's cache from one threshold to the next."""

LONGEST = 2**23
"""Columns that are counted at once: a sum of so many ones is exact in float32."""


@dataclass(frozen=True, eq=False)
class Tally:
    """Thresholds of some rows, and what has been counted for them so far.

    Args:
        thresholds: ``(k, rows)``; infinity where a row has fewer.
        above: similarities greater than each threshold, ``(k, rows)``.
        reached: similarities greater or equal.
    """

    thresholds: Tensor
    above: Tensor
    reached: Tensor

    @staticmethod
    def of(thresholds: Tensor) -> Tally:
        """A tally that has seen nothing."""
        # float64 takes in float32 sums and is exact up to 2^53
        zeros = torch.zeros(thresholds.shape, dtype=torch.float64, device=thresholds.device)
        return Tally(thresholds, zeros, zeros.clone())

    @property
    def tied(self) -> Tensor:
        """Similarities equal to each threshold, ``(k, rows)`` int64."""
        return (self.reached - self.above).long()


def compare(similarities: Tensor, rows: Tally | None, columns: Tally | None, scratch: Tensor) -> None:
    """Count for the rows of a tile, for its columns, or for both.

    Args:
        similarities: ``(m, n)``; −∞ where there is nothing to count.
        rows: thresholds of the m rows.
        columns: thresholds of the n columns.
        scratch: at least `SLICE` (or one row) float32 numbers to write into.
    """
    if similarities.is_cuda and (kernel := _kernel()) is not None:
        kernel(similarities, rows, columns)
        return
    if similarities.shape[1] > LONGEST:
        assert columns is None
        for start in range(0, similarities.shape[1], LONGEST):
            compare(similarities[:, start : start + LONGEST], rows, None, scratch)
        return
    height = max(1, SLICE // similarities.shape[1])
    for top in range(0, len(similarities), height):
        part = similarities[top : top + height]
        flags = scratch[: part.numel()].view(part.shape)
        if rows is not None:
            _compare(part, rows, slice(top, top + len(part)), 1, flags)
        if columns is not None:
            _compare(part, columns, slice(None), 0, flags)


def _compare(part: Tensor, tally: Tally, where: slice, dim: int, flags: Tensor) -> None:
    thresholds = tally.thresholds[:, where]
    counts = flags.new_empty(2, *thresholds.shape)
    for slot, edge in enumerate(thresholds.unsqueeze(dim + 1)):  # (m, 1) beside rows, (1, n) above columns
        # zeros and ones as floats: torch compares into float and adds floats several times faster than booleans
        torch.gt(part, edge, out=flags)
        torch.sum(flags, dim, out=counts[0, slot])
        torch.ge(part, edge, out=flags)
        torch.sum(flags, dim, out=counts[1, slot])
    tally.above[:, where] += counts[0]
    tally.reached[:, where] += counts[1]


def sort(similarities: Tensor, rows: Tally) -> None:
    """Count for whole rows by sorting them, **in place**; the tally must not have seen anything.

    Args:
        similarities: ``(m, n)``; −∞ where there is nothing to count.
        rows: thresholds of the m rows.
    """
    width = similarities.shape[1]
    if similarities.is_cuda:
        ordered = similarities.sort(dim=1).values
    else:
        on_each_core(lambda part: part.sort(axis=1), similarities)
        ordered = similarities
    edges = rows.thresholds.T.contiguous()
    rows.above.copy_((width - torch.searchsorted(ordered, edges, right=True)).T)
    rows.reached.copy_((width - torch.searchsorted(ordered, edges)).T)


def on_each_core(work: Callable[[NDArray[Any]], Result], values: Tensor) -> list[Result]:
    """Give a share of a CPU tensor, as an array on the same memory, to each core.

    numpy sorts floats with vector instructions, which torch does not, and lets other threads run meanwhile.

    Examples:
        >>> import torch
        >>> sum(on_each_core(len, torch.zeros(7)))
        7
    """
    threads = torch.get_num_threads()
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, np.array_split(values.numpy(), threads)))


def most_compared(device: torch.device) -> int:
    """Up to how many thresholds a row comparing is the faster way.

    Examples:
        >>> import torch
        >>> most_compared(torch.device("cpu"))
        16
    """
    return 1024 if device.type == "cuda" and _kernel() is not None else 16


def _kernel() -> Callable[[Tensor, Tally | None, Tally | None], None] | None:
    """The compiled counter, where Triton is installed."""
    try:
        from likewise.metrics.kernel import count
    except ImportError:
        return None
    return count
