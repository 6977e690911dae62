"""Counts of similarities above each threshold, and of similarities equal to it.

Two functions give the same counts.  `count_by_comparing` reads the similarities once per threshold and writes nothing,
which is faster for queries with few positives.  The cost of `count_by_sorting` does not depend on their number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from likewise.metrics.chunks import fit_rows, split_rows

Item = TypeVar("Item")
Result = TypeVar("Result")

CHUNK_ENTRIES = 2**19
"""Similarities that are compared at once: few enough to stay in a core's cache from one threshold to the next."""

MAX_COLUMNS = 2**23
"""Columns that are counted at once: a sum of this many ones is exact in float32."""


@dataclass(frozen=True, eq=False)
class ThresholdCounts:
    """Thresholds of some rows, and running counts of the similarities that exceed and equal them.

    Args:
        thresholds: ``(k, rows)``; infinity in the padding of rows with fewer thresholds.
        above: the number of similarities greater than each threshold, ``(k, rows)``.
        ties: the number of similarities equal to each threshold, ``(k, rows)``.
    """

    thresholds: Tensor
    above: Tensor
    ties: Tensor

    @staticmethod
    def start(thresholds: Tensor) -> ThresholdCounts:
        """Create counts of zero."""
        # float64 accepts float32 sums and is exact up to 2^53; a GPU adds int32 faster
        dtype = torch.int32 if thresholds.is_cuda else torch.float64
        zeros = torch.zeros(thresholds.shape, dtype=dtype, device=thresholds.device)
        return ThresholdCounts(thresholds, zeros, zeros.clone())


def count_by_comparing(
    similarities: Tensor,
    rows: ThresholdCounts | None,
    columns: ThresholdCounts | None,
    scratch: Tensor,
    excluded: tuple[Tensor, Tensor] | None = None,
) -> None:
    """Add the counts of a matrix of similarities for its rows, its columns, or both.

    Args:
        similarities: ``(m, n)``; −∞ for entries that do not count.
        rows: thresholds of the m rows.
        columns: thresholds of the n columns.
        scratch: a float32 buffer of at least `CHUNK_ENTRIES` numbers and at least one row.
        excluded: the first and the last column (exclusive) of entries of each row that do not count, ``(m,)`` each;
            they may be overwritten.
    """
    if similarities.is_cuda and (count := _load_triton_counter()) is not None:
        count(similarities, rows, columns, excluded)
        return
    if similarities.shape[1] > MAX_COLUMNS:
        assert columns is None
        assert excluded is None
        for chunk in split_rows(similarities.shape[1], MAX_COLUMNS):
            count_by_comparing(similarities[:, chunk], rows, None, scratch)
        return
    for chunk in split_rows(len(similarities), fit_rows(CHUNK_ENTRIES, per_row=similarities.shape[1])):
        values = similarities[chunk]
        flags = scratch[: values.numel()].view(values.shape)
        if excluded is not None:
            column, (first, stop) = torch.arange(values.shape[1], device=values.device), excluded
            values.masked_fill_((column >= first[chunk, None]) & (column < stop[chunk, None]), -torch.inf)
        if rows is not None:
            _compare(values, rows, chunk, 1, flags)
        if columns is not None:
            _compare(values, columns, slice(None), 0, flags)


def _compare(values: Tensor, counts: ThresholdCounts, where: slice, dim: int, flags: Tensor) -> None:
    thresholds = counts.thresholds[:, where]
    sums = flags.new_empty(2, *thresholds.shape)
    for index, threshold in enumerate(thresholds.unsqueeze(dim + 1)):  # (m, 1) for rows, (1, n) for columns
        # zeros and ones as floats: torch compares into floats and adds floats several times faster than booleans
        torch.gt(values, threshold, out=flags)
        torch.sum(flags, dim, out=sums[0, index])
        torch.ge(values, threshold, out=flags)
        torch.sum(flags, dim, out=sums[1, index])
    counts.above[:, where] += sums[0].to(counts.above.dtype)
    counts.ties[:, where] += (sums[1] - sums[0]).to(counts.ties.dtype)


def count_by_sorting(similarities: Tensor, rows: ThresholdCounts) -> None:
    """Count for full rows by sorting them **in place**; the counts must be zero before.

    Args:
        similarities: ``(m, n)``; −∞ for entries that do not count.
        rows: thresholds of the m rows.
    """
    width = similarities.shape[1]
    if similarities.device.type != "cpu":
        ordered = similarities.sort(dim=1).values
    else:
        map_over_cores(lambda values: values.sort(axis=1), similarities)
        ordered = similarities
    thresholds = rows.thresholds.T.contiguous()
    above = torch.searchsorted(ordered, thresholds, right=True)
    rows.above.copy_((width - above).T)
    # where nothing ties, a second search would find the same
    if similarities.is_cuda or bool((ordered.gather(1, (above - 1).clamp_(min=0)) == thresholds).any()):
        rows.ties.copy_((above - torch.searchsorted(ordered, thresholds)).T)


def map_over_cores(function: Callable[[NDArray[Any]], Result], values: Tensor) -> list[Result]:
    """Apply a function to one chunk of a CPU tensor per core; chunks are arrays that share the tensor's memory.

    Examples:
        >>> import torch
        >>> sum(map_over_cores(len, torch.zeros(7)))
        7
    """
    return call_on_cores(function, np.array_split(values.numpy(), torch.get_num_threads()))


def call_on_cores(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Call a function for each item, on as many threads as torch uses.

    numpy sorts floats with vector instructions, which torch does not, and releases the interpreter lock meanwhile.

    Examples:
        >>> call_on_cores(len, ["a", "bc"])
        [1, 2]
    """
    threads = min(torch.get_num_threads(), len(items))
    if threads < 2:
        return [function(item) for item in items]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, items))


def get_comparison_limit(device: torch.device, dim: int, all_ranks: bool = True) -> int:
    """Return the number of thresholds up to which comparing, with half of the products, is the fastest way to count.

    Args:
        device: where the similarities are.
        dim: the dimensions of the embeddings: the more, the more half of the products save.
        all_ranks: whether all ranks are counted, not only the first.

    Examples:
        >>> import torch
        >>> [get_comparison_limit(torch.device("cpu"), dim) for dim in (128, 512)]
        [20, 30]
    """
    if device.type == "cuda" and _load_triton_counter() is not None:
        return 1024
    if device.type != "cpu":
        return 16
    # nanoseconds per pair on one core: half of a product; sorting or selecting; comparing with one threshold.  What
    # sorting takes depends on the processor most
    return int((0.0105 * dim + (7.0 if all_ranks else 1.0)) / 0.4)


def _load_triton_counter() -> Callable[..., None] | None:
    """Import the Triton kernel; ``None`` without Triton."""
    try:
        from likewise.metrics.triton_counts import count_on_device
    except ImportError:
        return None
    return count_on_device
