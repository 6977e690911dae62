"""Counts of similarities above each threshold, and of similarities equal to it.

Two functions give the same counts.  `count_by_comparing` reads the similarities once per threshold, which is faster for
queries with few positives.  The cost of `count_by_sorting` hardly depends on their number.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from threading import Lock

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from likewise.formula import is_onednn_faster
from likewise.metrics.chunks import fit_rows, split_rows
from likewise.metrics.cores import map_over_cores

CHUNK_ENTRIES = 2**18
"""Similarities that are compared at once: few enough to stay in a core's cache from one threshold to the next."""

MAX_COLUMNS = 2**23
"""Columns that are counted at once on a GPU without Triton: a sum of this many ones is exact in float32."""

MAX_WORDS = 255
"""Words of eight flags that are added at once: every byte of their sum holds the sum of that byte in all of them."""


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
    lock: Lock = field(default_factory=Lock, repr=False)
    """Held while counts are added, because several threads may count for the same rows."""

    @staticmethod
    def start(thresholds: Tensor) -> ThresholdCounts:
        """Create counts of zero."""
        # float64 accepts float32 sums and is exact up to 2^53; a GPU adds int32 faster
        dtype = torch.int32 if thresholds.is_cuda else torch.float64
        zeros = torch.zeros(2, *thresholds.shape, dtype=dtype, device=thresholds.device)
        return ThresholdCounts(thresholds, zeros[0], zeros[1])

    def select(self, rows: slice) -> ThresholdCounts:
        """Return the thresholds and the counts of some rows, as views."""
        return ThresholdCounts(self.thresholds[:, rows], self.above[:, rows], self.ties[:, rows], self.lock)


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
        scratch: a buffer of `make_scratch`, for at least one row.
        excluded: the first and the last column (exclusive) of entries of each row that do not count, ``(m,)`` each, at
            least one; they may be overwritten.
    """
    if similarities.is_cuda and (count := _load_triton_counter()) is not None:
        count(similarities, rows, columns, excluded)
        return
    on_cpu = similarities.device.type == "cpu"
    if not on_cpu and similarities.shape[1] > MAX_COLUMNS:
        assert columns is None
        assert excluded is None
        for chunk in split_rows(similarities.shape[1], MAX_COLUMNS):
            count_by_comparing(similarities[:, chunk], rows, None, scratch)
        return
    compare = _compare_with_words if on_cpu else _compare_with_floats
    for chunk in split_rows(len(similarities), fit_rows(CHUNK_ENTRIES, per_row=max(8, similarities.shape[1]))):
        values = similarities[chunk]
        if excluded is not None:
            exclude(values, excluded[0][chunk], excluded[1][chunk])
        if rows is not None:
            compare(values, rows, chunk, 1, scratch)
        if columns is not None:
            compare(values, columns, slice(None), 0, scratch)


def make_scratch(device: torch.device, nbytes: int) -> Tensor:
    """Create a buffer of bytes, of at least the given number, for the functions that count."""
    return torch.empty(max(4 * CHUNK_ENTRIES, nbytes), dtype=torch.uint8, device=device)


def exclude(values: Tensor, first: Tensor, stop: Tensor) -> None:
    """Overwrite the entries of each row from its first to its last column (exclusive) with −∞, at least one of them.

    Examples:
        >>> values = torch.tensor([[0.1, 0.2, 0.3]])
        >>> exclude(values, torch.tensor([1]), torch.tensor([3]))
        >>> values
        tensor([[0.1000,   -inf,   -inf]])
    """
    if not len(values):
        return
    columns = first[:, None] + torch.arange(int((stop - first).max()), device=values.device)
    last = stop[:, None].clamp(max=values.shape[1]) - 1
    values.scatter_(1, torch.minimum(columns, last), -torch.inf)


def _compare_with_words(values: Tensor, counts: ThresholdCounts, where: slice, dim: int, scratch: Tensor) -> None:
    """Compare into bytes, and add eight of them at a time: several times faster than torch adds booleans or floats.

    Several thresholds are compared in one call, because threads wait for each other between calls.
    """
    numbers, thresholds = values.numpy(), counts.thresholds[:, where].numpy()
    height, width = numbers.shape
    padded = -(-width // 8) * 8
    space = scratch.numpy()
    sums = np.empty((2, *thresholds.shape), dtype=np.int64)
    for part in split_rows(len(thresholds), max(1, len(space) // (height * padded))):
        some = np.expand_dims(thresholds[part], dim + 1)  # (k, m, 1) for rows, (k, 1, n) for columns
        flags = space[: len(some) * height * padded].reshape(len(some), height, padded)
        flags[..., width:] = 0
        is_above = flags[..., :width].view(np.bool_)
        for row, compare in enumerate((np.greater, np.greater_equal)):
            compare(numbers, some, out=is_above)
            sums[row, part] = _add_words(flags.view(np.uint64), dim + 1)[:, : sums.shape[2]]
    above, ties = torch.from_numpy(sums[0]), torch.from_numpy(sums[1] - sums[0])
    with counts.lock:
        counts.above[:, where] += above
        counts.ties[:, where] += ties


def _add_words(words: NDArray[np.uint64], axis: int) -> NDArray[np.int64]:
    """Add the bytes of each row of each matrix (axis 2), or each byte over all rows (axis 1)."""
    totals = np.zeros(1, dtype=np.int64)
    for part in split_rows(words.shape[axis], MAX_WORDS):
        if axis == 2:
            sums = np.add.reduce(words[..., part], axis=2).view(np.uint8)
            totals = totals + sums.reshape(*words.shape[:2], 8).sum(axis=2, dtype=np.int64)
        else:
            totals = totals + np.add.reduce(words[:, part], axis=1).view(np.uint8)
    return totals


def _compare_with_floats(values: Tensor, counts: ThresholdCounts, where: slice, dim: int, scratch: Tensor) -> None:
    flags, thresholds = scratch.view(torch.float32)[: values.numel()].view(values.shape), counts.thresholds[:, where]
    sums = flags.new_empty(2, *thresholds.shape)
    for index, threshold in enumerate(thresholds.unsqueeze(dim + 1)):
        # zeros and ones as floats: torch compares into floats and adds floats several times faster than booleans
        torch.gt(values, threshold, out=flags)
        torch.sum(flags, dim, out=sums[0, index])
        torch.ge(values, threshold, out=flags)
        torch.sum(flags, dim, out=sums[1, index])
    counts.above[:, where] += sums[0].to(counts.above.dtype)
    counts.ties[:, where] += (sums[1] - sums[0]).to(counts.ties.dtype)


def count_by_sorting(
    similarities: Tensor,
    rows: ThresholdCounts | None,
    columns: ThresholdCounts | None = None,
    scratch: Tensor | None = None,
) -> None:
    """Add the counts of a matrix of similarities for its rows, its columns, or both, by sorting it **in place**.

    Args:
        similarities: ``(m, n)``; −∞ for entries that do not count.
        rows: thresholds of the m rows.
        columns: thresholds of the n columns, on a CPU.
        scratch: a buffer of `make_scratch` for as many similarities; needed for columns, and for views.
    """
    if columns is not None:
        assert scratch is not None
        _count_in_sorted(_copy(similarities.T, scratch), columns)
    if rows is not None:
        if scratch is not None and not similarities.is_contiguous():
            similarities = _copy(similarities, scratch)
        _count_in_sorted(similarities, rows)


def _copy(values: Tensor, scratch: Tensor) -> Tensor:
    return scratch.view(values.dtype)[: values.numel()].view(values.shape).copy_(values)


def _count_in_sorted(values: Tensor, counts: ThresholdCounts) -> None:
    if not len(counts.thresholds):
        return
    if values.device.type != "cpu":
        ordered = values.sort(dim=1).values
    else:
        map_over_cores(lambda part: part.sort(axis=1), values)
        ordered = values
    thresholds, width = counts.thresholds.T.contiguous(), values.shape[1]
    right = torch.searchsorted(ordered, thresholds, right=True)
    ties = None
    # where nothing ties, a second search would find the same
    if values.is_cuda or bool((ordered.gather(1, (right - 1).clamp_(min=0)) == thresholds).any()):
        ties = right - torch.searchsorted(ordered, thresholds)
    with counts.lock:
        counts.above.add_((width - right).T)
        if ties is not None:
            counts.ties.add_(ties.T)


def get_comparison_limit(device: torch.device, dim: int) -> int:
    """Return the number of thresholds up to which counting in half of the products is the fastest way to count.

    Args:
        device: where the similarities are.
        dim: the dimensions of the embeddings: the more, the more half of the products save.
    """
    if device.type == "cuda" and _load_triton_counter() is not None:
        return 1024
    if device.type != "cpu":
        return 16
    # nanoseconds per pair on one core: half of a product; sorts of short rows save 0.8, but need more searches, of 0.07 per
    # threshold; where sorts are slow, comparing takes 0.5 per threshold
    half = (0.004 if is_onednn_faster() else 0.009) * dim
    return int((half + 0.8) / 0.07) if sorts_fast() else int((half + 30.0) / 0.5)


def compares_faster(thresholds: int) -> bool:
    """Return whether comparing with this many thresholds is faster than sorting on a CPU."""
    return thresholds <= 4 or not sorts_fast()


@cache
def sorts_fast() -> bool:
    """Return whether numpy sorts rows of floats fast on this processor.

    Sorts with vector instructions take one to three nanoseconds per entry; others take more than 20, and so do those
    with vector instructions on processors that store compressed vectors slowly.
    """
    rows = np.random.default_rng(0).standard_normal((5, 8192), dtype=np.float32)
    times = []
    for row in rows:
        start = time.perf_counter()
        row.sort()
        times.append(time.perf_counter() - start)
    return bool(1e9 * min(times) / rows.shape[1] < 8.0)


def _load_triton_counter() -> Callable[..., None] | None:
    """Import the Triton kernel; ``None`` without Triton."""
    try:
        from likewise.metrics.triton_counts import count_on_device
    except ImportError:
        return None
    return count_on_device
