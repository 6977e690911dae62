"""Counts of negatives above and tied with each positive, from one sort of positives and negatives together.

A similarity becomes an integer key that orders as the similarity does, the highest first, with one more bit that puts
positives before the negatives that tie with them.  After the sort, the position of a positive minus the number of
positives before it is the number of negatives above it.  The cost does not depend on the number of positives, unlike
a search for each of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from likewise.metrics.chunks import fit_rows, split_rows
from likewise.metrics.threshold_counts import call_on_cores

CACHE_KEYS = 2**16
"""Keys that are sorted and examined at once: few enough to stay in a core's cache."""

MERGED_BYTES, MERGED_BYTES_PER_POSITIVE = 20, 64
"""Memory per key, and per positive among them: keys and flags; counts, and those of the previous chunk."""


def make_keys(similarities: Tensor) -> Tensor:
    """Return the keys of rows of similarities as if they were positives; those of negatives are one higher.

    The keys of float32 similarities between −1.5 and 1.5, such as cosines, are int32, which sort twice as fast; others
    are int64.

    Examples:
        >>> import torch
        >>> keys = make_keys(torch.tensor([[0.5, 0.0, -0.0, -0.5]]))[0]
        >>> (keys[0] < keys[1]).item(), (keys[1] == keys[2]).item(), (keys[3] < get_lowest(keys)).item(), keys.dtype
        (True, True, True, torch.int32)
        >>> make_keys(torch.tensor([[0.5, -torch.inf]])).dtype
        torch.int64
    """
    make, dtype = _use_ranks, torch.int64
    if similarities.dtype == torch.float32:
        low, high = similarities.numpy().min(), similarities.numpy().max()
        make, dtype = (_use_31_bits, torch.int32) if low > -1.5 and high < 1.5 else (_use_bits, torch.int64)
    keys = torch.empty(similarities.shape, dtype=dtype)

    def write(chunk: slice) -> None:
        make(similarities[chunk].numpy(), keys[chunk].numpy())

    call_on_cores(write, split_rows(len(keys), fit_rows(CACHE_KEYS, per_row=keys.shape[1])))
    return keys


def get_lowest(keys: Tensor) -> int:
    """Return a key below that of every similarity: for entries that do not count."""
    return 2**31 - 1 if keys.dtype == torch.int32 else 2**32 + 1


def _use_bits(values: NDArray[Any], keys: NDArray[Any]) -> None:
    """Floats order as the integers of their bits do, if those of negative floats are flipped; here in reverse."""
    bits = (values + np.float32(0.0)).view(np.int32)  # −0 becomes 0
    flips = bits >> 31
    flips &= np.int32(2**31 - 1)
    bits ^= flips
    np.multiply(bits, -2, out=keys, dtype=np.int64)


def _use_31_bits(values: NDArray[Any], keys: NDArray[Any]) -> None:
    """The same for floats below 2, whose second bit is zero: the sign and 30 bits leave a place for the tag."""
    bits = values.view(np.int32)
    is_positive = ~bits >> 31  # −1 for positive floats, 0 for negative ones
    np.left_shift(bits, 1, out=keys)  # twice the magnitude; zero for −0, as for 0
    keys ^= is_positive
    keys -= is_positive


def _use_ranks(values: NDArray[Any], keys: NDArray[Any]) -> None:
    """The number of distinct larger values in the row: a key of 64 bits has no place for a tag."""
    order = np.argsort(-values, axis=1)
    values = np.take_along_axis(values, order, axis=1)
    distinct = np.zeros(values.shape, dtype=np.int64)
    np.cumsum(values[:, 1:] != values[:, :-1], axis=1, out=distinct[:, 1:])
    np.put_along_axis(keys, order, 2 * distinct, axis=1)


def count_merged(keys: Tensor) -> tuple[Tensor, Tensor | None, Tensor]:
    """Count for each row of keys, which are sorted **in place**.

    Args:
        keys: ``(q, n)``; even for positives, odd for negatives, the lowest key for entries that do not count.

    Returns:
        The number of negatives above each positive, the number of negatives that tie with it (``None`` if no negative
        ties with any), both ``(k, q)`` int64 with the most similar positive first, and the number of positives of each row.

    Examples:
        >>> import torch
        >>> keys = make_keys(torch.tensor([[0.3, 0.1, 0.2, 0.1]])) + torch.tensor([0, 0, 1, 1])
        >>> above, tied, counts = count_merged(keys)
        >>> above.T, tied.T, counts
        (tensor([[0, 1]]), tensor([[0, 1]]), tensor([2]))
    """
    rows, width = keys.shape
    is_positive, has_ties = np.empty(keys.shape, dtype=bool), np.empty(rows, dtype=bool)
    step = fit_rows(CACHE_KEYS, per_row=width)

    def sort(chunk: slice) -> None:
        part = keys.numpy()[chunk]
        part.sort(axis=1)
        np.equal(part & 1, 0, out=is_positive[chunk])
        # a positive and a negative that tie somewhere are neighbors there, and differ in the last bit only
        has_ties[chunk] = ((part[:, 1:] ^ part[:, :-1]) == 1).any(axis=1)

    call_on_cores(sort, split_rows(rows, step))
    place = torch.from_numpy(np.flatnonzero(is_positive))
    counts = torch.searchsorted(place, torch.arange(0, (rows + 1) * width, width)).diff()
    largest = int(counts.max())
    above = _unflatten(place, counts, largest)
    above -= torch.arange(0, rows * width, width)[:, None]
    above -= torch.arange(largest)
    with_ties = torch.from_numpy(np.flatnonzero(has_ties))
    if not len(with_ties):
        return above.T, None, counts
    tied = torch.zeros_like(above)
    for chunk in split_rows(len(with_ties), step):
        row = with_ties[chunk]
        tied[row, : int(counts[row].max())] = _count_ties(keys[row], counts[row])
    return above.T, tied.T, counts


def _unflatten(values: Tensor, counts: Tensor, largest: int) -> Tensor:
    """Put the positives of all rows, in order, into rows of equal length; what follows a row's last is not defined."""
    if len(values) == len(counts) * largest:
        return values.view(len(counts), largest)
    padded = values.new_zeros(len(counts), largest)
    padded[torch.arange(largest) < counts[:, None]] = values
    return padded


def _count_ties(keys: Tensor, counts: Tensor) -> Tensor:
    """For sorted rows, the number of negatives that tie with each positive, ``(r, k)``."""
    values, is_negative = keys >> 1, (keys & 1).bool().flatten()
    is_start = torch.ones(keys.shape, dtype=torch.bool)
    is_start[:, 1:] = values[:, 1:] != values[:, :-1]
    group = is_start.flatten().cumsum(0) - 1
    negatives = torch.bincount(group[is_negative], minlength=int(group[-1]) + 1)
    return _unflatten(negatives[group[~is_negative]], counts, int(counts.max()))
