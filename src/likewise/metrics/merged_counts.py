"""Ranks of positives, from one sort of positives and negatives together.

A similarity becomes an integer key that orders as the similarity does, the highest first, with one more bit that puts
positives before the negatives that tie with them.  After the sort, the position of a positive is its rank.  The cost
hardly depends on the number of positives, unlike that of a search for each of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from likewise.metrics.chunks import fit_rows, split_rows
from likewise.metrics.cores import call_on_cores
from likewise.metrics.positives import Ties

CACHE_KEYS = 2**18
"""Keys that are made, or sorted and examined, at once: few enough for a core's cache, and enough for few steps."""

MERGED_BYTES, MERGED_BYTES_PER_POSITIVE = 20, 64
"""Memory per key, and per positive among them: keys and flags; ranks, and those of the previous chunk."""


def make_keys(similarities: Tensor) -> Tensor:
    """Return the keys of rows of similarities as if they were negatives, odd; those of positives are one lower.

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
    values: NDArray[Any] = similarities.numpy()
    chunks = split_rows(len(values), fit_rows(CACHE_KEYS, per_row=similarities.shape[1]))
    if values.dtype == np.float32 and all(call_on_cores(lambda chunk: have_small_keys(values[chunk]), chunks)):
        small = np.empty(values.shape, dtype=np.int32)
        call_on_cores(lambda chunk: write_small_keys(values[chunk], small[chunk]), chunks)
        return torch.from_numpy(small)
    keys = np.empty(values.shape, dtype=np.int64)
    write = _write_keys if values.dtype == np.float32 else _write_ranks_as_keys
    call_on_cores(lambda chunk: write(values[chunk], keys[chunk]), chunks)
    return torch.from_numpy(keys)


def have_small_keys(values: NDArray[Any]) -> bool:
    """Return whether similarities are between −1.5 and 1.5, so that they have int32 keys.

    Examples:
        >>> have_small_keys(np.float32([0.5, -1.0])), have_small_keys(np.float32([np.nan]))
        (True, False)
    """
    return not values.size or bool(values.min() > -1.5 and values.max() < 1.5)


def write_small_keys(values: NDArray[Any], keys: NDArray[Any]) -> None:
    """Write the int32 keys of float32 similarities that have them."""
    for chunk in split_rows(len(values), fit_rows(CACHE_KEYS, per_row=values.shape[1])):
        # the second bit of floats below 2 is zero: the sign and 30 bits leave a place for the tag
        bits, out = values[chunk].view(np.int32), keys[chunk]
        signs = bits >> 31
        signs |= 1  # −1 for negative floats, 1 for positive ones
        np.left_shift(bits, 1, out=out)  # twice the magnitude; zero for −0, as for 0
        out *= signs
        np.subtract(1, out, out=out)


def get_lowest(keys: Tensor) -> int:
    """Return a key below that of every similarity: for entries that do not count."""
    return 2**31 - 1 if keys.dtype == torch.int32 else 2**32 + 1


def _write_keys(values: NDArray[Any], keys: NDArray[Any]) -> None:
    np.multiply(order_bits(values), -2, out=keys, dtype=np.int64)
    keys += 1


def order_bits(values: NDArray[np.float32]) -> NDArray[np.int32]:
    """Return integers that order as floats do: their bits, of which those of negative floats are flipped.

    Examples:
        >>> order_bits(np.float32([-2.0, -0.0, 0.0, 1e-45])).tolist()
        [-1073741825, 0, 0, 1]
    """
    bits = (values + np.float32(0.0)).view(np.int32)  # −0 becomes 0
    flips = bits >> 31
    flips &= np.int32(2**31 - 1)
    bits ^= flips
    return bits


def _write_ranks_as_keys(values: NDArray[Any], keys: NDArray[Any]) -> None:
    """Write keys from the number of distinct larger values in the row: a key of 64 bits has no place for a tag."""
    order = np.argsort(-values, axis=1)
    values = np.take_along_axis(values, order, axis=1)
    distinct = np.zeros(values.shape, dtype=np.int64)
    np.cumsum(values[:, 1:] != values[:, :-1], axis=1, out=distinct[:, 1:])
    np.put_along_axis(keys, order, 2 * distinct + 1, axis=1)


def rank_merged(keys: Tensor, largest: int) -> tuple[Tensor, Ties | None, Tensor]:
    """Rank the positives of each row of keys, which are sorted **in place**.

    Args:
        keys: ``(q, n)``; even for positives, odd for negatives, the lowest key for entries that do not count.
        largest: a number that no row's number of positives exceeds.

    Returns:
        The ranks ``(k, q)`` and the ties of a `RankChunk`, and the number of positives of each row.

    Examples:
        >>> import torch
        >>> keys = make_keys(torch.tensor([[0.3, 0.1, 0.2, 0.1]])) - torch.tensor([1, 1, 0, 0])
        >>> rank, ties, counts = rank_merged(keys, 2)
        >>> rank.T, ties.position, ties.tied, counts
        (tensor([[1., 3.]], dtype=torch.float64), tensor([1]), tensor([1]), tensor([2]))
    """
    rows, width = keys.shape
    rank = np.empty((rows, largest))

    def write(chunk: slice) -> tuple[NDArray[Any], NDArray[Any]]:
        of_chunk = keys.numpy()[chunk]
        of_chunk.sort(axis=1)
        counts, last = _write_ranks(of_chunk, (of_chunk & 1) == 0, rank[chunk])
        last[0] += chunk.start
        return counts, last

    chunks = split_rows(rows, fit_rows(CACHE_KEYS, per_row=width))
    written = call_on_cores(write, chunks)
    ties, _ = _list_ties(keys.numpy(), *np.concatenate([last for _, last in written], axis=1))
    height = max(1, *(int(counts.max()) for counts, _ in written))
    for chunk, (counts, _) in zip(chunks, written, strict=True):
        rank[chunk, counts.max() : height] = np.inf
    counts = np.concatenate([counts for counts, _ in written])
    return torch.from_numpy(rank)[:, :height].T, ties, torch.from_numpy(counts)


def find_first(keys: Tensor, first: int) -> tuple[NDArray[np.bool_], tuple[Ties | None, Tensor], Tensor]:
    """Find the positives among the first entries of each row of keys, which are sorted **in place**.

    Args:
        keys: as in `rank_merged`.
        first: the number of entries.

    Returns:
        The flags, the ties and their ranks of a `RelevanceChunk`, and the number of positives of each row.

    Examples:
        >>> import torch
        >>> keys = make_keys(torch.tensor([[0.3, 0.1, 0.2, 0.1]])) - torch.tensor([1, 1, 0, 0])
        >>> is_positive, (ties, ranks), counts = find_first(keys, 3)
        >>> is_positive, ties.position, ranks, counts
        (array([[ True, False,  True]]), tensor([1]), tensor([3.], dtype=torch.float64), tensor([2]))
    """
    rows, width = keys.shape
    first = min(first, width)
    flags, counts = np.empty((rows, first), dtype=np.bool_), np.empty(rows, dtype=np.int64)

    def write(chunk: slice) -> NDArray[Any]:
        of_chunk = keys.numpy()[chunk]
        of_chunk.sort(axis=1)
        is_positive = (of_chunk & 1) == 0
        counts[chunk] = [np.count_nonzero(row) for row in is_positive]  # much faster than a sum of booleans
        flags[chunk] = is_positive[:, :first]
        # a tie that begins among the first entries may end later
        ends = first < width and not (of_chunk[:, first - 1] >> 1 == of_chunk[:, first] >> 1).any()
        row, column = _find_last(of_chunk[:, :first] if ends else of_chunk)
        tied, place = np.unique(row, return_inverse=True)
        position = np.cumsum(is_positive[tied], axis=1, dtype=np.int32)[place, column] - 1
        return np.stack([row + chunk.start, column, position])

    last = call_on_cores(write, split_rows(rows, fit_rows(CACHE_KEYS, per_row=width)))
    return flags, _list_ties(keys.numpy(), *np.concatenate(last, axis=1)), torch.from_numpy(counts)


def _find_last(keys: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The row and the column of each positive of sorted rows that is followed by a negative that ties with it."""
    # they differ in the last bit only
    return np.divmod(np.flatnonzero((keys[:, 1:] ^ keys[:, :-1]) == 1), max(1, keys.shape[1] - 1))


def _write_ranks(
    keys: NDArray[Any], is_positive: NDArray[Any], rank: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Write the ranks of the positives of sorted rows, followed by infinity up to the largest number of them.

    Returns:
        The number of positives of each row; and the row, the column and the number of positives before it in the row of
        each positive that is followed by a negative that ties with it, ``(3, t)``.
    """
    rows, width = keys.shape
    place, starts = np.flatnonzero(is_positive), np.arange(0, (rows + 1) * width, width)
    edges = np.searchsorted(place, starts)
    counts = np.diff(edges)
    most = int(counts.max())
    if len(place) == rows * most:
        np.subtract(place.reshape(rows, most).astype(np.float64), starts[:-1, None] - 1.0, out=rank[:, :most])
    else:  # in few steps: threads wait for each other after each
        rank[:, :most] = np.inf
        rank[:, :most][np.arange(most) < counts[:, None]] = place
        rank[:, :most] -= starts[:-1, None] - 1
    row, column = _find_last(keys)
    return counts, np.stack([row, column, np.searchsorted(place, row * width + column) - edges[row]])


def _list_ties(
    keys: NDArray[Any], row: NDArray[Any], column: NDArray[Any], position: NDArray[Any]
) -> tuple[Ties | None, Tensor]:
    """List the ties of sorted rows, and the rank of each positive in them; ``None`` and nothing if there are none.

    Args:
        keys: the sorted rows, ``(q, n)``.
        row: the row of the last positive of each tie, ``(t,)``; the next key is that of a negative.
        column: its column.
        position: the number of positives before it in its row.
    """
    if not len(row):
        return None, torch.empty(0, dtype=torch.float64)
    width = keys.shape[1]
    key, before, after = keys[row, column], keys[row, column - 1], keys[row, np.minimum(column + 2, width - 1)]
    # most ties are of one positive and one negative
    first, end = column, column + 2
    if bool(((before == key) & (column > 0)).any()) or bool(((after == key + 1) & (end < width)).any()):
        first = _bisect(keys, row, key, np.zeros_like(column), first)
        end = _bisect(keys, row, key + 2, end, np.full_like(column, width))
    alike, tied = column + 1 - first, end - column - 1
    entry = np.arange(alike.sum()) - np.repeat(np.cumsum(alike) - alike, alike)
    columns = (np.repeat(row, alike), np.repeat(position + 1 - alike, alike) + entry, np.repeat(tied, alike))
    rank = np.repeat(first + 1.0, alike) + entry
    return Ties(*map(torch.from_numpy, columns)), torch.from_numpy(rank)


def _bisect(
    keys: NDArray[Any], row: NDArray[Any], key: NDArray[Any], low: NDArray[Any], high: NDArray[Any]
) -> NDArray[Any]:
    """The first column of a sorted row from ``low`` on whose key is at least ``key``, or ``high``."""
    while (is_open := low < high).any():
        middle = (low + high) // 2
        is_below = is_open & (keys[row, np.minimum(middle, keys.shape[1] - 1)] < key)
        low, high = np.where(is_below, middle + 1, low), np.where(is_open & ~is_below, middle, high)
    return low
